"""Batches of pairs of like lengths, in an order that depends on nothing but seed and epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.data.pairs import EncodedPairs
from regard.data.vocabulary import EOS, PAD

__all__ = ["Batch", "Batches"]

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


class Batches:
    """Cuts pairs into batches, anew each epoch.

    Args:
        pairs: The data.
        batch_size: Size of a batch.
        unit: What it counts: ``sentences``, or ``tokens`` of the padded target.
        seed: Of the order.
        shuffle: False gives each pair once, sorted by length, the same each epoch.

    Raises:
        ValueError: The unit is neither of the two.
    """

    def __init__(
        self,
        pairs: EncodedPairs,
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
        self._source_lens, self._target_lens = pairs.source.lengths, pairs.target.lengths
        self._planned: tuple[int, list[np.ndarray]] = (-1, [])

    def n_batches(self, epoch: int) -> int:
        """Number of batches of an epoch; by sentences it is always the same."""
        if self.unit == "sentences":
            return -(-len(self.pairs) // self.batch_size)
        return len(self._plan(epoch))

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch from number ``start`` on."""
        for rows in self._plan(epoch)[start:]:
            yield self._batch(rows)

    def _plan(self, epoch: int) -> list[np.ndarray]:
        key = epoch if self.shuffle else 0
        if self._planned[0] != key:
            self._planned = (key, self._make_plan(key))
        return self._planned[1]

    def _make_plan(self, epoch: int) -> list[np.ndarray]:
        n = len(self.pairs)
        if not self.shuffle:
            return self._cut(np.lexsort((self._target_lens, self._source_lens)))
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(n)
        pool = _POOL * self.batch_size
        if self.unit == "tokens" and n:
            pool = max(_POOL, int(pool / max(1.0, float(self._target_lens.mean()))))
        plan: list[np.ndarray] = []
        for first in range(0, n, pool):
            rows = order[first : first + pool]
            # A stable sort of shuffled rows: equal lengths stay in random order.
            plan += self._cut(rows[np.lexsort((self._target_lens[rows], self._source_lens[rows]))])
        return [plan[place] for place in rng.permutation(len(plan))]

    def _cut(self, rows: np.ndarray) -> list[np.ndarray]:
        if self.unit == "sentences":
            return [rows[first : first + self.batch_size] for first in range(0, len(rows), self.batch_size)]
        cuts, first, longest = [], 0, 0
        for place, length in enumerate(self._target_lens[rows].tolist()):
            longest = max(longest, length)
            if place > first and longest * (place - first + 1) > self.batch_size:
                cuts.append(rows[first:place])
                first, longest = place, length
        cuts.append(rows[first:])
        return [cut for cut in cuts if len(cut)]

    def _batch(self, rows: np.ndarray) -> Batch:
        source, source_lens = self.pairs.source.padded(rows)
        target_out, target_lens = self.pairs.target.padded(rows)
        target_in = np.empty_like(target_out)
        target_in[:, :1], target_in[:, 1:] = EOS, target_out[:, :-1]
        # Shifted, a shorter row's end would stand in its padding, where nothing reads it; blank it all the same.
        target_in[np.arange(target_in.shape[1]) >= target_lens[:, None]] = PAD
        return Batch(source, source_lens, target_in, target_out, target_lens, rows)
