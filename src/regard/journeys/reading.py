"""Reading event logs: CSV, Parquet and XES, batch by batch, into compact arrays; checked on the way.

A batch is a table of texts; no more than one is in memory beside the arrays, which take about twenty bytes an
event and four for each further column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.lines import iter_lines, open_bytes
from regard.errors import ConfigError, DataError
from regard.journeys.building import LogBuilder
from regard.journeys.columns import choose_columns
from regard.journeys.log import EventLog

if TYPE_CHECKING:
    import polars

__all__ = ["ReadingOptions", "read_log"]

_BATCH = 65_536


@dataclass(frozen=True)
class ReadingOptions:
    """How a log is read.

    Attributes:
        case: Column of the case; known by its usual name if None.
        activity: Column of the activity; likewise.
        time: Column of the time; likewise.
        time_format: A strptime format; recognised if None.
        separator: Of a CSV file; recognised if None.
        encoding: Of a CSV file.
        ignore: Columns to leave out.
        numbers: Columns to read as numbers, whatever they look like.
        categories: Columns to read as categories, whatever they look like.
        keep_duplicates: Keep events that are equal in every column.
        kinds: For a model that exists: whether each of its columns, where the log has it, is one of numbers. They are
            kept even where they say nothing in this log, and one activity is enough.
    """

    case: str | None = None
    activity: str | None = None
    time: str | None = None
    time_format: str | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    ignore: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    keep_duplicates: bool = False
    kinds: Mapping[str, bool] | None = None


def read_log(
    path: str | Path,
    options: ReadingOptions | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> EventLog:
    """Read an event log.

    Args:
        path: ``.csv`` (``.tsv``, ``.txt``, each also ``.gz``), ``.parquet``, ``.xes`` or ``.xes.gz``.
        options: How.
        progress: Told the number of events read so far.

    Raises:
        ConfigError: The extra ``journeys`` is not installed.
        DataError: The file cannot be read as a log: what was found, in which line, and what to do.
    """
    options = options or ReadingOptions()
    name = str(path)
    _need("polars", "journeys")
    with open_bytes(path) as file:  # says what is wrong if there is none
        if not file.read(1):
            raise DataError("the file is empty; expected a header and events", path=name)
    kind = name.lower().removesuffix(".gz")
    if kind.endswith(".parquet"):
        header, batches = _open_parquet(name)
        first_line = None
    elif kind.endswith(".xes"):
        header, batches = _open_xes(name)
        first_line = None
    else:
        header, batches = _open_csv(name, options)
        first_line = _line_of_row(name, options)
    columns = choose_columns(
        header,
        path=name,
        case=options.case,
        activity=options.activity,
        time=options.time,
        ignore=options.ignore,
    )
    for column in (*options.numbers, *options.categories):
        if column not in columns.others:
            raise DataError(f"there is no further column {column!r}: {', '.join(columns.others)}", path=name)
    builder = LogBuilder(
        columns,
        path=name,
        line_of=first_line,
        time_format=options.time_format,
        numbers=options.numbers,
        categories=options.categories,
        kinds=options.kinds,
    )
    for batch in _guarded(batches, name, options, header):
        builder.add(batch)
        if progress is not None:
            progress(builder.n_rows)
    return builder.finish(keep_duplicates=options.keep_duplicates)


def _need(module: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(f'reading this log needs {module}: pip install "regard[{extra}]"') from None


def _batches(frame: polars.LazyFrame) -> Iterator[polars.DataFrame]:
    return iter(frame.collect_batches(chunk_size=_BATCH, maintain_order=True))


def _open_csv(name: str, options: ReadingOptions) -> tuple[list[str], Iterator[polars.DataFrame]]:
    import polars

    separator = options.separator or _separator(name, options.encoding)
    source: Any = Path(name)
    if options.encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        # Polars reads UTF-8 only; another encoding is turned into it in memory.
        lines = (text for _, text in iter_lines(name, encoding=options.encoding))
        source = io.BytesIO("\n".join(lines).encode("utf-8"))
    try:
        frame = polars.scan_csv(
            source, separator=separator, infer_schema=False, truncate_ragged_lines=False, glob=False
        )
        header = frame.collect_schema().names()
    except polars.exceptions.PolarsError as error:
        raise _not_csv(error, name, options) from None
    if len(header) < 3:
        raise DataError(
            f"found {len(header)} column{'s' * (len(header) > 1)} separated by {separator!r}, a log has at least "
            "case, activity and time; pass --separator",
            path=name,
            line=1,
        )
    return header, _batches(frame)


def _separator(name: str, encoding: str) -> str:
    """The likeliest separator: the one that the header has most of."""
    _, first = next(iter_lines(name, encoding=encoding), (1, ""))
    return max((",", ";", "\t", "|"), key=first.count)


def _open_parquet(name: str) -> tuple[list[str], Iterator[polars.DataFrame]]:
    import polars

    try:
        frame = polars.scan_parquet(name, glob=False)
        return frame.collect_schema().names(), _batches(frame)
    except (polars.exceptions.PolarsError, OSError) as error:
        raise DataError(f"not a Parquet file ({_first(error)})", path=name) from None


def _open_xes(name: str) -> tuple[list[str], Iterator[polars.DataFrame]]:
    rustxes = _need("rustxes", "xes")
    try:
        frame, _ = rustxes.import_xes(name)
    except BaseException as error:  # a panic of the library is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        raise DataError(f"not an XES log ({_first(error)})", path=name) from None
    if not {"case:concept:name", "concept:name", "time:timestamp"} <= set(frame.columns):
        raise DataError("the XES log has no events with concept:name and time:timestamp", path=name)
    return frame.columns, frame.iter_slices(_BATCH)


def _guarded(
    batches: Iterator[polars.DataFrame], name: str, options: ReadingOptions, header: Sequence[str]
) -> Iterator[polars.DataFrame]:
    import polars

    try:
        yield from batches
    except polars.exceptions.PolarsError as error:
        raise _not_csv(error, name, options, header) from None


def _not_csv(error: Exception, name: str, options: ReadingOptions, header: Sequence[str] = ()) -> DataError:
    """Find the line that Polars could not read, with the slow reader that knows lines."""
    separator = options.separator or _separator(name, options.encoding)
    try:
        reader = csv.reader(_texts(name, options.encoding), delimiter=separator)
        for row in reader:
            if header and len(row) > len(header):
                return DataError(
                    f"found {len(row)} columns, the header has {len(header)}; put values with {separator!r} in "
                    "double quotes",
                    path=name,
                    line=reader.line_num,
                )
    except DataError as found:  # not of the encoding
        return found
    except csv.Error as found_csv:
        return DataError(f"cannot be read as CSV ({found_csv})", path=name, line=reader.line_num)
    return DataError(f"cannot be read as CSV ({_first(error)})", path=name)


def _texts(name: str, encoding: str) -> Iterator[str]:
    return (text + "\n" for _, text in iter_lines(name, encoding=encoding))


def _line_of_row(name: str, options: ReadingOptions) -> Callable[[int], int]:
    """Make a function that finds the line where a row (counted from 0) begins; quoted values may hold line ends."""

    def line_of(row: int) -> int:
        separator = options.separator or _separator(name, options.encoding)
        reader = csv.reader(_texts(name, options.encoding), delimiter=separator)
        begins, seen = 1, -2
        while seen < row:
            begins = reader.line_num + 1
            if next(reader, None) is None:
                break
            seen += 1
        return begins

    return line_of


def _first(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
