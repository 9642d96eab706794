"""What all pictures share: a canvas without a screen, file formats, and fonts for what is written on them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from regard.errors import ConfigError

__all__ = ["FORMATS", "check_format", "font_families", "new_figure", "save_figure"]

FORMATS = (".png", ".svg", ".pdf")
_CANDIDATES = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)


def check_format(path: Path) -> Path:
    """Return the path if it names a picture that can be made.

    Raises:
        ConfigError: Its ending is another one.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path}: a picture ends in {', '.join(FORMATS)}, not in {path.suffix or 'nothing'!r}"
        )
    return path


def new_figure(width: float, height: float) -> Any:
    """Make an empty figure of a size in inches, without touching global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the path's ending, atomically."""
    from matplotlib import rc_context

    from regard.atomic import write_atomically

    kind = check_format(path).suffix.lower()[1:]
    # Text in SVG stays text, so that it can be searched and read aloud.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "regard"}):
        write_atomically(path, lambda temporary: figure.savefig(temporary, format=kind, dpi=160))


def _covered(path: str) -> set[int]:
    from fontTools.ttLib import TTCollection, TTFont

    if path.endswith((".ttc", ".otc")):
        with TTCollection(path, lazy=True) as collection:
            return set(collection.fonts[0].getBestCmap() or {})
    with TTFont(path, lazy=True) as font:
        return set(font.getBestCmap() or {})


def _installed() -> dict[str, str]:
    from matplotlib import font_manager

    return {entry.name: entry.fname for entry in font_manager.fontManager.ttflist}


def _choose(installed: dict[str, str], needed: set[int]) -> tuple[list[str], set[int]]:
    """Choose families until all characters are covered; returns them and what is missing."""
    known = [name for name in _CANDIDATES if name in installed]
    others = sorted(name for name in installed if name not in known and ("CJK" in name or "Noto" in name))
    families: list[str] = []
    missing = set(needed)
    for name in [*known, *others]:
        try:
            gained = missing & _covered(installed[name])
        except (OSError, ValueError, KeyError, ImportError):
            continue
        if gained or name == "DejaVu Sans":
            families.append(name)
            missing -= gained
        if not missing:
            break
    return families, missing


def font_families(texts: Iterable[str]) -> tuple[list[str], str]:
    """Choose installed fonts that together have every character.

    Returns:
        Families for matplotlib's fallback, and a hint what to install, empty if nothing is missing.
    """
    from matplotlib import font_manager

    # It remarks on standard error that a font has no weight "normal", which nobody can do anything about.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    needed = {ord(character) for text in texts for character in text if character.isprintable()}
    families, missing = _choose(_installed(), needed)
    if missing:
        # The library remembers the fonts of its first use; one may have been installed since.
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        for path in sorted(set(font_manager.findSystemFonts()) - known):
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                font_manager.fontManager.addfont(path)
        families, missing = _choose(_installed(), needed)
    if not missing:
        return families, ""
    shown = "".join(map(chr, sorted(missing)[:8]))
    return families, (
        f"no installed font has {shown!r}: they are drawn as boxes; install one, for instance "
        "`apt-get install fonts-noto-cjk` (Debian, Ubuntu), `brew install font-noto-sans-cjk` (macOS), or the "
        "Chinese supplemental fonts (Windows)"
    )
