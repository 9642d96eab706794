from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from regard.config import make_config
from regard.data.lines import iter_lines
from regard.data.readers import Pair, ReadReport, guess_format, read_pairs
from regard.errors import DataError


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def texts(path, **options):
    return [(pair.source, pair.target) for pair in read_pairs(path, **options)]


def data(**changes):
    return make_config({"data": changes}).data


def test_only_line_feeds_end_lines():
    raw = "a\u2028b\nc\u0085d\ne\u000cf\r\ng\u001ch\u000bi".encode()
    assert list(iter_lines(io.BytesIO(raw))) == [
        (1, "a\u2028b"),
        (2, "c\u0085d"),
        (3, "e\u000cf"),
        (4, "g\u001ch\u000bi"),
    ]


def test_separators_inside_a_line_stay_in_training_pairs(tmp_path):
    path = write(tmp_path, "a.tsv", "a\u2028b\tx\nc\u0085d\ty\ne\u000cf\tz\ng\u001ch\tw\n")
    assert texts(path) == [("a\u2028b", "x"), ("c\u0085d", "y"), ("e\u000cf", "z"), ("g\u001ch", "w")]


def test_byte_order_mark_and_carriage_returns_are_in_no_text(tmp_path):
    marked = write(tmp_path, "a.tsv", "\ufeffabc\tx y\r\nabd\tx z\r\n")
    plain = write(tmp_path, "b.tsv", "abc\tx y\nabd\tx z\n")
    assert texts(marked) == texts(plain) == [("abc", "x y"), ("abd", "x z")]


def test_quotes_mean_nothing(tmp_path):
    path = write(tmp_path, "a.tsv", '"a\tx\nb"\t"y\n')
    assert texts(path) == [('"a', "x"), ('b"', '"y')]


def test_error_names_the_line_of_the_short_row(tmp_path):
    path = write(tmp_path, "a.tsv", "a\tx\nb\ty\nc\nd\tz\ne\tw\tv\n")
    with pytest.raises(DataError) as caught:
        texts(path)
    assert str(caught.value) == f"{path}, line 3: found 1 column, expected 2 columns (source<TAB>target)"
    assert caught.value.line == 3
    assert caught.value.exit_code == 2


def test_error_names_the_line_of_the_long_row(tmp_path):
    path = write(tmp_path, "a.tsv", "a\tx\ne\tw\tv\n")
    with pytest.raises(DataError, match=r"line 2: found 3 columns, expected 2 columns"):
        texts(path)


def test_first_line_without_a_tab_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"line 1: found 1 column, expected 2"):
        texts(write(tmp_path, "a.tsv", "only words\n"))


def test_columns_can_be_chosen(tmp_path):
    path = write(tmp_path, "a.tsv", "1\tx\ta\n2\ty\tb\n")
    assert texts(path, settings=data(source_column=3, target_column=2)) == [("a", "x"), ("b", "y")]
    with pytest.raises(DataError, match=r"line 1: found 3 columns, expected 2 columns.*--source-column"):
        texts(path)
    with pytest.raises(DataError, match="found 3 columns, expected 4 columns .source in column 4"):
        texts(path, settings=data(source_column=4, target_column=2))


def test_pairs_with_a_blank_side_are_skipped_and_counted(tmp_path):
    path = write(tmp_path, "a.tsv", "a\tx\n\t y\n\nb\t \nc\tz\n")
    report = ReadReport()
    assert texts(path, report=report) == [("a", "x"), ("c", "z")]
    assert report.messages() == ["2 pairs with a blank side were skipped, the first in line 2"]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_empty_file_says_so(tmp_path, content):
    with pytest.raises(DataError, match="the file is empty: expected lines of source<TAB>target"):
        texts(write(tmp_path, "a.tsv", content))


def test_file_of_blank_sides_says_so(tmp_path):
    with pytest.raises(DataError, match="blank side; nothing is left"):
        texts(write(tmp_path, "a.tsv", "a\t \n"))


def test_missing_file_folder_and_damaged_archive_are_one_line(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        texts(tmp_path / "none.tsv")
    with pytest.raises(DataError, match="this is a folder"):
        texts(tmp_path)
    with pytest.raises(DataError, match="cannot be decompressed"):
        texts(write(tmp_path, "a.tsv.gz", "no archive"))


def test_byte_that_is_not_utf8_is_named_with_line_offset_and_hint(tmp_path):
    path = write(tmp_path, "a.tsv", b"a\tx\ncaf\xe9\tk a f e\n")
    with pytest.raises(
        DataError, match=r"line 2: byte 0xe9 at offset 3 of the line is not UTF-8.*--encoding"
    ):
        texts(path)
    assert texts(path, settings=data(encoding="latin-1"))[1] == ("caf\u00e9", "k a f e")


def test_unknown_encoding_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no encoding 'utf-9'"):
        texts(write(tmp_path, "a.tsv", "a\tx\n"), settings=data(encoding="utf-9"))


def test_utf16_is_read_and_its_damage_is_named(tmp_path):
    path = write(tmp_path, "a.tsv", "\u0a0a\tx\r\nb\ty\n".encode("utf-16"))
    assert texts(path, settings=data(encoding="utf-16")) == [("\u0a0a", "x"), ("b", "y")]
    cut = write(tmp_path, "b.tsv", "a\tx\n".encode("utf-16")[:-1])
    with pytest.raises(DataError, match="not utf-16"):
        texts(cut, settings=data(encoding="utf-16"))


def test_parallel_files_are_read_line_by_line(tmp_path):
    one, two = write(tmp_path, "s", "a\n\nc\n"), tmp_path / "t.gz"
    two.write_bytes(gzip.compress(b"x\ny\nz\n"))
    report = ReadReport()
    assert texts(one, target_path=two, report=report) == [("a", "x"), ("c", "z")]
    assert report.messages() == ["1 pairs with a blank side were skipped, the first in line 2"]


@pytest.mark.parametrize(
    ("left", "right", "counts"), [("a\nb\nc\n", "x\ny\n", (3, 2)), ("a\n", "x\ny\nz\n", (1, 3))]
)
def test_parallel_files_of_unequal_length_are_an_error_with_both_counts(tmp_path, left, right, counts):
    one, two = write(tmp_path, "s", left), write(tmp_path, "t", right)
    with pytest.raises(DataError, match=f"s has {counts[0]}, .*t has {counts[1]}"):
        texts(one, target_path=two)


def test_parallel_without_a_second_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="needs a second file"):
        texts(write(tmp_path, "s", "a\n"), format="parallel")


def test_json_lines_are_read_by_field(tmp_path):
    path = write(
        tmp_path, "a.jsonl", '{"source": "a\\tb", "target": "x"}\n\n{"source": "c", "target": "y"}\n'
    )
    assert list(read_pairs(path)) == [Pair("a\tb", "x", 1), Pair("c", "y", 3)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: not JSON"),
        ("[1]", "expected an object"),
        ('{"sorce": "a", "target": "b"}', "did you mean 'sorce'.*--source-field"),
        ('{"source": "a", "target": 3}', "expected text in 'target'"),
    ],
)
def test_json_errors_name_line_and_field(tmp_path, line, message):
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path, "a.jsonl", line + "\n"))


def test_format_is_guessed_from_the_name():
    assert guess_format("a.jsonl.gz") == guess_format("b.json") == "jsonl"
    assert guess_format("a.txt", "b.txt") == "parallel"
    assert guess_format("-") == guess_format("a.tsv.gz") == "tsv"


def test_no_break_spaces_stay_in_the_text(tmp_path):
    path = write(tmp_path, "a.tsv", "10\u00a0kg\tzehn\u3000Kilo\n")
    assert texts(path) == [("10\u00a0kg", "zehn\u3000Kilo")]
