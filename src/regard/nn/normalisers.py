"""Stage 2 of attention: from scores to weights that are non-negative, zero on what is masked, and sum to 1."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from regard.errors import ConfigError

__all__ = ["Normaliser", "masked_entmax15", "masked_softmax", "masked_sparsemax"]

Normaliser = Callable[[Tensor, Tensor], Tensor]
"""``(scores (..., source_len), allowed bool broadcastable to it) -> weights`` of the scores' shape.

A row in which nothing is allowed gets weights of zero, and no gradient."""


def _open_rows(allowed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mask with fully masked rows opened, and which rows had anything allowed."""
    any_allowed = allowed.any(-1, keepdim=True)
    return allowed | ~any_allowed, any_allowed


def masked_softmax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Softmax over the allowed keys; exact for scores of any size."""
    opened, any_allowed = _open_rows(allowed)
    # Minus infinity, not a large number: a valid score may itself be very negative.
    weights = torch.softmax(scores.masked_fill(~opened, float("-inf")), -1)
    return weights * any_allowed


def _masked_by_library(name: str, scores: Tensor, allowed: Tensor) -> Tensor:
    try:
        import entmax
    except ImportError:
        raise ConfigError(
            f'normaliser {name} needs the package entmax: pip install "regard[entmax]"'
        ) from None
    opened, any_allowed = _open_rows(allowed)
    # Both transforms give exact zero to what lies 2 below the maximum. Infinite scores would make their
    # running variances NaN, so what is masked is put 100 below instead.
    highest = scores.masked_fill(~opened, float("-inf")).amax(-1, keepdim=True).detach()
    weights: Tensor = getattr(entmax, name)(torch.where(opened, scores, highest - 100.0), dim=-1)
    return weights * (allowed & any_allowed)


def masked_sparsemax(scores: Tensor, allowed: Tensor) -> Tensor:
    """Sparsemax (Martins & Astudillo 2016) over the allowed keys; many weights are exactly zero."""
    return _masked_by_library("sparsemax", scores, allowed)


def masked_entmax15(scores: Tensor, allowed: Tensor) -> Tensor:
    """1.5-entmax (Peters et al. 2019) over the allowed keys; between softmax and sparsemax."""
    return _masked_by_library("entmax15", scores, allowed)
