"""What is known of a model besides its settings and weights: how it was made and how long outputs may get."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

__all__ = ["Facts", "LengthLimit"]


class LengthLimit(BaseModel):
    """Longest output for a source: ``ratio`` * source length + ``extra`` tokens.

    It is made so that each training pair fits with room to spare, and depends on nothing but the source.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ratio: float = 2.0
    extra: int = 20

    @classmethod
    def from_lengths(
        cls, source_lens: np.ndarray, target_lens: np.ndarray, *, ratio: float | None = None
    ) -> LengthLimit:
        """Fit to training pairs: the median slope, with a fifth to spare (unless one is given), over all pairs."""
        if ratio is None:
            ratio = 1.2 * float(np.median(target_lens / source_lens))
        above = float(np.max(target_lens - ratio * source_lens))
        return cls(ratio=round(ratio, 4), extra=max(0, math.ceil(above)) + 10)

    def __call__(self, source_len: int) -> int:
        """Longest output in tokens, the end not counted."""
        return math.ceil(self.ratio * source_len) + self.extra


class Facts(BaseModel):
    """How a model was made; kept as ``facts.json`` in its folder."""

    model_config = ConfigDict(extra="forbid")

    regard_version: str
    length_limit: LengthLimit = LengthLimit()
    data: dict[str, Any] = {}
    """Names, sizes and fingerprint of the training data."""
    training: dict[str, Any] = {}
    """Updates, seconds, best values, device, precision."""
    command: str = ""
    """The command that trained the model."""
