"""Running the command line as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ENV = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
C_LOCALE = {**ENV, "LC_ALL": "C", "PYTHONUTF8": "0", "LANG": "C"}


def regard(
    *arguments: object,
    stdin: bytes | str | None = None,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
):
    """Run a command; returns the finished process with bytes."""
    raw = stdin.encode("utf-8") if isinstance(stdin, str) else stdin
    return subprocess.run(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        input=raw if raw is not None else b"",
        capture_output=True,
        env=env or ENV,
        cwd=cwd,
        check=False,
        timeout=240,
    )


def start(*arguments: object, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a command with pipes."""
    return subprocess.Popen(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env or ENV,
    )


def error_line(done) -> str:
    """The one line that a failed command printed."""
    text = done.stderr.decode("utf-8")
    assert "Traceback" not in text, text
    lines = [line for line in text.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, text
    return lines[0].removeprefix("error: ")


QUICK = ["--hidden", 16, "--epochs", 2, "--minutes", 0, "--threads", 1, "--set", "model.embedding_size=8"]
