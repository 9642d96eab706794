"""Pairs as numbers: two flat arrays of token ids with offsets, instead of millions of small objects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import EOS

__all__ = ["EncodedPairs", "EncodedSide", "split_held_out"]

_CHUNK = 10_000


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
        lengths, tokens = [0], []
        for ids in sequences:
            tokens.append(np.array([*ids, EOS], dtype=np.int32))
            lengths.append(len(ids) + 1)
        joined = np.concatenate(tokens) if tokens else np.zeros(0, np.int32)
        return cls(joined, np.cumsum(np.array(lengths, dtype=np.int64)))


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
        sources: list[list[int]] = []
        targets: list[list[int]] = []
        n_too_long = 0
        iterator = iter(pairs)
        while chunk := list(islice(iterator, _CHUNK)):
            encoded = zip(
                source_tokenizer.encode_batch([source for source, _ in chunk]),
                target_tokenizer.encode_batch([target for _, target in chunk]),
                strict=True,
            )
            for source, target in encoded:
                if len(source) > max_source_len or len(target) > max_target_len:
                    n_too_long += 1
                    continue
                sources.append(source)
                targets.append(target)
        return cls(EncodedSide.join(sources), EncodedSide.join(targets)), n_too_long

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
        fraction: Share of the different sources to hold out.
        seed: Of the choice.
        limit: Most sources to hold out.

    Returns:
        Rows to train on and rows held out; the latter are empty when there are fewer than two sources.
    """
    different = sorted(set(keys))
    if len(different) < 2:
        return list(range(len(keys))), []
    n_held_out = min(limit, max(1, round(fraction * len(different))))
    rng = np.random.default_rng([seed, len(different)])
    held_out = {different[place] for place in rng.choice(len(different), n_held_out, replace=False)}
    train = [row for row, key in enumerate(keys) if key not in held_out]
    return train, [row for row, key in enumerate(keys) if key in held_out]
