"""Where pairs come from: files, texts in memory, or a built-in corpus by its name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from regard.config import DataSettings
from regard.data.readers import ReadReport, read_pairs
from regard.errors import DataError

__all__ = ["PairSource", "Pairs", "read_source"]

Pairs = list[tuple[str, str]]

PairSource = str | Path | Iterable[tuple[str, str]]
"""A path (``-`` is standard input), the name of a built-in corpus, or the texts themselves."""


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
    report = ReadReport()
    read = read_pairs(source, target_path=target_path, settings=settings, format=format, report=report)
    pairs = [(pair.source, pair.target) for pair in read]
    name = "standard input" if str(source) == "-" else Path(source).name
    return ReadPairs(name, pairs, notes=[f"{source}: {note}" for note in report.messages()])
