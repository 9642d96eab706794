"""The errors a person can cause, each in one line that says where, what came and what to do.

The command line prints the message without a traceback and exits with the class's ``exit_code``;
everything else that escapes is a fault of regard's own and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["ConfigError", "DataError", "ModelFolderError", "RegardError", "TrainingError", "did_you_mean"]


class RegardError(Exception):
    """Base of every error that the user's input, not the program, has caused."""

    exit_code: int = 2


class ConfigError(RegardError, ValueError):
    """A setting, or a combination of settings, that cannot work."""


class DataError(RegardError, ValueError):
    """A file or text that cannot be read as what it was said to be.

    Args:
        message: What was found, what was expected and what to do.
        path: The file, or ``-`` for standard input.
        line: The line, counted from 1.
    """

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = [] if path is None else ["standard input" if path == "-" else str(path)]
        if line is not None:
            where.append(f"line {line}")
        super().__init__(f"{', '.join(where)}: {message}" if where else message)


class ModelFolderError(RegardError):
    """A model folder that is missing, damaged or of another version."""


class TrainingError(RegardError):
    """A training that cannot go on, such as a loss that is not finite."""

    exit_code = 1


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest allowed name, or an empty string."""
    close = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
