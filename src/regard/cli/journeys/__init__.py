"""``regard journeys``: event logs in, what comes next and why out; one file a command."""

from __future__ import annotations

import typer

from regard.cli.journeys import demo, evaluate, explain, predict, report, train

__all__ = ["app"]

app = typer.Typer(
    help="Customers' journeys: train on an event log, foretell the rest and the outcome, and say why.",
    no_args_is_help=True,
)

app.command("train")(train.train)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("explain")(explain.explain)
app.command("report")(report.report)
app.command("demo")(demo.demo)
