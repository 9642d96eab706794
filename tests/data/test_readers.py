"""Readers: mistakes in JSON lines and parallel files beyond what `test_reading` covers."""

from __future__ import annotations

import pytest

from regard.config import DataSettings
from regard.data.readers import ReadReport, read_pairs
from regard.errors import DataError


def read_all(folder, content: str, *, name: str = "a.jsonl", **options):
    path = folder / name
    path.write_bytes(content.encode("utf-8"))
    return [pair[:2] for pair in read_pairs(path, **options)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": 3, "target": "b"}', "found int 3, expected text in 'source'"),
        ('{"source": null, "target": "b"}', "found NoneType None, expected text in 'source'"),
        ("[" * 100_000, "recursion"),
        ('{"source": "\\ud800", "target": "b"}', "half of a surrogate pair, expected text in 'source'"),
        ('{"source": ', "not JSON .*; each line holds one whole object"),
        ("{}", "found the fields none, expected text in 'source'"),
        ("3", "expected an object with the field 'source'"),
    ],
)
def test_json_mistake_names_its_line_and_its_kind(tmp_path, line, message):
    with pytest.raises(DataError, match=f"line 2: .*{message}") as caught:
        read_all(tmp_path, '{"source": "a", "target": "b"}\n' + line + "\n")
    assert "\n" not in str(caught.value)
    assert caught.value.line == 2


def test_field_of_the_wrong_kind_is_not_called_misspelt(tmp_path):
    with pytest.raises(DataError) as caught:
        read_all(tmp_path, '{"source": 3, "target": "b"}\n')
    assert "did you mean" not in str(caught.value)


def test_surrogate_pair_in_json_is_one_character(tmp_path):
    assert read_all(tmp_path, '{"source": "\\ud83d\\ude00", "target": "b"}\n') == [("\U0001f600", "b")]


def test_fields_can_be_chosen(tmp_path):
    settings = DataSettings(source_field="zh", target_field="en")
    assert read_all(tmp_path, '{"en": "x", "zh": "a"}\n', settings=settings) == [("a", "x")]


def test_empty_file_says_what_its_format_holds(tmp_path):
    with pytest.raises(DataError, match="empty: expected JSON lines with 'source' and 'target'"):
        read_all(tmp_path, "")
    other = tmp_path / "other"
    other.write_bytes(b"")
    with pytest.raises(DataError, match="empty: expected one source a line"):
        read_all(tmp_path, "", name="a", target_path=other)


def test_standard_input_cannot_hold_both_sides():
    with pytest.raises(DataError, match="standard input: holds the sources or the targets, not both"):
        list(read_pairs("-", target_path="-"))


def test_report_counts_what_was_read_and_names_the_first_blank(tmp_path):
    report = ReadReport()
    other = tmp_path / "other"
    other.write_bytes(b"x\n \nz\n\n")
    assert read_all(tmp_path, "a\nb\n\u3000\nd\n", name="a", target_path=other, report=report) == [("a", "x")]
    assert (report.n_pairs, report.n_blank, report.first_blank) == (1, 3, 2)
    assert ReadReport().messages() == []
