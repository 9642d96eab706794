"""What would be foretold without an event, or without one of its attributes: the model is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.journeys.cases import EncodedLog
from regard.journeys.model import JourneyModel, Journeys

__all__ = ["Change", "ask_changed"]


@dataclass(frozen=True)
class Change:
    """What is taken away from a journey.

    Attributes:
        row: The journey, by its number among those asked about.
        events: Indices, within the journey, of events that are removed.
        categories: Pairs of event index and category column that are hidden.
        numbers: Pairs of event index and number column that are hidden.
    """

    row: int
    events: tuple[int, ...] = ()
    categories: tuple[tuple[int, int], ...] = ()
    numbers: tuple[tuple[int, int], ...] = ()


def ask_changed(
    model: JourneyModel, log: EncodedLog, rows: Sequence[np.ndarray], changes: Sequence[Change]
) -> tuple[np.ndarray, np.ndarray, EncodedLog, list[np.ndarray]]:
    """Ask about journeys from which something is taken away.

    Args:
        model: The model.
        log: Where the events are.
        rows: Places of the events of each journey.
        changes: What is taken away; at least one event of a journey stays.

    Returns:
        Probabilities of the outcomes ``(n_changes, n_outcomes)`` and of what comes next ``(n_changes,
        vocabulary_size)``; the changed events as a log of their own, and the places of each change in it.
    """
    kept = [
        np.delete(rows[change.row], change.events) if change.events else rows[change.row]
        for change in changes
    ]
    flat = np.concatenate(kept) if kept else np.zeros(0, np.int64)
    copied = replace(
        log,
        activity=log.activity[flat],
        categories=log.categories[flat],
        numbers=log.numbers[flat],
        time=log.time[flat],
        zone=log.zone[flat],
        labels=log.labels[flat],
    )
    made, start = [], 0
    for change, places in zip(changes, kept, strict=True):
        for event, column in change.categories:
            copied.categories[start + event, column] = 0
        for event, column in change.numbers:
            copied.numbers[start + event, column] = np.nan
        made.append(np.arange(start, start + len(places)))
        start += len(places)
    answers = model.answer(copied, Journeys.whole(made))
    return answers.outcome_probs, answers.next_probs, copied, made
