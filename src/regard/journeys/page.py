"""The frame of the report: one HTML file without anything from elsewhere, for light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["page", "section", "table"]

_STYLE = """
:root{--bg:#fbfbf9;--card:#fff;--ink:#1c2126;--soft:#5d6872;--rule:#dfe3e6;--a:#2f66a9;--b:#c2562f;--c:#3f8a5c}
@media (prefers-color-scheme:dark){:root{--bg:#14181c;--card:#1c2227;--ink:#e8ebed;--soft:#9ca8b2;--rule:#343d45;
--a:#78aef0;--b:#f0956c;--c:#79c99a}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,sans-serif;
overflow-wrap:break-word}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.7rem;line-height:1.2;margin:.4rem 0}
h2{font-size:1.25rem;margin:0 0 .4rem}h3{font-size:1rem;margin:1.4rem 0 .3rem}p{margin:.3rem 0 .8rem;max-width:46rem}
section{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:1.1rem;margin:1.1rem 0}
.soft{color:var(--soft)}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;width:100%}
th,td{text-align:left;padding:.32rem .6rem .32rem 0;border-bottom:1px solid var(--rule);vertical-align:top}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem}.tile b{display:block;
font-size:1.5rem}.tile{border:1px solid var(--rule);border-radius:8px;padding:.6rem .8rem;font-size:.88rem}
.yes{color:var(--b);font-weight:600}
svg{width:100%;height:auto;max-width:46rem;display:block;margin:.4rem 0}svg text{fill:var(--ink);font:13px system-ui,
sans-serif}svg .tick{fill:var(--soft);font-size:12px}.axis{stroke:var(--soft)}.grid{stroke:var(--rule)}
.bar{fill:var(--a);opacity:.45}.bar.strong{fill:var(--b);opacity:.9}.whisker{stroke:var(--ink);stroke-width:2}
.diagonal{stroke:var(--soft);stroke-dasharray:5 4}.line{fill:none;stroke-width:2.2}
.line.s0{stroke:var(--a)}.line.s1{stroke:var(--b)}.line.s2{stroke:var(--c)}.dot.s0{fill:var(--a)}.dot.s1{fill:var(--b)}
.dot.s2{fill:var(--c)}
td:first-child{min-width:9rem}
@media (max-width:34rem){svg text{font-size:20px}svg .tick{font-size:18px}section{padding:.8rem}}
ol.time{list-style:none;margin:.5rem 0;padding:0 0 0 1rem;border-left:3px solid var(--rule)}ol.time li{margin:.7rem 0}
ol.time b{font-weight:600}.meter{height:7px;background:var(--rule);border-radius:4px;max-width:18rem;margin:.25rem 0}
.meter i{display:block;height:100%;border-radius:4px;background:var(--a)}
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def section(title: str, *parts: str, note: str = "") -> str:
    """A part with a heading and a sentence on how to read it; the other parts are HTML."""
    said = f'<p class="soft">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(parts)}</section>"


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> str:
    """A table of texts; columns in ``numbers`` are set right."""

    def cell(kind: str, place: int, value: object) -> str:
        return f"<{kind}{' class=n' if place in numbers else ''}>{escape(str(value))}</{kind}>"

    head = "".join(cell("th", place, title) for place, title in enumerate(titles))
    body = "".join(
        "<tr>" + "".join(cell("td", place, value) for place, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
