"""What a decoding attended to, checked, as numbers that can be written and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["BLANK", "AlignmentRecord", "is_marked", "shown_token", "visible"]

_TOLERANCE = 1e-3
_JOINERS = "\u200c\u200d"
_MARK = "\u2581"
_MARKED = ("word", "bpe", "unigram")
BLANK = "\u2423"
"""How a blank is shown where it could be overlooked: ␣."""


def visible(text: str, *, blank: str = " ") -> str:
    """Return a text in which each character can be seen: what does not print is written as ``U+000C``.

    Args:
        text: A token, or a text.
        blank: What stands for U+0020.
    """
    joins = any(character.isprintable() for character in text)
    return "".join(
        blank
        if character == " "
        # Joiners shape the letters beside them and belong to the spelling, in Persian for instance.
        else character
        if character.isprintable() or (joins and character in _JOINERS)
        else f"U+{ord(character):04X}"
        for character in text
    )


def is_marked(kind: str) -> bool:
    """Whether tokens of this kind write a blank as the mark ▁, which no reader of a text knows."""
    return kind in _MARKED


def shown_token(token: str, kind: str, *, blank: str = BLANK) -> str:
    """A token as it is shown to a person: every character can be seen, and a blank is a blank in every kind.

    Args:
        token: Of a text, or of the output.
        kind: Of the tokenizer: char, grapheme, space, word, bpe or unigram; empty if not known.
        blank: What stands for a blank.
    """
    return visible(token.replace(_MARK, " ") if is_marked(kind) else token, blank=blank)


@dataclass(frozen=True)
class AlignmentRecord:
    """Attention weights with the tokens they belong to.

    Attributes:
        source_tokens: Columns; if ``source_eos`` the last is the end of the source.
        target_tokens: Rows; if ``target_eos`` the last is the end of the output.
        weights: float32 ``(heads, target_len, source_len)``, each row summing to 1.
        text: The output.
        score: Its log-probability.
        source_eos: Whether the last column is the end token, and not a symbol of the same spelling.
        target_eos: Likewise for the last row.
        source_kind: Into what the source was split, which says how its tokens are shown; empty if not known.
        target_kind: Likewise for the target.

    Raises:
        ValueError: Shapes do not fit, or weights are not finite, negative or do not sum to 1.
    """

    source_tokens: Sequence[str]
    target_tokens: Sequence[str]
    weights: np.ndarray = field(repr=False)
    text: str = ""
    score: float = 0.0
    source_eos: bool = True
    target_eos: bool = True
    source_kind: str = ""
    target_kind: str = ""

    def __post_init__(self) -> None:
        expected = (len(self.target_tokens), len(self.source_tokens))
        if self.weights.ndim != 3 or self.weights.shape[1:] != expected:
            raise ValueError(
                f"weights {self.weights.shape} do not fit (heads, target_len, source_len) = "
                f"(heads, {expected[0]}, {expected[1]})"
            )
        if not self.weights.shape[0]:
            raise ValueError("attention has at least one head, these weights have none")
        if not np.isfinite(self.weights).all():
            raise ValueError("attention weights are finite, these are not")
        if (self.weights < 0).any():
            raise ValueError(f"attention weights are never negative, the least is {self.weights.min():.4g}")
        wrong = np.argwhere(np.abs(self.weights.sum(-1) - 1) > _TOLERANCE)
        if len(wrong):
            head, row = wrong[0]
            raise ValueError(
                f"attention weights of a target token sum to 1, those of token {row} in head {head} to "
                f"{self.weights[head, row].sum():.4g}"
            )

    @property
    def alignment(self) -> np.ndarray:
        """The mean over heads, ``(target_len, source_len)``."""
        return np.asarray(self.weights.mean(0))

    def source_labels(self, *, blank: str = BLANK) -> list[str]:
        """Source tokens as they are shown; see `shown_token`."""
        return [shown_token(token, self.source_kind, blank=blank) for token in self.source_tokens]

    def target_labels(self, *, blank: str = BLANK) -> list[str]:
        """Target tokens as they are shown."""
        return [shown_token(token, self.target_kind, blank=blank) for token in self.target_tokens]

    def to_numpy(self) -> np.ndarray:
        """A copy of the weights, float32 ``(heads, target_len, source_len)``."""
        return np.array(self.weights, dtype=np.float32)

    def pharaoh(self) -> str:
        """The strongest source token of each target token as ``source-target`` pairs, ends left out."""
        n_source = len(self.source_tokens) - self.source_eos
        n_target = len(self.target_tokens) - self.target_eos
        if not n_source:
            return ""
        best = self.alignment[:n_target, :n_source].argmax(1)
        return " ".join(f"{source}-{target}" for target, source in enumerate(best.tolist()))

    def to_json(self) -> str:
        """The record as JSON text."""
        record = {
            "format": "regard-alignment",
            "version": 1,
            "text": self.text,
            "score": round(float(self.score), 6),
            "source_tokens": list(self.source_tokens),
            "target_tokens": list(self.target_tokens),
            "source_eos": self.source_eos,
            "target_eos": self.target_eos,
            "weights": np.round(self.weights.astype(float), 6).tolist(),
        }
        return json.dumps(record, ensure_ascii=False) + "\n"
