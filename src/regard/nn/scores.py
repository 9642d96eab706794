"""Stage 1 of attention: how well each key answers each query.

A score sees queries and keys that are already split into heads. `prepare` does once a source what does
not depend on the query. To add one, derive from `Score` and register it (see `regard.registry`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = [
    "AdditiveScore",
    "CosineScore",
    "DotScore",
    "GeneralScore",
    "LocationScore",
    "ScaledDotScore",
    "Score",
]


def _project(tensor: Tensor, weight: Tensor) -> Tensor:
    """Multiply ``(batch, heads, n, size)`` by ``(heads, size, other)``.

    One head is one product of two matrices; broadcast, it would be one for each source.
    """
    if weight.shape[0] == 1:
        return (tensor[:, 0] @ weight[0])[:, None]
    return tensor @ weight


class Score(nn.Module, ABC):
    """The interface of all scores.

    Args:
        query_size: Width of a query in one head.
        key_size: Width of a key in one head.
        heads: Number of heads.
        size: Width of a hidden layer, where the score has one.
        max_positions: Positions known to a score that goes by position.
    """

    reads_keys = True
    """Whether the score looks into the keys, so that projecting them is of use."""

    def __init__(self, *, query_size: int, key_size: int, heads: int, size: int, max_positions: int) -> None:
        super().__init__()
        self.query_size, self.key_size, self.heads, self.size = query_size, key_size, heads, size
        self.max_positions = max_positions
        self.build()

    @abstractmethod
    def build(self) -> None:
        """Make the parameters."""

    @abstractmethod
    def prepare(self, keys: Tensor) -> Tensor:
        """Transform keys ``(batch, heads, source_len, key_size)`` once a source."""

    @abstractmethod
    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Score queries ``(batch, heads, n_queries, query_size)`` against prepared keys.

        Returns:
            ``(batch, heads, n_queries, source_len)``, not yet masked.
        """

    def _require_same_size(self, name: str) -> None:
        if self.query_size != self.key_size:
            raise ValueError(
                f"score {name} multiplies query and key, so their sizes must be equal: query_size "
                f"{self.query_size}, key_size {self.key_size}; take general or additive"
            )


class DotScore(Score):
    """q . k (Luong 2015, eq. 8, dot)."""

    def build(self) -> None:
        """There are no parameters."""
        self._require_same_size("dot")

    def prepare(self, keys: Tensor) -> Tensor:
        """Leave the keys as they are."""
        return keys

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Multiply each query with each key."""
        return query @ prepared.transpose(-1, -2)


class ScaledDotScore(Score):
    """q . k / sqrt(query_size) (Vaswani 2017, eq. 1)."""

    def build(self) -> None:
        """There are no parameters."""
        self._require_same_size("scaled_dot")

    def prepare(self, keys: Tensor) -> Tensor:
        """Scale the keys, which are fewer than the products."""
        return keys * self.query_size**-0.5

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Multiply each query with each scaled key."""
        return query @ prepared.transpose(-1, -2)


class GeneralScore(Score):
    """q' W k (Luong 2015, eq. 8, general), a bilinear form for each head."""

    def build(self) -> None:
        """Make W, ``(heads, key_size, query_size)``."""
        self.weight = nn.Parameter(torch.empty(self.heads, self.key_size, self.query_size))
        nn.init.normal_(self.weight, std=self.key_size**-0.5)

    def prepare(self, keys: Tensor) -> Tensor:
        """Multiply the keys with W: ``(batch, heads, source_len, query_size)``."""
        return _project(keys, self.weight)

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Multiply each query with each projected key."""
        return query @ prepared.transpose(-1, -2)


class AdditiveScore(Score):
    """v' tanh(W q + U k + b) (Bahdanau 2015, appendix A.1.2), for each head."""

    def build(self) -> None:
        """Make W, U, b and v."""
        self.query_weight = nn.Parameter(torch.empty(self.heads, self.query_size, self.size))
        self.key_weight = nn.Parameter(torch.empty(self.heads, self.key_size, self.size))
        self.bias = nn.Parameter(torch.zeros(self.heads, 1, self.size))
        self.vector = nn.Parameter(torch.empty(self.heads, self.size))
        nn.init.normal_(self.query_weight, std=self.query_size**-0.5)
        nn.init.normal_(self.key_weight, std=self.key_size**-0.5)
        nn.init.normal_(self.vector, std=self.size**-0.5)

    def prepare(self, keys: Tensor) -> Tensor:
        """Compute U k + b: ``(batch, heads, source_len, size)``."""
        return _project(keys, self.key_weight) + self.bias

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Add each projected query to each projected key, squash, and project to a number."""
        projected = _project(query, self.query_weight)  # (batch, heads, n_queries, size)
        hidden = torch.tanh(projected[:, :, :, None] + prepared[:, :, None])
        if self.heads == 1:  # one product with a vector, no copy of it for each query
            return (hidden[:, 0] @ self.vector[0])[:, None]
        return torch.einsum("bhqsa,ha->bhqs", hidden, self.vector)


class LocationScore(Score):
    """W q, one number a position, whatever stands there (Luong 2015, eq. 8, location).

    As in the paper, positions from `max_positions` on get no weight. Only the number of keys is used.
    """

    reads_keys = False

    def build(self) -> None:
        """Make W, ``(heads, query_size, max_positions)``."""
        self.weight = nn.Parameter(torch.empty(self.heads, self.query_size, self.max_positions))
        nn.init.normal_(self.weight, std=self.query_size**-0.5)

    def prepare(self, keys: Tensor) -> Tensor:
        """Keep one number a key: only their count matters."""
        return keys[..., :1]

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Project each query to a score for each position."""
        source_len = prepared.shape[-2]
        scores = _project(query, self.weight[..., :source_len])
        beyond = source_len - scores.shape[-1]
        return functional.pad(scores, (0, beyond), value=float("-inf")) if beyond > 0 else scores


class CosineScore(Score):
    """g cos(q, k) with a learnt sharpness g for each head (content addressing of Graves 2014, eq. 5 and 6)."""

    def build(self) -> None:
        """Make g, kept positive through its logarithm; it starts at 10, since a cosine is at most 1."""
        self._require_same_size("cosine")
        self.log_sharpness = nn.Parameter(torch.full((self.heads, 1, 1), 10.0).log())

    def prepare(self, keys: Tensor) -> Tensor:
        """Bring the keys to length 1."""
        return functional.normalize(keys, dim=-1)

    def forward(self, query: Tensor, prepared: Tensor) -> Tensor:
        """Multiply each query of length 1 with each key of length 1, and sharpen."""
        return (functional.normalize(query, dim=-1) * self.log_sharpness.exp()) @ prepared.transpose(-1, -2)
