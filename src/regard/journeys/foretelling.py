"""What a model foretells of journeys that go on, whichever way they came: rows of a log, or a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from regard.journeys.cases import JourneyVocabulary
from regard.journeys.log import MISSING, Attribute, EventLog
from regard.journeys.model import JourneyModel, Journeys

__all__ = ["Foretold", "GivenEvent", "foretell", "log_of_events"]


@dataclass(frozen=True)
class GivenEvent:
    """An event as it was given.

    Attributes:
        activity: One that the model knows.
        time: Milliseconds since 1970 UTC.
        zone: Minutes east of UTC on the clock of the place.
        categories: Values by column.
        numbers: Values by column.
    """

    activity: str
    time: int
    zone: int = 0
    categories: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Foretold:
    """What is foretold of one journey.

    Attributes:
        n_events: Events that are known.
        next: All activities with their probabilities, the likeliest first; the end is ``(end)``.
        rest: The rest of the journey that is most like all that were drawn.
        expected: The similarity that the model expects of it; None without draws.
        outcomes: Each outcome and its probability.
        next_weights: Attention to each event when the next activity is named ``(n_events,)``, or None.
        outcome_weights: Attention of each outcome ``(n_outcomes, n_events)``, or None.
    """

    n_events: int
    next: tuple[tuple[str, float], ...]
    rest: tuple[str, ...]
    expected: float | None
    outcomes: tuple[tuple[str, float], ...]
    next_weights: np.ndarray | None = None
    outcome_weights: np.ndarray | None = None


def log_of_events(vocabulary: JourneyVocabulary, cases: Sequence[Sequence[GivenEvent]]) -> EventLog:
    """Make a log of events in the order of time, each case with at least one."""
    events = [event for case in cases for event in case]
    codes = {name: code for code, name in enumerate(vocabulary.activities)}
    attributes = [_category(known.name, events) for known in vocabulary.categories]
    for number in vocabulary.numbers:
        values = np.array([event.numbers.get(number.name, np.nan) for event in events], np.float64)
        most = float(np.finfo(np.float32).max)
        clipped = np.clip(values, -most, most).astype(np.float32)
        attributes.append(Attribute(number.name, clipped, is_number=True))
    return EventLog(
        case_ids=tuple(str(number) for number in range(len(cases))),
        offsets=np.cumsum([0, *(len(case) for case in cases)]).astype(np.int64),
        activity=np.array([codes[event.activity] for event in events], np.int32),
        activities=vocabulary.activities,
        time=np.array([event.time for event in events], np.int64),
        zone=np.array([event.zone for event in events], np.int16),
        attributes=tuple(attributes),
    )


def _category(name: str, events: Sequence[GivenEvent]) -> Attribute:
    codes: dict[str, int] = {}
    values = np.full(len(events), MISSING, np.int32)
    for place, event in enumerate(events):
        if value := event.categories.get(name):
            values[place] = codes.setdefault(value, len(codes) + 1)
    return Attribute(name, values, tuple(codes))


def foretell(
    model: JourneyModel, log: EventLog, *, n_draws: int = 24, weights: bool = False
) -> list[Foretold]:
    """Foretell what follows all events of each case of a log, in its order.

    Args:
        model: The model.
        log: The journeys.
        n_draws: Rests drawn of each; they depend on its events only. 0 names the likeliest activity at each step.
        weights: Whether the attention is wanted too.
    """
    encoded = model.encode(log)
    rows = [np.arange(a, b) for a, b in zip(log.offsets[:-1], log.offsets[1:], strict=True)]
    whole = Journeys.whole(rows)
    answers = model.answer(encoded, whole, weights=weights)
    keys = [encoded.key(row) for row in rows]
    rests, expected = model.rests(encoded, whole, n_draws=n_draws, keys=keys)
    found = []
    for case, row in enumerate(rows):
        probs = answers.next_probs[case]
        found.append(
            Foretold(
                n_events=len(row),
                next=tuple(
                    (model.vocabulary.activity(int(token)), float(probs[token]))
                    for token in np.argsort(-probs, kind="stable")
                    if probs[token] > 0
                ),
                rest=model.names(rests[case]),
                expected=None if np.isnan(expected[case]) else float(expected[case]),
                outcomes=tuple(
                    (outcome.label, float(p))
                    for outcome, p in zip(model.outcomes, answers.outcome_probs[case], strict=True)
                ),
                next_weights=_padded(answers.next_weights[case], len(row)) if weights else None,
                outcome_weights=_padded(answers.outcome_weights[case], len(row)) if weights else None,
            )
        )
    return found


def _padded(weights: np.ndarray, n_events: int) -> np.ndarray:
    """Weights of all events: those that were not read, the oldest, have none."""
    if weights.ndim == 1 and not len(weights):  # no outcomes are asked
        return np.zeros((0, n_events))
    unread = n_events - weights.shape[-1]
    return np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(unread, 0)])
