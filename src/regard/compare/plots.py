"""The plots of a comparison, with bands over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.compare.report import sentence_case
from regard.compare.summary import Comparison, Spread, VariantSummary
from regard.figures import new_figure, save_figure
from regard.registry import METRICS

__all__ = ["FIXED", "MARKERS", "draw_plots", "plain", "styles"]

FIXED = ("#d1603d", "#a3341b", "#e0913a", "#b5763a", "#c2476f", "#8c2d4d", "#e3b04b")
_ATTENTION = (
    "#2f5f9e",
    "#4aa3c7",
    "#4f9d69",
    "#2d7a78",
    "#6a5fb0",
    "#86b34a",
    "#7d8fa3",
    "#9a78c9",
    "#1f3b5c",
)
MARKERS = "osD^vPX*<>h"


def styles(variants: Sequence[VariantSummary]) -> dict[str, dict[str, Any]]:
    """A line style for each variant: fixed contexts warm and dashed, attention cool and solid."""
    made: dict[str, dict[str, Any]] = {}
    counts = {"fixed": 0, "attention": 0}
    for variant in variants:
        number = counts[variant.family]
        counts[variant.family] += 1
        colours = FIXED if variant.family == "fixed" else _ATTENTION
        made[variant.name] = {
            "color": colours[number % len(colours)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": (0, (4, 2)) if variant.family == "fixed" else "-",
        }
    return made


def _band(axes: Any, x: Sequence[float], values: Sequence[Spread], style: dict[str, Any], label: str) -> None:
    low, high = [value.low for value in values], [value.high for value in values]
    axes.fill_between(x, low, high, color=style["color"], alpha=0.13, lw=0)
    axes.plot(x, [value.mean for value in values], label=label, **{"ms": 4, "lw": 1.6, **style})


def plain(axes: Any) -> None:
    """Leave only what helps to read values."""
    axes.grid(axis="y", color="#d8d8d8", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(axes: Any) -> None:
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, handlelength=3)


def band_text(n_seeds: int) -> str:
    """What the bands of a plot are."""
    if n_seeds > 1:
        return f"mean of {n_seeds} seeds, bands from the lowest to the highest"
    return "one seed, bands are 95 % intervals over the examples"


def _by_length(comparison: Comparison, name: str, path: Path) -> None:
    """A metric against source length."""
    metric = comparison.metrics[name]
    figure = new_figure(9.0, 4.8)
    axes = figure.add_subplot()
    places = [(ends["first"] + ends["last"]) / 2 for ends in comparison.ranges]
    chosen = styles(comparison.variants)
    for variant in comparison.variants:
        _band(axes, places, variant.by_length[name], chosen[variant.name], variant.label)
    longest = comparison.data["longest_trained"]
    if longest < comparison.data["longest_tested"]:
        axes.axvline(longest + 0.5, color="#606060", lw=1.0, ls=":")
        axes.annotate(
            " longer than any in training",
            (longest + 0.5, 1.0),
            xycoords=("data", "axes fraction"),
            va="top",
            fontsize=8,
            color="#606060",
        )
    axes.set_xlabel("source length in tokens")
    axes.set_ylabel(f"{metric['label']}, per cent")
    if name in ("token", "exact"):
        axes.set_ylim(-2, 102)
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(_few_ticks(8))
    axes.set_title(
        f"{sentence_case(metric['label'])} by source length\n{band_text(comparison.n_seeds)}",
        loc="left",
        fontsize=10,
    )
    plain(axes)
    _legend(axes)
    save_figure(figure, path)


def _spreads(curve: dict[str, Any], name: str) -> list[Spread]:
    values = curve[name]
    return [Spread(*row) for row in zip(values["mean"], values["low"], values["high"], strict=True)]


def _curves(comparison: Comparison, path: Path) -> None:
    """The loss on training batches, and the watched value on the dev pairs, against the time of training."""
    watched = comparison.watched
    figure = new_figure(11.0, 4.4)
    panels = figure.subplots(1, 2)
    chosen = styles(comparison.variants)
    longest = max((max(v.losses["seconds"]) for v in comparison.variants if v.losses), default=0.0)
    unit, seconds = ("minutes", 60.0) if longest >= 120 else ("seconds", 1.0)
    for variant in comparison.variants:
        style = chosen[variant.name]
        columns: tuple[tuple[dict[str, Any], str, dict[str, Any]], ...]
        columns = ((variant.losses, "loss", {"marker": ""}), (variant.curve, watched, {"ms": 3}))
        for axes, (curve, name, other) in zip(panels, columns, strict=True):
            if curve:
                times = [moment / seconds for moment in curve["seconds"]]
                _band(axes, times, _spreads(curve, name), {**style, **other}, variant.label)
    bands = f"bands over {comparison.n_seeds} seeds" if comparison.n_seeds > 1 else "one seed"
    label = "loss, nats a token" if watched == "loss" else f"{METRICS.get(watched).label}, per cent"
    for axes, title, wanted in (
        (panels[0], f"Loss on training batches, {bands}", "training loss, nats a token"),
        (panels[1], "On the dev pairs", label),
    ):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel(f"{unit} of training, validations included")
        axes.set_ylabel(wanted)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        plain(axes)
    _legend(panels[-1])
    save_figure(figure, path)


def _costs(comparison: Comparison, path: Path) -> None:
    """Tokens a second of training and of decoding, and parameters."""
    variants = comparison.variants[::-1]
    figure = new_figure(11.0, 1.4 + 0.32 * len(variants))
    panels = figure.subplots(1, 3, sharey=True)
    chosen = styles(comparison.variants)
    colours = [chosen[variant.name]["color"] for variant in variants]
    places = list(range(len(variants)))
    columns: list[tuple[str, list[Spread]]] = [
        ("target tokens a second, training", [v.tokens_per_second for v in variants]),
        ("target tokens a second, decoding", [v.decoded_per_second for v in variants]),
        ("parameters", [Spread(v.n_parameters, v.n_parameters, v.n_parameters) for v in variants]),
    ]
    for axes, (title, values) in zip(panels, columns, strict=True):
        reach = [[v.mean - v.low for v in values], [v.high - v.mean for v in values]]
        axes.barh(places, [v.mean for v in values], xerr=reach, color=colours, height=0.7, ecolor="#404040")
        axes.set_title(title, loc="left", fontsize=9)
        axes.xaxis.set_major_locator(_few_ticks(4))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#d8d8d8", lw=0.6)
        axes.set_axisbelow(True)
    panels[0].set_yticks(places, [variant.label for variant in variants])
    save_figure(figure, path)


def _few_ticks(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, integer=True)


def draw_plots(comparison: Comparison, folder: Path) -> list[Path]:
    """Draw all plots into a folder; returns their paths."""
    paths = []
    for name in comparison.metrics:
        paths.append(folder / f"length-{name}.png")
        _by_length(comparison, name, paths[-1])
    paths += [folder / "curves.png", folder / "costs.png"]
    _curves(comparison, paths[-2])
    _costs(comparison, paths[-1])
    return paths
