"""``regard data``: list, look at and write out the corpora that are built in."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import DataError

if TYPE_CHECKING:
    from regard.data.corpora import Corpus

app = typer.Typer(name="data", help="List, look at and write out the built-in corpora.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="A corpus of `regard data list`, as cldr:zh-en.")]
_Size = Annotated[int | None, typer.Option("--size", min=1, help="Training pairs (default: the corpus's).")]
_Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the drawing and the split (default 1).")
]
_Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-O", metavar="KEY=VALUE", help="An option of the corpus, as items=1-12."),
]


def _use_utf8() -> None:
    """Print UTF-8 whatever the locale; corpora are full of letters that ASCII lacks."""
    with contextlib.suppress(io.UnsupportedOperation):
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")


def _load(name: str, *, size: int | None, seed: int | None, options: list[str] | None) -> Corpus:
    from regard.data.corpora import load_corpus

    values = {}
    for text in options or []:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise DataError(f"--option {text!r} is not of the form KEY=VALUE, such as items=1-12")
        values[key] = value
    return load_corpus(name, size=size, seed=seed, **values)


@app.command("list")
def list_corpora() -> None:
    """List the corpora, their options, licences and what they need."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from regard.data.corpora import CORPORA, corpus_source

    _use_utf8()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("name", "what", "options", "licence", "needs"):
        table.add_column(title, overflow="fold", no_wrap=title == "name")
    for name in CORPORA.names():
        source = corpus_source(name)
        needs = escape(f"regard[{source.extra}]") if source.extra else "-"
        table.add_row(source.usage, source.what, ", ".join(source.options) or "-", source.licence, needs)
    Console().print(table)


@app.command("show")
def show_corpus(
    name: _Name,
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Pairs to print.")] = 10,
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "train",
    size: _Size = None,
    seed: _Seed = None,
    option: _Options = None,
) -> None:
    """Print what a corpus holds, its sizes, and some pairs (source, tab, target)."""
    _use_utf8()
    if split not in ("train", "dev", "test"):
        raise DataError(f"--split is {split!r}, but train, dev or test was expected")
    corpus = _load(name, size=size, seed=seed, options=option)
    typer.echo(f"{corpus.name}\n{corpus.description}\nLicence: {corpus.licence}\n{_sizes(corpus)}\n")
    for source, target in corpus.splits[split][:number]:
        typer.echo(f"{source}\t{target}")


@app.command("write")
def write_corpus(
    name: _Name,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder to write to.")],
    size: _Size = None,
    seed: _Seed = None,
    option: _Options = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write train.tsv, dev.tsv, test.tsv and a README.md with the licence."""
    _use_utf8()
    names = ["train.tsv", "dev.tsv", "test.tsv", "README.md"]
    _check_folder(output, names, force=force)
    corpus = _load(name, size=size, seed=seed, options=option)
    texts = {f"{split}.tsv": _as_tsv(pairs) for split, pairs in corpus.splits.items()}
    arguments = ["regard", "data", "write", name, "-o", output.name]
    arguments += ["--seed", str(seed)] if seed is not None else []
    arguments += ["--size", str(size)] if size is not None else []
    arguments += [word for text in option or [] for word in ("-O", text)]
    texts["README.md"] = _readme(corpus, command=shlex.join(arguments))
    _write_files(output, texts)
    typer.echo(f"{output}: {_sizes(corpus)}")


def _check_folder(folder: Path, names: list[str], *, force: bool) -> None:
    """Refuse before any work what would fail or overwrite after it."""
    if folder.exists() and not folder.is_dir():
        raise DataError("is not a folder; give -o the name of a folder", path=str(folder))
    present = [name for name in names if (folder / name).exists()]
    if present and not force:
        raise DataError(
            f"{', '.join(present)} would be overwritten; choose another folder or add --force",
            path=str(folder),
        )


def _write_files(folder: Path, texts: dict[str, str]) -> None:
    from regard.atomic import write_text

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_text(folder / name, text)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path=str(folder)) from None


def _as_tsv(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in pairs)


def _sizes(corpus: Corpus) -> str:
    return ", ".join(f"{len(pairs):,} {split}" for split, pairs in corpus.splits.items()) + " pairs"


def _readme(corpus: Corpus, *, command: str) -> str:
    return (
        f"# {corpus.name}\n\n{corpus.description}\n\n"
        f"- Pairs: {_sizes(corpus)}, one a line: source, tab, target (UTF-8)\n"
        f"- Licence: {corpus.licence}\n- Made by: `{command}`\n"
    )
