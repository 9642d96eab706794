from __future__ import annotations

import gzip

import numpy as np
import polars
import pytest

from regard.errors import DataError
from regard.journeys.log import MISSING
from regard.journeys.reading import ReadingOptions, read_log
from regard.journeys.synthetic import loan_log, log_to_csv

HEADER = "case id,activity,timestamp\n"


def write(folder, text, name="log.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_become_cases_in_the_order_of_the_file_and_events_in_that_of_time(tmp_path):
    path = write(
        tmp_path,
        HEADER
        + "b,x,2024-01-01 10:00\nb,z,2024-01-01 12:00\na,x,2024-01-01 09:00\nb,y,2024-01-01 11:00\na,z,2024-01-02 09:00\n",
    )
    log = read_log(path)
    assert log.case_ids == ("b", "a")
    assert log.path(0) == ("x", "y", "z")
    assert log.path(1) == ("x", "z")
    assert any("events of 1 cases were not in the order of time" in note for note in log.notes)
    assert (log.time[1] - log.time[0]) == 3_600_000


@pytest.mark.parametrize(
    "text",
    [
        "2011-10-01 19:45:13",
        "2011-10-01T19:45:13.000",
        "01.10.2011 19:45:13",
        "2011/10/01 19:45:13",
        "1.10.2011 19:45:13",
        "1317498313",
        "1317498313000",
    ],
)
def test_usual_ways_to_write_a_time_give_the_same_moment(tmp_path, text):
    path = write(tmp_path, HEADER + f"a,x,{text}\na,y,{text}\n")
    assert read_log(path).time.tolist() == [1317498313000] * 2


@pytest.mark.parametrize(
    ("text", "zone"),
    [("2011-10-01T19:45:13Z", 0), ("2011-10-01T21:45:13+02:00", 120), ("2011-10-01 14:15:13.0-0530", -330)],
)
def test_a_zone_changes_the_moment_and_is_kept_for_the_clock(tmp_path, text, zone):
    log = read_log(write(tmp_path, HEADER + f"a,x,{text}\na,y,{text}\n"))
    assert log.time.tolist() == [1317498313000] * 2
    assert log.zone.tolist() == [zone] * 2


def test_american_days_are_known_when_the_days_tell(tmp_path):
    log = read_log(write(tmp_path, HEADER + "a,x,10/01/2011 7:45 PM\na,y,10/31/2011 7:45 PM\n"))
    assert (log.time[1] - log.time[0]) == 30 * 86_400_000
    log = read_log(write(tmp_path, HEADER + "a,x,10/01/2011 7:45 PM\na,y,10/02/2011 7:45 PM\n"))
    assert any("%m/%d/%Y" in note and "--time-format" in note for note in log.notes)


def test_error_names_the_line_of_a_time_that_cannot_be_read_even_after_a_value_with_line_ends(tmp_path):
    path = write(
        tmp_path,
        'case id,activity,timestamp,text\na,x,2024-01-01 10:00,"two\nlines"\na,y,2024-01-01 11:00,\na,y,yesterday,\n',
    )
    with pytest.raises(
        DataError, match=r"log.csv, line 5: the time 'yesterday' cannot be read as %Y-%m-%d %H:%M"
    ):
        read_log(path)
    path = write(tmp_path, HEADER + "a,x,2024-01-01 10:00\na,y,\n")
    with pytest.raises(DataError, match="line 3: the time is empty"):
        read_log(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (HEADER, "there are no events"),
        (HEADER + "a,x,2024-01-01\nb,x,2024-01-02\n", "every event has the activity 'x'"),
        (HEADER + "a,x,2024-01-01\n,y,2024-01-02\n", "line 3: the case is empty"),
        (HEADER + "a,x,2024-01-01,7\n", "line 2: found 4 columns, the header has 3"),
        (
            "who,activity,timestamp\na,x,2024-01-01\n",
            "no column is known to be the case; say which with --case",
        ),
        ("case\ta\n", "found 2 columns"),
    ],
)
def test_what_is_no_log_is_one_line_that_says_what_to_do(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as raised:
        read_log(write(tmp_path, text))
    assert "\n" not in str(raised.value)


def test_missing_file_and_unknown_column_are_named(tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        read_log(tmp_path / "none.csv")
    path = write(tmp_path, HEADER + "a,x,2024-01-01\n")
    with pytest.raises(DataError, match="no column 'activty'.*did you mean 'activity'"):
        read_log(path, ReadingOptions(activity="activty"))


def test_bytes_of_another_encoding_name_their_line_and_the_option_reads_them(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes((HEADER + "a,prüfen,2024-01-01\na,y,2024-01-02\n").encode("latin-1"))
    with pytest.raises(DataError, match="line 2"):
        read_log(path)
    assert read_log(path, ReadingOptions(encoding="latin-1")).activities[0] == "prüfen"


def test_repeated_events_are_dropped_and_said_or_kept_when_asked(tmp_path):
    path = write(tmp_path, HEADER + "a,x,2024-01-01\na,y,2024-01-01\na,x,2024-01-01\nb,y,2024-01-01\n")
    log = read_log(path)
    assert log.path(0) == ("x", "y")
    assert any(note.startswith("1 events that repeat another") for note in log.notes)
    assert read_log(path, ReadingOptions(keep_duplicates=True)).path(0) == ("x", "y", "x")


def test_equal_events_that_differ_in_a_further_column_are_kept(tmp_path):
    path = write(tmp_path, "case,activity,time,who\na,x,2024-01-01,p\na,x,2024-01-01,q\na,y,2024-01-02,p\n")
    assert read_log(path).path(0) == ("x", "x", "y")


def test_rows_without_activity_and_cases_without_events_are_left_out_and_counted(tmp_path):
    log = read_log(write(tmp_path, HEADER + "a,x,2024-01-01\nb,,\na,y,2024-01-02\n"))
    assert log.case_ids == ("a",)
    assert any("1 rows without an activity" in note for note in log.notes)
    assert any("1 cases have no event" in note and "'b'" in note for note in log.notes)


def test_further_columns_are_numbers_categories_or_ids(tmp_path):
    rows = [f"c{i},{'xy'[i % 2]},2024-01-01,{i}.5,g{i % 3},id{i}" for i in range(2500)]
    path = write(tmp_path, "case,activity,time,amount,group,key\n" + "\n".join(rows) + "\n")
    log = read_log(path)
    assert [(a.name, a.is_number) for a in log.attributes] == [("amount", True), ("group", False)]
    assert log.attribute("amount").values[3] == 3.5
    assert any("'key' has over 2,000 different values" in note for note in log.notes)
    path.write_text(path.read_text() + "z,x,2024-01-01,many,g1,q\n", encoding="utf-8")
    assert read_log(path, ReadingOptions(categories=("group",), ignore=("amount", "key"))).n_events == 2501
    with pytest.raises(DataError, match="cannot be|is no number"):
        read_log(path, ReadingOptions(numbers=("amount",)))


def test_csv_gzip_parquet_and_semicolons_give_the_same_log(tmp_path):
    made = loan_log(60)
    text = log_to_csv(made)
    plain = read_log(write(tmp_path, text))
    assert [plain.path(case) for case in range(60)] == [made.path(case) for case in range(60)]
    assert np.array_equal(plain.time, made.time)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode()))
    write(tmp_path, text.replace(",", ";"), "semi.csv")
    polars.read_csv(tmp_path / "log.csv", try_parse_dates=True).write_parquet(tmp_path / "log.parquet")
    for name in ("log.csv.gz", "semi.csv", "log.parquet"):
        other = read_log(tmp_path / name)
        assert other.case_ids == plain.case_ids
        assert np.array_equal(other.activity, plain.activity)
        assert np.array_equal(other.time, plain.time)
        channel = other.attribute("channel")
        assert channel.names == plain.attribute("channel").names
        assert channel.values[0] != MISSING
        assert channel.values[1] == MISSING


def test_batches_do_not_change_the_log(tmp_path, monkeypatch):
    path = write(tmp_path, log_to_csv(loan_log(80)))
    whole = read_log(path)
    monkeypatch.setattr("regard.journeys.reading._BATCH", 37)
    pieces = read_log(path)
    assert pieces.case_ids == whole.case_ids
    assert np.array_equal(pieces.activity, whole.activity)
    assert np.array_equal(pieces.time, whole.time)


XES = """<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
<trace><string key="concept:name" value="a"/>
<event><string key="concept:name" value="x"/><date key="time:timestamp" value="2024-01-01T10:00:00.000+00:00"/></event>
<event><string key="concept:name" value="y"/><date key="time:timestamp" value="2024-01-01T11:00:00.000+00:00"/></event>
</trace></log>
"""


def test_xes_is_read_and_what_is_none_is_one_line(tmp_path):
    log = read_log(write(tmp_path, XES, "log.xes"))
    assert log.path(0) == ("x", "y")
    assert log.time.tolist() == [1704103200000, 1704106800000]
    with pytest.raises(DataError, match="XES"):
        read_log(write(tmp_path, "<html>no log</html>", "other.xes"))
