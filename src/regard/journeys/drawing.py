"""Plots as SVG that stands in the page: colours come from the page, so they suit light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["interval_bars", "lines_plot", "scatter_plot"]

_WIDTH = 640


def _svg(height: float, label: str, parts: Sequence[str], width: int = _WIDTH) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(label, quote=True)}">'
        f"<title>{escape(label)}</title>{body}</svg>"
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(text)}</text>'


def shorten(text: str, n: int) -> str:
    """At most ``n`` characters of a text."""
    return text if len(text) <= n else text[: n - 1] + "…"


def interval_bars(
    rows: Sequence[tuple[str, tuple[float, float, float], bool]], *, label: str, unit: str = ""
) -> str:
    """Horizontal bars from zero with intervals.

    Args:
        rows: Name, (value, low, high), and whether to stress it.
        label: What it shows, for those who cannot see it.
        unit: Behind the numbers of the axis.
    """
    bound = max([0.05, *(abs(x) for _, values, _ in rows for x in values if abs(x) < 10)])
    step, left, right, top = 42, 46.0, _WIDTH - 46.0, 8
    height = top + step * len(rows) + 28
    low = min([0.0, *(min(v) for _, v, _ in rows)])
    lowest = -bound if low < -0.005 else 0.0

    def x(value: float) -> float:
        return left + (min(bound, max(lowest, value)) - lowest) / (bound - lowest) * (right - left)

    parts = [f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{top}" y2="{height - 24}" class="axis"/>']
    for place, (name, (value, below, above), stressed) in enumerate(rows):
        y = top + step * place
        a, b = sorted((x(0), x(value)))
        kind = "bar strong" if stressed else "bar"
        parts += [
            _text(left, y + 14, shorten(name, 78), kind="name"),
            f'<rect x="{a:.1f}" y="{y + 20}" width="{max(1.0, b - a):.1f}" height="12" rx="2" class="{kind}"/>',
            f'<line x1="{x(below):.1f}" x2="{x(above):.1f}" y1="{y + 26}" y2="{y + 26}" class="whisker"/>',
        ]
    for value in (lowest, 0.0, bound) if lowest else (0.0, bound / 2, bound):
        parts.append(
            _text(
                x(value),
                height - 8,
                f"{100 * value:+.0f}{unit}" if value else "0",
                anchor="middle",
                kind="tick",
            )
        )
    return _svg(height, label, parts)


def _frame(height: int, y_label: str) -> list[str]:
    parts = []
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = 30 + (1 - value) * (height - 76)
        parts.append(f'<line x1="46" x2="{_WIDTH - 14}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(_text(40, y + 4, f"{100 * value:.0f}", anchor="end", kind="tick"))
    parts.append(_text(46, 17, y_label, kind="tick"))
    return parts


def lines_plot(
    ticks: Sequence[str], series: Sequence[tuple[str, Sequence[float]]], *, label: str, y_label: str
) -> str:
    """Lines over named places, values between 0 and 1; a value that is not a number is left out."""
    height = 260
    parts = _frame(height, y_label)
    step = (_WIDTH - 110) / max(1, len(ticks) - 1)
    for place, tick in enumerate(ticks):
        parts.append(_text(58 + step * place, height - 26, tick, anchor="middle", kind="tick"))
    for number, (name, values) in enumerate(series):
        points = [
            (58 + step * place, 30 + (1 - value) * (height - 76))
            for place, value in enumerate(values)
            if value == value
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" class="line s{number}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" class="dot s{number}"/>' for x, y in points]
        parts.append(
            f'<rect x="{58 + 240 * number}" y="{height - 14}" width="12" height="4" class="dot s{number}"/>'
        )
        parts.append(_text(76 + 240 * number, height - 8, name, kind="name"))
    return _svg(height, label, parts)


def scatter_plot(
    points: Sequence[tuple[float, float, int]], *, label: str, y_label: str, x_label: str
) -> str:
    """Foretold against real shares with the diagonal; the size of a dot is its number."""
    height = 300
    parts = _frame(height, y_label)

    def at(x: float, y: float) -> tuple[float, float]:
        return 58 + x * (_WIDTH - 100), 30 + (1 - y) * (height - 76)

    (x0, y0), (x1, y1) = at(0, 0), at(1, 1)
    parts.append(f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" class="diagonal"/>')
    most = max([1, *(n for _, _, n in points)])
    for x, y, n in points:
        a, b = at(x, y)
        parts.append(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{3 + 4 * (n / most) ** 0.5:.1f}" class="dot s0"/>'
        )
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_text(at(value, 0)[0], height - 26, f"{100 * value:.0f}", anchor="middle", kind="tick"))
    parts.append(_text(_WIDTH / 2, height - 6, x_label, anchor="middle", kind="tick"))
    return _svg(height, label, parts)
