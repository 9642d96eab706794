"""Cases as a model reads them: codes of its own vocabulary, and batches with times as features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from pydantic import BaseModel, ConfigDict

from regard.journeys.log import MISSING, EventLog
from regard.nn.types import EOS, UNK

__all__ = [
    "FIRST_ACTIVITY",
    "N_CLOCK",
    "CaseBatch",
    "EncodedLog",
    "JourneyVocabulary",
    "collate",
    "cut_batches",
]

FIRST_ACTIVITY = UNK + 1
"""Id of the first activity; below are padding, end and unknown."""
N_CLOCK = 6
"""Numbers that say when an event was (see `clock_features`)."""
N_GAPS, N_HOURS, N_DAYS = 28, 24, 7
"""Buckets of the gap (powers of two of seconds), hours of the day and days of the week."""


class Number(BaseModel):
    """How a column of numbers is brought to mean 0 and deviation 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    mean: float
    deviation: float


class Category(BaseModel):
    """A column of categories and the values that training has seen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    names: tuple[str, ...]


class JourneyVocabulary(BaseModel):
    """What a model knows of activities and further columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    activities: tuple[str, ...]
    categories: tuple[Category, ...] = ()
    numbers: tuple[Number, ...] = ()

    @classmethod
    def from_log(cls, log: EventLog, *, without: Sequence[str] = ()) -> JourneyVocabulary:
        """Learn it from the cases of training; columns named in ``without`` (labels) are not read."""
        used = [a for a in log.attributes if a.name not in without]
        seen = np.unique(log.activity)
        categories, numbers = [], []
        for attribute in used:
            if attribute.is_number:
                values = attribute.values[~np.isnan(attribute.values)].astype(np.float64)
                if len(values):
                    deviation = float(values.std()) or 1.0
                    numbers.append(
                        Number(name=attribute.name, mean=float(values.mean()), deviation=deviation)
                    )
            else:
                codes = np.unique(attribute.values)
                names = tuple(attribute.names[code - 1] for code in codes if code != MISSING)
                categories.append(Category(name=attribute.name, names=names))
        return cls(
            activities=tuple(log.activities[code] for code in seen),
            categories=tuple(categories),
            numbers=tuple(numbers),
        )

    @property
    def size(self) -> int:
        """Ids of activities, the reserved ones counted."""
        return FIRST_ACTIVITY + len(self.activities)

    def activity(self, token: int) -> str:
        """The name of an id."""
        if token < FIRST_ACTIVITY:
            return "(end)" if token == EOS else "(unknown)"
        return self.activities[token - FIRST_ACTIVITY]


def _recode(
    values: np.ndarray, names: Sequence[str], known: Sequence[str], *, first: int, other: int
) -> np.ndarray:
    """Codes of the log to ids of the vocabulary; ``values`` count from 0."""
    ids = {name: first + place for place, name in enumerate(known)}
    table = np.array([ids.get(name, other) for name in names] or [other], np.int32)
    return table[values]


@dataclass(frozen=True)
class EncodedLog:
    """A log in a model's own ids.

    Attributes:
        offsets: Where each case begins, int64 ``(n_cases + 1,)``.
        activity: Ids, int32 ``(n_events,)``.
        categories: Ids from 1, 0 for missing or unknown, int32 ``(n_events, n_categories)``.
        numbers: Standardised, NaN for missing, float32 ``(n_events, n_numbers)``.
        time: Milliseconds UTC, int64 ``(n_events,)``.
        zone: Minutes, int16 ``(n_events,)``.
        labels: Of each prefix and outcome, int8 ``(n_events, n_outcomes)``; see `prefix_labels`.
    """

    offsets: np.ndarray
    activity: np.ndarray
    categories: np.ndarray
    numbers: np.ndarray
    time: np.ndarray
    zone: np.ndarray
    labels: np.ndarray

    @classmethod
    def from_log(
        cls, log: EventLog, vocabulary: JourneyVocabulary, labels: Sequence[np.ndarray] = ()
    ) -> EncodedLog:
        """Encode a log; columns that it lacks are missing."""
        n = log.n_events
        categories = np.zeros((n, len(vocabulary.categories)), np.int32)
        for place, known in enumerate(vocabulary.categories):
            attribute = log.attribute(known.name)
            if attribute is not None and not attribute.is_number:
                names = ("", *attribute.names)
                categories[:, place] = _recode(attribute.values, names, known.names, first=1, other=0)
                categories[attribute.values == MISSING, place] = 0
        numbers = np.full((n, len(vocabulary.numbers)), np.nan, np.float32)
        for place, number in enumerate(vocabulary.numbers):
            attribute = log.attribute(number.name)
            if attribute is not None and attribute.is_number:
                numbers[:, place] = np.clip((attribute.values - number.mean) / number.deviation, -8, 8)
        return cls(
            offsets=log.offsets,
            activity=_recode(
                log.activity, log.activities, vocabulary.activities, first=FIRST_ACTIVITY, other=UNK
            ),
            categories=categories,
            numbers=numbers,
            time=log.time,
            zone=log.zone,
            labels=np.stack(labels, 1) if labels else np.zeros((n, 0), np.int8),
        )

    @property
    def lengths(self) -> np.ndarray:
        """Events of each case."""
        return np.diff(self.offsets)

    def key(self, places: np.ndarray) -> int:
        """A number from 0 that depends on events alone, not on the log that they stand in.

        Args:
            places: Places of the events, in order.
        """
        digest = blake2b(digest_size=7)
        # Rounded, and one kind of zero and of missing: how a number was written must not matter.
        numbers = np.round(np.nan_to_num(self.numbers[places], nan=-99.0), 4) + 0.0
        for values in (self.activity, self.categories, self.time, self.zone):
            digest.update(np.ascontiguousarray(values[places]).tobytes())
        digest.update(numbers.tobytes())
        return int.from_bytes(digest.digest(), "little")

    def path(self, case: int) -> np.ndarray:
        """Ids of a case's activities."""
        return self.activity[self.offsets[case] : self.offsets[case + 1]]


@dataclass(frozen=True)
class CaseBatch:
    """Some journeys, padded.

    Attributes:
        activity: int64 ``(batch, longest)``, 0 where there is no event.
        categories: int64 ``(batch, longest, n_categories)``.
        numbers: float32 ``(batch, longest, n_numbers)``, NaN for missing.
        clock: float32 ``(batch, longest, N_CLOCK)``.
        buckets: Gap, hour and weekday, int64 ``(batch, longest, 3)``, each from 0.
        seconds: Since the first event, float32 ``(batch, longest)``.
        lengths: int64 ``(batch,)``.
        places: Place of each event in the encoded log, int64 ``(batch, longest)``, -1 where there is none.
    """

    activity: np.ndarray
    categories: np.ndarray
    numbers: np.ndarray
    clock: np.ndarray
    buckets: np.ndarray
    seconds: np.ndarray
    lengths: np.ndarray
    places: np.ndarray


def collate(log: EncodedLog, rows: Sequence[np.ndarray]) -> CaseBatch:
    """Make a batch of journeys, each given as the places of its events in the log, in order."""
    lengths = np.array([len(row) for row in rows], np.int64)
    longest = max(1, int(lengths.max(initial=1)))
    places = np.full((len(rows), longest), -1, np.int64)
    for number, row in enumerate(rows):
        places[number, : len(row)] = row
    real = places >= 0
    at = np.maximum(places, 0)
    time = np.where(real, log.time[at], log.time[at[:, :1]])
    seconds = np.maximum(0, time - time[:, :1]) / 1000
    gap = np.maximum(0, np.diff(time, axis=1, prepend=time[:, :1])) / 1000
    local = time // 1000 + log.zone[at].astype(np.int64) * 60
    clock, buckets = clock_features(gap, seconds, local)
    return CaseBatch(
        activity=np.where(real, log.activity[at], 0).astype(np.int64),
        categories=np.where(real[:, :, None], log.categories[at], 0).astype(np.int64),
        numbers=np.where(real[:, :, None], log.numbers[at], np.nan).astype(np.float32),
        clock=np.where(real[:, :, None], clock, 0).astype(np.float32),
        buckets=np.where(real[:, :, None], buckets, 0),
        seconds=seconds.astype(np.float32),
        lengths=lengths,
        places=places,
    )


def clock_features(
    gap: np.ndarray, since_start: np.ndarray, local: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Say when events were.

    Args:
        gap: Seconds since the event before.
        since_start: Seconds since the first event.
        local: Seconds since 1970 on the clock of the place.

    Returns:
        Logarithms of both spans, and sine and cosine of the time of day and of the week, ``(…, N_CLOCK)``; and the
        bucket of the gap, the hour and the weekday, ``(…, 3)``.
    """
    day = local % 86_400
    weekday = (local // 86_400 + 3) % 7  # 1970 began on a Thursday; Monday is 0
    week = (weekday * 86_400 + day) / (7 * 86_400)
    turn, turn_of_week = 2 * np.pi * day / 86_400, 2 * np.pi * week
    numbers = np.stack(
        [
            np.log1p(gap) / 10,
            np.log1p(since_start) / 10,
            np.sin(turn),
            np.cos(turn),
            np.sin(turn_of_week),
            np.cos(turn_of_week),
        ],
        -1,
    )
    gaps = np.minimum(N_GAPS - 1, np.ceil(np.log2(gap + 1)))
    return numbers, np.stack([gaps, day // 3600, weekday], -1).astype(np.int64)


def cut_batches(
    lengths: np.ndarray, *, batch_events: int, rng: np.random.Generator | None = None
) -> Iterator[np.ndarray]:
    """Cut cases into batches of like lengths with at most ``batch_events`` events, padding counted.

    Args:
        lengths: Events of each case.
        batch_events: Size of a batch; a longer case is a batch of its own.
        rng: Shuffles cases and batches; in the order of length if None.
    """
    order = np.arange(len(lengths))
    if rng is not None:
        order = rng.permutation(order)
    order = order[np.argsort(lengths[order], kind="stable")]
    batches, start = [], 0
    while start < len(order):
        end = start + 1
        while end < len(order) and (end + 1 - start) * max(1, lengths[order[end]]) <= batch_events:
            end += 1
        batches.append(order[start:end])
        start = end
    if rng is not None:
        batches = [batches[place] for place in rng.permutation(len(batches))]
    yield from batches
