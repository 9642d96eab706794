"""``regard evaluate``: how good a model is on pairs, by source length and with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.common import BatchSize, Beam, Device, Model, Threads, decoding_options

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
        str | None, typer.Option(help="Names with commas: bleu, chrf, ter, exact, wer, cer, per.")
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
    threads: Threads = 0,
    device: Device = "auto",
) -> None:
    """Predict the sources of a test set and compare with its targets.

    Prints each metric over all pairs and by source length, with the number of examples and the 95 %
    bootstrap interval.
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
    made = loaded.predict(
        [source for source, _ in examples], **decoding_options(beam=beam, nbest=1, batch_size=batch_size)
    )
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
    if json_file is not None:
        write_text(json_file, report.to_json())
    if plot is not None:
        report.plot(plot)
    if predictions is not None:
        rows = ((source, target, p.text) for (source, target), p in zip(examples, made, strict=True))
        write_text(predictions, "".join("\t".join(row) + "\n" for row in rows))


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
