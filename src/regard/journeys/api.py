"""From a log to a model in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import regard
from regard.device import choose_device, set_threads
from regard.errors import DataError
from regard.journeys.cases import EncodedLog, JourneyVocabulary
from regard.journeys.log import EventLog
from regard.journeys.model import JourneyFacts, JourneyModel
from regard.journeys.network import JourneyNetwork
from regard.journeys.outcomes import choose_outcomes, prefix_labels
from regard.journeys.settings import JourneyConfig
from regard.journeys.training import train_network
from regard.training.events import Listener

__all__ = ["split_cases", "train_journeys"]


def split_cases(log: EventLog, how: str) -> tuple[np.ndarray, np.ndarray]:
    """Split cases into those of training and those of the test.

    Args:
        log: The log.
        how: ``file``: the first two thirds in the order of the file (Tax 2017). ``time``: cases that ended before
            the moment at which two thirds of the cases have begun train, cases that began after it test, and those
            that run across it are left out, so that nothing of the test's time is learnt from.

    Raises:
        DataError: A part would be empty.
    """
    n = log.n_cases
    if how == "file":
        edge = round(n * 2 / 3)
        train, test = np.arange(edge), np.arange(edge, n)
    else:
        begins = log.time[log.offsets[:-1]]
        ends = log.time[log.offsets[1:] - 1]
        moment = np.sort(begins)[min(n - 1, round(n * 2 / 3))]
        train, test = np.flatnonzero(ends < moment), np.flatnonzero(begins >= moment)
    if len(train) < 4 or not len(test):
        raise DataError(
            f"split {how!r} leaves {len(train)} cases to train on and {len(test)} to test; a larger log is needed"
        )
    return train, test


def train_journeys(
    log: EventLog,
    *,
    config: JourneyConfig | None = None,
    outcomes: Sequence[str] = (),
    listeners: Sequence[Listener] = (),
    command: str = "",
    data: dict[str, Any] | None = None,
) -> JourneyModel:
    """Train a model on all cases of a log.

    Args:
        log: The log.
        config: Settings.
        outcomes: Activities that may happen later, columns of labels, or COLUMN=VALUE.
        listeners: Told of each event of the training.
        command: What made it, for the record.
        data: What is known of the data, for the record.

    Raises:
        DataError: There is no such outcome, or there are too few cases.
        TrainingError: The loss is not finite.
    """
    config = config or JourneyConfig()
    set_threads(config.training.threads)
    asked = choose_outcomes(log, outcomes)
    labels = [outcome.name for outcome in asked if outcome.value is not None]
    vocabulary = JourneyVocabulary.from_log(log, without=labels)
    torch.manual_seed(config.training.seed)
    network = JourneyNetwork(vocabulary, config.model, n_outcomes=len(asked))
    network.to(choose_device(config.training.device))
    encoded = EncodedLog.from_log(log, vocabulary, [prefix_labels(log, outcome) for outcome in asked])
    trained = train_network(network, encoded, config.training, listeners)
    facts = JourneyFacts(
        regard_version=regard.__version__,
        vocabulary=vocabulary,
        outcomes=asked,
        longest=int(log.lengths.max()),
        data={"n_cases": log.n_cases, "n_events": log.n_events, **(data or {})},
        training={
            "steps": trained.steps,
            "epochs": round(trained.epochs, 2),
            "seconds": round(trained.seconds, 1),
            "reason": trained.reason,
            "best_step": trained.best_step,
            "best_values": trained.best_values,
        },
        command=command,
    )
    return JourneyModel(config, facts, network)
