"""Greedy search: the likeliest token at each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from regard.config import DecodingSettings
from regard.decode.hypothesis import Hypothesis
from regard.decode.penalties import Penalties
from regard.decode.rollout import roll_out
from regard.nn.types import PAD, StepEngine

__all__ = ["greedy_search"]


def _likeliest(log_probs: Tensor, sources: np.ndarray, step: int) -> Tensor:
    # Padding is no output, whatever an untrained model thinks of it.
    log_probs[:, :, PAD] = float("-inf")
    return log_probs.argmax(2)


def greedy_search(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    *,
    settings: DecodingSettings,
    max_lens: Sequence[int],
) -> list[list[Hypothesis]]:
    """Take the likeliest token at each step; see `regard.decode.search.search`."""
    penalties = Penalties(settings.length_penalty, settings.coverage_penalty)
    return roll_out(
        engine, source, source_lens, choose=_likeliest, n_rows=1, max_lens=max_lens, penalties=penalties
    )
