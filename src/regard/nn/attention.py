"""Attention over queries, keys and values; it knows nothing of recurrent networks or of text.

Three stages: scores e = score(q, K); weights a = normalise(e, mask); context = a V.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.nn.types import AttentionMask, Memory
from regard.nn.windows import MonotonicWindow, PredictiveWindow
from regard.registry import NORMALISERS, SCORES

__all__ = ["Attended", "Attention"]


@dataclass(frozen=True)
class Attended:
    """What a query found.

    Attributes:
        context: Weighted sum of the values, ``(batch, n_queries, context_size)``.
        weights: ``(batch, heads, n_queries, source_len)``; None for a fixed context, which weighs nothing.
        scores: What the weights were made of, before masking; of the same shape, or None.
    """

    context: Tensor
    weights: Tensor | None
    scores: Tensor | None


class Attention(nn.Module):
    """Attention with any score, window and normaliser, single- or multi-headed.

    With one head, queries, keys and values are used as they come, as in Bahdanau 2015 and Luong 2015. With
    more, each head has projections of its own (Vaswani 2017, section 3.2.2) and the heads' contexts are
    concatenated; the layer that reads the context takes the place of the output projection.

    Args:
        query_size: Width of a query.
        key_size: Width of a key.
        value_size: Width of a value; that of a key if None.
        score: Name in `regard.registry.SCORES`.
        heads: Number of heads; must divide the three sizes when it is more than 1.
        window: ``global``, ``local_m`` or ``local_p``.
        window_size: Half width of a local window, in keys.
        normaliser: Name in `regard.registry.NORMALISERS`.
        size: Hidden width of the score; ``query_size // heads`` if None.
        max_positions: Positions known to ``location``.

    Raises:
        ValueError: The sizes do not fit the heads or the score.
    """

    def __init__(
        self,
        query_size: int,
        key_size: int,
        *,
        value_size: int | None = None,
        score: str = "general",
        heads: int = 1,
        window: str = "global",
        window_size: int = 5,
        normaliser: str = "softmax",
        size: int | None = None,
        max_positions: int = 500,
    ) -> None:
        super().__init__()
        value_size = key_size if value_size is None else value_size
        for name, width in (("query_size", query_size), ("key_size", key_size), ("value_size", value_size)):
            if width % heads:
                raise ValueError(f"{name} {width} cannot be shared among {heads} heads")
        self.heads = heads
        self.context_size = value_size
        self.score = SCORES.get(score)(
            query_size=query_size // heads,
            key_size=key_size // heads,
            heads=heads,
            size=size or max(1, query_size // heads),
            max_positions=max_positions,
        )
        if heads > 1:
            self.query_projection = nn.Linear(query_size, query_size, bias=False)
            reads_keys = self.score.reads_keys
            self.key_projection = nn.Linear(key_size, key_size, bias=False) if reads_keys else nn.Identity()
            self.value_projection = nn.Linear(value_size, value_size, bias=False)
        self.normalise = NORMALISERS.get(normaliser)
        self.monotonic = MonotonicWindow(half_width=window_size) if window == "local_m" else None
        self.predictive = (
            PredictiveWindow(query_size=query_size, half_width=window_size) if window == "local_p" else None
        )

    def _split(self, tensor: Tensor) -> Tensor:
        """``(batch, n, size)`` to ``(batch, heads, n, size / heads)``."""
        batch, n, size = tensor.shape
        return tensor.view(batch, n, self.heads, size // self.heads).transpose(1, 2)

    def prepare(self, keys: Tensor, mask: AttentionMask, *, values: Tensor | None = None) -> Memory:
        """Do once a source what no query changes.

        Args:
            keys: ``(batch, source_len, key_size)``.
            mask: Which of them are real.
            values: ``(batch, source_len, value_size)``; the keys themselves if None.

        Raises:
            ValueError: The mask's shape is not that of the keys.
        """
        if mask.allowed.shape != keys.shape[:2]:
            raise ValueError(f"mask {tuple(mask.allowed.shape)} does not fit keys {tuple(keys.shape)}")
        values = keys if values is None else values
        if self.heads == 1:
            return Memory(self.score.prepare(keys[:, None]), values[:, None], mask)
        projected = self.score.prepare(self._split(self.key_projection(keys)))
        return Memory(projected, self._split(self.value_projection(values)), mask)

    def attend(self, query: Tensor, memory: Memory, *, positions: Tensor | None = None) -> Attended:
        """Answer queries from a memory.

        Args:
            query: ``(batch, n_queries, query_size)``.
            memory: What `prepare` made of the same batch.
            positions: Index of each query's target token, ``(n_queries,)`` or ``(1,)`` for all; needed by
                ``local_m`` only, and 0, 1, 2, … if None.
        """
        heads_query = query[:, None] if self.heads == 1 else self._split(self.query_projection(query))
        scores = self.score(heads_query, memory.keys)  # (batch, heads, n_queries, source_len)
        allowed = memory.mask.allowed[:, None, None, :]
        if self.monotonic is not None:
            if positions is None:
                positions = torch.arange(query.shape[1], device=query.device)
            scores, allowed = self.monotonic(scores, memory.mask, positions)
        elif self.predictive is not None:
            scores, allowed = self.predictive(scores, memory.mask, query)
        weights = self.normalise(scores, allowed)
        context = (
            weights.to(memory.values.dtype) @ memory.values
        )  # (batch, heads, n_queries, value_size / heads)
        return Attended(context.transpose(1, 2).flatten(2), weights, scores)
