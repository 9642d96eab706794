"""The plot of a report: each metric against source length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.figures import check_format, new_figure, save_figure

if TYPE_CHECKING:
    from regard.evaluate.report import Report

__all__ = ["plot_report"]

_COLOURS = ("#3b6fb6", "#d1603d", "#4f9d69", "#8a5fb0", "#b8892b", "#5a6b7b", "#c2476f")


def plot_report(report: Report, path: Path) -> None:
    """Draw metrics as lines with 95 % bands over the buckets, and the number of examples under them."""
    check_format(path)
    figure = new_figure(8.0, 4.6)
    axes = figure.add_subplot()
    places = list(range(len(report.buckets)))
    for colour, (name, label) in zip(_COLOURS, report.labels.items(), strict=False):
        estimates = [bucket.estimates[name] for bucket in report.buckets]
        axes.fill_between(
            places, [e.low for e in estimates], [e.high for e in estimates], color=colour, alpha=0.15, lw=0
        )
        axes.plot(places, [e.value for e in estimates], marker="o", ms=4, lw=1.8, color=colour, label=label)
    axes.set_xticks(places, [f"{bucket.label}\nn={bucket.n_examples:,}" for bucket in report.buckets])
    axes.set_xlabel("source length in tokens")
    axes.set_ylabel("per cent")
    axes.set_title(f"Quality by source length ({report.n_examples:,} examples, 95 % intervals)", loc="left")
    axes.grid(axis="y", color="#d8d8d8", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save_figure(figure, path)
