"""Forced decoding: the probability of given outputs, through the steps that search takes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.decode.hypothesis import Hypothesis
from regard.decode.penalties import Penalties
from regard.decode.rollout import roll_out
from regard.nn.types import EOS, StepEngine

__all__ = ["force"]


def force(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    target: Tensor,
    target_lens: Tensor,
    *,
    penalties: Penalties | None = None,
) -> list[Hypothesis]:
    """Score given outputs.

    Args:
        engine: The model.
        source: int64 ``(batch, source_len)``, each row ending in `EOS`.
        source_lens: int64 ``(batch,)``, the end counted.
        target: int64 ``(batch, target_len)`` without ends, padded.
        target_lens: int64 ``(batch,)``, the end not counted.
        penalties: How `Hypothesis.normalised` is made; the plain score by default.
    """
    batch, target_len = target.shape
    ended = torch.full((batch, target_len + 1), EOS, dtype=torch.long, device=target.device)
    inside = torch.arange(target_len, device=target.device) < target_lens[:, None]
    ended[:, :target_len] = torch.where(inside, target, EOS)

    def given(log_probs: Tensor, sources: np.ndarray, step: int) -> Tensor:
        return ended[torch.from_numpy(sources).to(target.device), step][:, None]

    made = roll_out(
        engine,
        source,
        source_lens,
        choose=given,
        n_rows=1,
        max_lens=[target_len + 1] * batch,
        penalties=penalties or Penalties(),
    )
    return [row[0] for row in made]
