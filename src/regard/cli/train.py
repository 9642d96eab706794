"""``regard train``: pairs in, a model folder out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.config import Config

__all__ = ["train"]

_Model = "Model"
_Training = "Training"
_Data = "Data"

_SHORTCUTS = {
    "hidden": "model.hidden_size",
    "cell": "model.cell",
    "context": "model.context",
    "score": "model.attention.score",
    "dropout": "model.dropout",
    "epochs": "training.epochs",
    "max_steps": "training.max_steps",
    "minutes": "training.minutes",
    "batch_size": "training.batch_size",
    "learning_rate": "training.learning_rate",
    "metric": "training.metric",
    "precision": "training.precision",
    "device": "training.device",
    "threads": "training.threads",
    "seed": "training.seed",
    "encoding": "data.encoding",
    "source_column": "data.source_column",
    "target_column": "data.target_column",
    "source_field": "data.source_field",
    "target_field": "data.target_field",
    "source_tokenizer": "data.source.tokenizer",
    "target_tokenizer": "data.target.tokenizer",
}


def train(
    pairs: Annotated[
        str | None,
        typer.Argument(
            metavar="PAIRS",
            help="Pairs: TSV (source<TAB>target) or JSON lines, .gz too, - for standard input; or a built-in "
            "corpus such as cldr:zh-en.",
        ),
    ] = None,
    targets: Annotated[
        str | None,
        typer.Argument(metavar="TARGETS", help="The parallel file of targets, if PAIRS has sources only."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model folder to make.", show_default=False)
    ] = None,
    dev: Annotated[
        str | None, typer.Option(help="Pairs to validate on; held out from PAIRS if not given.")
    ] = None,
    dev_targets: Annotated[str | None, typer.Option(help="The parallel file of dev targets.")] = None,
    format: Annotated[
        str | None, typer.Option(help="tsv, parallel or jsonl; guessed from the file's name.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is in the folder.")] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            help="default, sutskever2014, cho2014, bahdanau2015 or luong2015.", rich_help_panel=_Model
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings as YAML or JSON.", rich_help_panel=_Model)
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any setting of `regard settings`, such as model.cell=gru.",
            rich_help_panel=_Model,
        ),
    ] = None,
    hidden: Annotated[int | None, typer.Option(help="Units of a layer.", rich_help_panel=_Model)] = None,
    cell: Annotated[str | None, typer.Option(help="rnn, gru or lstm.", rich_help_panel=_Model)] = None,
    context: Annotated[
        str | None,
        typer.Option(help="attention, or one vector: last, projected, pooled.", rich_help_panel=_Model),
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(help="dot, scaled_dot, general, additive, location or cosine.", rich_help_panel=_Model),
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Share of units dropped.", rich_help_panel=_Model)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Most passes over the data.", rich_help_panel=_Training)
    ] = None,
    max_steps: Annotated[int | None, typer.Option(help="Most updates.", rich_help_panel=_Training)] = None,
    minutes: Annotated[
        float | None,
        typer.Option(help="Most minutes; 0 for no limit (default 10).", rich_help_panel=_Training),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Pairs in a batch.", rich_help_panel=_Training)
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Highest rate.", rich_help_panel=_Training)
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What is watched: loss, exact, token, bleu, chrf, wer, cer, per, ter.",
            rich_help_panel=_Training,
        ),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="auto, float32 or bfloat16.", rich_help_panel=_Training)
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or mps.", rich_help_panel=_Training)
    ] = None,
    threads: Annotated[int | None, typer.Option(help="0 for all cores.", rich_help_panel=_Training)] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.", rich_help_panel=_Training)] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard events.", rich_help_panel=_Training)
    ] = False,
    encoding: Annotated[
        str | None, typer.Option(help="Encoding of the files.", rich_help_panel=_Data)
    ] = None,
    source_column: Annotated[int | None, typer.Option(help="Counted from 1.", rich_help_panel=_Data)] = None,
    target_column: Annotated[int | None, typer.Option(help="Counted from 1.", rich_help_panel=_Data)] = None,
    source_field: Annotated[str | None, typer.Option(help="Of a JSON line.", rich_help_panel=_Data)] = None,
    target_field: Annotated[str | None, typer.Option(help="Of a JSON line.", rich_help_panel=_Data)] = None,
    source_tokenizer: Annotated[
        str | None,
        typer.Option(help="auto, char, grapheme, space, word, bpe or unigram.", rich_help_panel=_Data),
    ] = None,
    target_tokenizer: Annotated[str | None, typer.Option(help="Likewise.", rich_help_panel=_Data)] = None,
) -> int:
    """Train a model on pairs of sequences.

    One command does it: `regard train pairs.tsv -o model/`. It reads the file, holds out some pairs unless
    --dev names others, chooses tokenizers, trains for at most ten minutes unless --minutes says otherwise,
    and keeps the best model. Stopped by Ctrl-C, it saves and goes on with --resume.
    """
    given = dict(locals())
    from regard.errors import ConfigError
    from regard.training.run import stored_data_name
    from regard.training.signals import StopSignal

    if output is None:
        raise ConfigError("where to? Pass -o MODEL, the model folder to make")
    if pairs is None:
        pairs = stored_data_name(output) if resume else None
        if pairs is None:
            raise ConfigError("what to train on? Pass a file of pairs, or a corpus such as cldr:zh-en")
    settings = _settings(given)
    try:
        _run(pairs, given, settings)
    except StopSignal as signal:
        typer.echo(f"{signal}; go on with: regard train {pairs} -o {output} --resume", err=True)
        return signal.exit_code
    return 0


def _settings(given: dict[str, Any]) -> Config:
    """Settings from, weakest first: the resumed run, the file, shortcuts, --set."""
    from regard.cli.common import nested
    from regard.config import load_settings_file, make_config, merge
    from regard.training.run import stored_config

    settings: dict[str, Any] = stored_config(given["output"]) if given["resume"] else {}
    if given["config"] is not None:
        settings = merge(settings, load_settings_file(given["config"]))
    if given["preset"] is not None and not given["resume"]:
        settings["preset"] = given["preset"]
    for option, name in _SHORTCUTS.items():
        if given[option] is not None:
            *groups, last = name.split(".")
            value: dict[str, Any] = {last: given[option]}
            for group in reversed(groups):
                value = {group: value}
            settings = merge(settings, value)
    if given["tensorboard"]:
        settings = merge(settings, {"training": {"tensorboard": True}})
    return make_config(
        merge(settings, nested(given["set_"] or [])), origin=str(given["config"] or "settings")
    )


def _run(pairs: str, given: dict[str, Any], config: Config) -> None:
    from regard.cli.common import command_line
    from regard.cli.progress import TrainingDisplay
    from regard.training.run import read_training_data, run_training

    data = read_training_data(
        pairs,
        config=config,
        target_path=given["targets"],
        dev=given["dev"],
        dev_target_path=given["dev_targets"],
        format=given["format"],
    )
    with TrainingDisplay() as display:
        run_training(
            data,
            config=config,
            folder=given["output"],
            resume=given["resume"],
            force=given["force"],
            listeners=[display],
            command=command_line(),
        )
    typer.echo(f"model in {given['output']}; try: regard predict {given['output']}", err=True)
