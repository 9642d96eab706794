"""Dates, times, numbers, money and names in two locales, from the CLDR data that Babel brings.

``cldr:SRC-TGT`` pairs what Babel writes in one locale with what it writes in the other: a small translation
task that needs no download, with as many examples as are wanted and one right answer for each.

- Open kinds: dates (1900 to 2099) in several formats, times with and without seconds, relative times,
  numbers with units (up to six digits), amounts of money. Closed kinds: names of countries and territories,
  of languages and of scripts (those with official status somewhere). Each example is a list of
  ``items`` such expressions (1 to 3), so that length can be dialled.
- Every source has one right target. Where two formats look alike in the source and differ in the target
  (Chinese long and medium dates) one is chosen for all; a list that could mean two things is not used.
- The splits: no value of an open kind that dev or test contains occurs in training in any of its forms,
  alone or in a list; a single item of dev and test is always of an open kind. Names cannot be worked out
  from other names: they are the same in all splits (each is seen ten times or more in training), and what
  is new in dev and test is the list they stand in.
- U+00A0 and U+202F, which CLDR puts into many formats (in English between time and AM), are written as
  plain blanks, as people type them. Everything else is as CLDR has it, marks of direction included.
"""

from __future__ import annotations

import datetime
from importlib.metadata import version
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.localedata import locale_identifiers

from regard.data.corpora.base import Corpus, CorpusSource, check_size, parse_range
from regard.data.corpora.cldr_kinds import open_kinds
from regard.data.corpora.cldr_lists import Example, Item, ListMaker
from regard.data.corpora.cldr_names import closed_names
from regard.errors import DataError, did_you_mean

__all__ = ["SOURCE", "make_examples"]

_LICENCE = "Unicode-3.0 (CLDR; in the package Babel, BSD-3-Clause)"
_DEFAULT_SIZE = 12_000
# Never in training, so that an untaught date can be shown in every demonstration.
_RESERVED_DAY = datetime.date(2026, 12, 1)


def _parse_locale(code: str, argument: str) -> Locale:
    known = locale_identifiers()
    try:
        locale = Locale.parse(code)
    except (UnknownLocaleError, ValueError, TypeError):
        raise DataError(
            f"cldr:{argument}: Babel has no locale {code!r}; use a code such as zh, en, de, pt_BR or zh_Hant"
            f"{did_you_mean(code, known)}"
        ) from None
    return locale


def _parse_locales(argument: str) -> tuple[Locale, Locale]:
    """Read ``SRC-TGT``; parts of one code are joined by ``_``.

    Raises:
        DataError: Not two codes, the same twice, or one that Babel does not have.
    """
    codes = argument.split("-")
    if len(codes) != 2 or not all(codes):
        raise DataError(
            f"cldr:{argument}: two locales with one hyphen between them were expected, such as cldr:zh-en or "
            "cldr:zh_Hant-pt_BR"
        )
    source, target = (_parse_locale(code, argument) for code in codes)
    if source == target:
        raise DataError(f"cldr:{argument}: source and target are the same locale; choose two")
    return source, target


def make_examples(
    locales: tuple[Locale, Locale], *, size: int, items: tuple[int, int], seed: int
) -> dict[str, list[Example]]:
    """Make train (``size`` examples), dev and test with the items each example is made of.

    Raises:
        DataError: The locales have too few expressions for so many.
    """
    kinds = open_kinds(*locales)
    if not kinds:
        raise DataError(f"Babel has no dates, times or numbers that {locales[0]} and {locales[1]} share")
    maker = ListMaker(
        locales=locales,
        kinds=kinds,
        names=closed_names(*locales),
        items=items,
        seed=f"cldr:{locales[0]}-{locales[1]}:{seed}",
        reserved=[
            Item(source, target, kind.name, key)
            for kind in kinds
            if kind.name == "dates"
            for source, target, key in [kind.write(kind.forms[0][0], _RESERVED_DAY)]
        ],
    )
    return maker.make(size)


def _load(argument: str, *, size: int | None = None, seed: int = 1, items: Any = (1, 3)) -> Corpus:
    locales = _parse_locales(argument)
    bounds = parse_range(items, option="items")
    splits = make_examples(locales, size=check_size(size, default=_DEFAULT_SIZE), items=bounds, seed=seed)
    names = [locale.get_display_name("en") for locale in locales]
    description = (
        f"Lists of {bounds[0]} to {bounds[1]} dates, times, relative times, numbers with units, amounts of money and "
        f"names of countries, languages and scripts, in {names[0]} and {names[1]}, written by Babel "
        f"{version('babel')} with seed {seed}. Every source has one right target. No date, time, number or amount of "
        "dev or test occurs in training, alone or in a list, in any format; a line of one item in dev and test is "
        "always such a one. Names are a closed class: the same ones stand in the lists of all splits, in other "
        "company. U+00A0 and U+202F are written as plain blanks."
    )
    train, dev, test = (
        [(example.source, example.target) for example in splits[split]] for split in ("train", "dev", "test")
    )
    return Corpus(
        name=f"cldr:{argument}?items={bounds[0]}-{bounds[1]}",
        description=description,
        licence=_LICENCE,
        train=train,
        dev=dev,
        test=test,
    )


SOURCE = CorpusSource(
    usage="cldr:SRC-TGT",
    what="Dates, times, numbers, money and names in any two locales, such as cldr:zh-en",
    licence="Unicode-3.0",
    load=_load,
    options={"items": "expressions a line, from-to (default 1-3)"},
)
