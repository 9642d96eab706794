"""``regard score``: how probable given targets are."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from regard.cli.common import BatchSize, Device, Model, Precision, Threads

__all__ = ["score"]


def score(
    model: Model,
    pairs: Annotated[str, typer.Argument(metavar="PAIRS", help="Pairs as in training.")],
    targets: Annotated[
        str | None, typer.Argument(metavar="TARGETS", help="The parallel file of targets.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files.")] = None,
    batch_size: BatchSize = None,
    precision: Precision = None,
    threads: Threads = 0,
    device: Device = "auto",
) -> None:
    """Print the log-probability of each target, its tokens, source and target, divided by tabs.

    The score of a model's own output is the one that `predict --format tsv` prints for it. On standard error
    stands the perplexity of a token.
    """
    import math

    from regard.cli.common import open_model, read_references

    loaded = open_model(model, device=device, threads=threads)
    examples = read_references(loaded, pairs, targets, encoding)
    total, n_tokens = 0.0, 0
    settings = loaded.decoding(precision=precision)
    made = loaded.score(examples, batch_size=batch_size or 128, precision=settings.precision)
    for (source, target), scored in zip(examples, made, strict=True):
        total += scored.score
        n_tokens += len(scored.target_tokens)
        line = f"{scored.score:.4f}\t{len(scored.target_tokens)}\t{source}\t{target}\n"
        sys.stdout.buffer.write(line.encode("utf-8"))
    sys.stdout.buffer.flush()
    sys.stderr.write(
        f"{len(examples):,} pairs, {n_tokens:,} tokens, perplexity {math.exp(-total / n_tokens):.4f}\n"
    )
