"""Pairs as numbers: two flat arrays of token ids with offsets, instead of millions of small objects."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import EOS

__all__ = ["EncodedPairs", "EncodedSide", "split_held_out"]

CHUNK = 10_000
"""Pairs that are encoded together: Python's integers, ten times the size of the arrays, exist for these only."""


@dataclass(frozen=True)
class EncodedSide:
    """Sequences of token ids, each ending in `EOS`.

    Attributes:
        tokens: int32, all sequences one after the other.
        offsets: int64 ``(n + 1,)``; sequence i is ``tokens[offsets[i]:offsets[i + 1]]``.
    """

    tokens: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Length of each sequence, the end counted."""
        return np.diff(self.offsets)

    def padded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The given sequences as int64 ``(batch, longest)``, padded with 0, and their lengths."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        steps = np.arange(int(lengths.max(initial=0)))
        inside = steps < lengths[:, None]
        places = np.where(inside, starts[:, None] + steps, 0)
        return np.where(inside, self.tokens[places], 0).astype(np.int64), lengths

    @classmethod
    def join(cls, sequences: Iterable[Sequence[int]]) -> EncodedSide:
        """Make one of sequences without their end."""
        ended = [[*ids, EOS] for ids in sequences]
        lengths = np.fromiter(chain([0], map(len, ended)), np.int64, len(ended) + 1)
        tokens = np.fromiter(chain.from_iterable(ended), np.int32, int(lengths.sum()))
        return cls(tokens, np.cumsum(lengths))

    @classmethod
    def concatenate(cls, parts: Sequence[EncodedSide]) -> EncodedSide:
        """Make one of several, in their order."""
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        tokens = np.concatenate([np.zeros(0, np.int32), *(part.tokens for part in parts)])
        return cls(tokens, np.cumsum(lengths))


@dataclass(frozen=True)
class EncodedPairs:
    """Encoded sources and targets."""

    source: EncodedSide
    target: EncodedSide

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @classmethod
    def from_pairs(
        cls,
        pairs: Iterable[tuple[str, str]],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        *,
        max_source_len: int,
        max_target_len: int,
    ) -> tuple[EncodedPairs, int]:
        """Encode texts; returns the pairs, and how many were left out for their length."""
        sources: list[EncodedSide] = []
        targets: list[EncodedSide] = []
        n_too_long = 0
        iterator = iter(pairs)
        while chunk := list(islice(iterator, CHUNK)):
            encoded = zip(
                source_tokenizer.encode_batch([source for source, _ in chunk]),
                target_tokenizer.encode_batch([target for _, target in chunk]),
                strict=True,
            )
            kept = [
                (source, target)
                for source, target in encoded
                if len(source) <= max_source_len and len(target) <= max_target_len
            ]
            n_too_long += len(chunk) - len(kept)
            sources.append(EncodedSide.join(source for source, _ in kept))
            targets.append(EncodedSide.join(target for _, target in kept))
        return cls(EncodedSide.concatenate(sources), EncodedSide.concatenate(targets)), n_too_long

    @property
    def shard_sizes(self) -> list[int]:
        """Number of pairs of each shard; in memory there is one (see `regard.data.store.PairStore`)."""
        return [len(self)] if len(self) else []

    def shard(self, number: int) -> EncodedPairs:
        """Return a shard."""
        assert number == 0
        return self

    def fingerprint(self) -> str:
        """A digest of all tokens, by which a resumed training knows its data."""
        digest = hashlib.sha256()
        for array in (self.source.offsets, self.source.tokens, self.target.offsets, self.target.tokens):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:16]


def split_held_out(
    keys: Sequence[str], *, fraction: float, seed: int, limit: int = 1000
) -> tuple[list[int], list[int]]:
    """Choose rows to hold out so that no source stands on both sides.

    Args:
        keys: The source of each row; equal ones stay together.
        fraction: Share of the rows to hold out.
        seed: Of the choice.
        limit: Most rows to hold out. Only where each source has more rows than may be held out are there
            more: those of the source with the fewest.

    Returns:
        Rows to train on and rows held out; the latter are empty when there are fewer than two sources.
    """
    different = sorted(set(keys))
    if len(different) < 2:
        return list(range(len(keys))), []
    counts = Counter(keys)
    room = min(limit, max(1, round(fraction * len(keys))))
    rng = np.random.default_rng([seed, len(different)])
    drawn = [different[place] for place in rng.permutation(len(different))]
    held_out = set()
    # A source with many rows is passed over where it does not fit: it would take most of the training data.
    for key in drawn:
        if counts[key] <= room:
            held_out.add(key)
            room -= counts[key]
    if not held_out:
        held_out.add(min(drawn, key=lambda key: counts[key]))
    train = [row for row, key in enumerate(keys) if key not in held_out]
    return train, [row for row, key in enumerate(keys) if key in held_out]
