"""``regard evaluate``: how good a model is on pairs, by source length and with intervals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import BatchSize, Beam, Device, Model, Precision, Threads, decoding_options

if TYPE_CHECKING:
    from regard.evaluate.metrics import Metric

__all__ = ["evaluate"]


def evaluate(
    model: Model,
    pairs: Annotated[
        str,
        typer.Argument(metavar="PAIRS", help="Pairs as in training, or a built-in corpus (its test part)."),
    ],
    targets: Annotated[
        str | None, typer.Argument(metavar="TARGETS", help="The parallel file of targets.")
    ] = None,
    beam: Beam = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names with commas: bleu, chrf, ter, exact, wer, cer, per, token.")
    ] = None,
    buckets: Annotated[
        str | None, typer.Option(help="Last source length of each bucket, with commas: 5,10,20.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw quality by length: .png, .svg or .pdf.")] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Write source, reference and output as TSV.")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Encoding of the files.")] = None,
    batch_size: BatchSize = None,
    precision: Precision = None,
    threads: Threads = 0,
    device: Device = "auto",
) -> None:
    """Predict the sources of a test set and compare with its targets.

    Prints each metric over all pairs and by source length, with the number of examples and the 95 %
    bootstrap interval. With --precision bfloat16 or int8 the same is done in float32 too, and what the other
    precision costs and gains is printed.
    """
    from regard.atomic import write_text
    from regard.cli.common import console, open_model, read_references
    from regard.evaluate.metrics import make_metrics
    from regard.evaluate.report import evaluate_outputs
    from regard.figures import check_format

    if plot is not None:
        check_format(plot)
    edges = _edges(buckets)
    loaded = open_model(model, device=device, threads=threads)
    examples = read_references(loaded, pairs, targets, encoding)
    references = [target for _, target in examples]
    chosen = make_metrics(
        [name.strip() for name in metrics.split(",")] if metrics else None,
        symbol_target=loaded.target_tokenizer.kind == "space",
        references=references,
    )
    sources = [source for source, _ in examples]
    options = decoding_options(beam=beam, nbest=1, batch_size=batch_size)
    began = time.perf_counter()
    made = loaded.predict(sources, precision=precision, **options)
    seconds = time.perf_counter() - began
    report = evaluate_outputs(
        [max(0, len(prediction.source_tokens) - 1) for prediction in made],
        [prediction.text for prediction in made],
        references,
        metrics=chosen,
        edges=edges,
    )
    out = console()
    out.print(report.table(), soft_wrap=False)
    for signature in report.signatures.values():
        if "|" in signature:
            out.print(signature, style="dim", markup=False)
    if precision not in (None, "float32"):
        began = time.perf_counter()
        exact = loaded.predict(sources, precision="float32", **options)
        cost = _cost([p.text for p in made], [p.text for p in exact], references, chosen)
        took = f"{seconds:.1f} s against {time.perf_counter() - began:.1f} s"
        out.print(f"{precision} against float32: {cost}; {took}", markup=False)
    if json_file is not None:
        write_text(json_file, report.to_json())
    if plot is not None:
        report.plot(plot)
    if predictions is not None:
        rows = ((source, target, p.text) for (source, target), p in zip(examples, made, strict=True))
        write_text(predictions, "".join("\t".join(row) + "\n" for row in rows))


def _cost(outputs: list[str], exact: list[str], references: list[str], metrics: list[Metric]) -> str:
    """What outputs of a lower precision are worth beside the exact ones."""
    values = [
        f"{metric.label} {metric.score(outputs, references):.2f} against {metric.score(exact, references):.2f}"
        for metric in metrics
    ]
    n_changed = sum(one != other for one, other in zip(outputs, exact, strict=True))
    return f"{', '.join(values)}; {n_changed:,} of {len(outputs):,} outputs differ"


def _edges(buckets: str | None) -> list[int] | None:
    from regard.errors import ConfigError

    if buckets is None:
        return None
    try:
        edges = [int(part) for part in buckets.split(",")]
    except ValueError:
        edges = []
    if not edges or edges != sorted(edges) or edges[0] < 1:
        raise ConfigError(f"--buckets {buckets!r}: expected rising lengths with commas, such as 5,10,20")
    return edges
