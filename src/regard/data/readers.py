"""Pairs of source and target from tab-separated files, parallel files and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
        raise DataError(f"the file is empty: expected {_expected(reader, settings)}", path=path)
    if not report.n_pairs:
        raise DataError("each of its pairs has a blank side; nothing is left to train on", path=path)


def _expected(reader: Callable[..., Iterator[Pair]], settings: DataSettings) -> str:
    """What a file for this reader holds, for the message about an empty one."""
    if reader is read_parallel:
        return "one source a line, and in the other file one target a line"
    if reader is read_jsonl:
        return f"JSON lines with {settings.source_field!r} and {settings.target_field!r}"
    return "lines of source<TAB>target"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def read_tsv(path: str, *, target_path: str | None, settings: DataSettings) -> Iterator[Pair]:
    """Read columns divided by tabs; quotes mean nothing.

    A line has two columns or, where columns are chosen, as many as the first.
    """
    del target_path
    source, target = (settings.source_column or 1) - 1, (settings.target_column or 2) - 1
    chosen = settings.source_column is not None or settings.target_column is not None
    needed = max(source, target) + 1
    expected = 0 if chosen else 2
    for number, line in iter_lines(path, encoding=settings.encoding):
        if not line.strip():
            continue
        columns = line.split("\t")
        expected = expected or max(needed, len(columns))
        if len(columns) != expected:
            names = (
                f"source in column {source + 1}, target in {target + 1}" if chosen else "source<TAB>target"
            )
            hint = (
                ""
                if chosen or len(columns) < expected
                else "; choose with --source-column and --target-column"
            )
            raise DataError(
                f"found {_count(len(columns), 'column')}, expected {_count(expected, 'column')} ({names}){hint}",
                path=path,
                line=number,
            )
        yield Pair(columns[source], columns[target], number)


def read_parallel(path: str, *, target_path: str | None, settings: DataSettings) -> Iterator[Pair]:
    """Read line n of one file with line n of the other."""
    if target_path is None:
        raise DataError("format parallel needs a second file with the targets", path=path)
    if path == target_path == "-":
        raise DataError("holds the sources or the targets, not both; name a file for one of them", path=path)
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
            texts = [_text_field(record, name) for name in names]
        except json.JSONDecodeError as error:
            message = f"not JSON ({error}); each line holds one whole object"
            raise DataError(message, path=path, line=number) from None
        except (ValueError, RecursionError) as error:
            raise DataError(str(error), path=path, line=number) from None
        yield Pair(texts[0], texts[1], number)


def _text_field(record: Any, name: str) -> str:
    """Return the text of a field.

    Raises:
        ValueError: There is none; the message says what there is.
    """
    if not isinstance(record, dict):
        raise ValueError(f"found JSON that is no object, expected an object with the field {name!r}")
    if name not in record:
        found = ", ".join(record) or "none"
        raise ValueError(
            f"found the fields {found}, expected text in {name!r}{did_you_mean(name, record)}; "
            "pass --source-field and --target-field"
        )
    text = record[name]
    if not isinstance(text, str):
        raise ValueError(f"found {type(text).__name__} {str(text)[:40]}, expected text in {name!r}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"found half of a surrogate pair, expected text in {name!r}; write whole characters")
    return text
