"""Outcomes: what is asked of a journey, such as "is it cancelled later" or "is the label of the case lost"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from regard.errors import DataError, did_you_mean
from regard.journeys.log import MISSING, EventLog

__all__ = ["UNASKED", "Outcome", "case_labels", "choose_outcomes", "prefix_labels", "suggest_outcomes"]

UNASKED = -1
"""Label where the question makes no sense: the activity has already happened, or the case has no label."""
_MOST_VALUES = 8
_YES = ("yes", "true", "1", "y", "ja", "oui", "won", "accepted", "positive")


class Outcome(BaseModel):
    """A question with the answer yes or no.

    Attributes:
        name: The activity that may happen later, or the column that holds the label.
        value: The value of the column that means yes; None for an activity.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    value: str | None = None

    @property
    def label(self) -> str:
        """The outcome in words."""
        return self.name if self.value is None else f"{self.name} = {self.value}"


def choose_outcomes(log: EventLog, asked: Sequence[str], *, path: str = "log") -> tuple[Outcome, ...]:
    """Find what is meant by names of activities, columns, or COLUMN=VALUE.

    Raises:
        DataError: There is nothing of that name.
    """
    chosen: list[Outcome] = []
    for text in asked:
        column, equals, value = text.rpartition("=")
        if text in log.activities:
            chosen.append(Outcome(name=text))
        elif (attribute := log.attribute(text)) is not None and not attribute.is_number:
            names = list(attribute.names)
            if len(names) > _MOST_VALUES:
                raise DataError(
                    f"column {text!r} has {len(names):,} values; say which is meant, --outcome {text}={names[0]}",
                    path=path,
                )
            yes = next((name for name in names if name.lower() in _YES), names[-1])
            values = [yes] if len(names) <= 2 else names
            chosen.extend(Outcome(name=text, value=name) for name in values)
        elif equals and (attribute := log.attribute(column)) is not None and value in attribute.names:
            chosen.append(Outcome(name=column, value=value))
        else:
            known = [*log.activities, *(a.name for a in log.attributes if not a.is_number)]
            raise DataError(
                f"--outcome {text!r}: no activity and no column of categories is called so{did_you_mean(text, known)}",
                path=path,
            )
    return tuple(dict.fromkeys(chosen))


def case_labels(log: EventLog, outcome: Outcome) -> np.ndarray:
    """Whether a case as a whole has the outcome: int8 ``(n_cases,)`` of 0, 1 or `UNASKED`."""
    starts = log.offsets[:-1]
    if outcome.value is None:
        if outcome.name not in log.activities:
            return np.zeros(log.n_cases, np.int8)
        hit = log.activity == log.activities.index(outcome.name)
        return np.maximum.reduceat(hit.astype(np.int8), starts)
    attribute = log.attribute(outcome.name)
    if attribute is None:
        return np.full(log.n_cases, UNASKED, np.int8)
    newest = _newest(attribute.values, log.offsets)
    code = attribute.names.index(outcome.value) + 1 if outcome.value in attribute.names else -1
    return np.where(newest == MISSING, UNASKED, (newest == code).astype(np.int8)).astype(np.int8)


def _newest(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The last value of each case that is not missing, or `MISSING`."""
    places = np.where(values != MISSING, np.arange(len(values)), -1)
    last = np.maximum.reduceat(places, offsets[:-1])
    return np.where(last >= 0, values[last], MISSING)


def prefix_labels(log: EventLog, outcome: Outcome) -> np.ndarray:
    """Labels of the prefix that ends with each event: int8 ``(n_events,)`` of 0, 1 or `UNASKED`.

    For an activity: does it happen after this event, asked as long as it has not happened.
    """
    labels = np.repeat(case_labels(log, outcome), log.lengths)
    if outcome.value is None and outcome.name in log.activities:
        hit = (log.activity == log.activities.index(outcome.name)).astype(np.int64)
        so_far = np.cumsum(hit)
        before = np.concatenate([[0], so_far])[log.offsets[:-1]]
        labels = np.where(so_far - np.repeat(before, log.lengths) > 0, UNASKED, labels).astype(np.int8)
    return labels


def suggest_outcomes(log: EventLog, *, most: int = 3) -> list[str]:
    """Activities that make good questions when none is asked: those that often end a case, and not nearly always.

    Args:
        log: The log.
        most: Most activities named.
    """
    last = log.activity[log.offsets[1:] - 1]
    ends = np.bincount(last, minlength=len(log.activities))
    found = []
    for code in np.argsort(-ends, kind="stable"):
        share = float(case_labels(log, Outcome(name=log.activities[code])).mean())
        if ends[code] >= 0.01 * log.n_cases and 0.03 <= share <= 0.97:
            found.append(log.activities[code])
    return found[:most]
