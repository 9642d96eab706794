"""How good a model of journeys is, beside simple baselines of the same cases; counted in two ways.

*As published* (Tax et al. 2017): prefixes from two events on that have a next activity; the end is no answer, so it
is known that the journey goes on. *Honestly*: complete journeys are asked about too, and their right answer is the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from regard.journeys.baselines import Baseline
from regard.journeys.cases import FIRST_ACTIVITY, EncodedLog
from regard.journeys.model import Answers, JourneyModel, Journeys
from regard.journeys.outcomes import UNASKED
from regard.journeys.suffixes import Rest, most_expected, similarity
from regard.nn.types import EOS

__all__ = [
    "EXPLAINED",
    "Evaluation",
    "Measures",
    "OutcomeMeasures",
    "area_under_curve",
    "calibration",
    "evaluate_journeys",
]

EXPLAINED = (
    "As published means: prefixes of at least two events that have a next activity, and the end of the journey is no "
    "answer, so it is given away that the journey goes on. Counted honestly, complete journeys are asked about too and "
    "the right answer is the end; that is what a person who does not know the future meets. For the rest, as published "
    "leaves the complete journeys out but an answer may still be empty; known to go on gives that away too."
)
_EDGES = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50)
"""Prefix lengths at which the parts of a table by length begin."""
_TELL_EVERY = 100
"""Rests between two reports of progress."""

Progress = Callable[[str, int, int], object]


def _silent(what: str, done: int, total: int) -> None:
    """No report of progress."""


@dataclass(frozen=True)
class Measures:
    """Measures of one way to answer, each between 0 and 1.

    Attributes:
        next_published: Share of next activities that were right, as published.
        next_honest: The same counted honestly.
        rest_published: Mean similarity of the rest, as published (prefixes that have a rest).
        rest_honest: The same, complete journeys among them.
        rest_goes_on: As published, and no answer is empty, since it is known that the journey goes on.
    """

    next_published: float
    next_honest: float
    rest_published: float
    rest_honest: float
    rest_goes_on: float


@dataclass(frozen=True)
class OutcomeMeasures:
    """How well an outcome is foretold.

    Attributes:
        label: The outcome.
        n: Prefixes that were asked.
        share: Share of them that have it.
        auc: Area under the ROC curve; NaN if all are alike.
        brier: Mean squared error of the probability.
        calibration_error: Mean distance of probability and share over ``bins``.
        bins: Mean probability, share, number, of tenths of the prefixes by probability.
        by_length: First length, number, AUC.
    """

    label: str
    n: int
    share: float
    auc: float
    brier: float
    calibration_error: float
    bins: list[tuple[float, float, int]]
    by_length: list[tuple[int, int, float]]


@dataclass(frozen=True)
class Evaluation:
    """All measures of a run.

    Attributes:
        n_cases: Cases of the test.
        n_next_published: Prefixes counted as published.
        n_next_honest: Prefixes counted honestly.
        n_rests: Prefixes whose rest was named; a sample if it is smaller than the number of prefixes.
        measures: By name: ``model`` and the baselines.
        by_length: Of the model by prefix length: first length, last length, number, next honestly, rest honestly.
        outcomes: Of each outcome.
    """

    n_cases: int
    n_next_published: int
    n_next_honest: int
    n_rests: int
    measures: dict[str, Measures]
    by_length: list[tuple[int, int, int, float, float]]
    outcomes: list[OutcomeMeasures] = field(default_factory=list)

    def to_record(self) -> dict[str, Any]:
        """As a JSON object."""
        return {**asdict(self), "explained": EXPLAINED}


def evaluate_journeys(
    model: JourneyModel,
    log: EncodedLog,
    baselines: Sequence[Baseline] = (),
    *,
    max_cases: int = 20_000,
    max_rests: int = 0,
    n_draws: int = 24,
    seed: int = 1,
    progress: Progress = _silent,
) -> Evaluation:
    """Measure a model on the cases of a log.

    Args:
        model: The model.
        log: Cases in the model's ids, none of them of its training.
        baselines: What it is compared with.
        max_cases: Most cases measured, drawn at random, so that memory does not grow with the log; 0 for all.
        max_rests: Most prefixes whose rest is named, drawn at random; 0 for all.
        n_draws: See `JourneyModel.rests`.
        seed: Of the draws.
        progress: Told what is being done, how many parts of it are done, and of how many.
    """
    cases = np.arange(len(log.lengths))
    if max_cases and len(cases) > max_cases:
        cases = np.sort(np.random.default_rng(seed).choice(cases, max_cases, replace=False))
    journeys = Journeys.of_cases(log, cases, first=2)
    truth = _Truth(log, journeys)
    progress("next activity", 0, len(journeys.sizes))
    answers = model.answer(log, journeys)
    chosen = np.arange(len(journeys.sizes))
    if max_rests and len(chosen) > max_rests:
        chosen = np.sort(np.random.default_rng(seed).choice(len(chosen), max_rests, replace=False))
    some = Journeys(journeys.rows, journeys.which[chosen], journeys.sizes[chosen])
    probs = answers.next_probs
    kind = probs[:, FIRST_ACTIVITY:].argmax(1) + FIRST_ACTIVITY
    named: list[Rest] = [()] * len(chosen)
    going: list[Rest] = [()] * len(chosen)
    drawn = model.draws(log, some, n=n_draws, seed=seed)
    for done, (number, rests) in enumerate(drawn):
        if not done % _TELL_EVERY:
            progress("rest of the journey", done, len(chosen))
        named[number] = most_expected(rests)[0]
        goes_on = [rest for rest in rests if rest] or [(int(kind[chosen[number]]),)]
        going[number] = most_expected(goes_on)[0]
    alike, alike_going = truth.similarities(named, chosen), truth.similarities(going, chosen)
    measures = {"model": truth.measures(kind, probs.argmax(1), alike, alike_going, chosen)}
    for place, baseline in enumerate(baselines):
        progress(f"baseline: {baseline.name}", place, len(baselines))
        measures[baseline.name] = _measure(baseline, truth, chosen)
    return Evaluation(
        n_cases=len(cases),
        n_next_published=int((truth.next != EOS).sum()),
        n_next_honest=len(truth.next),
        n_rests=len(chosen),
        measures=measures,
        by_length=_by_length(journeys.sizes, probs.argmax(1) == truth.next, alike, chosen),
        outcomes=_outcomes(model, log, journeys, answers),
    )


class _Truth:
    """The right answers for prefixes."""

    def __init__(self, log: EncodedLog, journeys: Journeys) -> None:
        self.prefixes: list[Rest] = []
        self.rests: list[Rest] = []
        for row, size in zip(journeys.which, journeys.sizes, strict=True):
            path = log.activity[journeys.rows[row]]
            self.prefixes.append(tuple(path[:size].tolist()))
            self.rests.append(tuple(path[size:].tolist()))
        self.next = np.array([rest[0] if rest else EOS for rest in self.rests], np.int64)

    def similarities(self, rests: Sequence[Rest], chosen: np.ndarray) -> np.ndarray:
        """How like the right ones the rests of the chosen prefixes are."""
        return np.array([similarity(rest, self.rests[at]) for rest, at in zip(rests, chosen, strict=True)])

    def measures(
        self,
        kind: np.ndarray,
        honest: np.ndarray,
        alike: np.ndarray,
        alike_going: np.ndarray,
        chosen: np.ndarray,
    ) -> Measures:
        """Measures of answers.

        Args:
            kind: Next activities, the end being no answer.
            honest: Next activities or the end.
            alike: Similarities of the chosen prefixes' rests.
            alike_going: Likewise, of rests that are not empty.
            chosen: Prefixes whose rests were named.
        """
        goes_on = self.next != EOS
        rest_goes_on = goes_on[chosen]
        return Measures(
            next_published=_mean(kind[goes_on] == self.next[goes_on]),
            next_honest=_mean(honest == self.next),
            rest_published=_mean(alike[rest_goes_on]),
            rest_honest=_mean(alike),
            rest_goes_on=_mean(alike_going[rest_goes_on]),
        )


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _measure(baseline: Baseline, truth: _Truth, chosen: np.ndarray) -> Measures:
    kind = np.array([baseline.next(prefix, goes_on=True) for prefix in truth.prefixes])
    honest = np.array([baseline.next(prefix) for prefix in truth.prefixes])
    alike, going = (
        truth.similarities([baseline.rest(truth.prefixes[at], goes_on=known) for at in chosen], chosen)
        for known in (False, True)
    )
    return truth.measures(kind, honest, alike, going, chosen)


def _by_length(
    sizes: np.ndarray, right: np.ndarray, alike: np.ndarray, chosen: np.ndarray
) -> list[tuple[int, int, int, float, float]]:
    rows = []
    for first, last in _parts(sizes):
        here = (sizes >= first) & (sizes <= last)
        of_rests = here[chosen]
        rows.append((first, last, int(here.sum()), _mean(right[here]), _mean(alike[of_rests])))
    return rows


def _parts(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Ranges of lengths that occur."""
    longest = int(sizes.max(initial=0))
    lasts = [*(edge - 1 for edge in _EDGES[1:]), max(longest, _EDGES[-1])]
    return [
        (first, min(last, longest))
        for first, last in zip(_EDGES, lasts, strict=True)
        if ((sizes >= first) & (sizes <= last)).any()
    ]


def _outcomes(
    model: JourneyModel, log: EncodedLog, journeys: Journeys, answers: Answers
) -> list[OutcomeMeasures]:
    found = []
    labels = log.labels[journeys.ends]
    for place, outcome in enumerate(model.outcomes):
        asked = labels[:, place] != UNASKED
        truth, probs = labels[asked, place].astype(bool), answers.outcome_probs[asked, place]
        sizes = journeys.sizes[asked]
        bins = calibration(probs, truth)
        by_length = []
        for first, last in _parts(sizes):
            here = (sizes >= first) & (sizes <= last)
            by_length.append((first, int(here.sum()), area_under_curve(probs[here], truth[here])))
        error = sum(n * abs(prob - share) for prob, share, n in bins) / max(1, len(truth))
        found.append(
            OutcomeMeasures(
                label=outcome.label,
                n=len(truth),
                share=_mean(truth),
                auc=area_under_curve(probs, truth),
                brier=_mean((probs - truth) ** 2),
                calibration_error=float(error),
                bins=bins,
                by_length=by_length,
            )
        )
    return found


def area_under_curve(probs: np.ndarray, truth: np.ndarray) -> float:
    """The probability that one that has it got a higher value than one that has not (ties count half)."""
    n_yes, n_no = int(truth.sum()), int((~truth).sum())
    if not n_yes or not n_no:
        return float("nan")
    _, inverse, counts = np.unique(probs, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[inverse]  # mean rank of equals, from 1
    return float((ranks[truth].sum() - n_yes * (n_yes + 1) / 2) / (n_yes * n_no))


def calibration(probs: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> list[tuple[float, float, int]]:
    """Mean probability, share and number of equally large parts by rising probability."""
    order = np.argsort(probs, kind="stable")
    parts = [part for part in np.array_split(order, n_bins) if len(part)]
    return [(float(probs[part].mean()), float(truth[part].mean()), len(part)) for part in parts]
