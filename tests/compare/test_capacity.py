from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.tiny import tiny_data, tiny_plan
from regard.compare.capacity import (
    CapacityPoint,
    falling,
    fit_line,
    longest_held,
    measure_capacity,
    write_capacity,
)
from regard.compare.perform import RunResult
from regard.compare.summary import spread


@settings(deadline=None, max_examples=60)
@given(values=st.lists(st.floats(0, 100), min_size=1, max_size=12), data=st.data())
def test_smoothed_values_never_rise_and_keep_the_weighted_mean(values, data):
    weights = data.draw(st.lists(st.floats(0.1, 9), min_size=len(values), max_size=len(values)))
    smooth = falling(values, weights)
    assert len(smooth) == len(values)
    assert (np.diff(smooth) <= 1e-9).all()
    assert np.average(smooth, weights=weights) == pytest.approx(np.average(values, weights=weights), abs=1e-6)


def test_values_that_fall_already_stay_and_a_rise_is_pooled():
    assert falling([9, 5, 2], [1, 1, 1]).tolist() == [9, 5, 2]
    assert falling([9, 2, 6], [1, 3, 1]).tolist() == [9, 3, 3]


def test_capacity_is_where_the_accuracy_crosses_the_threshold():
    weights = [1] * 4
    assert longest_held([2, 4, 6, 8], [100, 100, 90, 50], weights, threshold=95) == (5.0, False)
    assert longest_held([2, 4, 6, 8], [94, 90, 80, 50], weights, threshold=95) == (0.0, False)
    assert longest_held([2, 4, 6, 8], [100, 99, 98, 97], weights, threshold=95) == (8.0, True)
    # One lucky length after the fall counts for nothing.
    assert longest_held([2, 4, 6, 8], [100, 60, 60, 97], weights, threshold=95)[0] < 4


def point(size, longest, censored=False):
    return CapacityPoint(size, 100, spread([longest]), censored, {1: longest})


def test_line_goes_through_the_points_that_tell_a_length():
    fit = fit_line(
        [point(4, 0.0), point(10, 3.0), point(20, 5.0), point(40, 9.0), point(80, 10.0, censored=True)]
    )
    assert (fit.slope, fit.intercept, fit.r_squared) == pytest.approx((0.2, 1.0, 1.0))
    assert fit_line([point(10, 3.0), point(20, 4.0), point(80, 9.0, censored=True)]) is None


def result_of(run, accuracies):
    buckets = [
        {"first": n, "last": n, "n_examples": 5, "token": {"value": a, "low": a, "high": a}}
        for n, a in accuracies.items()
    ]
    return RunResult(
        key=run.key,
        evaluation_key="x",
        variant=run.variant,
        seed=run.seed,
        hidden_size=run.hidden_size,
        n_parameters=run.hidden_size * 10,
        training={},
        tokens_per_second=1.0,
        decoded_per_second=1.0,
        report={"by_source_length": buckets},
        curve=[],
        losses=[],
    )


def test_capacity_is_measured_for_each_size_and_drawn(tmp_path):
    data = tiny_data()
    plan = tiny_plan(
        tmp_path, variants=["last"], data=data, seeds=(1, 2), hidden_sizes=(4, 8, 12, 16), match="hidden"
    )
    held = {4: 2, 8: 3, 12: 4, 16: 6}
    results = {
        run.name: result_of(run, {n: 100.0 if n <= held[run.hidden_size] else 40.0 for n in range(2, 7)})
        for run in plan.runs
    }
    missing = plan.runs[-1].name
    del results[missing]
    capacity = measure_capacity(plan, results)
    points = capacity.points["last state"]
    assert [p.hidden_size for p in points] == [4, 8, 12, 16]
    assert [p.longest.mean for p in points] == pytest.approx([2 + 1 / 12, 3 + 1 / 12, 4 + 1 / 12, 6.0])
    assert [p.censored for p in points] == [False, False, False, True]
    assert list(points[0].seeds) == [1, 2]
    assert capacity.fits["last state"].slope == pytest.approx(0.25)
    assert capacity.missing == [missing]
    written = write_capacity(capacity, tmp_path)
    assert [path.name for path in written] == ["capacity.md", "capacity.json", "capacity.png"]
    record = json.loads((tmp_path / "capacity.json").read_text(encoding="utf-8"))
    assert (record["format"], record["version"]) == ("regard-capacity", 1)
    assert record["points"]["last state"][3]["censored"] is True
    text = (tmp_path / "capacity.md").read_text(encoding="utf-8")
    assert "| last state | 2.1 | 3.1 | 4.1 | ≥ 6.0 | 0.2500 · hidden +1.1 | 1.000 |" in text
    assert (tmp_path / "capacity.png").read_bytes().startswith(b"\x89PNG")
