"""What hypotheses of different lengths are ranked by (Wu 2016, eq. 14)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Penalties"]

_FLOOR = 1e-8
"""Least coverage of a source token: its logarithm stays finite where nothing was attended."""


@dataclass(frozen=True)
class Penalties:
    """rank(Y) = log P(Y) / lp(Y) + cp(Y).

    lp(Y) = ((5 + |Y|) / 6)^alpha, the end counted in |Y|; cp(Y) = beta * sum over source tokens j of
    log(min(sum over t of a_tj, 1)), the mean over heads, the source's end counted.

    Args:
        alpha: Exponent of the length normalisation; 0 turns it off.
        beta: Factor of the coverage penalty; 0 turns it off.
    """

    alpha: float = 0.0
    beta: float = 0.0

    def length(self, n_tokens: int) -> float:
        """Return lp for so many tokens, the end counted."""
        return float(((5 + n_tokens) / 6) ** self.alpha)

    def coverage(self, covered: Tensor, allowed: Tensor) -> Tensor:
        """Return cp.

        Args:
            covered: Sum of the weights over steps, ``(..., source_len)``.
            allowed: Bool, real source positions, broadcastable to it.
        """
        logs = covered.clamp(min=_FLOOR, max=1.0).log()
        return self.beta * torch.where(allowed, logs, 0.0).sum(-1)
