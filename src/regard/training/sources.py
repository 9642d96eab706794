"""Where pairs come from: files, texts in memory, or a built-in corpus by its name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from regard.config import DataSettings
from regard.data.readers import ReadReport, read_pairs
from regard.data.store import file_digest
from regard.errors import DataError

__all__ = ["FilePairs", "PairSource", "Pairs", "open_large", "read_source"]

Pairs = list[tuple[str, str]]

LARGE_FILE = 64 << 20
"""Bytes from which a file is read anew each time it is needed, instead of being kept as texts (which take
about ten times its size). Packed files count as if packed four to one."""
_PACKED = 4
_SAMPLE = 400_000
"""Pairs of a large file that tokenizers are made from, evenly taken from all of it."""

PairSource = str | Path | Iterable[tuple[str, str]]
"""A path (``-`` is standard input), the name of a built-in corpus, or the texts themselves."""


class FilePairs:
    """The pairs of a file too large to keep, read anew each time they are iterated.

    Args:
        path: The file.
        target_path: The parallel file of targets.
        settings: How files are read.
        format: The reader's name.

    Attributes:
        n_all: Pairs of the file.
        sample: Some of them, evenly taken.
        notes: What was passed over.
    """

    def __init__(
        self,
        path: Path,
        *,
        target_path: Path | None,
        settings: DataSettings,
        format: str | None,
    ) -> None:
        self.path, self.target_path, self.settings, self.format = path, target_path, settings, format
        self._threshold, self._salt = 0, b""
        self.n_all, self.sample, self.notes = self._look()

    def _look(self) -> tuple[int, Pairs, list[str]]:
        """Read the file once: it is checked before anything is written, counted and sampled."""
        report = ReadReport()
        sample: Pairs = []
        step, number = 1, 0
        for number, pair in enumerate(self._read(report), 1):
            if (number - 1) % step == 0:
                if len(sample) == _SAMPLE:
                    sample, step = sample[::2], 2 * step
                sample.append(pair)
        return number, sample, report.messages()

    def _read(self, report: ReadReport | None = None) -> Iterator[tuple[str, str]]:
        read = read_pairs(
            self.path, target_path=self.target_path, settings=self.settings, format=self.format, report=report
        )
        for pair in read:
            yield pair.source, pair.target

    def hold_out(self, *, fraction: float, seed: int, limit: int = 1000) -> Pairs:
        """Take some pairs away for validation, by a digest of their sources: no source stands on both sides.

        Args:
            fraction: Share of the pairs to hold out.
            seed: Of the choice.
            limit: About the most pairs to hold out.
        """
        self._salt = str(seed).encode()
        self._threshold = int(min(fraction, limit / self.n_all) * (1 << 64))
        return [pair for pair in self._read() if self._is_held_out(pair[0])]

    def _is_held_out(self, source: str) -> bool:
        digest = hashlib.blake2b(source.encode(), digest_size=8, key=self._salt).digest()
        return int.from_bytes(digest, "big") < self._threshold

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over the pairs that are not held out."""
        if not self._threshold:
            return self._read()
        return (pair for pair in self._read() if not self._is_held_out(pair[0]))

    def key(self) -> list[str]:
        """What decides which pairs these are, for the name of a store."""
        files = [file_digest(path) for path in (self.path, self.target_path) if path is not None]
        return [
            *files,
            self.settings.model_dump_json(),
            str(self.format),
            str(self._threshold),
            repr(self._salt),
        ]


def open_large(
    source: PairSource,
    *,
    settings: DataSettings,
    target_path: str | Path | None,
    format: str | None,
) -> FilePairs | None:
    """Open ordinary files that are too large to keep as texts; None for all else."""
    if not isinstance(source, str | Path):
        return None
    other = None if target_path is None else Path(target_path)
    size = 0
    for name in (Path(source), *([other] if other else [])):
        if str(name) == "-" or not name.is_file():
            return None
        size += name.stat().st_size * (_PACKED if name.suffix == ".gz" else 1)
    if size < LARGE_FILE:
        return None
    return FilePairs(Path(source), target_path=other, settings=settings, format=format)


@dataclass
class ReadPairs:
    """Pairs with a name for them, what was passed over, and, of a corpus, its dev and test parts."""

    name: str
    pairs: Pairs
    notes: list[str] = field(default_factory=list)
    dev: Pairs = field(default_factory=list)
    test: Pairs = field(default_factory=list)


def _is_corpus(name: str) -> bool:
    from regard.data.corpora import CORPORA

    return not Path(name).exists() and name.partition("?")[0].partition(":")[0] in CORPORA.names()


def read_source(
    source: PairSource,
    *,
    settings: DataSettings,
    target_path: str | Path | None = None,
    format: str | None = None,
) -> ReadPairs:
    """Read all pairs of a source.

    Args:
        source: A path, a corpus such as ``cldr:zh-en``, or texts.
        settings: How files are read.
        target_path: The parallel file of targets.
        format: The reader's name; guessed from the path if None.

    Raises:
        DataError: Nothing can be read, and why.
    """
    if not isinstance(source, str | Path):
        pairs = [(str(source_text), str(target_text)) for source_text, target_text in source]
        if not pairs:
            raise DataError("there are no pairs")
        return ReadPairs("pairs in memory", pairs)
    if target_path is None and isinstance(source, str) and _is_corpus(source):
        from regard.data.corpora import load_corpus

        corpus = load_corpus(source)
        return ReadPairs(corpus.name, corpus.train, dev=corpus.dev, test=corpus.test)
    name = "standard input" if str(source) == "-" else Path(source).name
    report = ReadReport()
    read = read_pairs(source, target_path=target_path, settings=settings, format=format, report=report)
    pairs = [(pair.source, pair.target) for pair in read]
    return ReadPairs(name, pairs, notes=[f"{source}: {note}" for note in report.messages()])
