"""``regard journeys predict``: a row for each case."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Device, Model, Threads
from regard.cli.journeys.shared import (
    Activity,
    Case,
    Draws,
    Encoding,
    KeepDuplicates,
    Log,
    Separator,
    Time,
    TimeFormat,
    read_events,
)

__all__ = ["predict"]


def predict(
    context: typer.Context,
    model: Model,
    log: Log,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A CSV file to write; standard output if not given.")
    ] = None,
    draws: Draws = 24,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Foretell each case of a log of journeys that go on: a CSV row with the next activity, the rest, the outcomes."""
    from regard.atomic import write_text
    from regard.device import set_threads
    from regard.journeys.model import load_journey_model
    from regard.journeys.tables import predictions_csv

    set_threads(threads)
    loaded = load_journey_model(model, device=device)
    text = predictions_csv(loaded, read_events(log, context, loaded), n_draws=draws)
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)
