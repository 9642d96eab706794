"""How long a source a fixed context of some size can hold: the longest length that is still copied.

Accuracy is measured for each source length apart. Longer sources are not easier, so what the lengths say is
smoothed to fall (isotonic regression, weighted by tokens); the capacity is where that curve crosses the
threshold, read between two lengths by a straight line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import regard
from regard.atomic import write_text
from regard.compare.perform import RunResult
from regard.compare.plan import Plan, Run
from regard.compare.report import budget_text, markdown_table
from regard.compare.summary import Spread, spread
from regard.figures import new_figure, save_figure

__all__ = [
    "Capacity",
    "CapacityPoint",
    "Fit",
    "falling",
    "fit_line",
    "longest_held",
    "measure_capacity",
    "write_capacity",
]

THRESHOLD = 95.0
FORMAT, VERSION = "regard-capacity", 1


def falling(values: Sequence[float], weights: Sequence[float]) -> np.ndarray:
    """The nearest sequence, by weighted squares, that never rises (pool adjacent violators)."""
    blocks: list[list[float]] = []  # value, weight, number of members
    for value, weight in zip(values, weights, strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            (one, w_one, n_one), (two, w_two, n_two) = blocks[-2:]
            total = w_one + w_two
            blocks[-2:] = [[(one * w_one + two * w_two) / total, total, n_one + n_two]]
    return np.concatenate([np.full(int(n), value) for value, _, n in blocks])


def longest_held(
    lengths: Sequence[int], accuracies: Sequence[float], weights: Sequence[float], *, threshold: float
) -> tuple[float, bool]:
    """Return the longest length at which the accuracy is at least a threshold.

    Args:
        lengths: Source lengths, rising.
        accuracies: Per cent at each.
        weights: How much was measured at each.
        threshold: Per cent.

    Returns:
        The length, 0 if even the shortest is below; and whether it may be longer, none being below.
    """
    smooth = falling(accuracies, weights)
    below = np.flatnonzero(smooth < threshold)
    if not len(below):
        return float(lengths[-1]), True
    place = int(below[0])
    if place == 0:
        return 0.0, False
    above, under = smooth[place - 1], smooth[place]
    step = lengths[place] - lengths[place - 1]
    return float(lengths[place - 1] + step * (above - threshold) / (above - under)), False


@dataclass(frozen=True)
class CapacityPoint:
    """What a variant holds at one hidden size.

    Attributes:
        hidden_size: Units of a layer.
        n_parameters: Trained numbers.
        longest: The longest length over seeds.
        censored: Whether a seed held even the longest source of the test.
        seeds: Each seed's length.
    """

    hidden_size: int
    n_parameters: int
    longest: Spread
    censored: bool
    seeds: dict[int, float]


@dataclass(frozen=True)
class Fit:
    """A straight line, length = slope * hidden size + intercept, and the share of variance it explains."""

    slope: float
    intercept: float
    r_squared: float


def fit_line(points: Sequence[CapacityPoint]) -> Fit | None:
    """Fit a line by least squares; None if fewer than three points tell a length.

    A model that holds the test's longest source may hold more, and one that does not hold the shortest holds
    something less: neither says where the line is.
    """
    used = [point for point in points if not point.censored and point.longest.low > 0]
    sizes = np.array([point.hidden_size for point in used], dtype=np.float64)
    lengths = np.array([point.longest.mean for point in used])
    if len(used) < 3:
        return None
    slope, intercept = np.polyfit(sizes, lengths, 1)
    residual = float(((lengths - slope * sizes - intercept) ** 2).sum())
    total = float(((lengths - lengths.mean()) ** 2).sum())
    return Fit(float(slope), float(intercept), 1 - residual / total if total else 1.0)


@dataclass(frozen=True)
class Capacity:
    """Capacities of all variants, as written to ``capacity.json``.

    Attributes:
        data: Name, sizes and digest of the data.
        budget: What each run could use.
        threshold: Token accuracy, per cent, that counts as held.
        points: For each variant's label, rising in hidden size.
        fits: For each variant's label.
        missing: Names of runs without a result.
    """

    data: dict[str, Any]
    budget: dict[str, Any]
    threshold: float
    points: dict[str, list[CapacityPoint]]
    fits: dict[str, Fit | None]
    missing: list[str]

    def to_json(self) -> str:
        """The capacities as JSON text."""
        record = {"format": FORMAT, "version": VERSION, "regard": regard.__version__, **asdict(self)}
        return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _held(result: RunResult, threshold: float) -> tuple[float, bool]:
    ranges = result.report["by_source_length"]
    return longest_held(
        [bucket["last"] for bucket in ranges],
        [bucket["token"]["value"] for bucket in ranges],
        [bucket["n_examples"] * bucket["last"] for bucket in ranges],
        threshold=threshold,
    )


def measure_capacity(
    plan: Plan, results: Mapping[str, RunResult], *, threshold: float = THRESHOLD
) -> Capacity:
    """Read capacities off the results of a plan whose ranges are single lengths and whose metric is ``token``."""
    grouped: dict[str, dict[int, list[Run]]] = {}
    for run in plan.runs:
        if run.name in results:
            grouped.setdefault(run.label, {}).setdefault(run.hidden_size, []).append(run)
    points: dict[str, list[CapacityPoint]] = {}
    for label, by_size in grouped.items():
        points[label] = []
        for size, runs in sorted(by_size.items()):
            held = {run.seed: _held(results[run.name], threshold) for run in runs}
            points[label].append(
                CapacityPoint(
                    hidden_size=size,
                    n_parameters=results[runs[0].name].n_parameters,
                    longest=spread([length for length, _ in held.values()]),
                    censored=any(more for _, more in held.values()),
                    seeds={seed: round(length, 3) for seed, (length, _) in held.items()},
                )
            )
    return Capacity(
        data=plan.data.facts(),
        budget=plan.budget,
        threshold=threshold,
        points=points,
        fits={label: fit_line(of_label) for label, of_label in points.items()},
        missing=[run.name for run in plan.runs if run.name not in results],
    )


def _draw(capacity: Capacity, path: Path) -> None:
    from regard.compare.plots import FIXED, MARKERS, plain

    figure = new_figure(8.6, 4.8)
    axes = figure.add_subplot()
    for number, (label, points) in enumerate(capacity.points.items()):
        colour, marker = FIXED[number % len(FIXED)], MARKERS[number % len(MARKERS)]
        sizes = [point.hidden_size for point in points]
        means = [point.longest.mean for point in points]
        reach = [
            [point.longest.mean - point.longest.low for point in points],
            [point.longest.high - point.longest.mean for point in points],
        ]
        fit = capacity.fits[label]
        said = "" if fit is None else f": {fit.slope:.3f} tokens a unit (R² {fit.r_squared:.2f})"
        axes.errorbar(
            sizes, means, yerr=reach, fmt=marker, color=colour, ms=6, capsize=3, lw=1, label=label + said
        )
        held = [(s, m) for s, m, point in zip(sizes, means, points, strict=True) if point.censored]
        if held:  # hollow: the test has no longer sources
            axes.plot(*zip(*held, strict=True), marker, color="white", mec=colour, ms=6, zorder=5, ls="")
        if fit is not None:
            told = [p.hidden_size for p in points if p.longest.low > 0]
            ends = np.array([min(told), max(told)])
            axes.plot(ends, fit.slope * ends + fit.intercept, color=colour, lw=1.3, ls=(0, (4, 2)))
    axes.axhline(capacity.data["longest_tested"], color="#606060", lw=0.8, ls=":")
    axes.set_xlabel("hidden size")
    axes.set_ylabel(f"longest length at {capacity.threshold:g} % token accuracy")
    top = max(capacity.data["longest_tested"], 1)
    axes.set_ylim(-0.02 * top, 1.05 * top)
    title = "What one vector holds\ndotted: the longest source of the test; hollow: at least so much"
    axes.set_title(title, loc="left", fontsize=10)
    plain(axes)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save_figure(figure, path)


def to_markdown(capacity: Capacity, picture: str) -> str:
    """The capacities as a table with the plot."""
    sizes = sorted({point.hidden_size for points in capacity.points.values() for point in points})
    rows = []
    for label, points in capacity.points.items():
        by_size = {point.hidden_size: point for point in points}
        cells = [label]
        for size in sizes:
            point = by_size.get(size)
            sign = "≥ " if point is not None and point.censored else ""
            cells.append("" if point is None else f"{sign}{point.longest.mean:.1f}")
        fit = capacity.fits[label]
        cells.append("" if fit is None else f"{fit.slope:.4f} · hidden {fit.intercept:+.1f}")
        cells.append("" if fit is None else f"{fit.r_squared:.3f}")
        rows.append(cells)
    data = capacity.data
    facts = (
        f"- Data: {data['name']}; {data['n_train']:,} training and {data['n_test']:,} test pairs, sources up to "
        f"{data['longest_tested']} tokens\n- Budget: {budget_text(capacity.budget)}\n"
        f"- Held: the longest source length with at least {capacity.threshold:g} % token accuracy, mean over seeds\n"
    )
    facts += "- Each length is what was learnt within this budget; with more of it, more may be held\n"
    if capacity.missing:
        facts += f"- Without a result: {', '.join(capacity.missing)}\n"
    head = ["context", *(f"hidden {size}" for size in sizes), "line", "R²"]
    table = markdown_table(head, rows)
    return f"# Capacity of fixed contexts\n\n{facts}\n{table}\n![capacity]({picture})\n"


def write_capacity(capacity: Capacity, folder: Path) -> list[Path]:
    """Write ``capacity.json``, ``capacity.md`` and ``capacity.png``; returns what was written."""
    picture = folder / "capacity.png"
    _draw(capacity, picture)
    write_text(folder / "capacity.json", capacity.to_json())
    write_text(folder / "capacity.md", to_markdown(capacity, picture.name))
    return [folder / "capacity.md", folder / "capacity.json", picture]
