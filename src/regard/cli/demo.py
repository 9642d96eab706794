"""``regard demo``: the whole job in a few minutes, on data that are made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.data.corpora import Corpus
    from regard.seq2seq import Seq2Seq

__all__ = ["demo"]

_DATE = "2026年12月1日"
_SHOWN = 8
_N_PAIRS = 24_000
"""Training pairs: in a few minutes, more of them teach more than more passes over fewer."""
_SHARE_OF_FIXED = 0.55
"""Share of the minutes that the fixed context gets, whose updates are quicker."""
_SETTINGS: dict[str, Any] = {
    # Far more data than parameters to spoil, and little time: less dropout learns faster.
    "model": {"dropout": 0.1},
    "training": {"metric": "exact", "patience": 0},
}


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The model folder to make.")] = Path(
        "demo-model"
    ),
    minutes: Annotated[float, typer.Option(help="Minutes of training with attention.")] = 2.2,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 1,
) -> None:
    """Train Chinese to English on dates, times, amounts and names; translate, measure, explain, compare.

    Everything printed is computed in this run, with data from the Unicode CLDR that come with the package
    Babel. No test expression occurs in training.
    """
    from regard.data.corpora import load_corpus

    corpus = load_corpus("cldr:zh-en", size=_N_PAIRS, seed=seed)
    typer.echo(f"{corpus.name}: {len(corpus.train):,} training pairs; {corpus.description}\n")
    model = _train(corpus, {"training": {"minutes": minutes, "seed": seed}}, folder=output)
    exact = _exact(model, corpus)
    _show_translations(model, corpus)
    typer.echo(f"\nexact match on {len(corpus.test):,} unseen expressions: {exact:.1f} %\n")
    _show_alignment(model, output)
    steps = model.facts.training["steps"]
    fixed = _train(
        corpus,
        {
            "model": {"context": "last"},
            "training": {"minutes": minutes * _SHARE_OF_FIXED, "seed": seed, "max_steps": steps},
        },
        folder=None,
    )
    _compare(model, fixed, corpus, exact)
    typer.echo(f"\nthe model is in {output}; try:  regard predict {output} <<< {_DATE}")


def _train(corpus: Corpus, settings: dict[str, Any], *, folder: Path | None) -> Seq2Seq:
    from regard.cli.common import command_line
    from regard.cli.progress import TrainingDisplay
    from regard.config import make_config, merge
    from regard.training.run import TrainingData, run_training

    config = make_config(merge(_SETTINGS, settings))
    what = "attention" if config.model.context == "attention" else "one fixed vector"
    typer.echo(f"training with {what}", err=True)
    data = TrainingData(corpus.name, corpus.train, corpus.dev)
    with TrainingDisplay() as display:
        return run_training(
            data, config=config, folder=folder, force=True, listeners=[display], command=command_line()
        )


def _exact(model: Seq2Seq, corpus: Corpus) -> float:
    predictions = model.predict([source for source, _ in corpus.test])
    hits = sum(p.text == target for p, (_, target) in zip(predictions, corpus.test, strict=True))
    return 100 * hits / len(corpus.test)


def _show_translations(model: Seq2Seq, corpus: Corpus) -> None:
    from rich.table import Table

    from regard.cli.common import console

    table = Table("source", "translation", "", title="unseen expressions", title_justify="left")
    shown = corpus.test[:_SHOWN]
    for prediction, (_, target) in zip(model.predict([source for source, _ in shown]), shown, strict=True):
        mark = "right" if prediction.text == target else f"expected: {target}"
        table.add_row(prediction.source, prediction.text, mark)
    console().print(table, markup=False)


def _show_alignment(model: Seq2Seq, output: Path) -> None:
    from regard.cli.common import console
    from regard.explain.heatmap import draw_heatmap
    from regard.explain.terminal import render_alignment

    record = model.predict([_DATE])[0].record()
    out = console()
    typer.echo(f"{_DATE} -> {record.text}: what each output token looked at")
    out.print(render_alignment(record, width=out.width))
    picture = output / "alignment.png"
    hint = draw_heatmap(record, picture)
    typer.echo(f"drawn as {picture}{'; ' + hint if hint else ''}\n")


def _compare(attention: Seq2Seq, fixed: Seq2Seq, corpus: Corpus, exact: float) -> None:
    fixed_exact = _exact(fixed, corpus)
    for name, model, value in (("attention", attention, exact), ("one fixed vector", fixed, fixed_exact)):
        training = model.facts.training
        typer.echo(
            f"{name:>16}: {value:5.1f} % exact, {model.model.n_parameters:,} parameters, "
            f"{training['steps']:,} updates in {training['seconds']:.0f} s"
        )
