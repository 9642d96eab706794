"""Loan logs with and without planted rules, and a model of each, trained in seconds."""

from __future__ import annotations

import pytest

from regard.journeys.api import split_cases, train_journeys
from regard.journeys.log import take_cases
from regard.journeys.settings import make_journey_config
from regard.journeys.synthetic import PLANTED, loan_log

SMALL = {
    "model": {"hidden_size": 32, "embedding_size": 16},
    "training": {"epochs": 30, "minutes": 0, "threads": 1, "prefixes": 2, "patience": 0},
}


def _trained(rules: bool):
    log = loan_log(1500, rules=rules, seed=3)
    train, test = split_cases(log, "file")
    model = train_journeys(take_cases(log, train), config=make_journey_config(SMALL), outcomes=list(PLANTED))
    return model, take_cases(log, test)


@pytest.fixture(scope="session")
def planted():
    """A model of the log with rules, and the cases it has not seen."""
    return _trained(True)


@pytest.fixture(scope="session")
def ruleless():
    """A model of the log without rules, and the cases it has not seen."""
    return _trained(False)
