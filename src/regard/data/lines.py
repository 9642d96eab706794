"""Lines of files and pipes: only LF and CR LF end one, and each knows its number.

Text mode and `str.splitlines` also break lines at U+2028, U+0085 or a form feed, which real data contain.
"""

from __future__ import annotations

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError

__all__ = ["iter_lines", "open_bytes"]


def open_bytes(path: str | Path) -> BinaryIO:
    """Open a file for reading bytes: ``-`` is standard input, ``.gz`` is decompressed.

    Raises:
        DataError: There is no such file, or it cannot be opened.
    """
    name = str(path)
    if name == "-":
        return sys.stdin.buffer
    try:
        if name.endswith(".gz"):
            return gzip.open(name, "rb")  # type: ignore[return-value]
        return Path(name).open("rb")
    except FileNotFoundError:
        raise DataError("there is no such file", path=name) from None
    except IsADirectoryError:
        raise DataError("this is a folder, expected a file", path=name) from None
    except OSError as error:
        raise DataError(f"cannot be opened ({error.strerror})", path=name) from None


def iter_lines(
    source: str | Path | BinaryIO, *, encoding: str = "utf-8", name: str | None = None
) -> Iterator[tuple[int, str]]:
    """Yield each line's number, counted from 1, and its text without the line end, as soon as it is there.

    Args:
        source: A path, ``-`` for standard input, or an open binary stream.
        encoding: Of the bytes; a UTF-8 byte order mark is dropped.
        name: What errors call the source; the path by default.

    Raises:
        DataError: Bytes that are not of the encoding, with line and offset; a damaged gzip file.
    """
    try:
        codec = codecs.lookup(encoding)
    except LookupError:
        raise DataError(f"there is no encoding {encoding!r}; try utf-8, latin-1, gb18030 or utf-16") from None
    stream = source if not isinstance(source, str | Path) else open_bytes(source)
    shown = name or str(source if isinstance(source, str | Path) else getattr(source, "name", "input"))
    try:
        if codec.name.startswith(("utf-16", "utf-32")):
            yield from _wide_lines(stream, encoding, shown)
        else:
            yield from _byte_lines(stream, codec, shown)
    finally:
        if stream is not source and stream is not sys.stdin.buffer:
            stream.close()


def _raw_lines(stream: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        yield from iter(stream.readline, b"")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"cannot be decompressed ({error})", path=name) from None


def _byte_lines(stream: BinaryIO, codec: codecs.CodecInfo, name: str) -> Iterator[tuple[int, str]]:
    is_utf8 = codec.name == "utf-8"
    for number, raw in enumerate(_raw_lines(stream, name), 1):
        if raw.endswith(b"\n"):
            raw = raw[:-2] if raw.endswith(b"\r\n") else raw[:-1]
        if number == 1 and is_utf8:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            yield number, codec.decode(raw)[0]
        except UnicodeDecodeError as error:
            raise DataError(
                f"byte 0x{raw[error.start]:02x} at offset {error.start} of the line is not {codec.name.upper()}; "
                "convert the file or pass --encoding, such as --encoding latin-1",
                path=name,
                line=number,
            ) from None


def _wide_lines(stream: BinaryIO, encoding: str, name: str) -> Iterator[tuple[int, str]]:
    """Lines of encodings in which a line end is not the byte 0x0A."""
    text = io.TextIOWrapper(stream, encoding=encoding, newline="\n")
    number = 0
    try:
        for number, line in enumerate(text, 1):
            yield number, line.removesuffix("\n").removesuffix("\r")
    except UnicodeError as error:
        raise DataError(f"not {encoding} ({error})", path=name, line=number + 1) from None
    finally:
        text.detach()
