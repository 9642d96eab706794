"""``regard settings``: every setting with its default and its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

__all__ = ["list_settings", "settings"]


def list_settings(kind: Any, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, default and meaning of each setting of a group, groups within it too."""
    from pydantic import BaseModel

    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from list_settings(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(field.default), " ".join((field.description or "").split())


def settings(
    like: Annotated[str, typer.Argument(metavar="TEXT", help="Only settings with this in their name.")] = "",
    preset: Annotated[str | None, typer.Option(help="Print a preset's settings as JSON instead.")] = None,
) -> None:
    """List all settings, for `regard train --set NAME=VALUE` and --config FILE."""
    from regard.config import Config, make_config

    if preset is not None:
        typer.echo(make_config(preset=preset).to_json(), nl=False)
        return
    from rich.table import Table

    from regard.cli.common import console

    table = Table(box=None, pad_edge=False)
    for title in ("setting", "default", "meaning"):
        table.add_column(title, overflow="fold")
    for row in list_settings(Config):
        if like in row[0]:
            table.add_row(*row)
    console().print(table, markup=False)
