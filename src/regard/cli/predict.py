"""``regard predict``: lines in, as many lines out, in order."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from regard.cli.common import BatchSize, Beam, Device, Model, Precision, Threads, decoding_options

if TYPE_CHECKING:
    from regard.prediction import Prediction

__all__ = ["predict"]

_Format = Literal["text", "tsv", "jsonl"]


def predict(
    model: Model,
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="Sources, one a line; - for standard input.")
    ] = "-",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; standard output by default.")
    ] = None,
    beam: Beam = None,
    nbest: Annotated[int | None, typer.Option(help="Hypotheses for each source; at most the beam.")] = None,
    format: Annotated[
        str,
        typer.Option(
            help="text (outputs, n-best divided by tabs), tsv (source, then output and score of each hypothesis) "
            "or jsonl (everything)."
        ),
    ] = "text",
    attention: Annotated[
        bool, typer.Option("--attention", help="With jsonl: tokens and weights too.")
    ] = False,
    length_penalty: Annotated[
        float | None, typer.Option(help="Exponent of the length normalisation.")
    ] = None,
    coverage_penalty: Annotated[float | None, typer.Option(help="Factor of the coverage penalty.")] = None,
    max_len: Annotated[int | None, typer.Option(help="Longest output in tokens.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw at random instead of searching.")] = False,
    temperature: Annotated[float | None, typer.Option(help="With --sample: above 1 is more random.")] = None,
    top_k: Annotated[int | None, typer.Option(help="With --sample: among the k likeliest tokens.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="With --sample: among tokens of this probability.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="With --sample.")] = None,
    copy_unknown: Annotated[
        bool,
        typer.Option("--copy-unknown", help="Replace unknown output tokens by the source they attend to."),
    ] = False,
    long_inputs: Annotated[
        str | None, typer.Option(help="Inputs over the limit: error, truncate or skip (an empty line).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the input.")] = None,
    batch_size: BatchSize = None,
    precision: Precision = None,
    threads: Threads = 0,
    device: Device = "auto",
    engine: Annotated[
        str | None,
        typer.Option(
            envvar="REGARD_ENGINE",
            help="auto (the compiled library where it can, else torch), native or torch.",
        ),
    ] = None,
) -> None:
    """Predict the target of each source.

    N lines in give N lines out, in order; a blank line gives a blank line. Lines that are there together are
    answered together, and a line that comes alone is answered at once.
    """
    from regard.cli.common import open_predictor
    from regard.data.lines import iter_lines
    from regard.errors import ConfigError

    if format not in ("text", "tsv", "jsonl"):
        raise ConfigError(f"--format {format!r} is none of text, tsv, jsonl")
    options = decoding_options(
        beam=beam,
        nbest=nbest,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        max_len=max_len,
        sample=sample or None,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed,
        copy_unknown=copy_unknown or None,
        long_inputs=long_inputs,
        batch_size=batch_size,
        precision=precision,
    )
    if engine is not None:
        os.environ["REGARD_ENGINE"] = engine
    loaded = open_predictor(model, device=device, threads=threads, options=options)
    settings = loaded.decoding(**options)
    lines = iter_lines(input, encoding=encoding or loaded.config.data.encoding)
    with _opened(output) as out:
        for number, prediction in loaded.predict_lines(lines, settings=settings, name=input):
            if prediction.note:
                sys.stderr.write(f"warning: line {number}: {prediction.note}\n")
            out.write(render(prediction, format=format, attention=attention).encode("utf-8") + b"\n")
            out.flush()


def render(prediction: Prediction, *, format: str, attention: bool = False) -> str:
    """Write a prediction as one line."""
    if format == "jsonl":
        return json.dumps(prediction.to_json(attention=attention), ensure_ascii=False)
    hypotheses = prediction.alternatives or (prediction,)
    if format == "text":
        return "\t".join(_one_field(hypothesis.text) for hypothesis in hypotheses)
    fields = [prediction.source.replace("\t", " ")]
    for hypothesis in hypotheses:
        fields += [_one_field(hypothesis.text), f"{hypothesis.score:.4f}"]
    return "\t".join(fields)


def _one_field(text: str) -> str:
    """A model may have learnt line ends and tabs as characters; in a line they would be others."""
    return text.replace("\t", " ").replace("\n", " ")


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    from regard.errors import ConfigError

    try:
        file = path.open("wb")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
    with file:
        yield file
