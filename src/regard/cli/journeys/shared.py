"""What the commands of ``regard journeys`` share: options, reading a log, and training on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.journeys.log import EventLog
    from regard.journeys.model import JourneyModel
    from regard.journeys.settings import JourneyConfig

__all__ = [
    "Activity",
    "Case",
    "Category",
    "Draws",
    "Encoder",
    "Encoding",
    "Ignore",
    "KeepDuplicates",
    "Log",
    "MaxRests",
    "Minutes",
    "Number",
    "Outcomes",
    "Seed",
    "Separator",
    "Set",
    "Split",
    "Time",
    "TimeFormat",
    "check_free",
    "check_split",
    "config_of",
    "measuring",
    "read_events",
    "say",
    "train_on",
]

_Columns = "The log"
Log = Annotated[
    str, typer.Argument(metavar="LOG", help="An event log: .csv (also .gz), .parquet, .xes or .xes.gz.")
]
Case = Annotated[str | None, typer.Option("--case", help="Column of the case.", rich_help_panel=_Columns)]
Activity = Annotated[
    str | None, typer.Option("--activity", help="Column of the activity.", rich_help_panel=_Columns)
]
Time = Annotated[str | None, typer.Option("--time", help="Column of the time.", rich_help_panel=_Columns)]
TimeFormat = Annotated[
    str | None,
    typer.Option("--time-format", help="Of the times, such as '%d.%m.%Y %H:%M'.", rich_help_panel=_Columns),
]
Separator = Annotated[
    str | None, typer.Option("--separator", help="Of the CSV file.", rich_help_panel=_Columns)
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of the CSV file.", rich_help_panel=_Columns)]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column to leave out; repeat it.", rich_help_panel=_Columns),
]
Number = Annotated[
    list[str] | None, typer.Option("--number", help="A further column of numbers.", rich_help_panel=_Columns)
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A further column of categories.", rich_help_panel=_Columns),
]
KeepDuplicates = Annotated[
    bool,
    typer.Option("--keep-duplicates", help="Keep events equal in every column.", rich_help_panel=_Columns),
]
Outcomes = Annotated[
    list[str] | None,
    typer.Option(
        "--outcome",
        help="What is asked: an activity that may happen later, a column of labels, or COLUMN=VALUE; repeat it.",
    ),
]
Minutes = Annotated[float | None, typer.Option(help="Most minutes of training; 0 for no limit (default 5).")]
Seed = Annotated[int | None, typer.Option(help="Of everything random.")]
Encoder = Annotated[str | None, typer.Option(help="lstm or attention.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as model.hidden_size=64."),
]
Split = Annotated[
    str,
    typer.Option(
        help="time: test on cases that began after all cases of training had ended; file: on the last third of the file."
    ),
]
Draws = Annotated[
    int, typer.Option(min=0, help="Rests drawn to name the one most like all; 0 for the likeliest.")
]
MaxRests = Annotated[int, typer.Option(min=0, help="Most prefixes whose rest is measured; 0 for all.")]


@contextmanager
def _reading() -> Iterator[Any]:
    """Show how many events have been read, where there is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("reading  {task.completed:,.0f} events"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda n: bar.update(task, completed=n)


@contextmanager
def measuring() -> Iterator[Any]:
    """Show what an evaluation does and how far it is: a bar on a terminal, else a line for each part."""
    if not sys.stderr.isatty():
        told: set[str] = set()

        def line(what: str, done: int, total: int) -> None:
            if what not in told:
                told.add(what)
                say(f"{what} ({total:,})")

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("", total=1)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def read_events(path: str, context: typer.Context, model: JourneyModel | None = None) -> EventLog:
    """Read the log as the options of the command say, its columns as a model knows them; say what was put right."""
    from regard.journeys.reading import ReadingOptions, read_log

    given = context.params
    options = ReadingOptions(
        case=given.get("case_column"),
        activity=given.get("activity_column"),
        time=given.get("time_column"),
        time_format=given.get("time_format"),
        separator=given.get("separator"),
        encoding=given.get("encoding") or "utf-8",
        ignore=tuple(given.get("ignore") or ()),
        numbers=tuple(given.get("number") or ()),
        categories=tuple(given.get("category") or ()),
        keep_duplicates=bool(given.get("keep_duplicates")),
        kinds=None if model is None else model.kinds,
    )
    with _reading() as progress:
        log = read_log(path, options, progress=progress)
    for note in log.notes:
        say(f"note: {note}")
    say(
        f"{log.n_cases:,} cases, {log.n_events:,} events, {len(log.activities):,} activities, "
        f"{len(log.attributes)} further columns; {log.n_bytes / 2**20:.1f} MiB"
    )
    return log


def say(text: str) -> None:
    """Say something that is no output, on standard error."""
    print(text, file=sys.stderr, flush=True)


def config_of(context: typer.Context) -> JourneyConfig:
    """The settings that the options of the command make.

    Raises:
        ConfigError: Unknown names and wrong values.
    """
    from regard.cli.common import nested
    from regard.config import merge
    from regard.journeys.settings import make_journey_config

    given = context.params
    training = {name: given.get(name) for name in ("minutes", "seed", "threads", "device")}
    model = {"encoder": given.get("encoder")}
    chosen = {
        "training": {name: value for name, value in training.items() if value is not None},
        "model": {name: value for name, value in model.items() if value is not None},
    }
    return make_journey_config(merge(chosen, nested(given.get("set_") or ())))


def train_on(log: EventLog, context: typer.Context, name: str) -> JourneyModel:
    """Train on all cases of a log as the options of the command say; ``name`` is the log's, for the record."""
    from regard.cli.common import command_line
    from regard.cli.progress import TrainingDisplay
    from regard.journeys.api import train_journeys

    with TrainingDisplay() as display:
        return train_journeys(
            log,
            config=config_of(context),
            outcomes=context.params.get("outcome") or (),
            listeners=[display],
            command=command_line(),
            data={"name": name},
        )


def check_free(folder: Path, force: bool, what: str) -> None:
    """Refuse a folder that has the file ``what``, unless it may be replaced."""
    from regard.errors import ConfigError

    if folder.is_file():
        raise ConfigError(f"{folder}: this is a file; pass a folder to -o")
    if (folder / what).exists() and not force:
        raise ConfigError(f"{folder}: there is one already; pass --force to replace it, or another -o")


def check_split(split: str) -> None:
    """Refuse a way to split a log that there is not."""
    from regard.errors import ConfigError

    if split not in ("time", "file"):
        raise ConfigError(f"--split {split!r}: expected time or file")
