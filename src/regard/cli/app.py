"""The commands, put together; each is imported by its own file, which loads torch only when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from regard.cli import (
    compare,
    data,
    demo,
    evaluate,
    explain,
    info,
    journeys,
    predict,
    score,
    serve,
    settings,
    train,
)

__all__ = ["app"]

app = typer.Typer(
    name="regard",
    help="Train, understand and ship attentional sequence-to-sequence models on your own pairs of sequences.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _version(asked: bool) -> None:
    if asked:
        import regard

        typer.echo(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("evaluate")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("score")(score.score)
app.command("explain")(explain.explain)
app.command("serve")(serve.serve)
app.command("info")(info.info)
app.command("settings")(settings.settings)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.add_typer(journeys.app, name="journeys")
