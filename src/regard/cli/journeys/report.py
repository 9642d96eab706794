"""``regard journeys report``: from a log to a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Threads
from regard.cli.journeys.evaluate import print_measures
from regard.cli.journeys.shared import (
    Activity,
    Case,
    Category,
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
    check_free,
    check_split,
    config_of,
    measuring,
    read_events,
    say,
    train_on,
)

if TYPE_CHECKING:
    from regard.journeys.log import EventLog
    from regard.journeys.model import JourneyModel

__all__ = ["make_report", "report"]


def report(
    context: typer.Context,
    log: Log,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to make: report, CSV files, model.")
    ],
    outcome: Outcomes = None,
    split: Split = "time",
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the report that is in the folder.")] = False,
    max_rests: MaxRests = 2000,
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
    """From a log to a report in one command: train on the older cases, measure and explain on the newer ones."""
    check_split(split)
    check_free(output, force, "report.html")
    config_of(context)
    make_report(read_events(log, context), context, output, name=Path(log).name)


def make_report(log: EventLog, context: typer.Context, output: Path, *, name: str) -> JourneyModel:
    """Train, measure, explain, and write the report and the model; returns the model."""
    from regard.journeys.api import split_cases
    from regard.journeys.baselines import baselines_of
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.explanation import explain_case, explain_log
    from regard.journeys.log import take_cases
    from regard.journeys.outcomes import suggest_outcomes
    from regard.journeys.report import ReportFacts, write_report

    split = context.params.get("split") or "time"
    learnt, tested = (take_cases(log, cases) for cases in split_cases(log, split))
    if not context.params.get("outcome"):
        context.params["outcome"] = suggest_outcomes(learnt)
        say(f"outcomes: {', '.join(context.params['outcome']) or 'none'} (choose them with --outcome)")
    model = train_on(learnt, context, name)
    model.save(output / "model")
    baselines = baselines_of(model.encode(learnt))
    most = context.params.get("max_rests", 2000)
    with measuring() as progress:
        measured = evaluate_journeys(
            model, model.encode(tested), baselines, max_rests=most, progress=progress
        )
    story = explain_log(model, tested)
    cases = [
        explain_case(model, tested, tested.case_ids.index(unsure.case), size=unsure.n_events)
        for unsure in story.unsure[:2]
    ]
    words = "those that began after all others had ended" if split == "time" else "the last third of the file"
    facts = ReportFacts(f"Journeys: {name}", log, learnt.n_cases, words, measured, story, cases)
    path = write_report(facts, output)
    print_measures(measured)
    say(f"the report is {path}")
    return model
