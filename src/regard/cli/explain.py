"""``regard explain``: what the model attended to for one source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.common import Beam, Device, Model

if TYPE_CHECKING:
    from regard.explain.record import AlignmentRecord

__all__ = ["explain"]


def explain(
    model: Model,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The text to explain.")],
    target: Annotated[
        str | None, typer.Option(help="Explain this target instead of the model's own output.")
    ] = None,
    beam: Beam = None,
    png: Annotated[Path | None, typer.Option(help="Draw the alignment as PNG.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the alignment as SVG.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write tokens and weights as JSON.")
    ] = None,
    align: Annotated[bool, typer.Option("--align", help="Print the alignment as pairs: 0-0 1-2.")] = False,
    device: Device = "auto",
) -> None:
    """Show the alignment of one source with its output: which source token each output token looked at."""
    from regard.atomic import write_text
    from regard.cli.common import decoding_options, open_model
    from regard.errors import DataError

    if not source.strip():
        raise DataError("the source is blank; pass a text to explain")
    loaded = open_model(model, device=device, threads=0)
    if target is None:
        prediction = loaded.predict([source], **decoding_options(beam=beam, nbest=1))[0]
        if prediction.note:
            raise DataError(f"the source has {prediction.note}")
    else:
        prediction = loaded.score([(source, target)])[0]
    record = prediction.record()
    _print(record, align=align)
    if prediction.unknown:
        sys.stderr.write(f"not in the vocabulary: {' '.join(prediction.unknown)}\n")
    if json_file is not None:
        write_text(json_file, record.to_json())
    for path in (png, svg):
        if path is not None:
            _draw(record, path)


def _print(record: AlignmentRecord, *, align: bool) -> None:
    from regard.cli.common import console
    from regard.explain.terminal import render_alignment

    if align:
        sys.stdout.write(record.pharaoh() + "\n")
        return
    out = console()
    sys.stdout.write(f"{record.text}   (log-probability {record.score:.3f})\n\n")
    out.print(render_alignment(record, width=out.width))


def _draw(record: AlignmentRecord, path: Path) -> None:
    from regard.explain.heatmap import draw_heatmap

    hint = draw_heatmap(record, path)
    if hint:
        sys.stderr.write(f"hint: {hint}\n")
