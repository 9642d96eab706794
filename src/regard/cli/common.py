"""What several commands share: options, and output that is whole or not there."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from regard.answering import Predictor
    from regard.seq2seq import Seq2Seq

__all__ = [
    "BatchSize",
    "Beam",
    "Device",
    "Model",
    "Precision",
    "Threads",
    "command_line",
    "console",
    "decoding_options",
    "nested",
    "open_model",
    "open_predictor",
    "read_references",
]

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder.")]
Beam = Annotated[int | None, typer.Option("--beam", help="Hypotheses kept at each step; 1 is greedy.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Sources decoded together.")]
Precision = Annotated[
    str | None,
    typer.Option(
        "--precision", help="Of the products with weights: float32, bfloat16 or int8 (see evaluate)."
    ),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:1 or mps.")]
Threads = Annotated[int, typer.Option("--threads", min=0, help="Threads of the processor, 0 for all cores.")]


def console(*, stderr: bool = False) -> Console:
    """A console that does not change what it is given."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def command_line() -> str:
    """The command as it was typed, for model cards."""
    return shlex.join(["regard", *sys.argv[1:]])


def nested(assignments: Sequence[str]) -> dict[str, Any]:
    """Turn ``model.cell=gru`` into nested settings; values are read as YAML.

    Raises:
        ConfigError: Something is not of the form NAME=VALUE.
    """
    import yaml

    settings: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set {text!r}: expected NAME=VALUE, such as model.cell=gru")
        place = settings
        *groups, last = name.split(".")
        for group in groups:
            inner = place.setdefault(group, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"--set {text!r}: {group} is a value, not a group of settings")
            place = inner
        try:
            place[last] = yaml.safe_load(value)
        except yaml.YAMLError:
            place[last] = value
    return settings


def open_model(folder: Path, *, device: str, threads: int) -> Seq2Seq:
    """Load a model with the threads asked for."""
    from regard.device import keep_freed_memory, set_threads
    from regard.folder import load_model

    set_threads(threads)
    keep_freed_memory()
    return load_model(folder, device=device)


def open_predictor(folder: Path, *, device: str, threads: int, options: dict[str, Any]) -> Predictor:
    """Load a model for predictions only: without torch where that can be."""
    from regard.native.predictor import open_native

    return open_native(folder, device=device, threads=threads, overrides=options) or open_model(
        folder, device=device, threads=threads
    )


def decoding_options(**options: Any) -> dict[str, Any]:
    """Leave out the options that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def read_references(
    model: Seq2Seq, path: str, target_path: str | None, encoding: str | None
) -> list[tuple[str, str]]:
    """Read pairs to evaluate or score: a file as in training, or a built-in corpus (its test part)."""
    from regard.training.sources import read_source

    data = model.config.data
    if encoding is not None:
        data = data.model_copy(update={"encoding": encoding})
    source = read_source(path, target_path=target_path, settings=data)
    for note in source.notes:
        sys.stderr.write(f"warning: {note}\n")
    return source.test if source.test else source.pairs
