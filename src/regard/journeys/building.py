"""From tables of texts to the arrays of an `EventLog`, with the checks that need all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from regard.errors import DataError
from regard.journeys.columns import Columns
from regard.journeys.log import MISSING, Attribute, EventLog
from regard.journeys.times import TimeReader

if TYPE_CHECKING:
    import polars

__all__ = ["LogBuilder"]

_MOST_NAMES = 2_000
"""Different values up to which a column is a category; one with more looks like an id or free text."""
_FEW_NUMBERS = 12
"""A column of numbers with at most so many different values in the first batch is a category (codes, grades)."""


class _Codes:
    """Texts to codes from ``first``, in the order in which they occur."""

    def __init__(self, first: int = 0) -> None:
        self.codes: dict[str, int] = {}
        self.first = first

    def encode(self, texts: polars.Series) -> np.ndarray:
        """Codes int32 of texts that are not null."""
        import polars

        distinct = texts.unique(maintain_order=True)
        for text in distinct.to_list():
            self.codes.setdefault(text, len(self.codes) + self.first)
        new = polars.Series([self.codes[text] for text in distinct.to_list()], dtype=polars.Int32)
        return texts.replace_strict(distinct, new, return_dtype=polars.Int32).to_numpy()


class _Column:
    """A further column while it is read: numbers or categories, decided by its first values if not said.

    Args:
        name: The column.
        number: Whether it is one of numbers, if that is known.
        keep: Whether it is kept even if it says nothing, or has very many values.
    """

    def __init__(self, name: str, *, number: bool | None, keep: bool = False) -> None:
        self.name, self.number, self.keep = name, number, keep
        self.codes = _Codes(first=MISSING + 1)
        self.parts: list[np.ndarray] = []
        self.too_many = False

    def add(self, texts: polars.Series) -> int | None:
        """Take in a batch; returns the row of a value that is no number, if there should be none."""
        import polars

        if self.too_many:
            return None
        texts = texts.str.strip_chars()
        texts = texts.set(texts == "", None)
        if self.number is None:
            filled = texts.drop_nulls()
            numbers = filled.cast(polars.Float64, strict=False)
            if len(filled):
                self.number = bool(numbers.is_not_null().all()) and numbers.n_unique() > _FEW_NUMBERS
        if self.number:
            values = texts.cast(polars.Float32, strict=False)
            wrong = (values.is_null() & texts.is_not_null()).arg_true()
            self.parts.append(values.fill_null(float("nan")).to_numpy().astype(np.float32))
            return int(wrong[0]) if len(wrong) else None
        codes = np.full(len(texts), MISSING, np.int32)
        present = texts.is_not_null().to_numpy()
        codes[present] = self.codes.encode(texts.drop_nulls()) if present.any() else MISSING
        self.parts.append(codes)
        if len(self.codes.codes) > _MOST_NAMES and not self.keep:
            self.too_many, self.parts, self.codes = True, [], _Codes()
        return None

    def finish(self) -> Attribute | None:
        """The attribute; None if it says nothing."""
        if self.too_many or not self.parts:
            return None
        values = np.concatenate(self.parts)
        if self.number:
            silent = bool(np.isnan(values).all())
            return None if silent and not self.keep else Attribute(self.name, values, is_number=True)
        n_names = len(self.codes.codes)
        if not self.keep and (not n_names or (n_names == 1 and (values != MISSING).all())):
            return None
        return Attribute(self.name, values, tuple(self.codes.codes))


class LogBuilder:
    """Takes in batches of rows and makes a log.

    Args:
        columns: Which columns are what.
        path: The file, for messages.
        line_of: Gives the line of a row, for messages; None where a file has no lines.
        time_format: See `TimeReader`.
        numbers: Further columns that are numbers.
        categories: Further columns that are categories.
        kinds: See `ReadingOptions`.
    """

    def __init__(
        self,
        columns: Columns,
        *,
        path: str,
        line_of: Callable[[int], int] | None = None,
        time_format: str | None = None,
        numbers: Sequence[str] = (),
        categories: Sequence[str] = (),
        kinds: Mapping[str, bool] | None = None,
    ) -> None:
        self.columns, self.path, self.line_of = columns, path, line_of
        self.learnt, kinds = kinds is not None, kinds or {}
        self.times = TimeReader(time_format)
        self.cases, self.activities = _Codes(), _Codes()
        self.others = [
            _Column(
                name,
                number=True if name in numbers else False if name in categories else kinds.get(name),
                keep=name in kinds,
            )
            for name in columns.others
        ]
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self.n_rows = self.n_blank = 0

    def add(self, frame: polars.DataFrame) -> None:
        """Take in a batch.

        Raises:
            DataError: A row without a case, or a value that cannot be read.
        """
        import polars

        columns = self.columns
        case = frame[columns.case].cast(polars.String).str.strip_chars()
        activity = frame[columns.activity].cast(polars.String).str.strip_chars()
        self._refuse(
            (case.is_null() | (case == "")).arg_true(), "the case is empty; fill it in or remove the row"
        )
        blank = (activity.is_null() | (activity == "")).fill_null(True).to_numpy()
        self.n_blank += int(blank.sum())
        kept = polars.Series(~blank)
        time, zone = self._read_times(frame[columns.time], blank)
        case_codes = self.cases.encode(case)[~blank]
        rows = (case_codes, self.activities.encode(activity.filter(kept)), time[~blank], zone[~blank])
        self.parts.append(rows)
        for column in self.others:
            texts = frame[column.name]
            texts = texts.cast(polars.String, strict=False) if texts.dtype != polars.String else texts
            wrong = column.add(texts.filter(kept))
            if wrong is not None:
                row = int(np.flatnonzero(~blank)[wrong])
                hint = (
                    "the model knows numbers there; mend it"
                    if column.keep
                    else f"pass --category {column.name}"
                )
                self._refuse([row], f"{column.name} {texts[row]!r} is no number; {hint}")
        self.n_rows += len(frame)

    def _read_times(self, texts: polars.Series, blank: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import polars

        if isinstance(texts.dtype, polars.Datetime | polars.Date):
            if isinstance(texts.dtype, polars.Datetime) and texts.dtype.time_zone:
                texts = texts.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            moments = texts.cast(polars.Datetime("ms"))
            good = moments.is_not_null().to_numpy()
            time = moments.to_physical().fill_null(0).to_numpy().astype(np.int64)
            zone = np.zeros(len(time), np.int16)
        else:
            texts = texts.cast(polars.String).fill_null("")
            time, zone, good = self.times.read(texts)
        wrong = np.flatnonzero(~good & ~blank)
        if len(wrong):
            shown = texts[int(wrong[0])]
            what = f"the time {shown!r} cannot be read" if shown else "the time is empty"
            form = self.times.format
            hint = f" as {form}, like the others" if form and shown and form != "epoch" else ""
            self._refuse(wrong, f"{what}{hint}; mend it or pass --time-format, such as '%d.%m.%Y %H:%M'")
        return time, zone

    def _refuse(self, rows: Sequence[int] | np.ndarray | polars.Series, message: str) -> None:
        """Raise an error that names the first of the rows, if there is one."""
        if len(rows):
            row = self.n_rows + int(rows[0])
            line = self.line_of(row) if self.line_of else None
            where = "" if line else f"event {row + 1:,}: "
            raise DataError(f"{where}{message}", path=self.path, line=line)

    def finish(self, *, keep_duplicates: bool) -> EventLog:
        """Put all events in order and make the log.

        Raises:
            DataError: There are no events, or they cannot be a log.
        """
        if not self.parts or not sum(len(part[0]) for part in self.parts):
            raise DataError("there are no events in it; expected one a row below the header", path=self.path)
        case, activity, time, zone = (np.concatenate(parts) for parts in zip(*self.parts, strict=True))
        self.parts = []
        notes: list[str] = []
        attributes = self._attributes(notes)
        if len(self.activities.codes) < 2 and not self.learnt:
            only = next(iter(self.activities.codes))
            raise DataError(
                f"every event has the activity {only!r}, so there is nothing to predict; pass another --activity",
                path=self.path,
            )
        if self.times.ambiguous:
            notes.append(
                f"times were read as {self.times.format}, but {self.times.ambiguous} fits too; pass --time-format if "
                "that is meant"
            )
        order = np.lexsort((time, case))  # stable: equal times stay in the order of the file
        notes += _unordered(case, time)
        if not keep_duplicates:
            order, note = _without_duplicates(order, case, time, activity, attributes)
            notes += note
        return self._log(order, case, activity, time, zone, attributes, notes)

    def _attributes(self, notes: list[str]) -> list[Attribute]:
        if self.n_blank:
            notes.append(f"{self.n_blank:,} rows without an activity were left out")
        found = []
        for column in self.others:
            attribute = column.finish()
            if attribute is not None:
                found.append(attribute)
            elif column.too_many:
                notes.append(
                    f"column {column.name!r} has over {_MOST_NAMES:,} different values and was left out; it looks like "
                    "an id"
                )
        return found

    def _log(
        self,
        order: np.ndarray,
        case: np.ndarray,
        activity: np.ndarray,
        time: np.ndarray,
        zone: np.ndarray,
        attributes: list[Attribute],
        notes: list[str],
    ) -> EventLog:
        counts = np.bincount(case[order], minlength=len(self.cases.codes))
        names = list(self.cases.codes)
        if (counts == 0).any():
            empty = np.flatnonzero(counts == 0)
            notes.append(
                f"{len(empty):,} cases have no event and were left out, the first is {names[empty[0]]!r}"
            )
            names = [name for name, count in zip(names, counts, strict=True) if count]
        return EventLog(
            case_ids=tuple(names),
            offsets=np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64),
            activity=activity[order].astype(np.int32),
            activities=tuple(self.activities.codes),
            time=time[order],
            zone=zone[order],
            attributes=tuple(
                Attribute(a.name, a.values[order], a.names, is_number=a.is_number) for a in attributes
            ),
            notes=tuple(notes),
        )


def _unordered(case: np.ndarray, time: np.ndarray) -> list[str]:
    """Say how many events stand in the file after a later one of their case."""
    order = np.argsort(case, kind="stable")
    back = (np.diff(case[order]) == 0) & (np.diff(time[order]) < 0)
    n_cases = len(np.unique(case[order][1:][back]))
    if not n_cases:
        return []
    return [f"events of {n_cases:,} cases were not in the order of time and were sorted"]


def _without_duplicates(
    order: np.ndarray, case: np.ndarray, time: np.ndarray, activity: np.ndarray, attributes: list[Attribute]
) -> tuple[np.ndarray, list[str]]:
    """Drop events that are equal in every column; only those at one moment of a case can be."""
    same = (np.diff(case[order]) == 0) & (np.diff(time[order]) == 0)
    candidate = np.concatenate([[False], same]) | np.concatenate([same, [False]])
    places = np.flatnonzero(candidate)
    if not len(places):
        return order, []
    rows = order[places]
    columns = [case[rows], time[rows], activity[rows]]
    columns += [np.nan_to_num(a.values[rows], nan=-1e30) for a in attributes]
    table = np.stack([column.astype(np.float64) for column in columns], 1)
    _, first = np.unique(table, axis=0, return_index=True)
    n_dropped = len(rows) - len(first)
    if not n_dropped:
        return order, []
    gone = np.ones(len(rows), bool)
    gone[first] = False
    kept = np.ones(len(order), bool)
    kept[places[gone]] = False
    return order[kept], [f"{n_dropped:,} events that repeat another in every column were left out"]
