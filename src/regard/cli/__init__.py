"""The command line: one file a command; errors in one line, exit code 2 for bad input."""

from __future__ import annotations

import contextlib
import io
import os
import sys

__all__ = ["main"]


def _use_utf8() -> None:
    """Read arguments and write output as UTF-8, whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(io.UnsupportedOperation):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if sys.getfilesystemencoding().lower() != "utf-8":
        sys.argv = [os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv]


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return code


def main() -> None:
    """Run a command; the entry point of ``regard``."""
    _use_utf8()
    from regard.errors import RegardError

    code = 0
    try:
        from regard.cli.app import app

        code = app(standalone_mode=False) or 0
        sys.stdout.flush()
    except RegardError as error:
        code = _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): that is no error.
        sys.stdout = None  # nothing is left to flush at exit
        os._exit(0)
    except KeyboardInterrupt:
        code = _fail("stopped", 130)
    except Exception as error:
        shown = _show_usage_error(error)
        if shown is None:
            raise
        code = shown
    sys.exit(code)


def _show_usage_error(error: Exception) -> int | None:
    """Show an error of the command line itself; None if it is not one.

    Typer brings its own copy of click from some version on, so its errors are known by what they can do.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    if "Abort" in names:
        return _fail("stopped", 130)
    if "Exit" in names:
        return int(getattr(error, "exit_code", 0))
    if "ClickException" not in names:
        return None
    message = error.format_message()  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    where = f" (see `{context.command_path} --help`)" if context else ""
    return _fail(f"{message}{where}".replace("\n", " "), int(getattr(error, "exit_code", 2)))
