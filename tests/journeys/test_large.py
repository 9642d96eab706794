from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from regard.journeys.reading import read_log
from regard.journeys.synthetic import loan_log, log_to_csv

MEASURE = """
import resource, sys
from regard.journeys.reading import read_log
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seen = []
log = read_log(sys.argv[1], progress=seen.append)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(log.n_events, log.n_bytes, len(seen), (after - before) * 1024)
"""


def test_a_long_log_is_read_in_batches_into_few_bytes_an_event(tmp_path):
    text = log_to_csv(loan_log(1000))
    header, rows = text.split("\n", 1)
    path = tmp_path / "long.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write(header + "\n")
        for copy in range(40):
            file.writelines(f"{copy}-{row}\n" for row in rows.splitlines())
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        capture_output=True,
        check=True,
        env={**os.environ, "POLARS_MAX_THREADS": "1"},
    )
    n_events, n_bytes, n_batches, grown = map(int, done.stdout.split())
    assert n_events == 40 * (len(rows.splitlines()))
    assert n_bytes < 30 * n_events
    assert n_batches >= 4
    assert grown < 400 * 2**20


@pytest.mark.shared_data
def test_the_banks_log_is_read_whole(shared_data):
    log = read_log(shared_data / "bpi12w" / "bpi_12_w.csv")
    assert (log.n_cases, log.n_events, len(log.activities)) == (9658, 72413, 6)
    assert log.notes == ()
    assert (
        np.diff(log.time)[
            np.repeat(np.arange(log.n_cases), log.lengths)[1:]
            == np.repeat(np.arange(log.n_cases), log.lengths)[:-1]
        ]
        >= 0
    ).all()


@pytest.mark.shared_data
def test_readable_names_and_zones_of_a_universitys_log(shared_data):
    log = read_log(shared_data / "bpic2020" / "RequestForPayment.csv")
    assert (log.n_cases, log.n_events) == (6760, 36072)
    assert set(np.unique(log.zone)) == {60, 120}
