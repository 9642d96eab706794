"""The decoding as an animated GIF for slides: the steps that the player shows, drawn one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regard.atomic import write_atomically
from regard.errors import ConfigError
from regard.explain.decoding import DecodingRecord, HypothesisRecord
from regard.explain.record import BLANK, is_marked, shown_token, visible
from regard.figures import font_families, new_figure

__all__ = ["draw_film"]

_PAPER, _INK, _MUTED, _FAINT = "#fdfcf9", "#1f2430", "#666c79", "#d9d6ce"
_BLUE, _CLAY, _GREY = "#2b62b0", "#b3532a", "#9aa3b2"
_WIDTH, _HEIGHT, _DPI = 9.6, 5.4, 100
_LEFT, _RIGHT = 5.0, 95.0
_STATE, _CONTEXT, _BOX, _WORD = (16.0, 45.0), (42.0, 38.0), (66.0, 41.0), (87.0, 41.0)
_BASE, _BAR = 15.0, 11.0
"""Where weight bars stand, and how high one of weight 1 is."""
_SMOOTH_STEPS = 14
"""Outputs of more tokens get fewer pictures a step, so that the file stays small."""


@dataclass(frozen=True)
class _Moment:
    """What one picture shows: how far each part of a step has come, from 0 to 1."""

    step: int
    milliseconds: int
    encoded: float
    vector: float = 0.0
    state: float = 0.0
    scores: float = 0.0
    weights: float = 0.0
    context: float = 0.0
    combine: float = 0.0
    word: float = 0.0


@dataclass(frozen=True)
class _Scene:
    """What all pictures share."""

    record: DecodingRecord
    hypothesis: HypothesisRecord
    weights: np.ndarray | None
    scores: np.ndarray | None
    source: list[str]
    target: list[str]
    families: list[str] = field(default_factory=list)

    @property
    def places(self) -> np.ndarray:
        """The middle of each source token."""
        n = len(self.source)
        return _LEFT + (np.arange(n) + 0.5) * (_RIGHT - _LEFT) / n


def _shown(tokens: tuple[str, ...], *, ended: bool, kind: str) -> list[str]:
    texts = [shown_token(token, kind) for token in tokens]
    if is_marked(kind):  # the blank before a word goes without saying
        texts = [text[1:] if len(text) > 1 and text[0] == BLANK else text for text in texts]
    return [*texts[:-1], "end"] if ended else texts


def _moments(scene: _Scene) -> Iterator[_Moment]:
    n, n_steps = len(scene.source), len(scene.hypothesis.steps)
    fixed = scene.weights is None
    whole = 1.0 if fixed else 0.0
    for place in range(n):
        yield _Moment(-1, 90, place + 1.0)
    if fixed:
        for share in (0.3, 0.7, 1.0):
            yield _Moment(-1, 120 if share < 1 else 600, n, vector=share)
    shares = (0.35, 0.75, 1.0) if n_steps <= _SMOOTH_STEPS else (1.0,)
    phases = (
        ("state", "combine", "word")
        if fixed
        else ("state", "scores", "weights", "context", "combine", "word")
    )
    if scene.record.attends == "before" and not fixed:
        phases = ("scores", "weights", "context", "state", "combine", "word")
    for step in range(n_steps):
        come: dict[str, float] = {}
        for phase in phases:
            for share in shares:
                come[phase] = share
                rest = 420 if phase in ("weights", "word") else 240
                yield _Moment(step, 70 if share < 1 else rest, n, vector=whole, **come)
    yield _Moment(n_steps - 1, 2500, n, vector=whole, **dict.fromkeys(phases, 1.0))


def _text(axes: Any, scene: _Scene, x: float, y: float, text: str, **style: Any) -> None:
    style = {"ha": "center", "va": "center", "color": _INK, "fontsize": 12, **style}
    axes.text(x, y, text, fontfamily=scene.families, parse_math=False, **style)


def _draw_source(axes: Any, scene: _Scene, moment: _Moment) -> None:
    from matplotlib.patches import FancyBboxPatch

    norms = scene.record.encoder_norms / max(float(scene.record.encoder_norms.max()), 1e-9)
    room = (_RIGHT - _LEFT) / len(scene.source)
    width = min(room * 0.72, 4.2)
    turned = max(len(text) for text in scene.source) * 1.3 > room
    for place, (x, text) in enumerate(zip(scene.places, scene.source, strict=True)):
        shown = float(np.clip(moment.encoded - place, 0, 1))
        box: dict[str, Any] = {
            "boxstyle": f"round,pad=0,rounding_size={min(0.7, width / 3)}",
            "alpha": max(shown, 0.15),
        }
        axes.add_patch(FancyBboxPatch((x - width / 2, 8), width, 5.6, fc="white", ec=_GREY, lw=1, **box))
        if shown:
            height = 0.4 + 4.6 * float(norms[place])
            axes.add_patch(
                FancyBboxPatch((x - width * 0.4, 8.3), width * 0.8, height, fc="#d5dfef", ec="none", **box)
            )
        size = float(np.clip(room * 3.2, 5, 13))
        style: dict[str, Any] = {"alpha": max(shown, 0.35), "color": _MUTED if text == "end" else _INK}
        if turned:
            shape = {"rotation": 50, "ha": "right", "va": "top", "rotation_mode": "anchor"}
            _text(axes, scene, x + 0.6, 6.6, _shortened(text, 9), fontsize=min(size, 9), **shape, **style)
        else:
            _text(axes, scene, x, 5.6, text, fontsize=size, **style)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _draw_attention(axes: Any, scene: _Scene, moment: _Moment) -> None:
    if scene.weights is None or scene.scores is None or moment.step < 0:
        return
    weights, scores = scene.weights[moment.step], scene.scores[moment.step]
    finite = np.where(np.isfinite(scores), scores, 0.0)
    scaled = finite / max(float(np.abs(finite).max()), 1e-9)
    width = min((_RIGHT - _LEFT) / len(weights) * 0.5, 2.6)
    middle, share = _BASE + 5.0, moment.weights
    for x, weight, score in zip(scene.places, weights.tolist(), scaled.tolist(), strict=True):
        grown = 4.2 * score * moment.scores
        low = min(middle, middle + grown) * (1 - share) + _BASE * share
        high = max(middle, middle + grown) * (1 - share) + (_BASE + _BAR * weight) * share
        colour = _BLUE if share > 0.5 else _GREY
        if moment.scores:
            axes.bar(x, high - low, width, bottom=low, color=colour, zorder=2)
        if share == 1 and weight >= 0.05:
            _text(axes, scene, x, high + 1.3, f"{100 * weight:.0f}", fontsize=9, color=_BLUE)
        if moment.context and weight >= 0.01:
            _draw_stream(axes, float(x), _BASE + _BAR * weight + 2.6, weight, moment.context)


def _draw_stream(axes: Any, x: float, y: float, weight: float, share: float) -> None:
    t = np.linspace(0, share, 30)
    bend, (end_x, end_y) = (y + _CONTEXT[1] - 2.6) / 2, (_CONTEXT[0], _CONTEXT[1] - 2.6)
    p, q = (x, x, end_x, end_x), (y, bend, bend, end_y)
    parts = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3)
    xs, ys = (sum(part * point for part, point in zip(parts, points, strict=True)) for points in (p, q))
    axes.plot(
        xs, ys, color=_BLUE, lw=0.8 + 5 * weight, alpha=0.25 + 0.5 * weight, solid_capstyle="round", zorder=1
    )


def _draw_nodes(axes: Any, scene: _Scene, moment: _Moment) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch

    number = moment.step + 1 if moment.step >= 0 else ""
    fixed = scene.weights is None
    has_context = moment.vector if fixed else moment.context
    for (x, y), into in ((_STATE, _BOX[1] + 1.6), (_CONTEXT, _BOX[1] - 1.6)):
        axes.plot([x + 2.6, _BOX[0] - 5.5], [y, into], color=_FAINT, lw=1.4, zorder=0)
    axes.plot([_BOX[0], _WORD[0]], [_BOX[1]] * 2, color=_FAINT, lw=1.4, zorder=0)
    nodes = (
        (_STATE, "s", _CLAY, "#f3dfd5", moment.state, number),
        (_CONTEXT, "c", _BLUE, "#d5dfef", has_context, "" if fixed else number),
    )
    for (x, y), name, edge, fill, on, index in nodes:
        axes.add_patch(
            Circle((x, y), 2.6, fc=fill if on >= 1 else "white", ec=edge if on else _FAINT, lw=1.6, zorder=3)
        )
        axes.text(x, y - 0.1, f"$\\mathit{{{name}}}_{{{index}}}$", ha="center", va="center", fontsize=13,
                  color=_INK if on else _GREY, zorder=4)  # fmt: skip
    on = moment.combine >= 1
    frame = FancyBboxPatch((_BOX[0] - 5.5, _BOX[1] - 2.9), 11, 5.8, boxstyle="round,pad=0,rounding_size=1",
                           fc="#ece7e4" if on else "white", ec=_GREY, lw=1.2, zorder=3)  # fmt: skip
    axes.add_patch(frame)
    _text(axes, scene, *_BOX, "feed-forward", fontsize=10, color=_INK if on else _MUTED, zorder=4)
    if moment.step > 0:
        before = f"after {_shortened(scene.target[moment.step - 1], 14)}"
        _text(axes, scene, _STATE[0], _STATE[1] - 4.2, before, fontsize=9, color=_MUTED)


def _draw_words(axes: Any, scene: _Scene, moment: _Moment) -> None:
    done = moment.step + (moment.word >= 1) if moment.step >= 0 else 0
    if moment.word:
        x = _BOX[0] + (_WORD[0] - _BOX[0]) * moment.word
        text = _shortened(scene.target[moment.step], 14)
        prob = float(np.exp(scene.hypothesis.steps[moment.step].log_prob))
        badge = {"boxstyle": "round,pad=0.35,rounding_size=0.8", "fc": _CLAY, "ec": "none"}
        _text(axes, scene, x, _WORD[1], text, color="white", fontsize=12, bbox=badge, zorder=5)
        if moment.word == 1:
            _text(axes, scene, _WORD[0], _WORD[1] - 4.2, f"{100 * prob:.0f} %", fontsize=9, color=_MUTED)
    kind = scene.record.target_kind
    tokens = [step.token for step in scene.hypothesis.steps[:done]]
    if scene.hypothesis.finished and done == len(scene.hypothesis.steps):
        tokens = tokens[:-1]
    text = (" " if kind == "space" else "").join(shown_token(token, kind, blank=" ") for token in tokens)
    own = scene.hypothesis.origin == "output"
    _text(axes, scene, _LEFT, 51.4, "output" if own else "given target", ha="left", fontsize=9, color=_MUTED)
    shown = visible(text.strip())
    shown = shown if len(shown) <= 60 else "\u2026" + shown[-59:]
    _text(axes, scene, _LEFT + 11, 51.3, shown, ha="left", fontsize=14)


def _picture(figure: Any, scene: _Scene, moment: _Moment) -> Any:
    from PIL import Image

    figure.clear()
    figure.set_facecolor(_PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 100), ylim=(0, 100 * _HEIGHT / _WIDTH))
    axes.axis("off")
    axes.plot([_LEFT, _RIGHT], [48.8, 48.8], color=_FAINT, lw=0.8)
    _draw_source(axes, scene, moment)
    _draw_attention(axes, scene, moment)
    if scene.weights is None and moment.vector:
        pooled = scene.record.context == "pooled"
        for x in scene.places if pooled else scene.places[-1:]:
            _draw_stream(axes, float(x), 14.5, 0.35, moment.vector)
    _draw_nodes(axes, scene, moment)
    _draw_words(axes, scene, moment)
    figure.canvas.draw()
    return Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")


def draw_film(record: DecodingRecord, path: Path, *, hypothesis: int = 0, head: int | None = None) -> str:
    """Draw a hypothesis step by step as an animated GIF.

    Args:
        record: What to draw.
        path: Where to; it ends in ``.gif``.
        hypothesis: Which one.
        head: One head of the attention, counted from 0; the mean over heads if None.

    Returns:
        A hint which font to install, empty if all characters could be drawn.

    Raises:
        ConfigError: The path ends in something else, or the output has no tokens.
    """
    if path.suffix.lower() != ".gif":
        raise ConfigError(f"{path}: an animation ends in .gif, not in {path.suffix or 'nothing'!r}")
    chosen = record.hypotheses[hypothesis]
    if not chosen.steps:
        raise ConfigError(f"{path}: there is nothing to draw, the output has no tokens")
    source = _shown(record.source_tokens, ended=True, kind=record.source_kind)
    target = _shown(chosen.tokens, ended=chosen.finished, kind=record.target_kind)
    families, hint = font_families([*source, *target, chosen.text, "\u2423\u2026"])
    weights, scores = (
        None if array is None else array.mean(0) if head is None else array[head]
        for array in (chosen.weights, chosen.scores)
    )
    scene = _Scene(record, chosen, weights, scores, source, target, families)
    figure = new_figure(_WIDTH, _HEIGHT)
    figure.set_layout_engine("none")
    figure.set_dpi(_DPI)
    moments = list(_moments(scene))
    with warnings.catch_warnings():
        # Said once by the hint, instead of once a character by the library.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        pictures = [_picture(figure, scene, moment) for moment in moments]
    _save(pictures, [moment.milliseconds for moment in moments], path)
    return hint


def _save(pictures: list[Any], milliseconds: list[int], path: Path) -> None:
    """Write all pictures with the colours of the last one, which has them all."""
    from PIL import Image

    palette = pictures[-1].quantize(128, dither=Image.Dither.NONE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]

    def write(temporary: Path) -> None:
        frames[0].save(
            temporary,
            format="GIF",
            save_all=True,
            append_images=frames[1:],
            duration=milliseconds,
            loop=0,
            optimize=False,
        )

    write_atomically(path, write)
