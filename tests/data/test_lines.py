"""Lines: encodings, pipes and damage beyond what `test_reading` covers."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys

import pytest

from regard.data.lines import iter_lines
from regard.errors import DataError


def lines_of(raw: bytes, encoding: str = "utf-8") -> list[tuple[int, str]]:
    return list(iter_lines(io.BytesIO(raw), encoding=encoding, name="given"))


def test_carriage_return_alone_ends_no_line():
    assert lines_of(b"a\rb\r\r\nc\r") == [(1, "a\rb\r"), (2, "c\r")]


def test_byte_order_mark_is_dropped_in_the_first_line_only():
    raw = "\ufeffa\n\ufeffb\n"
    for encoding in ("utf-8", "utf-8-sig"):
        assert lines_of(raw.encode("utf-8"), encoding) == [(1, "a"), (2, "\ufeffb")]
    for encoding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        assert lines_of(raw.encode(encoding), encoding) == [(1, "a"), (2, "\ufeffb")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "cp037", "gb18030", "shift_jis"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_lines_of_other_encodings_end_where_their_line_feeds_are(encoding, end):
    raw = ("ab\n\ncd" + end).encode(encoding)
    assert lines_of(raw, encoding) == [(1, "ab"), (2, ""), (3, "cd")]


def test_offset_of_a_bad_byte_counts_the_byte_order_mark():
    with pytest.raises(DataError, match=r"given, line 1: byte 0xe9 at offset 6 of the line is not UTF-8"):
        lines_of(b"\xef\xbb\xbfcaf\xe9\n")


def test_good_lines_come_before_the_error_of_a_bad_one():
    read = iter_lines(io.BytesIO(b"a\nb\nc\xff\n"), name="given")
    assert [next(read), next(read)] == [(1, "a"), (2, "b")]
    with pytest.raises(DataError, match="line 3: byte 0xff at offset 1"):
        next(read)


def test_bad_utf16_names_the_line_it_stands_in():
    raw = "a\nb\n".encode("utf-16-le") + b"\x00\xdc\n\x00"
    read = iter_lines(io.BytesIO(raw), encoding="utf-16-le", name="given")
    assert [next(read), next(read)] == [(1, "a"), (2, "b")]
    with pytest.raises(DataError, match="given, line 3: not utf-16-le") as caught:
        next(read)
    assert caught.value.line == 3


def test_line_longer_than_a_chunk_stays_whole_in_utf16():
    text = "\u4e00b" * 70_001
    assert lines_of(f"{text}\nz".encode("utf-16"), "utf-16") == [(1, text), (2, "z")]


@pytest.mark.parametrize("encoding", ["hex", "rot13", "utf-9", "\0"])
def test_what_is_no_text_encoding_is_refused(encoding):
    with pytest.raises(DataError, match="there is no encoding"):
        lines_of(b"6162\n", encoding)


def test_codec_without_byte_positions_still_names_the_line():
    with pytest.raises(DataError, match=r"line 2: the line .* is not IDNA"):
        lines_of(b"a\nxn--\xe9\n", "idna")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_archive_that_ends_too_soon_is_named(tmp_path, encoding):
    rng = random.Random(7)
    text = "".join(f"{rng.random()}\n" for _ in range(997))
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(text.encode(encoding))[:-701])
    with pytest.raises(DataError, match=r"a\.gz: cannot be decompressed"):
        list(iter_lines(path, encoding=encoding))


def test_bytes_that_cannot_begin_utf16_are_an_error_of_line_one():
    for raw in (b"plain text\n", b"\xe7Y\xd8\xae[\xc7\x9fu\x00\xdc"):
        with pytest.raises(DataError, match=r"given, line 1: not utf-16 \("):
            lines_of(raw, "utf-16")


class Failing(io.RawIOBase):
    """A disk that gives out."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        raise OSError(5, "Input/output error")


def test_failing_disk_is_one_line():
    with pytest.raises(DataError, match=r"^given: cannot be read \(Input/output error\)$"):
        list(iter_lines(io.BufferedReader(Failing()), name="given"))


def test_file_that_may_not_be_opened_is_one_line(tmp_path):
    looped = tmp_path / "loop"
    looped.symlink_to(looped)
    with pytest.raises(DataError, match="cannot be opened"):
        list(iter_lines(looped))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_line_of_an_open_pipe_comes_at_once(encoding):
    """A line is answered before the writer goes on; a reader that waits for more would hang here."""
    code = (
        "from regard.data.lines import iter_lines\n"
        f"for number, line in iter_lines('-', encoding={encoding!r}): print(number, line.upper(), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for number, word in enumerate(["one", "two", "three"], 1):
            child.stdin.write(f"{word}\n".encode(encoding))
            child.stdin.flush()
            assert child.stdout.readline().split() == [str(number).encode(), word.upper().encode()]
        child.stdin.close()
    assert child.returncode == 0


def test_given_stream_is_left_open_and_a_path_is_closed(tmp_path):
    stream = io.BytesIO(b"a\nb\n")
    assert next(iter_lines(stream)) == (1, "a")
    assert not stream.closed
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nb\n")
    read = iter_lines(path)
    next(read)
    read.close()  # an unclosed file would be a ResourceWarning, and those are errors
