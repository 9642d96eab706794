"""What a decoding attended to, checked, as numbers that can be written and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

__all__ = ["AlignmentRecord"]

_TOLERANCE = 1e-3


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

    Raises:
        ValueError: Shapes do not fit, or weights are negative or do not sum to 1.
    """

    source_tokens: Sequence[str]
    target_tokens: Sequence[str]
    weights: np.ndarray = field(repr=False)
    text: str = ""
    score: float = 0.0
    source_eos: bool = True
    target_eos: bool = True

    def __post_init__(self) -> None:
        expected = (len(self.target_tokens), len(self.source_tokens))
        if self.weights.ndim != 3 or self.weights.shape[1:] != expected:
            raise ValueError(f"weights {self.weights.shape} do not fit (heads, *{expected})")
        if (self.weights < 0).any():
            raise ValueError("attention weights are never negative")
        if expected[0] and not np.allclose(self.weights.sum(-1), 1, atol=_TOLERANCE):
            raise ValueError("attention weights of a target token sum to 1")

    @property
    def alignment(self) -> np.ndarray:
        """The mean over heads, ``(target_len, source_len)``."""
        return np.asarray(self.weights.mean(0))

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
