"""A prediction as a static piece of HTML for notebooks: its text, its score and what each token looked at."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from regard.explain.record import visible

__all__ = ["render_table"]

_MOST_CELLS = 60
"""Rows and columns at most; a notebook is no place for more."""


def _cell(weight: float, title: str) -> str:
    # One hue in varying strength reads on light and on dark pages.
    return (
        f'<td title="{escape(title)}" style="width:1.5em;height:1.5em;padding:0;border:1px solid rgba(128,128,128,.12);'
        f'background:rgba(43,98,176,{weight:.3f})"></td>'
    )


def _grid(source: Sequence[str], target: Sequence[str], weights: np.ndarray) -> str:
    turned = max(map(len, source)) > 2
    column = "text-align:center;font-weight:normal;padding:2px" + (
        ";writing-mode:vertical-rl" if turned else ""
    )
    head = "".join(f'<th style="{column}">{escape(token)}</th>' for token in source)
    rows = []
    for token, row in zip(target, weights.tolist(), strict=True):
        cells = "".join(
            _cell(weight, f"{of} \u2192 {token}: {weight:.1%}")
            for of, weight in zip(source, row, strict=True)
        )
        rows.append(
            f'<tr><th style="text-align:right;font-weight:normal;padding:2px 6px">{escape(token)}</th>{cells}</tr>'
        )
    return (
        '<table style="border-collapse:collapse;margin:.4em 0;font-size:90%"><thead><tr><th></th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def render_table(
    source: str,
    text: str,
    score: float,
    *,
    source_tokens: Sequence[str] = (),
    target_tokens: Sequence[str] = (),
    weights: np.ndarray | None = None,
    alternatives: Sequence[tuple[str, float]] = (),
) -> str:
    """Return HTML without scripts, in which every text is escaped.

    Args:
        source: The source as given.
        text: The output.
        score: Its log-probability.
        source_tokens: Columns, as they are shown.
        target_tokens: Rows, likewise.
        weights: ``(target_len, source_len)``, or None for a fixed context.
        alternatives: Texts and scores of an n-best list.
    """
    parts = [
        f"<div><bdi>{escape(visible(source))}</bdi> \u2192 <b><bdi>{escape(visible(text))}</bdi></b> "
        f'<span style="opacity:.65">log-probability {score:.3f}</span></div>'
    ]
    if weights is not None and weights.size:
        n_rows, n_columns = weights.shape
        parts.append(
            _grid(
                source_tokens[:_MOST_CELLS], target_tokens[:_MOST_CELLS], weights[:_MOST_CELLS, :_MOST_CELLS]
            )
        )
        if max(n_rows, n_columns) > _MOST_CELLS:
            parts.append(
                f'<div style="opacity:.65">the first {_MOST_CELLS} of {n_rows} rows and {n_columns} columns</div>'
            )
    if len(alternatives) > 1:
        items = "".join(
            f'<li><bdi>{escape(visible(other))}</bdi> <span style="opacity:.65">{value:.3f}</span></li>'
            for other, value in alternatives
        )
        parts.append(f'<ol style="margin:.2em 0 .2em 1.6em;padding:0">{items}</ol>')
    return f"<div>{''.join(parts)}</div>"
