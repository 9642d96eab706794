"""The data of a comparison: what all variants train on, choose by, and are judged on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config import Config
from regard.data.pairs import split_held_out
from regard.data.tokenizers import Tokenizer
from regard.errors import DataError
from regard.evaluate.report import length_buckets
from regard.training.sources import Pairs, PairSource, read_source

__all__ = ["ComparisonData", "fingerprint", "read_comparison_data"]

_MOST_TEST = 1000


@dataclass(frozen=True)
class ComparisonData:
    """Pairs in three parts, with what a plan must know of them.

    Attributes:
        name: Of the data, for tables.
        train: What all variants learn from.
        dev: What the best weights are chosen by.
        test: What is reported on.
        test_lens: Source tokens of each test pair.
        longest_trained: Source tokens of the longest training pair.
        longest: Source tokens of the longest pair of all, as the models will split it.
        source_size: Entries of the source vocabulary.
        target_size: Entries of the target vocabulary.
        source_kind: The kind of the source tokenizer.
        target_kind: The kind of the target tokenizer.
        notes: What is to be said about them.
    """

    name: str
    train: Pairs
    dev: Pairs
    test: Pairs
    test_lens: list[int]
    longest_trained: int
    longest: int
    source_size: int
    target_size: int
    source_kind: str
    target_kind: str
    notes: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Name, sizes and digests, for reports."""
        return {
            "name": self.name,
            "n_train": len(self.train),
            "n_dev": len(self.dev),
            "n_test": len(self.test),
            "longest_trained": self.longest_trained,
            "longest_tested": max(self.test_lens),
            "fingerprint": fingerprint([*self.train, *self.dev, *self.test]),
        }

    def ranges(self, edges: Sequence[int] | None = None) -> list[tuple[int, int]]:
        """Ranges of source length to report on, with one ending where training ends.

        Args:
            edges: Last length of each range; by default at most 8 ranges of about equal numbers.
        """
        lasts = [last for _, last in length_buckets(self.test_lens, edges)]
        if edges is None and self.longest_trained < max(lasts):
            lasts = sorted({*lasts, self.longest_trained})
        return length_buckets(self.test_lens, lasts)


def fingerprint(value: Any) -> str:
    """A short digest of a JSON value."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hold_out(pairs: Pairs, config: Config, what: str, notes: list[str]) -> tuple[Pairs, Pairs]:
    keys = [source for source, _ in pairs]
    fraction, seed = config.data.dev_fraction, config.training.seed
    rows, held_out = split_held_out(keys, fraction=fraction, seed=seed, limit=_MOST_TEST)
    if not held_out:
        raise DataError(f"there are too few different sources to hold some out as {what} pairs")
    notes.append(f"no {what} data given: {len(held_out):,} of {len(pairs):,} pairs are held out")
    return [pairs[row] for row in rows], [pairs[row] for row in held_out]


def _without(pairs: Pairs, taken: Pairs, what: str, notes: list[str]) -> Pairs:
    """Training pairs whose source is tested on are no training pairs."""
    sources = {source for source, _ in taken}
    kept = [pair for pair in pairs if pair[0] not in sources]
    if len(kept) < len(pairs):
        notes.append(
            f"{len(pairs) - len(kept):,} training pairs have the source of a {what} pair and are left out"
        )
    return kept


def _lengths(tokenizer: Tokenizer, pairs: Pairs) -> list[int]:
    return [len(ids) for ids in tokenizer.encode_batch([source for source, _ in pairs])]


def _capped(
    pairs: Pairs, tokenizer: Tokenizer, longest: int, what: str, notes: list[str], *, why: str
) -> Pairs:
    lengths = _lengths(tokenizer, pairs)
    kept = [pair for pair, length in zip(pairs, lengths, strict=True) if length <= longest]
    if not kept:
        raise DataError(f"no {what} pair has a source of at most {longest:,} tokens ({why})")
    if len(kept) < len(pairs):
        notes.append(
            f"{len(kept):,} of {len(pairs):,} {what} pairs have a source of at most {longest:,} tokens ({why})"
        )
    return kept


_Given = tuple[PairSource | None, str | Path | None]


def _parts(
    given: tuple[_Given, _Given, _Given], config: Config, notes: list[str]
) -> tuple[str, Pairs, Pairs, Pairs]:
    """Read or hold out the training, dev and test pairs; returns a name for all of them before these."""
    (source, target_path), *others = given
    assert source is not None
    read = read_source(source, settings=config.data, target_path=target_path)
    notes.extend(read.notes)
    parts, names = {"dev": read.dev, "test": read.test}, []
    for what, (path, targets) in zip(parts, others, strict=True):
        if path is not None:
            other = read_source(path, settings=config.data, target_path=targets)
            notes.extend(other.notes)
            parts[what] = other.test or other.pairs
            names.append(f"{what}: {other.name}")
    train = read.pairs
    for what in ("test", "dev"):
        if parts[what]:
            train = _without(train, parts[what], what, notes)
        else:
            train, parts[what] = _hold_out(train, config, what, notes)
    name = f"{read.name} ({', '.join(names)})" if names else read.name
    return name, train, parts["dev"], parts["test"]


def read_comparison_data(
    source: PairSource,
    *,
    config: Config,
    target_path: str | Path | None = None,
    dev: PairSource | None = None,
    dev_target_path: str | Path | None = None,
    test: PairSource | None = None,
    test_target_path: str | Path | None = None,
    train_max_len: int | None = None,
) -> ComparisonData:
    """Read the data of a comparison.

    Args:
        source: As in training: a file, a built-in corpus (whose dev and test parts are used), or texts.
        config: Settings of reading and tokens that all variants share; what is held out depends on its seed.
        target_path: The parallel file of targets.
        dev: Pairs to choose weights by; held out if there are none.
        dev_target_path: Likewise the parallel file of dev targets.
        test: Pairs to report on; held out if there are none.
        test_target_path: Likewise of test targets.
        train_max_len: Longest source, in tokens, of training and dev pairs; the test pairs stay as they are.

    Raises:
        DataError: Something cannot be read, or nothing is left.
    """
    notes: list[str] = []
    given = ((source, target_path), (dev, dev_target_path), (test, test_target_path))
    name, train, dev_pairs, test_pairs = _parts(given, config, notes)
    # Lengths are counted by tokens of all the training texts, so that they do not depend on the cap.
    tokenizer = Tokenizer.train([text for text, _ in train], config.data.source, side="source")
    if train_max_len is not None:
        why = "--train-max-len"
        train = _capped(train, tokenizer, train_max_len, "training", notes, why=why)
        dev_pairs = _capped(dev_pairs, tokenizer, train_max_len, "dev", notes, why=why)
    train = _capped(train, tokenizer, config.data.max_source_len, "training", notes, why="max_source_len")
    kept = Tokenizer.train([text for text, _ in train], config.data.source, side="source")
    target = Tokenizer.train([text for _, text in train], config.data.target, side="target")
    return ComparisonData(
        name=name,
        train=train,
        dev=dev_pairs,
        test=test_pairs,
        test_lens=_lengths(tokenizer, test_pairs),
        longest_trained=max(_lengths(tokenizer, train)),
        longest=max(_lengths(kept, [*train, *dev_pairs, *test_pairs])),
        source_size=len(kept),
        target_size=len(target),
        source_kind=kept.kind,
        target_kind=target.kind,
        notes=notes,
    )
