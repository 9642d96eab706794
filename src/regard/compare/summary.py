"""The results of all runs put together: for each variant the mean over seeds, and how far the seeds lie apart."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import regard
from regard.compare.perform import RunResult
from regard.compare.plan import Plan, Run
from regard.registry import METRICS

__all__ = ["Comparison", "Spread", "VariantSummary", "spread", "summarise"]

FORMAT, VERSION = "regard-comparison", 1
_GRID = 40
"""Moments at which the training curves of several seeds are compared."""


@dataclass(frozen=True)
class Spread:
    """A mean over seeds with the lowest and the highest; of one seed, its 95 % interval over the examples."""

    mean: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """The mean of some values with the lowest and the highest."""
    return Spread(float(np.mean(values)), float(min(values)), float(max(values)))


@dataclass(frozen=True)
class VariantSummary:
    """What came of a variant.

    Attributes:
        name: Its name.
        label: Its name in tables.
        family: Fixed context or attention.
        model: Settings of the model.
        hidden_size: Units of a layer.
        n_parameters: Trained numbers.
        difference: By which share it has more parameters than it should, or None if they are not matched.
        seeds: Of the runs that are done.
        steps: Updates within the budget.
        tokens_per_second: Target tokens a second of training.
        decoded_per_second: Target tokens a second of decoding.
        overall: Each metric over all test pairs.
        by_length: Each metric by source length, in the order of the ranges.
        curve: ``seconds``, and for each value on the dev pairs ``mean``, ``low`` and ``high`` at these.
        losses: Likewise for the loss on training batches.
    """

    name: str
    label: str
    family: str
    model: dict[str, Any]
    hidden_size: int
    n_parameters: int
    difference: float | None
    seeds: list[int]
    steps: Spread
    tokens_per_second: Spread
    decoded_per_second: Spread
    overall: dict[str, Spread]
    by_length: dict[str, list[Spread]]
    curve: dict[str, Any]
    losses: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """A whole comparison, as it is written to ``compare.json``.

    Attributes:
        data: Name, sizes and digest of the data.
        budget: What each run could use.
        beam: Hypotheses kept while decoding.
        machine: What it ran on.
        ranges: Of source length: ``first``, ``last`` and ``n_examples``.
        metrics: Names, the main one first, with ``label``, ``higher_is_better`` and ``signature``.
        watched: The value on the dev pairs that the best weights were chosen by.
        variants: In the order they were asked for.
        runs: Each run's result.
        missing: Names of runs without a result.
    """

    data: dict[str, Any]
    budget: dict[str, Any]
    beam: int
    machine: dict[str, Any]
    ranges: list[dict[str, int]]
    metrics: dict[str, dict[str, Any]]
    watched: str
    variants: list[VariantSummary]
    runs: list[dict[str, Any]]
    missing: list[str]

    @property
    def n_seeds(self) -> int:
        """The most seeds that a variant has."""
        return max(len(variant.seeds) for variant in self.variants)

    def to_json(self) -> str:
        """The comparison as JSON text."""
        record = {"format": FORMAT, "version": VERSION, "regard": regard.__version__, **asdict(self)}
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _over_seeds(estimates: Sequence[dict[str, float]]) -> Spread:
    """The spread of what the reports say of one value; of one seed, its own interval."""
    if len(estimates) == 1:
        return Spread(estimates[0]["value"], estimates[0]["low"], estimates[0]["high"])
    return spread([estimate["value"] for estimate in estimates])


def _curve(found: Sequence[list[dict[str, Any]]]) -> dict[str, Any]:
    """The mean and the range over seeds of values that were taken at different moments."""
    curves = [curve for curve in found if curve]
    if not curves:
        return {}
    seconds = [np.array([point["seconds"] for point in curve]) for curve in curves]
    # From the last of the first validations to the first of the last ones all seeds have values.
    first, last = max(times[0] for times in seconds), min(times[-1] for times in seconds)
    grid = seconds[0] if len(curves) == 1 else np.linspace(first, max(first, last), _GRID)
    made: dict[str, Any] = {"seconds": np.round(grid, 2).tolist()}
    for name in curves[0][0]["values"]:
        rows = [
            np.interp(grid, times, [point["values"][name] for point in curve])
            for times, curve in zip(seconds, curves, strict=True)
        ]
        made[name] = {
            what: np.round(reduce(rows, axis=0), 4).tolist()
            for what, reduce in (("mean", np.mean), ("low", np.min), ("high", np.max))
        }
    return made


def _variant(runs: Sequence[Run], results: Sequence[RunResult], target: int | None) -> VariantSummary:
    run, n_parameters = runs[0], results[0].n_parameters
    reports = [result.report for result in results]
    names, places = list(reports[0]["overall"]), range(len(reports[0]["by_source_length"]))
    return VariantSummary(
        name=run.variant,
        label=run.label,
        family=run.family,
        model=run.config.model.model_dump(),
        hidden_size=run.hidden_size,
        n_parameters=n_parameters,
        difference=None if target is None else round(n_parameters / target - 1, 5),
        seeds=[result.seed for result in results],
        steps=spread([result.training["steps"] for result in results]),
        tokens_per_second=spread([result.tokens_per_second for result in results]),
        decoded_per_second=spread([result.decoded_per_second for result in results]),
        overall={name: _over_seeds([r["overall"][name] for r in reports]) for name in names},
        by_length={
            name: [_over_seeds([r["by_source_length"][place][name] for r in reports]) for place in places]
            for name in names
        },
        curve=_curve([result.curve for result in results]),
        losses=_curve([result.losses for result in results]),
    )


def _described(metric: str, report: dict[str, Any]) -> dict[str, Any]:
    found = METRICS.get(metric)
    return {
        "label": found.label,
        "higher_is_better": bool(found.higher_is_better),
        "signature": report["signatures"][metric],
    }


def _machine(results: Sequence[RunResult]) -> dict[str, Any]:
    training = results[0].training
    return {
        "platform": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        **{name: training[name] for name in ("device", "precision", "threads", "torch")},
    }


def summarise(plan: Plan, results: Mapping[str, RunResult]) -> Comparison:
    """Put results together.

    Args:
        plan: What was to be done.
        results: By the runs' names, at least one.
    """
    targets = plan.budget["parameters"]
    grouped: dict[tuple[str, int], list[Run]] = {}
    for run in plan.runs:
        if run.name in results:
            grouped.setdefault((run.variant, run.hidden_size), []).append(run)
    done = [run for run in plan.runs if run.name in results]
    report = results[done[0].name].report
    return Comparison(
        data=plan.data.facts(),
        budget=plan.budget,
        beam=plan.evaluation.beam,
        machine=_machine([results[run.name] for run in done]),
        ranges=[
            {name: bucket[name] for name in ("first", "last", "n_examples")}
            for bucket in report["by_source_length"]
        ],
        metrics={name: _described(name, report) for name in plan.evaluation.metrics},
        watched=_watched(results[done[0].name]),
        variants=[
            _variant(runs, [results[run.name] for run in runs], None if targets is None else targets[0])
            for runs in grouped.values()
        ],
        runs=[
            {"run": run.name, "folder": f"runs/{run.name}", **results[run.name].model_dump()} for run in done
        ],
        missing=[run.name for run in plan.runs if run.name not in results],
    )


def _watched(result: RunResult) -> str:
    values = [name for point in result.curve for name in point["values"] if name != "loss"]
    return values[0] if values else "loss"
