from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from compare.tiny import SETTINGS, tiny_plan
from regard.compare.perform import find_result
from regard.compare.worker import describe, event_of, main
from regard.config import merge
from regard.training.events import Finished, Message, Progress, Started, Validated

EVENTS = [
    Started(0, 9, 3, 1, 100, "cpu", "float32"),
    Progress(3, 9, 0, 1.5, 0.1, 2.0, 10.0, 20.0, 1.0, 2.0),
    Validated(3, 0, {"loss": 1.0}, True, 1.5),
    Message("said", warning=True),
    Finished(9, "done", 3, {"loss": 1.0}, 4.0),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_from_its_record(event):
    assert event_of(json.loads(json.dumps(event.to_record()))) == event


def described(plan):
    run = plan.runs[0]
    return describe(run, plan.data, plan.evaluation, folder=plan.run_folder(run), command="regard compare")


def test_a_worker_does_the_run_that_is_described_and_says_what_happens(tmp_path):
    plan = tiny_plan(tmp_path, variants=["last"])
    said = io.StringIO()
    assert main(io.StringIO(described(plan)), said) == 0
    events = [event_of(json.loads(line)) for line in said.getvalue().splitlines()]
    assert isinstance(events[-1], Finished)
    run = plan.runs[0]
    folder, key = plan.run_folder(run), plan.evaluation.key(plan.data)
    assert find_result(folder, key=run.key, evaluation_key=key) is not None


def test_a_worker_says_why_it_failed(tmp_path):
    wild = merge(SETTINGS, {"training": {"learning_rate": 1e30, "clip_norm": 0, "warmup_steps": 0}})
    said = io.StringIO()
    assert main(io.StringIO(described(tiny_plan(tmp_path, variants=["last"], settings=wild))), said) == 1
    last = json.loads(said.getvalue().splitlines()[-1])
    assert last["event"] == "failed"
    assert "the loss is not finite" in last["reason"]


def test_a_worker_ends_when_nobody_listens_any_more(tmp_path):
    slow = merge(SETTINGS, {"training": {"max_steps": 1_000_000, "validate_every": 20}})
    worker = subprocess.Popen(
        [sys.executable, "-m", "regard.compare.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    worker.stdin.write(described(tiny_plan(tmp_path, variants=["last"], settings=slow)).encode())
    worker.stdin.close()
    assert json.loads(worker.stdout.readline())["event"]
    worker.stdout.close()
    try:
        assert worker.wait(timeout=60) != 0
    finally:
        worker.kill()
