"""``regard info``: what a model is, and what this machine offers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["info"]


def info(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="A model folder; without, only the machine is described."),
    ] = None,
) -> None:
    """Describe a model and the machine: sizes, tokens, training, versions, precision."""
    from rich.table import Table

    from regard.cli.common import console

    described = _machine()
    if model is not None:
        from regard.card import describe
        from regard.folder import load_model

        described = {**describe(load_model(model, device="cpu")), **described}
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in described.items():
        table.add_row(name, value)
    console().print(table, markup=False)


def _machine() -> dict[str, str]:
    import platform

    import torch

    import regard
    from regard.device import choose_device, choose_precision
    from regard.native.library import load_library

    device = choose_device("auto")
    precision = str(choose_precision("auto", device)).removeprefix("torch.")
    units = "has" if precision == "bfloat16" else "has no"
    library = load_library()
    native = (
        f"torch only; the library is {library}" if isinstance(library, str) else f"native, {library.name}"
    )
    capability = torch.backends.cpu.get_cpu_capability()
    return {
        "installed": f"regard {regard.__version__}, torch {torch.__version__}, Python {platform.python_version()}",
        "device": f"{device} ({torch.get_num_threads()} threads, {capability})",
        "precision auto": f"{precision} (the device {units} units for bfloat16 products)",
        "decoding": native,
    }
