"""Which part of the source a query may look at: everything, or a window (Luong 2015, section 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.types import AttentionMask

__all__ = ["MonotonicWindow", "PredictiveWindow"]


class MonotonicWindow(nn.Module):
    """local-m: query t sees the keys t - D to t + D.

    Departure from the paper: past the end of the source the window stays at its last position instead of
    leaving it, so that the weights always sum to 1.
    """

    def __init__(self, *, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width

    def forward(self, scores: Tensor, mask: AttentionMask, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Narrow the mask; the scores stay as they are.

        Args:
            scores: ``(batch, heads, n_queries, source_len)``.
            mask: Real source positions.
            positions: Index of each query's target token, ``(n_queries,)`` or ``(1,)`` for all.

        Returns:
            The scores and what is allowed, ``(batch, 1, n_queries, source_len)``.
        """
        last = (mask.lengths - 1).clamp(min=0)
        centre = torch.minimum(positions[None, :], last[:, None])  # (batch, n_queries)
        keys = torch.arange(scores.shape[-1], device=scores.device)
        near = (keys - centre[:, :, None]).abs() <= self.half_width
        return scores, (near & mask.allowed[:, None, :])[:, None]


class PredictiveWindow(nn.Module):
    """local-p: the centre is predicted from the query, and scores fall off from it (Luong 2015, eq. 9 and 10).

    p = (S - 1) sigmoid(v' tanh(W q)); the paper multiplies the softmax by a Gaussian of standard deviation
    D / 2. Departure: here its logarithm is added to the scores, so that the weights still sum to 1.
    """

    def __init__(self, *, query_size: int, half_width: int) -> None:
        super().__init__()
        self.half_width = half_width
        self.hidden = nn.Linear(query_size, query_size, bias=False)
        self.position = nn.Linear(query_size, 1, bias=False)

    def forward(self, scores: Tensor, mask: AttentionMask, query: Tensor) -> tuple[Tensor, Tensor]:
        """Add the Gaussian's logarithm and narrow the mask.

        Args:
            scores: ``(batch, heads, n_queries, source_len)``.
            mask: Real source positions.
            query: Whole queries, ``(batch, n_queries, query_size)``; all heads share the window.
        """
        last = (mask.lengths - 1).clamp(min=0)
        share = torch.sigmoid(self.position(torch.tanh(self.hidden(query))))  # (batch, n_queries, 1)
        centre = share * last[:, None, None]
        keys = torch.arange(scores.shape[-1], device=scores.device)
        distance = keys - centre  # (batch, n_queries, source_len)
        near = distance.abs() <= self.half_width
        gaussian = -(distance**2) / (2 * (self.half_width / 2) ** 2)
        return scores + gaussian[:, None], (near & mask.allowed[:, None, :])[:, None]
