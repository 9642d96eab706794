"""``regard journeys explain``: why, for one case or a whole log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Device, Model, Threads
from regard.cli.journeys.shared import (
    Activity,
    Case,
    Encoding,
    KeepDuplicates,
    Log,
    Separator,
    Time,
    TimeFormat,
    read_events,
    say,
)

if TYPE_CHECKING:
    from regard.journeys.log import EventLog
    from regard.journeys.model import JourneyModel

__all__ = ["explain"]


def explain(
    context: typer.Context,
    model: Model,
    log: Log,
    which: Annotated[
        str | None, typer.Option("--id", help="Explain this case; without it the whole log is explained.")
    ] = None,
    events: Annotated[
        int | None, typer.Option(min=1, help="With --id: only so many first events are known.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for a page; CSV files too for a log.")
    ] = None,
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
    """Say why: the events that mattered for one case, or what leads to the outcomes over a whole log."""
    from regard.device import set_threads
    from regard.journeys.model import load_journey_model

    set_threads(threads)
    loaded = load_journey_model(model, device=device)
    read = read_events(log, context, loaded)
    if which is not None:
        _explain_one(loaded, read, which, events, output)
    else:
        _explain_all(loaded, read, output, log)


def _explain_one(
    model: JourneyModel, log: EventLog, which: str, size: int | None, output: Path | None
) -> None:
    from regard.atomic import write_text
    from regard.errors import DataError, did_you_mean
    from regard.journeys.explanation import explain_case
    from regard.journeys.report import case_page
    from regard.journeys.tables import case_text

    if which not in log.case_ids:
        raise DataError(f"--id {which!r}: there is no such case{did_you_mean(which, log.case_ids[:2000])}")
    story = explain_case(model, log, log.case_ids.index(which), size=size)
    print(case_text(story))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_text(output / "case.html", case_page(story))
        say(f"the page is {output / 'case.html'}")


def _explain_all(model: JourneyModel, log: EventLog, output: Path | None, name: str) -> None:
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.explanation import explain_log
    from regard.journeys.report import ReportFacts, write_report
    from regard.journeys.tables import causes_text

    story = explain_log(model, log)
    print(causes_text(story))
    if output is not None:
        measured = evaluate_journeys(model, model.encode(log), max_rests=2000)
        n_train = int(model.facts.data.get("n_cases", 0))
        facts = ReportFacts(
            f"Journeys: {Path(name).name}", log, n_train, "all cases of this log, which should not be those of the training",
            measured, story,
        )  # fmt: skip
        say(f"the report is {write_report(facts, output)}")
