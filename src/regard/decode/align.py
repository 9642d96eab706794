"""Alignments read off attention weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regard.decode.hypothesis import Hypothesis
from regard.nn.ids import UNK

__all__ = ["best_sources", "copy_unknown"]


def best_sources(weights: np.ndarray) -> np.ndarray:
    """The source token that each output token attends to most; the end of the source is never one.

    Args:
        weights: ``(heads, target_len, source_len)``, the last column being the source's end.

    Returns:
        ``(target_len,)``, -1 where the source has no token but its end.
    """
    real = weights.mean(0)[:, :-1]
    if not real.shape[1]:
        return np.full(weights.shape[1], -1)
    return np.asarray(real.argmax(1))


def copy_unknown(hypothesis: Hypothesis, source_symbols: Sequence[str]) -> dict[int, str]:
    """For each unknown output token the raw source symbol that it attends to most (Luong 2015b).

    Args:
        hypothesis: With weights; without, nothing is copied.
        source_symbols: The source as it stands, without its end.

    Returns:
        Text by place in ``hypothesis.tokens``.
    """
    if hypothesis.weights is None or UNK not in hypothesis.tokens or not source_symbols:
        return {}
    best = best_sources(hypothesis.weights)
    return {
        place: source_symbols[int(best[place])]
        for place, token in enumerate(hypothesis.tokens)
        if token == UNK and 0 <= best[place] < len(source_symbols)
    }
