"""Which column of a log is the case, the activity and the time: said by option or known by its usual name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import DataError, did_you_mean

__all__ = ["Columns", "choose_columns"]

# Names in order of preference, as they stand in exports of process mining tools, data bases and challenges.
_USUAL = {
    "case": (
        "case:concept:name", "case_id", "caseid", "case", "case_key", "trace_id", "trace", "journey_id",
        "customer_id", "process_id", "session_id", "application_id", "id",
    ),
    "activity": (
        "concept:name", "activity", "activity_id", "activityid", "activity_name", "event_name", "event",
        "task", "action", "step", "concept_name",
    ),
    "time": (
        "time:timestamp", "timestamp", "complete_timestamp", "completetimestamp", "end_timestamp", "time",
        "datetime", "date", "event_time", "completed_at", "end_time", "created_at", "start_timestamp",
        "start_time",
    ),
}  # fmt: skip
_OPTION = {"case": "--case", "activity": "--activity", "time": "--time"}


@dataclass(frozen=True)
class Columns:
    """Names of the three columns, and the others that are used."""

    case: str
    activity: str
    time: str
    others: tuple[str, ...] = ()


def _plain(name: str) -> str:
    """A name without case and with one kind of separator: ``Case ID`` and ``case-id`` are ``case_id``."""
    return re.sub(r"[\s\-./]+", "_", name.strip().lower())


def choose_columns(
    header: Sequence[str],
    *,
    path: str,
    case: str | None = None,
    activity: str | None = None,
    time: str | None = None,
    ignore: Sequence[str] = (),
) -> Columns:
    """Choose the columns of a header.

    Raises:
        DataError: A column that was asked for is not there, or a usual one cannot be recognised.
    """
    asked = {"case": case, "activity": activity, "time": time}
    for name in (*[name for name in asked.values() if name is not None], *ignore):
        if name not in header:
            raise DataError(
                f"there is no column {name!r}; the columns are {_listed(header)}{did_you_mean(name, header)}",
                path=path,
            )
    plain = {_plain(name): name for name in reversed(header)}
    chosen: dict[str, str] = {}
    for role, given in asked.items():
        found = given or next((plain[name] for name in _USUAL[role] if name in plain), None)
        if found is None:
            raise DataError(
                f"no column is known to be the {role}; say which with {_OPTION[role]}: {_listed(header)}",
                path=path,
            )
        if found in chosen.values():
            raise DataError(f"column {found!r} cannot be both; pass --case, --activity and --time", path=path)
        chosen[role] = found
    others = tuple(name for name in header if name not in chosen.values() and name not in ignore)
    return Columns(**chosen, others=others)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return f"{shown}, …" if len(names) > 12 else shown
