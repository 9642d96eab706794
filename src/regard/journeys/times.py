"""Times as people and programs write them, to milliseconds and the zone that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars

__all__ = ["FORMATS", "TimeReader"]

_CLOCKS = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_DAYS = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d-%b-%Y",
    "%d %b %Y",
)
FORMATS = (
    *(f"{day} {clock}" for day in _DAYS for clock in _CLOCKS),
    *_DAYS,
    "%Y%m%d%H%M%S",
    "%Y%m%d",
)
"""Formats that are tried, in order; a T between day and clock and a zone after it are always understood."""
_ZONE = r"(?i)(?:(?:\d|\s)(Z|UTC)|:\d{2}(?:\.\d+)?\s*([+-]\d{2}:?(?:\d{2})?))$"
_SECONDS, _MILLISECONDS = 10**9, 10**12
"""From these numbers on a whole number is taken for seconds, or milliseconds, since 1970."""


class TimeReader:
    """Reads times of one column, batch after batch, all in the format that fits the first batch.

    Args:
        time_format: A strptime format; recognised from the first batch if None.

    Attributes:
        format: The format, once it is known; ``epoch`` for numbers.
        ambiguous: Another format that would have fitted the first batch with another meaning, or None.
    """

    def __init__(self, time_format: str | None = None) -> None:
        self.format = time_format
        self.ambiguous: str | None = None

    def read(self, texts: polars.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read some times.

        Returns:
            Milliseconds since 1970 UTC int64, zone in minutes int16, and whether each could be read.
        """
        texts = texts.str.strip_chars()
        if self.format is None:
            self._recognise(texts)
        if self.format == "epoch":
            return _epoch(texts)
        given = self.format is not None and "%z" in self.format
        if given:
            parsed = texts.str.to_datetime(self.format, strict=False, time_unit="ms", time_zone="UTC")
            zone = np.zeros(len(texts), np.int16)
        else:
            clock, zone = _without_zone(texts)
            parsed = _parse(clock, self.format or FORMATS[0])
        good = parsed.is_not_null().to_numpy()
        milliseconds = parsed.to_physical().fill_null(0).to_numpy().astype(np.int64)
        return milliseconds - zone.astype(np.int64) * 60_000, zone, good

    def _recognise(self, texts: polars.Series) -> None:
        filled = texts.filter(texts.str.len_chars() > 0).unique(maintain_order=True)
        if len(filled) and _epoch(filled)[2].all():
            self.format = "epoch"
            return
        clock, _ = _without_zone(filled)
        sample, best, most = clock.head(200), None, 0
        fitting = []
        for form in FORMATS:
            n = int(_parse(sample, form).is_not_null().sum())
            if n > most:
                best, most = form, n
            if n == len(sample) and n and _parse(clock, form).is_not_null().all():
                fitting.append(form)
        self.format = fitting[0] if fitting else best
        if len(fitting) > 1:
            first, *others = (_parse(clock, form) for form in fitting)
            self.ambiguous = next(
                (form for form, times in zip(fitting[1:], others, strict=True) if not times.equals(first)),
                None,
            )


def _parse(clock: polars.Series, form: str) -> polars.Series:
    return clock.str.to_datetime(form, strict=False, time_unit="ms")


def _epoch(texts: polars.Series) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    import polars

    numbers = texts.cast(polars.Float64, strict=False)
    good = (numbers.is_not_null() & (numbers >= _SECONDS) & (numbers < 1000 * _MILLISECONDS)).fill_null(False)
    values = numbers.fill_null(0).to_numpy()
    milliseconds = np.where(values >= _MILLISECONDS, values, values * 1000).astype(np.int64)
    return milliseconds, np.zeros(len(texts), np.int16), good.to_numpy()


def _without_zone(texts: polars.Series) -> tuple[polars.Series, np.ndarray]:
    """Split clock times, with a blank between day and clock, from the zone in minutes (0 if none is given)."""
    offset = texts.str.extract(_ZONE, 2)
    has_z = texts.str.extract(_ZONE, 1).is_not_null()
    clock = texts
    if bool(has_z.any()):
        clock = clock.str.replace(r"(?i)\s*(Z|UTC)$", "")
    if bool(offset.is_not_null().any()):
        clock = clock.str.replace(r"(:\d{2}(?:\.\d+)?)\s*[+-]\d{2}:?(?:\d{2})?$", "${1}")
    clock = clock.str.replace(r"^(\S*\d)T(\d)", "${1} ${2}")
    import polars

    digits = offset.str.replace(":", "")
    hours = digits.str.slice(1, 2).cast(polars.Int32, strict=False).fill_null(0).to_numpy()
    minutes = digits.str.slice(3, 2).cast(polars.Int32, strict=False).fill_null(0).to_numpy()
    sign = np.where(digits.str.starts_with("-").fill_null(False).to_numpy(), -1, 1)
    return clock, (sign * (hours * 60 + minutes)).astype(np.int16)
