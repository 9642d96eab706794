"""The intervals of reports: the same however much is held at once, and the same for one metric as for all."""

from __future__ import annotations

import numpy as np
import pytest

from regard.evaluate import report as reports
from regard.evaluate.metrics import BLEU, CER, CHRF, TER, Exact
from regard.evaluate.report import bootstrap, evaluate_outputs

HYPOTHESES = ["the cat sat on the mat", "a dog", "it is raining", "", "one two three four", "x", "y z"]
REFERENCES = ["the cat sat on a mat", "a dog", "is it raining ?", "nothing", "one two four three", "x", "z"]
METRICS = [BLEU(), CHRF(), TER(), Exact(), CER()]


@pytest.mark.parametrize("most", [1, 7, 23, 10_000])
def test_interval_does_not_depend_on_how_much_is_held_at_once(monkeypatch, most):
    statistics = CER().statistics(HYPOTHESES, REFERENCES)
    expected = bootstrap(CER(), statistics, seed=5, resamples=101)
    monkeypatch.setattr(reports, "_MOST_COUNTS", most)
    assert bootstrap(CER(), statistics, seed=5, resamples=101) == expected


def test_resampled_sums_are_those_of_multinomial_counts():
    statistics = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 5.0]])
    counts = np.random.default_rng([11, 3]).multinomial(3, [1 / 3] * 3, size=13)
    assert np.array_equal(reports._resample(statistics, seed=11, resamples=13), counts @ statistics)
    # Each sample is as large as the data.
    ones = reports._resample(np.ones((7, 1)), seed=11, resamples=13)
    assert np.array_equal(ones, np.full((13, 1), 7.0))


def test_report_gives_each_metric_the_interval_it_has_alone():
    report = evaluate_outputs([3] * 7, HYPOTHESES, REFERENCES, metrics=METRICS, seed=2)
    for metric in METRICS:
        alone = bootstrap(metric, metric.statistics(HYPOTHESES, REFERENCES), seed=2)
        assert report.overall[metric.name] == alone
        assert report.buckets[0].estimates[metric.name] == alone


def test_other_seed_gives_another_interval_around_the_same_value():
    statistics = CER().statistics(HYPOTHESES, REFERENCES)
    one, two = bootstrap(CER(), statistics, seed=1), bootstrap(CER(), statistics, seed=2)
    assert one.value == two.value
    assert (one.low, one.high) != (two.low, two.high)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_interval_of_few_lines_still_holds_the_value(metric):
    for n in (1, 2, 3):
        made = bootstrap(metric, metric.statistics(HYPOTHESES[:n], REFERENCES[:n]), seed=3)
        assert made.low <= made.value <= made.high
