"""Batches of pairs of like lengths, in an order that depends on nothing but seed and epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from regard.data.pairs import EncodedPairs
from regard.data.vocabulary import EOS, PAD

__all__ = ["Batch", "Batches", "PairShards"]

_POOL = 64
"""Batches that are sorted by length together: long enough to be even, short enough to stay random."""


@dataclass(frozen=True)
class Batch:
    """Padded pairs, as int64 arrays.

    Attributes:
        source: ``(batch, source_len)``, each row ending in `EOS`.
        source_lens: ``(batch,)``, the end counted.
        target_in: ``(batch, target_len)``, each row starting with `EOS`.
        target_out: ``(batch, target_len)``, each row ending in `EOS`.
        target_lens: ``(batch,)``, the end counted.
        rows: Which pairs these are.
    """

    source: np.ndarray
    source_lens: np.ndarray
    target_in: np.ndarray
    target_out: np.ndarray
    target_lens: np.ndarray
    rows: np.ndarray

    @property
    def n_tokens(self) -> int:
        """Real target tokens."""
        return int(self.target_lens.sum())


class PairShards(Protocol):
    """Encoded pairs, in one or more shards that are shuffled and cut one after the other."""

    @property
    def shard_sizes(self) -> list[int]:
        """Number of pairs of each shard."""
        ...

    def shard(self, number: int) -> EncodedPairs:
        """Return a shard."""
        ...

    def fingerprint(self) -> str:
        """A digest of all tokens."""
        ...

    def __len__(self) -> int: ...


class Batches:
    """Cuts pairs into batches, anew each epoch.

    Args:
        pairs: The data, in memory or on disk.
        batch_size: Size of a batch.
        unit: What it counts: ``sentences``, or ``tokens`` of the padded target.
        seed: Of the order.
        shuffle: False gives each pair once, sorted by length (within a shard), the same each epoch.

    Raises:
        ValueError: The unit is neither of the two.
    """

    def __init__(
        self,
        pairs: PairShards,
        *,
        batch_size: int,
        unit: str = "sentences",
        seed: int = 1,
        shuffle: bool = True,
    ) -> None:
        if unit not in ("sentences", "tokens"):
            raise ValueError(f"a batch is counted in sentences or tokens, not in {unit!r}")
        self.pairs, self.batch_size, self.unit = pairs, batch_size, unit
        self.seed, self.shuffle = seed, shuffle
        self._sizes = pairs.shard_sizes

    @cached_property
    def n_batches(self) -> int:
        """Number of batches of an epoch; by tokens that of the first epoch, from which others differ a little."""
        if self.unit == "sentences":
            return sum(-(-size // self.batch_size) for size in self._sizes)
        if not self._sizes:
            return 0
        # Of many shards one is representative enough; cutting them all would read the whole corpus.
        return math.ceil(len(self._plan(self.pairs.shard(0), 0, 0)) * len(self.pairs) / self._sizes[0])

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        for number in self._shard_order(epoch):
            if self.unit == "sentences":
                n_batches = -(-self._sizes[number] // self.batch_size)
                if start >= n_batches:  # passed over without being read
                    start -= n_batches
                    continue
            shard = self.pairs.shard(number)
            plan = self._plan(shard, epoch, number)
            first_row = sum(self._sizes[:number])
            for rows in plan[start:]:
                yield self._batch(shard, rows, first_row)
            start = max(0, start - len(plan))

    def _shard_order(self, epoch: int) -> list[int]:
        n_shards = len(self._sizes)
        if not self.shuffle or n_shards < 2:
            return list(range(n_shards))
        order: list[int] = np.random.default_rng([self.seed, epoch]).permutation(n_shards).tolist()
        return order

    def _plan(self, shard: EncodedPairs, epoch: int, number: int) -> list[np.ndarray]:
        """Cut a shard into batches of row numbers."""
        source_lens, target_lens = shard.source.lengths, shard.target.lengths
        if not self.shuffle:
            return self._cut(np.lexsort((target_lens, source_lens)), target_lens)
        rng = np.random.default_rng([self.seed, epoch, number] if number else [self.seed, epoch])
        order = rng.permutation(len(shard))
        pool = _POOL * self.batch_size
        if self.unit == "tokens":
            pool = max(_POOL, int(pool / max(1.0, float(target_lens.mean()))))
        plan: list[np.ndarray] = []
        for first in range(0, len(shard), pool):
            rows = order[first : first + pool]
            # A stable sort of shuffled rows: equal lengths stay in random order.
            plan += self._cut(rows[np.lexsort((target_lens[rows], source_lens[rows]))], target_lens)
        return [plan[place] for place in rng.permutation(len(plan))]

    def _cut(self, rows: np.ndarray, target_lens: np.ndarray) -> list[np.ndarray]:
        if self.unit == "sentences":
            return [rows[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)]
        cuts, first, longest = [], 0, 0
        for place, length in enumerate(target_lens[rows].tolist()):
            longest = max(longest, length)
            if place > first and longest * (place - first + 1) > self.batch_size:
                cuts.append(rows[first:place])
                first, longest = place, length
        cuts.append(rows[first:])
        return [cut for cut in cuts if len(cut)]

    def _batch(self, shard: EncodedPairs, rows: np.ndarray, first_row: int) -> Batch:
        source, source_lens = shard.source.padded(rows)
        target_out, target_lens = shard.target.padded(rows)
        target_in = np.empty_like(target_out)
        target_in[:, :1], target_in[:, 1:] = EOS, target_out[:, :-1]
        # Shifted, a shorter row's end would stand in its padding, where nothing reads it; blank it all the same.
        target_in[np.arange(target_in.shape[1]) >= target_lens[:, None]] = PAD
        return Batch(source, source_lens, target_in, target_out, target_lens, rows + first_row)
