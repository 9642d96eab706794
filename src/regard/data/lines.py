"""Lines of files and pipes: only LF and CR LF end one, and each knows its number.

Text mode and `str.splitlines` also break lines at U+2028, U+0085 or a form feed, which real data contain.
"""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError

__all__ = ["iter_lines", "open_bytes"]

_CHUNK = 1 << 16


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
        encoding: Of the bytes; a byte order mark is dropped.
        name: What errors call the source; the path by default.

    Raises:
        DataError: Bytes that are not of the encoding, with line and offset; a damaged gzip file.
    """
    codec, newline = _codec(encoding)
    stream = source if not isinstance(source, str | Path) else open_bytes(source)
    shown = name or str(source if isinstance(source, str | Path) else getattr(source, "name", "input"))
    try:
        yield from (
            _byte_lines(stream, codec, shown) if newline == b"\n" else _wide_lines(stream, codec, shown)
        )
    finally:
        if stream is not source and stream is not sys.stdin.buffer:
            stream.close()


def _codec(encoding: str) -> tuple[codecs.CodecInfo, bytes]:
    """Return the codec and its bytes for a line feed."""
    try:
        codec = codecs.lookup(encoding)
        if codec.name == "utf-8-sig":  # the mark is dropped in any case
            codec = codecs.lookup("utf-8")
        return codec, "\n".encode(codec.name)
    except (LookupError, ValueError):  # a ValueError for a name with a null character
        raise DataError(f"there is no encoding {encoding!r}; try utf-8, latin-1, gb18030 or utf-16") from None


def _guarded(read: Callable[[], bytes], name: str) -> Iterator[bytes]:
    """Read until there is nothing more, naming the file where that fails."""
    try:
        yield from iter(read, b"")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"cannot be decompressed ({error})", path=name) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path=name) from None


def _byte_lines(stream: BinaryIO, codec: codecs.CodecInfo, name: str) -> Iterator[tuple[int, str]]:
    """Lines of encodings in which the byte 0x0A is a line end and nothing else, as UTF-8."""
    is_utf8 = codec.name == "utf-8"
    for number, whole in enumerate(_guarded(stream.readline, name), 1):
        raw = whole[:-1].removesuffix(b"\r") if whole.endswith(b"\n") else whole
        if number == 1 and is_utf8:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            yield number, codec.decode(raw)[0]
        except UnicodeError as error:
            message = (
                f"{_what_is_not(error, raw, whole)} {codec.name.upper()}; convert the file or pass --encoding"
            )
            raise DataError(f"{message}, such as --encoding latin-1", path=name, line=number) from None


def _what_is_not(error: UnicodeError, raw: bytes, whole: bytes) -> str:
    if not isinstance(error, UnicodeDecodeError) or error.object != raw:
        return f"the line ({error}) is not"
    skipped = whole.index(raw)  # a byte order mark
    return f"byte 0x{raw[error.start]:02x} at offset {skipped + error.start} of the line is not"


def _wide_lines(stream: BinaryIO, codec: codecs.CodecInfo, name: str) -> Iterator[tuple[int, str]]:
    """Lines of encodings in which a line end is not the byte 0x0A, as UTF-16 or EBCDIC."""
    decoder = codecs.getincrementaldecoder(codec.name)()
    some = getattr(stream, "read1", stream.read)  # read1 gives what is there and does not wait for more
    number, rest = 1, ""
    for chunk in chain(_guarded(lambda: some(_CHUNK), name), [b""]):
        text, error = _decode_sound(decoder, chunk)
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield number, line.removesuffix("\r").removeprefix("\ufeff" if number == 1 else "")
            number += 1
        if error is not None:
            message = f"not {codec.name} ({error}); convert the file or pass another --encoding"
            raise DataError(message, path=name, line=number) from None
    if rest:
        yield number, rest.removeprefix("\ufeff" if number == 1 else "")


def _decode_sound(decoder: codecs.IncrementalDecoder, chunk: bytes) -> tuple[str, UnicodeError | None]:
    """Decode as far as the bytes are sound, so that an error can name its own line; an empty chunk is the end."""
    state = decoder.getstate()
    try:
        return decoder.decode(chunk, not chunk), None
    except UnicodeError as error:
        decoder.setstate(state)
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        try:
            return decoder.decode(chunk[: max(0, start - len(state[0]))]), error
        except UnicodeError:  # UTF-16 without its mark: no byte is sound
            return "", error
