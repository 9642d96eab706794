"""An event log as compact arrays: cases one after the other, each in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

__all__ = ["MISSING", "Attribute", "EventLog", "take_cases"]

MISSING = 0
"""Code of a category that an event lacks; named categories count from 1."""


@dataclass(frozen=True)
class Attribute:
    """A further column of the log.

    Attributes:
        name: The column.
        values: One an event: int32 codes of a category (`MISSING` or 1 …), or float32 numbers (NaN: missing).
        names: Names of the codes from 1; empty for numbers.
        is_number: Whether the values are numbers.
    """

    name: str
    values: np.ndarray
    names: tuple[str, ...] = ()
    is_number: bool = False

    def shown(self, place: int) -> str:
        """The value at an event as text; empty if it is missing."""
        value = self.values[place]
        if self.is_number:
            return "" if np.isnan(value) else f"{float(value):g}"
        return "" if value == MISSING else self.names[int(value) - 1]


@dataclass(frozen=True)
class EventLog:
    """Events of cases.

    Attributes:
        case_ids: Names of the cases, in the order in which they first occur in the file.
        offsets: Where each case begins, int64 ``(n_cases + 1,)``.
        activity: Index into ``activities``, int32 ``(n_events,)``.
        activities: Names of the activities.
        time: Milliseconds since 1970 UTC, int64 ``(n_events,)``.
        zone: Minutes east of UTC that the file gave, int16 ``(n_events,)``; clock time is ``time + zone``.
        attributes: The further columns.
        notes: What was left out or put in order, as sentences.
    """

    case_ids: tuple[str, ...]
    offsets: np.ndarray
    activity: np.ndarray
    activities: tuple[str, ...]
    time: np.ndarray
    zone: np.ndarray
    attributes: tuple[Attribute, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def n_cases(self) -> int:
        """Number of cases."""
        return len(self.case_ids)

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self.activity)

    @property
    def lengths(self) -> np.ndarray:
        """Events of each case, int64 ``(n_cases,)``."""
        return np.diff(self.offsets)

    @property
    def n_bytes(self) -> int:
        """Size of the arrays."""
        arrays = (self.offsets, self.activity, self.time, self.zone, *(a.values for a in self.attributes))
        return sum(array.nbytes for array in arrays)

    def events(self, case: int) -> slice:
        """Places of a case's events."""
        return slice(int(self.offsets[case]), int(self.offsets[case + 1]))

    def path(self, case: int) -> tuple[str, ...]:
        """A case's activities."""
        return tuple(self.activities[code] for code in self.activity[self.events(case)])

    def attribute(self, name: str) -> Attribute | None:
        """The attribute of a name, or None."""
        return next((attribute for attribute in self.attributes if attribute.name == name), None)


def take_cases(log: EventLog, cases: Sequence[int] | np.ndarray) -> EventLog:
    """A log of some cases, in the order given."""
    cases = np.asarray(cases, dtype=np.int64)
    lengths = log.lengths[cases]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.repeat(log.offsets[:-1][cases] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return replace(
        log,
        case_ids=tuple(log.case_ids[case] for case in cases),
        offsets=offsets,
        activity=log.activity[places],
        time=log.time[places],
        zone=log.zone[places],
        attributes=tuple(replace(a, values=a.values[places]) for a in log.attributes),
    )
