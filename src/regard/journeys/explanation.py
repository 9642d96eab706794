"""Why: the events that mattered for one case, and those that matter for outcomes over a whole log.

A candidate for a cause is an activity, or a value of an attribute at an activity. For each candidate and outcome stand
beside each other: how much attention its events draw, how much the foretold probability changes when it is taken away,
and how often cases with and without it really had the outcome. It is called confident only if the model's change and
the real difference point the same way and neither interval, widened for the number of candidates, holds zero; attention
alone never makes a cause.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.journeys.cases import EncodedLog
from regard.journeys.log import EventLog
from regard.journeys.model import JourneyModel, Journeys
from regard.journeys.outcomes import UNASKED
from regard.journeys.removal import Change, ask_changed
from regard.journeys.statistics import difference_interval, mean_interval, wilson

__all__ = [
    "CaseStory",
    "Cause",
    "LogStory",
    "PathCount",
    "StoryEvent",
    "Unsure",
    "explain_case",
    "explain_log",
]

_LEAST_CASES = 20
"""Cases that a candidate must occur in, and be missing from."""
_LEAST_EFFECT = 0.03
"""Smallest change of probability that is called confident."""
_MOST_VALUES = 12
"""Most frequent values of an attribute that are candidates."""


@dataclass(frozen=True)
class Cause:
    """A candidate for a cause of an outcome.

    Attributes:
        outcome: The outcome.
        name: An activity, or ``activity: attribute = value``.
        n_with: Asked cases that have it.
        n_without: Asked cases that do not.
        share_with: Share of the first that had the outcome, with its interval.
        share_without: Share of the others, with its interval.
        difference: The first less the second, with its interval (widened for the number of candidates).
        effect: Mean change of the foretold probability that its presence makes, with its interval (likewise).
        attention: Mean attention its events draw, with its interval; 1 is all attention.
        even: The attention they would draw if it were spread evenly.
        confident: See above.
    """

    outcome: str
    name: str
    n_with: int
    n_without: int
    share_with: tuple[float, float, float]
    share_without: tuple[float, float, float]
    difference: tuple[float, float, float]
    effect: tuple[float, float, float]
    attention: tuple[float, float, float]
    even: float
    confident: bool


@dataclass(frozen=True)
class PathCount:
    """A rest of the journey that is often foretold: how often, its share with an interval, expected similarity."""

    path: tuple[str, ...]
    n: int
    share: tuple[float, float, float]
    expected: float


@dataclass(frozen=True)
class Unsure:
    """A case about whose next activity the model is unsure: entropy in bits, and the likeliest answers."""

    case: str
    n_events: int
    last: str
    entropy: float
    likeliest: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class LogStory:
    """What holds for a whole log: causes by outcome (first the strongest), frequent paths, unsure cases."""

    n_cases: int
    causes: dict[str, list[Cause]]
    paths: list[PathCount]
    unsure: list[Unsure]


@dataclass(frozen=True)
class StoryEvent:
    """An event of a case and what it did.

    Attributes:
        activity: What happened.
        time: When, milliseconds since 1970 on the clock of the place.
        details: Attributes as text.
        attention: Attention of each outcome to it.
        next_attention: Attention when the next activity is named.
        effects: Change of each outcome's probability that its presence makes; NaN for the only event.
        next_effect: Change of the probability of the likeliest next activity.
        rest_without: What would follow instead if it were removed; None if the same follows.
    """

    activity: str
    time: int
    details: tuple[str, ...]
    attention: tuple[float, ...]
    next_attention: float
    effects: tuple[float, ...]
    next_effect: float
    rest_without: tuple[str, ...] | None


@dataclass(frozen=True)
class CaseStory:
    """One case: its events, what comes next, the rest, and the outcomes."""

    case: str
    events: list[StoryEvent]
    next: tuple[tuple[str, float], ...]
    rest: tuple[str, ...]
    expected: float
    outcomes: tuple[tuple[str, float], ...]


def explain_case(model: JourneyModel, log: EventLog, case: int, *, size: int | None = None) -> CaseStory:
    """Explain one case, or its first ``size`` events.

    Args:
        model: The model.
        log: The log.
        case: Number of the case.
        size: Events that are known; all if None.
    """
    encoded = model.encode(log)
    places = np.arange(log.offsets[case], log.offsets[case + 1])[:size][-model.config.model.max_events :]
    whole = Journeys.whole([places])
    answers = model.answer(encoded, whole, weights=True)
    rests, expected = model.rests(encoded, whole, keys=[encoded.key(places)])
    likeliest = int(answers.next_probs[0].argmax())
    n_outcomes = len(model.outcomes)
    changes = [Change(0, events=(event,)) for event in range(len(places))] if len(places) > 1 else []
    outcome_probs = np.full((len(places), n_outcomes), np.nan)
    next_probs = np.full(len(places), np.nan)
    without: list[tuple[int, ...] | None] = [None] * len(places)
    if changes:
        outcome_probs, changed_next, copied, made = ask_changed(model, encoded, [places], changes)
        next_probs = changed_next[:, likeliest]
        changed_rests, _ = model.rests(copied, Journeys.whole(made), keys=[copied.key(row) for row in made])
        without = [None if rest == rests[0] else rest for rest in changed_rests]
    events = []
    for event, place in enumerate(places):
        rest_without = without[event]
        events.append(
            StoryEvent(
                activity=log.activities[log.activity[place]],
                time=int(log.time[place]) + 60_000 * int(log.zone[place]),
                details=tuple(f"{a.name} = {a.shown(place)}" for a in log.attributes if a.shown(place)),
                attention=tuple(float(answers.outcome_weights[0][k, event]) for k in range(n_outcomes)),
                next_attention=float(answers.next_weights[0][event]),
                effects=tuple(float(x) for x in answers.outcome_probs[0] - outcome_probs[event]),
                next_effect=float(answers.next_probs[0, likeliest] - next_probs[event]),
                rest_without=None if rest_without is None else model.names(rest_without),
            )
        )
    return CaseStory(
        case=log.case_ids[case],
        events=events,
        next=_likeliest(model, answers.next_probs[0]),
        rest=model.names(rests[0]),
        expected=float(expected[0]),
        outcomes=tuple(
            (o.label, float(p)) for o, p in zip(model.outcomes, answers.outcome_probs[0], strict=True)
        ),
    )


def _likeliest(model: JourneyModel, probs: np.ndarray, n: int = 3) -> tuple[tuple[str, float], ...]:
    return tuple(
        (model.vocabulary.activity(int(token)), float(probs[token])) for token in np.argsort(-probs)[:n]
    )


def explain_log(
    model: JourneyModel, log: EventLog, *, max_cases: int = 2000, n_shown: int = 12, seed: int = 1
) -> LogStory:
    """Explain what holds for the cases of a log, which should not be those of the training.

    Args:
        model: The model.
        log: The log.
        max_cases: Most cases looked at, drawn at random.
        n_shown: Paths and unsure cases named.
        seed: Of the draws.
    """
    encoded = model.encode(log)
    rng = np.random.default_rng(seed)
    cases = np.arange(log.n_cases)
    if len(cases) > max_cases:
        cases = np.sort(rng.choice(cases, max_cases, replace=False))
    causes = {
        outcome.label: _causes(model, encoded, cases, place) for place, outcome in enumerate(model.outcomes)
    }
    halves = _halves(encoded, cases)
    paths = _paths(model, encoded, halves, n_shown)
    return LogStory(len(cases), causes, paths, _unsure(model, log, encoded, cases, halves, n_shown))


def _halves(encoded: EncodedLog, cases: np.ndarray) -> Journeys:
    """The first half of each case."""
    starts, lengths = encoded.offsets[cases], encoded.lengths[cases]
    return Journeys.whole(
        [np.arange(start, start + max(1, (n + 1) // 2)) for start, n in zip(starts, lengths, strict=True)]
    )


def _paths(model: JourneyModel, encoded: EncodedLog, halves: Journeys, n_shown: int) -> list[PathCount]:
    rests, expected = model.rests(encoded, halves)
    counts = Counter(rests)
    found = []
    for rest, n in counts.most_common(n_shown):
        mean = float(np.mean([e for e, r in zip(expected, rests, strict=True) if r == rest]))
        share = (n / len(rests), *wilson(n, len(rests)))
        found.append(PathCount(model.names(rest), n, share, mean))
    return found


def _unsure(
    model: JourneyModel, log: EventLog, encoded: EncodedLog, cases: np.ndarray, halves: Journeys, n_shown: int
) -> list[Unsure]:
    probs = model.answer(encoded, halves).next_probs
    entropy = -(probs * np.log2(np.maximum(probs, 1e-12))).sum(1)
    found = []
    for place in np.argsort(-entropy, kind="stable")[:n_shown]:
        last = halves.rows[place][-1]
        found.append(
            Unsure(
                case=log.case_ids[cases[place]],
                n_events=int(halves.sizes[place]),
                last=log.activities[log.activity[last]],
                entropy=float(entropy[place]),
                likeliest=_likeliest(model, probs[place]),
            )
        )
    return found


def _asked_prefixes(
    encoded: EncodedLog, cases: np.ndarray, outcome: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """The longest prefix of each case that is still asked about and not complete, and its label."""
    rows, labels = [], []
    for case in cases:
        start, end = int(encoded.offsets[case]), int(encoded.offsets[case + 1])
        asked = np.flatnonzero(encoded.labels[start : end - 1, outcome] != UNASKED)
        if len(asked):
            rows.append(np.arange(start, start + asked[-1] + 1))
            labels.append(int(encoded.labels[start + asked[-1], outcome]))
    return rows, np.array(labels, np.int64)


class _Candidate:
    """A candidate and where it occurs."""

    def __init__(self, name: str, column: int = -1) -> None:
        self.name, self.column = name, column
        self.events: dict[int, list[int]] = {}

    def change(self, row: int) -> Change:
        """Take it away from a journey."""
        events = self.events[row]
        if self.column < 0:
            return Change(row, events=tuple(events))
        return Change(row, categories=tuple((event, self.column) for event in events))


def _candidates(model: JourneyModel, encoded: EncodedLog, rows: Sequence[np.ndarray]) -> list[_Candidate]:
    """All activities and values of attributes at an activity that occur in the journeys, often enough to tell."""
    found: dict[tuple[int, int, int], _Candidate] = {}
    vocabulary = model.vocabulary
    for number, places in enumerate(rows):
        for event, place in enumerate(places):
            token = int(encoded.activity[place])
            name = vocabulary.activity(token)
            keys = [((token, -1, 0), name)]
            for column, category in enumerate(vocabulary.categories):
                value = int(encoded.categories[place, column])
                if value and len(category.names) <= _MOST_VALUES:
                    keys.append(
                        ((token, column, value), f"{name}: {category.name} = {category.names[value - 1]}")
                    )
            for key, label in keys:
                candidate = found.setdefault(key, _Candidate(label, key[1]))
                candidate.events.setdefault(number, []).append(event)
    n = len(rows)
    return [c for c in found.values() if _LEAST_CASES <= len(c.events) <= n - _LEAST_CASES]


def _causes(model: JourneyModel, encoded: EncodedLog, cases: np.ndarray, outcome: int) -> list[Cause]:
    """All candidates for causes of an outcome, the confident and strongest first."""
    rows, labels = _asked_prefixes(encoded, cases, outcome)
    if len(rows) < 2 * _LEAST_CASES:
        return []
    answers = model.answer(encoded, Journeys.whole(rows), weights=True)
    probs = answers.outcome_probs[:, outcome]
    candidates = _candidates(model, encoded, rows)
    level = 1 - 0.05 / max(1, len(candidates) * len(model.outcomes))
    label = model.outcomes[outcome].label
    found = []
    for candidate in candidates:
        numbers = np.array(sorted(candidate.events))
        removable = [
            row
            for row in numbers.tolist()
            if candidate.column >= 0 or len(candidate.events[row]) < len(rows[row])
        ]
        changed, _, _, _ = ask_changed(model, encoded, rows, [candidate.change(row) for row in removable])
        effects = probs[removable] - changed[:, outcome] if removable else np.zeros(0)
        drawn = [
            answers.outcome_weights[row][outcome, candidate.events[row]].sum() for row in numbers.tolist()
        ]
        even = float(np.mean([len(candidate.events[row]) / len(rows[row]) for row in numbers.tolist()]))
        found.append(_cause(label, candidate.name, numbers, labels, effects, np.array(drawn), even, level))
    return sorted(found, key=lambda cause: (-cause.confident, -abs(cause.effect[0]), cause.name))


def _cause(
    outcome: str,
    name: str,
    numbers: np.ndarray,
    labels: np.ndarray,
    effects: np.ndarray,
    attention: np.ndarray,
    even: float,
    level: float,
) -> Cause:
    n_with, n_without = len(numbers), len(labels) - len(numbers)
    hits = int(labels[numbers].sum())
    others = int(labels.sum()) - hits
    difference = (
        hits / n_with - others / n_without,
        *difference_interval(hits, n_with, others, n_without, level=level),
    )
    effect = mean_interval(effects, level=level)
    agree = effect[0] * difference[0] > 0 and effect[1] * effect[2] > 0 and difference[1] * difference[2] > 0
    return Cause(
        outcome=outcome,
        name=name,
        n_with=n_with,
        n_without=n_without,
        share_with=(hits / n_with, *wilson(hits, n_with)),
        share_without=(others / n_without, *wilson(others, n_without)),
        difference=difference,
        effect=effect,
        attention=mean_interval(attention),
        even=even,
        confident=bool(agree and abs(effect[0]) >= _LEAST_EFFECT),
    )
