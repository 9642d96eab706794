"""Calling the command line in this process, for errors that come before any training."""

from __future__ import annotations

from typer.testing import CliRunner

from regard.cli.app import app
from regard.errors import RegardError


def call(*arguments: str) -> tuple[int, str]:
    """Run a command; returns its exit code and its error, as `regard.cli.main` would show them."""
    result = CliRunner().invoke(app, list(arguments))
    if isinstance(result.exception, RegardError):
        return result.exception.exit_code, str(result.exception)
    return result.exit_code, result.output
