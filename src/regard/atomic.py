"""Writing files so that a kill or a full disk at any moment leaves the last good one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["sync_folder", "write_atomically", "write_text"]


def sync_folder(folder: Path) -> None:
    """Make renames and deletions in a folder durable (no effect on systems that cannot)."""
    with contextlib.suppress(OSError, PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Have ``write`` fill a temporary file beside ``path``, sync it, and rename it to ``path``.

    Raises:
        OSError: Writing failed, for instance on a full disk; ``path`` is as it was.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        write(temporary)
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes private files; a model is as readable as the user's other files.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with LF line ends, atomically."""
    write_atomically(path, lambda temporary: _write_bytes(temporary, text.encode("utf-8")))


def _write_bytes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
