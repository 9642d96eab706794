"""Encoded pairs on disk: written once in chunks, then read shard by shard, whatever their number.

A store is a folder with four flat arrays and a description. It is named by a digest of what it was made from
(`store_key`), so that a second training on the same data finds it; the description is written last, so that a
store that was not finished is made again.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from regard.atomic import write_text
from regard.data.pairs import CHUNK, EncodedPairs, EncodedSide
from regard.data.tokenizers import Tokenizer

__all__ = ["PairStore", "file_digest", "store_key", "write_store"]

SHARD = 1 << 17
"""Pairs that are read, shuffled and cut into batches together."""

_DESCRIPTION = "store.json"
_VERSION = 1
_SIDES = ("source", "target")


def file_digest(path: Path) -> str:
    """SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def store_key(*parts: object) -> str:
    """A name for a store: a digest of whatever decides what is in it."""
    return hashlib.sha256(json.dumps([_VERSION, *map(str, parts)]).encode()).hexdigest()[:24]


class PairStore:
    """Encoded pairs that stay on disk; has the interface of `EncodedPairs` that batches need.

    Args:
        folder: What `write_store` made.
    """

    def __init__(self, folder: Path) -> None:
        described = json.loads((folder / _DESCRIPTION).read_bytes())
        self.folder = folder
        self.n_pairs: int = described["n_pairs"]
        self.n_too_long: int = described["n_too_long"]
        self._fingerprint: str = described["fingerprint"]

    @classmethod
    def find(cls, folder: Path) -> PairStore | None:
        """Open a finished store, or return None."""
        try:
            return cls(folder)
        except (OSError, ValueError, KeyError):
            return None

    def __len__(self) -> int:
        return self.n_pairs

    @property
    def shard_sizes(self) -> list[int]:
        """Number of pairs of each shard."""
        return [min(SHARD, self.n_pairs - first) for first in range(0, self.n_pairs, SHARD)]

    def shard(self, number: int) -> EncodedPairs:
        """Map one shard; its pages are given back when it is no longer referred to."""
        first, last = number * SHARD, min(self.n_pairs, (number + 1) * SHARD)
        return EncodedPairs(*(self._side(name, first, last) for name in _SIDES))

    def _side(self, name: str, first: int, last: int) -> EncodedSide:
        offsets = np.fromfile(
            self.folder / f"{name}.offsets",
            np.int64,
            last - first + 1,
            offset=first * np.dtype(np.int64).itemsize,
        )
        start, end = int(offsets[0]), int(offsets[-1])
        tokens = np.memmap(
            self.folder / f"{name}.tokens",
            np.int32,
            "r",
            offset=start * np.dtype(np.int32).itemsize,
            shape=(end - start,),
        )
        return EncodedSide(tokens, offsets - start)

    def fingerprint(self) -> str:
        """A digest of all tokens, by which a resumed training knows its data."""
        return self._fingerprint


class _SideWriter:
    """Appends sequences to the two arrays of one side."""

    def __init__(self, folder: Path, name: str) -> None:
        self.tokens: BinaryIO = (folder / f"{name}.tokens").open("wb")
        self.offsets: BinaryIO = (folder / f"{name}.offsets").open("wb")
        self.end = 0
        self.digest = hashlib.sha256()
        self.offsets.write(np.zeros(1, np.int64).data)

    def add(self, side: EncodedSide) -> None:
        """Append all sequences of a side."""
        offsets = np.ascontiguousarray(side.offsets[1:] + self.end)
        self.offsets.write(offsets.data)
        self.tokens.write(side.tokens.data)
        self.digest.update(offsets.data)
        self.digest.update(side.tokens.data)
        self.end += len(side.tokens)

    def close(self) -> None:
        """Close both files."""
        self.tokens.close()
        self.offsets.close()


def write_store(
    folder: Path,
    pairs: Iterable[tuple[str, str]],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    *,
    max_source_len: int,
    max_target_len: int,
) -> PairStore:
    """Encode texts into a store, with memory for one chunk of them at a time.

    Args:
        folder: The store to make; what is there of an unfinished one is replaced.
        pairs: Source and target texts.
        source_tokenizer: Of the sources.
        target_tokenizer: Of the targets.
        max_source_len: Longest source in tokens; longer pairs are left out and counted.
        max_target_len: Longest target in tokens.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    writers = [_SideWriter(folder, name) for name in _SIDES]
    n_pairs = n_too_long = 0
    iterator = iter(pairs)
    try:
        while chunk := list(islice(iterator, CHUNK)):
            encoded, left_out = EncodedPairs.from_pairs(
                chunk,
                source_tokenizer,
                target_tokenizer,
                max_source_len=max_source_len,
                max_target_len=max_target_len,
            )
            writers[0].add(encoded.source)
            writers[1].add(encoded.target)
            n_pairs, n_too_long = n_pairs + len(encoded), n_too_long + left_out
    finally:
        for writer in writers:
            writer.close()
    fingerprint = hashlib.sha256(b"".join(writer.digest.digest() for writer in writers)).hexdigest()[:16]
    described = {
        "version": _VERSION,
        "n_pairs": n_pairs,
        "n_too_long": n_too_long,
        "fingerprint": fingerprint,
    }
    write_text(folder / _DESCRIPTION, json.dumps(described) + "\n")
    return PairStore(folder)
