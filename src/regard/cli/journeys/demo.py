"""``regard journeys demo``: a made-up bank's log with planted causes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import Threads
from regard.cli.journeys.report import make_report
from regard.cli.journeys.shared import Minutes, Seed, Set, check_free

__all__ = ["demo"]


def demo(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.")] = Path(
        "demo-journeys"
    ),
    cases: Annotated[int, typer.Option(min=300, help="Cases of the made-up log.")] = 3000,
    minutes: Minutes = 1.0,
    seed: Seed = 1,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")] = False,
    threads: Threads = 0,
) -> None:
    """Make a bank's loan log with three planted causes, learn it, and see whether the report finds them."""
    from regard.atomic import write_text
    from regard.journeys.explanation import explain_log
    from regard.journeys.log import take_cases
    from regard.journeys.synthetic import PLANTED, loan_log, log_to_csv

    check_free(output, force, "report.html")
    log = loan_log(cases, seed=seed or 1)
    output.mkdir(parents=True, exist_ok=True)
    write_text(output / "loans.csv", log_to_csv(log))
    context.params["outcome"] = list(PLANTED)
    context.params["split"] = "file"
    model = make_report(log, context, output, name="a made-up bank's loans")
    story = explain_log(model, take_cases(log, range(round(cases * 2 / 3), cases)))
    for outcome, planted in PLANTED.items():
        found = story.causes[outcome][0]
        mark = "found" if found.name == planted and found.confident else f"NOT found, first is {found.name}"
        print(f"{outcome}: planted cause {planted!r}: {mark}")
    print(f"\nthe same with your own log:  regard journeys report {output / 'loans.csv'} -o report/")
