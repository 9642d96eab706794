"""The alignment as a picture: one row a target token, one column a source token."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ConfigError
from regard.explain.record import AlignmentRecord, visible
from regard.figures import check_format, font_families, new_figure, save_figure

__all__ = ["draw_heatmap"]

_CELL = 0.34
"""Inches of a cell where there is room."""
_WIDEST, _HIGHEST = 30.0, 40.0
"""Inches of the whole picture, however many tokens and heads there are."""
_LETTER = 0.09
"""Inches of a letter in a turned label, and about those of half a wide one."""
_FONT = 10.0
"""Points of a label beside a cell of full size; it shrinks with the cells."""
_LEAST_CELL = 0.02


@dataclass(frozen=True)
class _Layout:
    """Panels in a grid, the picture's size in inches, and the size of its cells as a share of the full one."""

    n_rows: int
    n_columns: int
    width: float
    height: float
    scale: float


def _layout(source: list[str], target: list[str], n_panels: int) -> _Layout:
    longest = max(map(len, source), default=1)
    # What stands around the cells of a panel: row labels, column labels, titles.
    beside, above = 1.9, 1.3 + (_LETTER * longest if longest > 2 else 0)
    width, height = _CELL * len(source) + beside, _CELL * len(target) + above
    # The number of columns that makes the picture most nearly square.
    n_columns = min(range(1, n_panels + 1), key=lambda n: max(n * width, ceil(n_panels / n) * height))
    n_rows = ceil(n_panels / n_columns)
    room = (_WIDEST / n_columns - beside) / len(source), (_HIGHEST / n_rows - above) / len(target)
    cell = max(_LEAST_CELL, min(_CELL, *room))
    return _Layout(
        n_rows,
        n_columns,
        min(_WIDEST, n_columns * max(3.2, cell * len(source) + beside)),
        min(_HIGHEST, n_rows * max(2.2, cell * len(target) + above)),
        cell / _CELL,
    )


def _panels(record: AlignmentRecord) -> list[tuple[str, np.ndarray]]:
    if len(record.weights) == 1:
        return [("", record.alignment)]
    heads = [(f"head {number}", weights) for number, weights in enumerate(record.weights, 1)]
    return [("mean of heads", record.alignment), *heads]


def _shortened(text: str, room: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= room else set_cell_size(text, room - 1).rstrip() + "\u2026"


def draw_heatmap(record: AlignmentRecord, path: str | Path, *, title: str | None = None) -> str:
    """Draw a record as PNG, SVG or PDF; with several heads each in a panel, their mean first.

    Args:
        record: What to draw.
        path: Where to; its ending decides the format.
        title: Over the picture; the output by default. One wider than the picture is shortened.

    Returns:
        A hint which font to install, empty if all characters could be drawn.

    Raises:
        ConfigError: The ending is none of the formats, or the output has no tokens.
    """
    path = check_format(Path(path))
    if not record.target_tokens:
        raise ConfigError(f"{path}: there is nothing to draw, the output has no tokens")
    panels = _panels(record)
    source, target = record.source_labels(), record.target_labels()
    layout = _layout(source, target, len(panels))
    title = _shortened(visible(title if title is not None else record.text), int(layout.width * 9))
    families, hint = font_families([*source, *target, title])
    figure = new_figure(layout.width, layout.height)
    with warnings.catch_warnings():
        # Said once by the hint, instead of once a character by the library.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        for number, (name, weights) in enumerate(panels, 1):
            axes = figure.add_subplot(layout.n_rows, layout.n_columns, number)
            image = _draw_panel(axes, weights, source, target, families=families, scale=layout.scale)
            axes.set_title(name, fontsize=11, fontweight="bold")
            _mark_ends(axes, record)
        figure.colorbar(
            image, ax=figure.axes, label="attention weight", shrink=0.8, aspect=25 * layout.n_rows
        )
        figure.suptitle(title, fontfamily=families, parse_math=False)
        save_figure(figure, path)
    return hint


def _draw_panel(
    axes: Any, weights: np.ndarray, source: list[str], target: list[str], *, families: list[str], scale: float
) -> Any:
    image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    # Tokens are text: a dollar sign opens no formula.
    style = {"fontfamily": families, "fontsize": _FONT * scale, "parse_math": False}
    axes.set_xticks(range(len(source)), source, **style)
    axes.set_yticks(range(len(target)), target, **style)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    for label, token in zip(axes.get_xticklabels(), source, strict=True):
        label.set_rotation(90 if len(token) > 2 else 0)
    axes.set_xlabel("source")
    axes.set_ylabel("target")
    axes.tick_params(length=0)
    # Thin white lines between cells make single rows and columns easy to follow; small cells would drown.
    axes.set_xticks([place - 0.5 for place in range(1, len(source))], minor=True)
    axes.set_yticks([place - 0.5 for place in range(1, len(target))], minor=True)
    axes.grid(which="minor", color="white", lw=1.2 * scale if scale > 0.5 else 0)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    return image


def _mark_ends(axes: Any, record: AlignmentRecord) -> None:
    """Write the end tokens in grey, so that a symbol of the same spelling is not taken for one."""
    for is_end, labels in (
        (record.source_eos, axes.get_xticklabels()),
        (record.target_eos, axes.get_yticklabels()),
    ):
        if is_end:
            labels[-1].set_color("#7a7a7a")
