"""Pairs of source and target from tab-separated files, parallel files and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from regard.config import DataSettings
from regard.data.lines import iter_lines
from regard.errors import DataError, did_you_mean
from regard.registry import READERS

__all__ = ["Pair", "ReadReport", "guess_format", "read_jsonl", "read_pairs", "read_parallel", "read_tsv"]


class Pair(NamedTuple):
    """A source and its target, and the line they stand in."""

    source: str
    target: str
    line: int


@dataclass
class ReadReport:
    """What was passed over while reading."""

    n_pairs: int = 0
    n_blank: int = 0
    first_blank: int = 0

    def count_blank(self, line: int) -> None:
        """Count a pair with a blank side."""
        self.first_blank = self.first_blank or line
        self.n_blank += 1

    def messages(self) -> list[str]:
        """One line for each kind of thing passed over."""
        if not self.n_blank:
            return []
        return [
            f"{self.n_blank:,} pairs with a blank side were skipped, the first in line {self.first_blank}"
        ]


def guess_format(path: str, target_path: str | None = None) -> str:
    """Return the reader's name for a path: ``jsonl`` by its ending, else ``parallel`` or ``tsv``."""
    if target_path is not None:
        return "parallel"
    return "jsonl" if path.removesuffix(".gz").endswith((".jsonl", ".json", ".ndjson")) else "tsv"


def read_pairs(
    path: str | Path,
    *,
    target_path: str | Path | None = None,
    settings: DataSettings | None = None,
    format: str | None = None,
    report: ReadReport | None = None,
) -> Iterator[Pair]:
    """Read pairs; those with a blank side are skipped and counted in ``report``.

    Args:
        path: The file of pairs, or of sources if there is a ``target_path``; ``-`` is standard input.
        target_path: The parallel file of targets.
        settings: Columns, fields and encoding.
        format: Name in `regard.registry.READERS`; guessed from the path if None.
        report: Where to count what was passed over.

    Raises:
        DataError: With file, line, what was found and what was expected.
    """
    path, other = str(path), None if target_path is None else str(target_path)
    settings, report = settings or DataSettings(), report or ReadReport()
    reader = READERS.get(format or guess_format(path, other))
    for pair in reader(path, target_path=other, settings=settings):
        if not pair.source.strip() or not pair.target.strip():
            report.count_blank(pair.line)
            continue
        report.n_pairs += 1
        yield pair
    if not report.n_pairs and not report.n_blank:
        raise DataError("the file is empty: expected lines of source<TAB>target", path=path)
    if not report.n_pairs:
        raise DataError("each of its pairs has a blank side; nothing is left to train on", path=path)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def read_tsv(path: str, *, target_path: str | None, settings: DataSettings) -> Iterator[Pair]:
    """Read columns divided by tabs; quotes mean nothing, and each line has as many columns as the first."""
    del target_path
    source, target = settings.source_column - 1, settings.target_column - 1
    needed = max(source, target) + 1
    expected = 0
    for number, line in iter_lines(path, encoding=settings.encoding):
        if not line.strip():
            continue
        columns = line.split("\t")
        expected = expected or (2 if needed == 2 and len(columns) < 2 else max(needed, len(columns)))
        if len(columns) != expected:
            names = (
                "source<TAB>target"
                if expected == 2
                else f"source in column {source + 1}, target in {target + 1}"
            )
            raise DataError(
                f"found {_count(len(columns), 'column')}, expected {_count(expected, 'column')} ({names})",
                path=path,
                line=number,
            )
        yield Pair(columns[source], columns[target], number)


def read_parallel(path: str, *, target_path: str | None, settings: DataSettings) -> Iterator[Pair]:
    """Read line n of one file with line n of the other."""
    if target_path is None:
        raise DataError("format parallel needs a second file with the targets", path=path)
    sources = iter_lines(path, encoding=settings.encoding)
    targets = iter_lines(target_path, encoding=settings.encoding)
    number = 0
    while True:
        source, target = next(sources, None), next(targets, None)
        if source is None or target is None:
            break
        number += 1
        yield Pair(source[1], target[1], number)
    if source is not None or target is not None:
        n_sources = number + (source is not None) + sum(1 for _ in sources)
        n_targets = number + (target is not None) + sum(1 for _ in targets)
        raise DataError(
            f"parallel files must have as many lines: {path} has {n_sources:,}, {target_path} has {n_targets:,}"
        )


def read_jsonl(path: str, *, target_path: str | None, settings: DataSettings) -> Iterator[Pair]:
    """Read one JSON object a line, with the source and the target as text in two of its fields."""
    del target_path
    names = (settings.source_field, settings.target_field)
    for number, line in iter_lines(path, encoding=settings.encoding):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"not JSON ({error})", path=path, line=number) from None
        if not isinstance(record, dict):
            raise DataError(
                f"found JSON of another kind, expected an object with {names}", path=path, line=number
            )
        for name in names:
            if not isinstance(record.get(name), str):
                found = ", ".join(map(str, record)) or "nothing"
                raise DataError(
                    f"found the fields {found}, expected text in {name!r}{did_you_mean(name, map(str, record))}; "
                    "pass --source-field and --target-field",
                    path=path,
                    line=number,
                )
        yield Pair(record[names[0]], record[names[1]], number)
