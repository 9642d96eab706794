"""The open kinds of CLDR expressions: dates, times, relative times, numbers with units, amounts of money.

A kind is a set of forms (ways to write a value in the two locales) and a way to draw values. Two forms of a
kind can look alike in the source and not in the target: Chinese writes the long and the medium date alike,
English does not. Then the form that is listed first decides, so that a source has one right target.
"""

from __future__ import annotations

import datetime
import random
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, partial
from typing import Any

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time, format_timedelta
from babel.numbers import format_currency, get_currency_precision
from babel.units import format_unit

__all__ = ["Form", "Kind", "open_kinds", "tidy"]

Draw = Callable[[random.Random], Any]

# What Babel raises where a locale lacks a pattern.
_LACKING = (LookupError, ValueError, AttributeError, TypeError, NotImplementedError)

# The forms that say most come first.
_DAY_FORMS = ("long", "full", "yMd", "medium", "short", "yMMMEd")
_MONTH_FORMS = ("yMMMM", "yMMM", "yM")
_DAY_OF_YEAR_FORMS = ("MMMMd", "MMMd", "Md", "MMMEd")
_TIME_FORMS = ("short", "medium", "hm", "hms", "Hm", "Hms")
_WIDTHS = ("long", "short")
_SPANS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 7 * 86400,
    "month": 30 * 86400,
    "year": 365 * 86400,
}
# fmt: off
_UNITS = (
    "length-kilometer", "length-meter", "length-centimeter", "length-millimeter", "length-mile",
    "length-inch", "length-foot", "mass-kilogram", "mass-gram", "mass-tonne", "mass-pound",
    "volume-liter", "volume-milliliter", "volume-cubic-meter", "area-square-kilometer",
    "area-square-meter", "area-hectare", "speed-kilometer-per-hour", "speed-meter-per-second",
    "temperature-celsius", "temperature-fahrenheit", "duration-second", "duration-minute",
    "duration-hour", "duration-day", "duration-week", "duration-month", "duration-year",
    "digital-kilobyte", "digital-megabyte", "digital-gigabyte", "power-watt", "power-kilowatt",
    "energy-kilocalorie", "electric-volt", "frequency-megahertz", "graphics-pixel",
)
_CURRENCIES = (
    "USD", "EUR", "CNY", "JPY", "GBP", "CHF", "CAD", "AUD", "INR", "KRW", "BRL", "RUB", "MXN", "SEK",
    "HKD", "SGD", "NZD", "THB",
)
# fmt: on


def tidy(text: str) -> str:
    """Text as it is typed: U+00A0 and U+202F become blanks (English times hold one), in Unicode's NFC."""
    return unicodedata.normalize("NFC", text.replace("\u00a0", " ").replace("\u202f", " "))


def _anything(value: Any) -> bool:
    return True


@dataclass(frozen=True)
class Form:
    """One way to write a value in both locales.

    Attributes:
        name: Such as ``long``.
        group: Forms of one group write the same things (kilometres in full and short), others do not.
        source: Writes a value in the source's locale.
        target: Writes a value in the target's locale.
        accepts: Whether the form can write a value so that the source says all of it.
    """

    name: str
    group: str
    source: Callable[[Any], str]
    target: Callable[[Any], str]
    accepts: Callable[[Any], bool] = _anything


@dataclass(frozen=True)
class Kind:
    """A kind of expression.

    Attributes:
        name: For messages, in the plural.
        weight: Its share among the open kinds.
        candidates: All forms, the preferred ones first; those that a locale lacks are left out.
        draw: Draws a value.
        probes: Values by which forms are compared.
    """

    name: str
    weight: float
    candidates: tuple[Form, ...]
    draw: Draw
    probes: tuple[Hashable, ...]

    @cached_property
    def forms(self) -> tuple[tuple[Form, tuple[Form, ...]], ...]:
        """The forms worth drawing, each with the preferred ones that look like it for some values.

        One that looks like preferred ones for all probes would add nothing and is left out.
        """
        seen: list[tuple[Form, list[str]]] = []
        kept = []
        for form in self.candidates:
            try:
                sources = [tidy(form.source(value)) for value in self.probes]
                any(form.target(value) is None for value in self.probes)
            except _LACKING:
                continue
            rivals = tuple(other for other, texts in seen if any(map(str.__eq__, sources, texts)))
            taken = [any(texts[i] == source for _, texts in seen) for i, source in enumerate(sources)]
            seen.append((form, sources))
            if not all(taken):
                kept.append((form, rivals))
        return tuple(kept)

    def sample(self, rng: random.Random) -> tuple[str, str, Hashable]:
        """Draw an expression: source, target, and a key that all forms of the same value share."""
        form, rivals = rng.choice(self.forms)
        value = self.draw(rng)
        while not form.accepts(value):
            value = self.draw(rng)
        return self.write(form, value, rivals)

    def write(self, form: Form, value: Hashable, rivals: Iterable[Form] = ()) -> tuple[str, str, Hashable]:
        """Write a value in a form, with the target of the first rival that looks the same."""
        source = tidy(form.source(value))
        decisive = next((rival for rival in rivals if tidy(rival.source(value)) == source), form)
        return source, tidy(decisive.target(value)), (self.name, decisive.group, value)


def open_kinds(source: Locale, target: Locale) -> tuple[Kind, ...]:
    """The kinds of two locales, without those for which Babel has no common form."""
    both = (source, target)
    day, month = _draw_day, lambda rng: _draw_day(rng).replace(day=1)
    kinds = (
        _kind("dates", 0.25, _date_forms(both, _DAY_FORMS), day, _DAY_PROBES),
        _kind("months", 0.06, _date_forms(both, _MONTH_FORMS), month, _DAY_PROBES),
        _kind(
            "days of the year", 0.09, _date_forms(both, _DAY_OF_YEAR_FORMS, with_year=False), day, _DAY_PROBES
        ),
        _kind("times", 0.14, _time_forms(both), _draw_time, _TIME_PROBES),
        _kind("relative times", 0.14, _relative_forms(both), _draw_count, (1, 2, 3, 5, 11, 21, 101)),
        _kind("numbers with units", 0.18, _unit_forms(both), _draw_number, _NUMBER_PROBES),
        _kind("amounts of money", 0.14, _money_forms(both), _draw_amount, _AMOUNT_PROBES),
    )
    return tuple(kind for kind in kinds if kind.forms)


def _kind(name: str, weight: float, forms: Iterable[Form], draw: Draw, probes: Sequence[Any]) -> Kind:
    return Kind(name=name, weight=weight, candidates=tuple(forms), draw=draw, probes=tuple(probes))


def _pair(name: str, group: str, write: Callable[..., str], locales: tuple[Locale, Locale]) -> Form:
    """A form that one function writes in either locale."""
    return Form(name, group, partial(write, locale=locales[0]), partial(write, locale=locales[1]))


# Dates

_FIRST_DAY, _LAST_DAY = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
_DAY_PROBES = tuple(
    datetime.date(2026 - 7 * month, month, day) for month in range(1, 13) for day in (1, 9, 28)
)


def _write_date(day: datetime.date, *, form: str, locale: Locale) -> str:
    if form in ("short", "medium", "long", "full"):
        return str(format_date(day, form, locale))
    return str(format_skeleton(form, day, locale=locale, fuzzy=False))


def _in_clear_century(day: datetime.date) -> bool:
    return 1950 <= day.year <= 2049


def _shortens_years(form: Form) -> bool:
    """Whether the source has years of two digits, so that two centuries look alike."""
    try:
        return form.source(datetime.date(1926, 5, 14)) == form.source(datetime.date(2026, 5, 14))
    except _LACKING:
        return False


def _date_forms(
    locales: tuple[Locale, Locale], names: Iterable[str], *, with_year: bool = True
) -> list[Form]:
    forms = [_pair(name, "", partial(_write_date, form=name), locales) for name in names]
    # A year of two digits is read as one of 1950 to 2049, so that the source still has one meaning.
    return [
        replace(form, accepts=_in_clear_century) if with_year and _shortens_years(form) else form
        for form in forms
    ]


def _draw_day(rng: random.Random) -> datetime.date:
    return datetime.date.fromordinal(rng.randint(_FIRST_DAY.toordinal(), _LAST_DAY.toordinal()))


# Times

_TIME_PROBES = (
    *(datetime.time(hour, 7, 9) for hour in range(24)),
    datetime.time(0, 0),
    datetime.time(12, 0),
)


def _write_time(time: datetime.time, *, form: str, locale: Locale) -> str:
    if form in ("short", "medium"):
        return str(format_time(time, form, locale=locale))
    moment = datetime.datetime.combine(datetime.date(2026, 12, 1), time)
    return str(format_skeleton(form, moment, locale=locale, fuzzy=False))


def _time_forms(locales: tuple[Locale, Locale]) -> list[Form]:
    return [_pair(name, "", partial(_write_time, form=name), locales) for name in _TIME_FORMS]


def _draw_time(rng: random.Random) -> datetime.time:
    return datetime.time(rng.randrange(24), rng.randrange(60), rng.randrange(60))


# Relative times


def _write_relative(count: int, *, unit: Any, sign: int, width: Any, locale: Locale) -> str:
    delta = datetime.timedelta(seconds=sign * count * _SPANS[unit])
    # The threshold keeps Babel from rounding 24 hours up to a day.
    return str(
        format_timedelta(
            delta, granularity=unit, threshold=10**9, add_direction=True, format=width, locale=locale
        )
    )


def _relative_forms(locales: tuple[Locale, Locale]) -> list[Form]:
    return [
        _pair(width, f"{unit} {sign}", partial(_write_relative, unit=unit, sign=sign, width=width), locales)
        for width in _WIDTHS
        for unit in _SPANS
        for sign in (1, -1)
    ]


def _draw_count(rng: random.Random) -> int:
    return rng.randint(1, 10 ** rng.randint(1, 3) - 1)


# Numbers with units

_NUMBER_PROBES = tuple(map(Decimal, ("1", "2", "3", "5", "21", "100", "1.5", "2345.6", "300000")))


def _write_unit(number: Decimal, *, unit: str, width: Any, locale: Locale) -> str:
    return str(format_unit(number, unit, width, locale=locale))


def _unit_forms(locales: tuple[Locale, Locale]) -> list[Form]:
    return [
        _pair(width, unit, partial(_write_unit, unit=unit, width=width), locales)
        for width in _WIDTHS
        for unit in _UNITS
    ]


def _draw_number(rng: random.Random) -> Decimal:
    whole = rng.randint(1, 10 ** rng.randint(1, 6) - 1)
    return Decimal(f"{whole}.{rng.randint(1, 9)}") if rng.random() < 0.3 else Decimal(whole)


# Amounts of money

_AMOUNT_PROBES = tuple(map(Decimal, ("0.75", "1.00", "2.00", "5.25", "21.00", "2345.60", "300000.00")))


def _write_money(amount: Decimal, *, currency: str, style: str, locale: Locale) -> str:
    if get_currency_precision(currency) == 0:
        amount = amount.to_integral_value()
    if style == "name":
        return str(format_currency(amount, currency, locale=locale, format_type="name"))
    return str(format_currency(amount, currency, locale=locale))


def _money_forms(locales: tuple[Locale, Locale]) -> list[Form]:
    return [
        _pair(style, currency, partial(_write_money, currency=currency, style=style), locales)
        for style in ("standard", "name")
        for currency in _CURRENCIES
    ]


def _draw_amount(rng: random.Random) -> Decimal:
    whole = rng.randint(1, 10 ** rng.randint(1, 6) - 1)
    cents = 0 if rng.random() < 0.3 else rng.randint(1, 99)
    return Decimal(f"{whole}.{cents:02d}")
