from __future__ import annotations

import json
import signal
import time

import pytest

from cli.commands import error_line, regard, start
from cli.compare_calls import call
from regard.cli.compare import parse_minutes
from regard.errors import ConfigError

TINY = [
    *("--seeds", 1, "--budget", 0, "--hidden", 12, "--threads", 1),
    *("--set", "model.embedding_size=6", "--set", "training.validate_every=3"),
]
CORPUS = "copy:2-6?size=120&symbols=4"


@pytest.mark.parametrize(
    ("text", "minutes"), [("10m", 10), ("90s", 1.5), ("1h", 60), ("7", 7), ("0.5m", 0.5), ("0", 0)]
)
def test_budget_is_a_time(text, minutes):
    assert parse_minutes(text) == pytest.approx(minutes)


def test_what_is_no_time_says_what_is():
    with pytest.raises(ConfigError, match="--budget 'soon': expected a time such as 10m, 90s or 1h"):
        parse_minutes("soon")


def test_command_compares_and_does_not_repeat_what_is_done(tmp_path):
    arguments = ["compare", CORPUS, "-o", tmp_path / "out", "--max-steps", 6, *TINY]
    done = regard(*arguments, "--variants", "last,attention-dot")
    assert done.returncode == 0, done.stderr.decode()
    shown, said = done.stdout.decode(), done.stderr.decode()
    assert "token accuracy by source length" in shown
    assert "run 1 of 2: last, hidden" in said
    assert "found" not in said
    record = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert [variant["name"] for variant in record["variants"]] == ["last", "attention-dot"]
    more = regard(*arguments, "--variants", "last,attention-dot,projected", "--parallel", 2)
    assert more.returncode == 0, more.stderr.decode()
    said = more.stderr.decode()
    assert said.count("found: ") == 2
    assert "run 3 of 3: projected" in said
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("compare.json", "compare.md", "costs.png", "curves.png", "length-exact.png", "length-token.png"),
        "runs",
    ]
    run = tmp_path / "out" / record["runs"][0]["folder"]
    assert regard("predict", run, "--threads", 1, stdin="a b\n").returncode == 0


def test_budget_in_time_is_kept(tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY[:2], "--budget", "2s", *TINY[4:]]
    done = regard("compare", CORPUS, "-o", out, *arguments, "--variants", "last", "--metrics", "exact,per")
    assert done.returncode == 0, done.stderr.decode()
    (run,) = json.loads((out / "compare.json").read_text(encoding="utf-8"))["runs"]
    assert 1.0 < run["training"]["seconds"] < 4.0
    assert list(run["report"]["overall"]) == ["exact", "per"]


def test_capacity_is_measured_on_fixed_contexts_of_several_sizes(tmp_path):
    out = tmp_path / "out"
    arguments = [*TINY[:4], *TINY[6:]]
    done = regard(
        *("compare", CORPUS, "--capacity", "-o", out, "--max-steps", 6, *arguments),
        *("--variants", "last", "--hidden", "8,4", "--parallel", 2),
    )
    assert done.returncode == 0, done.stderr.decode()
    record = json.loads((out / "capacity.json").read_text(encoding="utf-8"))
    assert [point["hidden_size"] for point in record["points"]["last state"]] == [4, 8]
    assert "| last state |" in done.stdout.decode()
    assert (out / "capacity.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_leaves_what_is_done_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "out"
    arguments = ["compare", CORPUS, "-o", out, "--max-steps", 100_000, *TINY, "--variants", "last"]
    process = start(*arguments)
    deadline = time.monotonic() + 120
    while not list(out.glob("runs/*/checkpoint/*")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said.decode()
    assert f"stopped; what is done is in {out}, go on with the same command" in said.decode()
    assert "Traceback" not in said.decode()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variants", "lsat"], "'lsat' is none of the variants"),
        (["--budget", "soon"], "--budget 'soon'"),
        (["--budget", "0"], "--budget 0 has no end"),
        (["--match", "size"], "--match 'size': expected parameters or hidden"),
        (["--hidden", "12,24"], "--hidden takes one number, unless --capacity"),
        (["--hidden", "big"], "--hidden 'big': expected whole numbers"),
        (["--buckets", "5;9"], "--buckets '5;9': expected whole numbers"),
        (["--capacity", "--metrics", "exact"], "--capacity looks at the token accuracy of each length"),
        (["--test-targets", "a.en"], "--test-targets needs the file of sources: --test FILE"),
        (["--train-max-len", "1"], "no training pair has a source of at most 1 tokens"),
        (["--metrics", "blue"], "did you mean 'bleu'"),
        (["--set", "model.cell=gur"], "'gur' is none of the cells"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_before_anything_is_written(tmp_path, arguments, message):
    out = tmp_path / "out"
    code, line = call("compare", CORPUS, "-o", str(out), *arguments)
    assert code == 2
    assert message in line
    assert not out.exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    done = regard("compare", CORPUS, "-o", tmp_path)
    assert done.returncode == 2
    assert "is not empty and holds no comparison; choose another folder with --out" in error_line(done)
