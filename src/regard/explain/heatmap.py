"""The alignment as a picture: one row a target token, one column a source token."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from regard.explain.record import AlignmentRecord
from regard.figures import check_format, font_families, new_figure, save_figure

__all__ = ["draw_heatmap"]

_CELL = 0.34
"""Inches of a cell."""


def _visible(token: str) -> str:
    return token.replace(" ", "\u2423") if token.strip() else "\u2423" * max(1, len(token))


def draw_heatmap(record: AlignmentRecord, path: str | Path, *, title: str | None = None) -> str:
    """Draw a record as PNG, SVG or PDF; with several heads each in a panel, their mean first.

    Args:
        record: What to draw.
        path: Where to; its ending decides the format.
        title: Over the picture; the output by default.

    Returns:
        A hint which font to install, empty if all characters could be drawn.

    Raises:
        ConfigError: The ending is none of the formats.
    """
    path = check_format(Path(path))
    panels = [("mean of heads", record.alignment)] if len(record.weights) > 1 else [("", record.alignment)]
    if len(record.weights) > 1:
        panels += [(f"head {number}", weights) for number, weights in enumerate(record.weights, 1)]
    source, target = list(map(_visible, record.source_tokens)), list(map(_visible, record.target_tokens))
    title = title if title is not None else record.text
    families, hint = font_families([*source, *target, title])
    longest = max(map(len, source), default=1)
    width = min(30.0, max(3.2, _CELL * len(source) + 1.9)) * len(panels)
    height = min(40.0, max(2.2, _CELL * len(target) + 1.3 + (0.09 * longest if longest > 2 else 0)))
    figure = new_figure(width, height)
    with warnings.catch_warnings():
        if hint:  # said once by the caller, instead of once a character by the library
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
        for number, (name, weights) in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), number)
            image = _draw_panel(axes, weights, source, target, families)
            if name:
                axes.set_xlabel(name)
        figure.colorbar(image, ax=figure.axes, label="attention weight", shrink=0.8, aspect=25)
        figure.suptitle(title, fontfamily=families)
        save_figure(figure, path)
    return hint


def _draw_panel(axes: Any, weights: Any, source: list[str], target: list[str], families: list[str]) -> Any:
    image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    axes.set_xticks(range(len(source)), source, fontfamily=families)
    axes.set_yticks(range(len(target)), target, fontfamily=families)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    for label, token in zip(axes.get_xticklabels(), source, strict=True):
        label.set_rotation(90 if len(token) > 2 else 0)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    axes.tick_params(length=0)
    # Thin white lines between cells make single rows and columns easy to follow.
    axes.set_xticks([place - 0.5 for place in range(1, len(source))], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, len(target))], minor=True)
    axes.grid(which="minor", color="white", lw=1.2)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    return image
