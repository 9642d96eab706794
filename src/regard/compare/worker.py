"""A run in a process of its own: its description as JSON on standard input, its events as lines on standard output.

Should the process that started it die, the next event cannot be written, and this one ends too.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from regard.compare.data import ComparisonData
from regard.compare.perform import perform
from regard.compare.plan import Evaluation, Run
from regard.config import make_config
from regard.errors import RegardError
from regard.training.events import Event, Finished, Message, Progress, Started, Validated
from regard.training.signals import StopSignal

__all__ = ["describe", "event_of", "main"]

_EVENTS = {kind.__name__.lower(): kind for kind in (Started, Progress, Validated, Message, Finished)}


def describe(run: Run, data: ComparisonData, evaluation: Evaluation, *, folder: Path, command: str) -> str:
    """All that a worker must know, as JSON text."""
    described = {**vars(run), "config": run.config.model_dump()}
    record = {
        "run": described,
        "data": asdict(data),
        "evaluation": asdict(evaluation),
        "folder": str(folder.resolve()),
        "command": command,
    }
    return json.dumps(record)


def event_of(record: dict[str, Any]) -> Event:
    """The event that a record was made from."""
    values = dict(record)
    kind = _EVENTS[values.pop("event")]
    made: Event = kind(**values)
    return made


def _pairs(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(source, target) for source, target in rows]


def main(given: IO[str], said: IO[str]) -> int:
    """Do the run that is described.

    Args:
        given: Its description.
        said: Where events go, and the reason if it fails.

    Returns:
        The exit code.
    """
    record = json.load(given)
    run = Run(**{**record["run"], "config": make_config(record["run"]["config"])})
    parts = {part: _pairs(record["data"][part]) for part in ("train", "dev", "test")}
    data = ComparisonData(**{**record["data"], **parts})
    chosen = {name: tuple(record["evaluation"][name]) for name in ("metrics", "edges")}
    evaluation = Evaluation(**{**record["evaluation"], **chosen})

    def tell(event: Event) -> None:
        said.write(json.dumps(event.to_record()) + "\n")
        said.flush()

    try:
        perform(
            run,
            data,
            evaluation,
            folder=Path(record["folder"]),
            listeners=[tell],
            command=record["command"],
        )
    except StopSignal as signal:
        return signal.exit_code
    except RegardError as error:
        said.write(json.dumps({"event": "failed", "reason": str(error)}) + "\n")
        said.flush()
        return error.exit_code
    return 0


if __name__ == "__main__":
    said, sys.stdout = sys.stdout, sys.stderr  # what anyone prints must not stand among the events
    sys.exit(main(sys.stdin, said))
