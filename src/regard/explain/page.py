"""One self-contained HTML file: the player, its style and a record, with nothing fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from regard.atomic import write_text
from regard.explain.decoding import DecodingRecord
from regard.explain.record import visible
from regard.explain.serial import to_object

__all__ = ["player_file", "render_page", "write_page"]

_MOUNT = """
const record = JSON.parse(document.getElementById("record").textContent);
const options = JSON.parse(document.getElementById("options").textContent);
window.player = createPlayer(document.getElementById("player"), record, options);
const button = document.getElementById("theme");
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const shown = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
const name = () => { button.textContent = shown() === "dark" ? "light" : "dark"; };
button.addEventListener("click", () => {
  document.documentElement.dataset.theme = shown() === "dark" ? "light" : "dark";
  name();
});
dark.addEventListener("change", name);
name();
"""

_STYLE = """
:root { color-scheme: light dark; --page: #f5f3ee; --page-ink: #1f2430; --page-muted: #666c79; }
@media (prefers-color-scheme: dark) { :root { --page: #101318; --page-ink: #e8e5de; --page-muted: #9aa1ae; } }
:root[data-theme="light"] { color-scheme: light; --page: #f5f3ee; --page-ink: #1f2430; --page-muted: #666c79; }
:root[data-theme="dark"] { color-scheme: dark; --page: #101318; --page-ink: #e8e5de; --page-muted: #9aa1ae; }
body { margin: 0; background: var(--page); color: var(--page-ink);
  font: 15px/1.5 ui-sans-serif, system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC",
  "Microsoft YaHei", sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 28px 24px 40px; }
header { display: flex; gap: 16px; align-items: baseline; margin-bottom: 18px; }
h1 { font-size: 21px; line-height: 1.35; font-weight: 600; margin: 0; flex: 1; overflow-wrap: anywhere; text-wrap: balance;
  display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
h1 span { color: var(--page-muted); font-weight: 400; padding: 0 0.3em; }
#theme { font: inherit; font-size: 13px; color: var(--page-muted); background: none; cursor: pointer;
  border: 1px solid currentColor; border-radius: 99px; padding: 2px 12px; flex: none; }
#theme:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
footer { margin-top: 22px; font-size: 13px; color: var(--page-muted); }
noscript { display: block; margin: 12px 0; }
@media (max-width: 520px) { main { padding: 16px 12px 28px; } h1 { font-size: 18px; -webkit-line-clamp: 3; } }
"""


def player_file(name: str) -> str:
    """The text of ``player.js`` or ``player.css``."""
    return (files("regard.explain") / "player" / name).read_text(encoding="utf-8")


def _inline(value: Any) -> str:
    """JSON inside a script element: nothing in it can end the element or begin markup."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Half surrogates are no text, and a file cannot hold them.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def render_page(record: DecodingRecord, *, options: dict[str, Any] | None = None) -> str:
    """Return the page as text.

    Args:
        record: What the player shows.
        options: Of the player, such as ``{"words": True, "head": 0}``.
    """
    script = player_file("player.js") + _MOUNT
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; base-uri 'none'"
    best = record.hypotheses[0]
    source, text = escape(visible(record.source)), escape(visible(best.text))
    what = "the model’s own output" if best.origin == "output" else "a given target"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{source} → {text}</title>
<style>{_STYLE}{player_file("player.css")}</style>
</head>
<body>
<main>
<header><h1><bdi>{source}</bdi><span>→</span><bdi>{text}</bdi></h1><button id="theme" type="button">theme</button></header>
<div id="player"></div>
<noscript>The player needs JavaScript. The numbers stand in this file as JSON.</noscript>
<footer>What a sequence-to-sequence model did, step by step, for {what}; log-probability {f"{best.score:.3f}".replace("-", "−")}. Space
plays and pauses, ← → step, ↑ ↓ go by words, Home and End jump. Made by regard; the file fetches nothing.</footer>
</main>
<script type="application/json" id="record">{_inline(to_object(record, vectors=False))}</script>
<script type="application/json" id="options">{_inline(options or {})}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def write_page(record: DecodingRecord, path: Path, *, options: dict[str, Any] | None = None) -> None:
    """Write the page, atomically."""
    write_text(path, render_page(record, options=options))
