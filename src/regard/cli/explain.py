"""``regard explain``: what the model did with one source, in the terminal, as pictures, numbers and a page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.common import Beam, Device, Model

if TYPE_CHECKING:
    from regard.explain.check import Faithfulness
    from regard.explain.decoding import DecodingRecord
    from regard.explain.record import AlignmentRecord

__all__ = ["explain"]

_Hypothesis = Annotated[
    int,
    typer.Option(min=1, help="The hypothesis to show and draw, 1 being the best; --json and --npz have all."),
]
_Words = Annotated[
    bool,
    typer.Option(
        "--words", help="Show words: weights summed over source pieces, averaged over target pieces."
    ),
]
_Html = Annotated[
    Path | None, typer.Option(help="Write a page, one file, in which the decoding is played step by step.")
]
_Json = Annotated[
    Path | None, typer.Option("--json", help="Write the whole record as JSON: hypotheses, steps, heads.")
]
_Vectors = Annotated[
    bool,
    typer.Option(
        "--vectors",
        help="With --json and --npz: the vectors themselves (encoder states; query, state, context and output of "
        "each step), not only their lengths. At the default size the JSON is 20 times as large, the arrays 10 times.",
    ),
]
_Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Erase source tokens, the most attended first, and compare with erasing random ones: does the "
        "output depend on what it attends to?",
    ),
]


@dataclass(frozen=True)
class _Files:
    """What is to be written."""

    html: Path | None
    png: Path | None
    svg: Path | None
    gif: Path | None
    json: Path | None
    npz: Path | None


def explain(
    model: Model,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The text to explain.")],
    target: Annotated[
        str | None, typer.Option(help="Explain this target instead of the model's own output.")
    ] = None,
    beam: Beam = None,
    hypothesis: _Hypothesis = 1,
    head: Annotated[
        int | None, typer.Option(min=1, help="Show this head of the attention instead of their mean.")
    ] = None,
    words: _Words = False,
    html: _Html = None,
    png: Annotated[Path | None, typer.Option(help="Draw the alignment as PNG.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the alignment as SVG.")] = None,
    gif: Annotated[Path | None, typer.Option(help="Draw the decoding step by step as animated GIF.")] = None,
    json_file: _Json = None,
    npz: Annotated[Path | None, typer.Option(help="Write the whole record as NumPy arrays.")] = None,
    vectors: _Vectors = False,
    top: Annotated[int, typer.Option(min=1, help="Candidates to record at each step.")] = 8,
    align: Annotated[bool, typer.Option("--align", help="Print the alignment as pairs: 0-0 1-2.")] = False,
    check: _Check = False,
    draws: Annotated[int, typer.Option(min=1, help="With --check: random orders to compare with.")] = 20,
    seed: Annotated[int, typer.Option(help="With --check: of the random orders.")] = 1,
    device: Device = "auto",
) -> None:
    """Show what the model did with one source: which source tokens each output token looked at, step by step.

    Every hypothesis of the beam is recorded; with --target the given one alone. It is always said which of the
    two is shown.
    """
    from regard.cli.common import decoding_options, open_model
    from regard.errors import DataError
    from regard.explain.trace import trace

    if not source.strip():
        raise DataError("the source is blank; pass a text to explain")
    files = _Files(html, png, svg, gif, json_file, npz)
    _check_files(files)
    loaded = open_model(model, device=device, threads=0)
    record = trace(loaded, source, target=target, top=top, vectors=vectors, **decoding_options(beam=beam))
    place, head_place = _place(record, hypothesis), None if head is None else head - 1
    record.check_head(head_place)
    if record.unknown:
        sys.stderr.write(f"not in the vocabulary: {' '.join(record.unknown)}\n")
    wants_weights = bool(png or svg or align or check or not any(vars(files).values()))
    alignment = None
    if record.has_attention or wants_weights:
        alignment = _alignment(record, place, head=head_place, words=words)
    _print(record, place, alignment, align=align)
    _write(record, files, place, head=head_place, words=words, alignment=alignment)
    if check:
        from regard.explain.trace import check as run_check

        found = run_check(loaded, record, hypothesis=place, n_draws=draws, seed=seed)
        _print_check(found, kind=record.source_kind)


def _check_files(files: _Files) -> None:
    """Refuse what cannot be written before anything is computed."""
    from regard.errors import ConfigError

    for kind, path in vars(files).items():
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            raise ConfigError(f"{path}: the folder {path.parent} does not exist; make it, or name another")
        if path.is_dir():
            raise ConfigError(f"{path}: is a folder; name a file, such as {path / f'explained.{kind}'}")
        if kind in ("png", "svg", "gif", "npz") and path.suffix.lower() != f".{kind}":
            raise ConfigError(
                f"{path}: what --{kind} writes ends in .{kind}, not in {path.suffix or 'nothing'!r}"
            )


def _place(record: DecodingRecord, hypothesis: int) -> int:
    from regard.errors import ConfigError

    n = len(record.hypotheses)
    if hypothesis > n:
        raise ConfigError(f"--hypothesis {hypothesis}: there are {n}; take a lower number or a larger --beam")
    return hypothesis - 1


def _alignment(record: DecodingRecord, place: int, *, head: int | None, words: bool) -> AlignmentRecord:
    alignment = record.alignment(place, head=head)
    if not words:
        return alignment
    from regard.explain.words import by_words

    return by_words(alignment, source_kind=record.source_kind, target_kind=record.target_kind)


def _print(record: DecodingRecord, place: int, alignment: AlignmentRecord | None, *, align: bool) -> None:
    from regard.cli.common import console
    from regard.explain.terminal import render_alignment

    if align and alignment is not None:
        sys.stdout.write(alignment.pharaoh() + "\n")
        return
    shown = record.hypotheses[place]
    what = "the model's own output" if shown.origin == "output" else "a given target"
    number = f", hypothesis {place + 1} of {len(record.hypotheses)}" if len(record.hypotheses) > 1 else ""
    sys.stdout.write(f"{shown.text}   ({what}{number}, log-probability {shown.score:.3f})\n")
    if alignment is None:
        size = 0 if record.vector is None else len(record.vector)
        sys.stdout.write(f"the decoder sees the source through one vector of {size} numbers\n")
        return
    out = console()
    sys.stdout.write("\n")
    out.print(render_alignment(alignment, width=out.width))


def _write(
    record: DecodingRecord,
    files: _Files,
    place: int,
    *,
    head: int | None,
    words: bool,
    alignment: AlignmentRecord | None,
) -> None:
    from regard.atomic import write_text
    from regard.explain.serial import to_json, write_npz

    if files.json is not None:
        write_text(files.json, to_json(record))
    if files.npz is not None:
        write_npz(record, files.npz)
    if files.html is not None:
        from regard.explain.page import write_page

        options: dict[str, Any] = {"hypothesis": place, "words": words}
        write_page(record, files.html, options=options if head is None else {**options, "head": head})
    for path in (files.png, files.svg):
        if path is not None and alignment is not None:
            from regard.explain.heatmap import draw_heatmap

            _hint(draw_heatmap(alignment, path))
    if files.gif is not None:
        from regard.explain.film import draw_film

        _hint(draw_film(record, files.gif, hypothesis=place, head=head))


def _hint(hint: str) -> None:
    if hint:
        sys.stderr.write(f"hint: {hint}\n")


def _print_check(found: Faithfulness, *, kind: str) -> None:
    from rich.table import Table

    from regard.cli.common import console
    from regard.explain.record import shown_token

    table = Table(
        "erased", "most attended", "fall", "random: mean fall",
        title=f"log-probability {found.log_prob:.3f}, and how far it falls", title_justify="left",
    )  # fmt: skip
    rows = zip(found.erased, found.tokens, found.attended.tolist(), found.random.tolist(), strict=True)
    for number, (place, token, attended, random) in enumerate(rows, 1):
        table.add_row(
            str(number),
            f"+ {shown_token(token, kind)} (token {place + 1})",
            f"{attended:.2f}",
            f"{random:.2f}",
        )
    console().print(table, markup=False)
    sys.stdout.write(found.sentence() + "\n")
