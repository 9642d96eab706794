"""``regard journeys train``: a model of all cases of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Threads
from regard.cli.journeys.shared import (
    Activity,
    Case,
    Category,
    Encoder,
    Encoding,
    Ignore,
    KeepDuplicates,
    Log,
    Minutes,
    Number,
    Outcomes,
    Seed,
    Separator,
    Set,
    Time,
    TimeFormat,
    check_free,
    config_of,
    read_events,
    say,
    train_on,
)

__all__ = ["train"]


def train(
    context: typer.Context,
    log: Log,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model folder to make.")],
    outcome: Outcomes = None,
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is in the folder.")] = False,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    ignore: Ignore = None,
    number: Number = None,
    category: Category = None,
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Train a model on all cases of a log: what comes next, the rest of the journey, and outcomes."""
    check_free(output, force, "config.json")
    config_of(context)
    model = train_on(read_events(log, context), context, log)
    model.save(output)
    say(f"the model is in {output}")
