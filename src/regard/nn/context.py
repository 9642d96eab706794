"""How the decoder sees the source: one fixed vector, or a fresh one each step by attention.

All have one interface (prepare once a source, attend each step), so that the decoder, search and
explanation have one path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from regard.nn.attention import Attended, Attention
from regard.nn.encoder import Encoded
from regard.nn.types import AttentionMask, Memory

__all__ = [
    "AttentionContext",
    "ContextProvider",
    "FixedContext",
    "LastContext",
    "PooledContext",
    "ProjectedContext",
]


class ContextProvider(nn.Module, ABC):
    """The interface of all contexts.

    Attributes:
        context_size: Width of a context vector.
        depends_on_query: Whether two queries may get two contexts.
    """

    context_size: int
    depends_on_query = True

    @abstractmethod
    def prepare(self, encoded: Encoded) -> Memory:
        """Make a batch's memory, once."""

    @abstractmethod
    def attend(self, query: Tensor, memory: Memory, *, positions: Tensor) -> Attended:
        """Give the context for queries ``(batch, n_queries, query_size)`` at the given positions."""

    @abstractmethod
    def summary(self, encoded: Encoded, memory: Memory) -> Tensor:
        """Return the one vector that the decoder's first state is made of, ``(batch, context_size)``."""


class AttentionContext(ContextProvider):
    """A fresh context each step; keys and values are the encoder's states (Bahdanau 2015, Luong 2015)."""

    def __init__(self, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.context_size = attention.context_size

    def prepare(self, encoded: Encoded) -> Memory:
        """Project the keys once."""
        return self.attention.prepare(encoded.states, encoded.mask)

    def attend(self, query: Tensor, memory: Memory, *, positions: Tensor) -> Attended:
        """Score, normalise and sum."""
        return self.attention.attend(query, memory, positions=positions)

    def summary(self, encoded: Encoded, memory: Memory) -> Tensor:
        """The last layer's final state starts the decoder."""
        return encoded.final_hidden[-1]


class FixedContext(ContextProvider, ABC):
    """One vector c for the whole source; the memory holds it as its one value."""

    depends_on_query = False

    @abstractmethod
    def compress(self, encoded: Encoded) -> Tensor:
        """Put the source into one vector, ``(batch, context_size)``."""

    def prepare(self, encoded: Encoded) -> Memory:
        """Compute c."""
        vector = self.compress(encoded)[:, None, None]  # (batch, 1, 1, context_size)
        one = torch.ones(vector.shape[0], 1, dtype=torch.bool, device=vector.device)
        return Memory(vector, vector, AttentionMask(one))

    def attend(self, query: Tensor, memory: Memory, *, positions: Tensor) -> Attended:
        """Give the same c to every query; there is nothing to weigh."""
        return Attended(memory.values[:, 0].expand(-1, query.shape[1], -1), None, None)

    def summary(self, encoded: Encoded, memory: Memory) -> Tensor:
        """The vector c starts the decoder, so that all it knows of the source went through c."""
        return memory.values[:, 0, 0]


class LastContext(FixedContext):
    """c = h_S, the final states of both directions concatenated (Sutskever 2014)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.context_size = size

    def compress(self, encoded: Encoded) -> Tensor:
        """Take the last layer's final state."""
        return encoded.final_hidden[-1]


class ProjectedContext(FixedContext):
    """c = tanh(V h_S + b), a transform of the last state (Cho 2014)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.context_size = size
        self.projection = nn.Linear(size, size)

    def compress(self, encoded: Encoded) -> Tensor:
        """Transform the last layer's final state."""
        return torch.tanh(self.projection(encoded.final_hidden[-1]))


class PooledContext(FixedContext):
    """c = tanh(W pool(h_1 … h_S) + b), a transform of all states.

    Args:
        size: Width of the states and of c.
        pool: ``mean`` over the true length, ``max`` over it, or ``query``: attention with one learnt query.
    """

    def __init__(self, size: int, *, pool: str) -> None:
        super().__init__()
        self.context_size = size
        self.pool = pool
        self.projection = nn.Linear(size, size)
        if pool == "query":
            self.query = nn.Parameter(torch.zeros(1, 1, size))
            self.attention = Attention(size, size, score="scaled_dot")

    def compress(self, encoded: Encoded) -> Tensor:
        """Pool the real states and transform the result."""
        return torch.tanh(self.projection(self._pooled(encoded)))

    def _pooled(self, encoded: Encoded) -> Tensor:
        allowed = encoded.mask.allowed[:, :, None]
        if self.pool == "mean":
            return (encoded.states * allowed).sum(1) / encoded.mask.lengths[:, None]
        if self.pool == "max":
            return encoded.states.masked_fill(~allowed, float("-inf")).amax(1)
        memory = self.attention.prepare(encoded.states, encoded.mask)
        query = self.query.expand(encoded.states.shape[0], -1, -1)
        return self.attention.attend(query, memory).context[:, 0]
