"""The alignment in the terminal: shaded cells that read without colour."""

from __future__ import annotations

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from regard.explain.record import BLANK, AlignmentRecord

__all__ = ["render_alignment"]

_SHADES = " \u2591\u2592\u2593\u2588"
_ASCII_SHADES = " .:*#"
_COLOURS = ("", "#9bb8dd", "#6f97cd", "#4377bb", "#1f5aa6")


def _level(weight: float) -> int:
    """0 below 5 %, then a shade for each quarter."""
    return 0 if weight < 0.05 else min(4, 1 + int(weight * 4))


def _pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def render_alignment(record: AlignmentRecord, *, width: int = 80, ascii_only: bool = False) -> Text:
    """Draw a record as text; a source wider than the terminal is cut into blocks.

    Args:
        record: What to draw; the mean over heads is shown.
        width: Of the terminal, in cells.
        ascii_only: Draw with ASCII alone, for terminals without UTF-8.
    """
    blank = "_" if ascii_only else BLANK
    source, target = record.source_labels(blank=blank), record.target_labels(blank=blank)
    if ascii_only:
        source, target = [*map(_ascii, source)], [*map(_ascii, target)]
    label = max((cell_len(token) for token in target), default=0)
    widths = [max(2, cell_len(token)) for token in source]
    shades = _ASCII_SHADES if ascii_only else _SHADES
    weights, text = record.alignment, Text(no_wrap=True)
    for columns in _blocks(widths, width - label - 1):
        text.append(" " * (label + 1))
        for column in columns:
            text.append(_pad(source[column], widths[column]) + " ", Style(bold=True))
        text.append("\n")
        for row, token in enumerate(target):
            text.append(_pad(token, label, right=True) + " ", Style(bold=True))
            for column in columns:
                level = _level(float(weights[row, column]))
                style = Style(color=_COLOURS[level]) if level else Style()
                text.append(shades[level] * widths[column], style)
                text.append(" ")
            text.append("\n")
        text.append("\n")
    marks = zip(shades[1:], ("5", "25", "50", "75"), strict=True)
    text.append(
        "weight  " + "   ".join(f"{shade * 2} from {bound} %" for shade, bound in marks), Style(dim=True)
    )
    return text


def _blocks(widths: list[int], room: int) -> list[list[int]]:
    """Divide columns into blocks that fit; each has at least one."""
    blocks: list[list[int]] = [[]]
    used = 0
    for column, width in enumerate(widths):
        if blocks[-1] and used + width + 1 > room:
            blocks.append([])
            used = 0
        blocks[-1].append(column)
        used += width + 1
    return blocks
