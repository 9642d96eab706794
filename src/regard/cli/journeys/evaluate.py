"""``regard journeys evaluate``: how well journeys are foretold, beside baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.common import Device, Threads
from regard.cli.journeys.shared import (
    Activity,
    Case,
    Category,
    Draws,
    Encoder,
    Encoding,
    Ignore,
    KeepDuplicates,
    Log,
    MaxRests,
    Minutes,
    Number,
    Outcomes,
    Seed,
    Separator,
    Set,
    Split,
    Time,
    TimeFormat,
    check_split,
    measuring,
    read_events,
    train_on,
)

__all__ = ["evaluate", "print_measures"]


def evaluate(
    context: typer.Context,
    log: Log,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A model folder, measured on all of LOG; without it one is trained on a part of LOG."
        ),
    ] = None,
    split: Split = "time",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all measures as JSON.")] = None,
    draws: Draws = 24,
    max_rests: MaxRests = 0,
    outcome: Outcomes = None,
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
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
    """Measure how well journeys are foretold, beside simple baselines.

    Counted as published (Tax et al. 2017) and honestly, where the end of a journey is an answer too.
    """
    import json

    from regard.atomic import write_text
    from regard.journeys.api import split_cases
    from regard.journeys.baselines import baselines_of
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.log import take_cases
    from regard.journeys.model import load_journey_model

    check_split(split)
    baselines = []
    if model is None:
        read = read_events(log, context)
        learnt, tested = (take_cases(read, cases) for cases in split_cases(read, split))
        made = train_on(learnt, context, log)
        baselines = baselines_of(made.encode(learnt))
    else:
        made = load_journey_model(model, device=device)
        tested = read_events(log, context, made)
    with measuring() as progress:
        found = evaluate_journeys(
            made, made.encode(tested), baselines, max_rests=max_rests, n_draws=draws, progress=progress
        )
    print_measures(found)
    if json_file is not None:
        write_text(json_file, json.dumps(found.to_record(), indent=1) + "\n")


def print_measures(found: Any) -> None:
    """Print the measures of a model and of the baselines as tables."""
    from rich.table import Table

    from regard.cli.common import console
    from regard.journeys.evaluation import EXPLAINED

    out = console()
    table = Table(
        "",
        "next, honestly",
        "next, as published",
        "rest, honestly",
        "rest, as published",
        "rest, known to go on",
    )
    for name, m in found.measures.items():
        values = (m.next_honest, m.next_published, m.rest_honest, m.rest_published, m.rest_goes_on)
        table.add_row(name, *(f"{value:.4f}" for value in values))
    out.print(table, markup=False)
    print(EXPLAINED)
    for measured in found.outcomes:
        print(
            f"{measured.label}: {measured.n:,} prefixes, {100 * measured.share:.1f} % have it, AUC {measured.auc:.3f}, "
            f"Brier {measured.brier:.3f}, calibration error {measured.calibration_error:.3f}"
        )
    lengths = Table("events known", "prefixes", "next, honestly", "rest, honestly")
    for first, last, n, right, alike in found.by_length:
        lengths.add_row(
            f"{first}-{last}" if last > first else str(first), f"{n:,}", f"{right:.3f}", f"{alike:.3f}"
        )
    out.print(lengths, markup=False)
