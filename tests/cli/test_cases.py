"""Inputs on which other toolkits failed their users, through the real command line."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import regard as package
from cli.commands import C_LOCALE, ENV, QUICK, error_line, regard, start


@pytest.fixture(scope="module")
def pairs_file(upper_pairs, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "pairs.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in upper_pairs), encoding="utf-8")
    return path


def predicted(model, text, *options, **rest):
    done = regard("predict", model, "-", "--threads", 1, *options, stdin=text, **rest)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8").split("\n")[:-1]


def test_model_learnt_its_task(upper_model):
    lines = ["abc", "hgfe", "a", "bbbb"]
    assert predicted(upper_model, "\n".join(lines) + "\n") == [" ".join(line.upper()) for line in lines]


# blank-lines


@pytest.mark.parametrize("size", [1, 3, 128])
def test_blank_lines_stay_in_place_for_every_batch_size(upper_model, size):
    text = "a\n\n b\n   \n\nc\n" * 40
    lines = predicted(upper_model, text, "--batch-size", size)
    assert len(lines) == 240
    for place, line in enumerate(lines):
        assert (line == "") == (place % 6 in (1, 3, 4))
    assert lines == predicted(upper_model, text)


# separators-inside-a-line


def test_separators_inside_a_line_end_none(upper_model):
    assert len(predicted(upper_model, "a\u2028b\nc\u0085d\ne\u000cf\ng\u001ch\n")) == 4


# crlf-and-bom


def test_windows_files_train_the_same_vocabulary(tmp_path):
    plain, marked = tmp_path / "a.tsv", tmp_path / "b.tsv"
    plain.write_bytes(b"abc\tx y\nabd\tx z\n" * 9)
    marked.write_bytes(b"\xef\xbb\xbf" + b"abc\tx y\r\nabd\tx z\r\n" * 9)
    for path in (plain, marked):
        assert regard("train", path, "--dev", path, "-o", path.with_suffix(""), *QUICK).returncode == 0
    for side in ("source", "target"):
        files = [path.with_suffix("") / f"{side}.tokenizer.json" for path in (plain, marked)]
        assert files[0].read_bytes() == files[1].read_bytes()


# batch-size-changes-output


@pytest.mark.parametrize("beam", [1, 5])
def test_batch_size_and_order_change_nothing(upper_model, beam):
    rng = random.Random(3)
    lines = ["".join(rng.choice("abcdefgh") for _ in range(rng.choice([1, 2, 5, 9, 30]))) for _ in range(150)]
    model = package.load(upper_model)
    first = model.predict(lines, beam=beam, batch_size=7)
    for size in (1, 32, 256):
        again = model.predict(lines, beam=beam, batch_size=size)
        assert [p.text for p in again] == [p.text for p in first]
        assert np.allclose([p.score for p in again], [p.score for p in first], atol=1e-4)
    order = list(range(150))
    rng.shuffle(order)
    shuffled = model.predict([lines[i] for i in order], beam=beam)
    assert [p.text for p in shuffled] == [first[i].text for i in order]


# duplicate-hypotheses, top-one-depends-on-nbest, nbest-above-beam


def test_five_best_of_one_token_are_different_and_sorted(upper_model):
    model = package.load(upper_model)
    (best,) = model.predict(["a"], beam=5, nbest=5)
    texts = [(p.target_tokens, p.finished) for p in best.alternatives]
    assert len(set(texts)) == 5
    ranks = [p.normalised for p in best.alternatives if p.finished]
    assert ranks == sorted(ranks, reverse=True)
    assert model.predict(["a"], beam=5, nbest=1)[0].text == best.text


def test_more_hypotheses_than_beams_are_refused_on_the_command_line(upper_model):
    done = regard("predict", upper_model, "--beam", 5, "--nbest", 10, stdin="a\n")
    assert done.returncode == 2
    assert done.stdout == b""
    assert "nbest 10 is more than beam 5" in error_line(done)


def test_nbest_stand_on_the_line_of_their_source(upper_model):
    lines = predicted(upper_model, "ab\n\nc\n", "--beam", 4, "--nbest", 3)
    assert [len(line.split("\t")) for line in lines] == [3, 1, 3]
    rows = predicted(upper_model, "ab\n", "--beam", 4, "--nbest", 3, "--format", "tsv")
    assert len(rows[0].split("\t")) == 7
    (record,) = map(
        json.loads,
        predicted(upper_model, "ab\n", "--beam", 4, "--nbest", 3, "--format", "jsonl", "--attention"),
    )
    assert len(record["alternatives"]) == 3
    assert np.shape(record["attention"]) == (len(record["target_tokens"]), 3)


# wrong-number-of-columns, not-utf8, unequal-files, empty


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tx\nb\ty\nc\nd\tz\ne\tw\tv\n", "line 3: found 1 column, expected 2 columns (source<TAB>target)"),
        (b"a\tx\ncaf\xe9\tk a f e\n", "line 2: byte 0xe9 at offset 3 of the line is not UTF-8"),
        (b"", "the file is empty"),
    ],
)
def test_bad_training_file_is_one_line_and_leaves_no_folder(tmp_path, content, message):
    path, folder = tmp_path / "a.tsv", tmp_path / "model"
    path.write_bytes(content)
    done = regard("train", path, "-o", folder, *QUICK)
    assert done.returncode == 2
    assert message in error_line(done)
    assert str(path) in error_line(done)
    assert not folder.exists()


def test_encoding_option_reads_what_is_not_utf8(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"caf\xe9\tk a f e\nabc\ta b\n" * 5)
    assert (
        regard("train", path, "--dev", path, "-o", tmp_path / "m", "--encoding", "latin-1", *QUICK).returncode
        == 0
    )
    assert "\u00e9" in (tmp_path / "m" / "source.tokenizer.json").read_text(encoding="utf-8")


def test_unequal_files_are_an_error_with_both_counts(tmp_path):
    (tmp_path / "s").write_text("a\nb\nc\n", encoding="utf-8")
    (tmp_path / "t").write_text("x\ny\n", encoding="utf-8")
    done = regard("train", tmp_path / "s", tmp_path / "t", "-o", tmp_path / "m", *QUICK)
    assert done.returncode == 2
    assert "s has 3, " in error_line(done)
    assert "t has 2" in error_line(done)


def test_blank_side_is_skipped_with_one_counted_warning(tmp_path):
    (tmp_path / "s").write_text("a\nb\n\nd\n" * 4, encoding="utf-8")
    (tmp_path / "t").write_text("x\ny\nz\nw\n" * 4, encoding="utf-8")
    done = regard("train", tmp_path / "s", tmp_path / "t", "-o", tmp_path / "m", *QUICK)
    assert done.returncode == 0
    assert "4 pairs with a blank side were skipped, the first in line 3" in done.stderr.decode()


# unicode-forms, unknown-symbols, tabs-and-reserved-words, no-break-space, few-pairs


def test_either_normal_form_gives_the_same_output(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("caf\u00e9\tk a f e\nabc\ta b\n" * 5, encoding="utf-8")
    assert regard("train", path, "--dev", path, "-o", tmp_path / "m", *QUICK).returncode == 0
    one, other = predicted(tmp_path / "m", "caf\u00e9\ncafe\u0301\n")
    assert one == other
    assert (
        json.loads((tmp_path / "m" / "source.tokenizer.json").read_text(encoding="utf-8"))["normal_form"]
        == "NFC"
    )


def test_symbols_never_seen_get_a_line_and_are_named(upper_model):
    lines = predicted(upper_model, "a\u2603b\n\U0001f600\U0001f600\n", "--format", "jsonl")
    records = list(map(json.loads, lines))
    assert records[0]["unknown"] == ["\u2603"]
    assert records[1]["unknown"] == ["\U0001f600"] * 2
    assert len(predicted(upper_model, "a\u2603b\n\U0001f600\U0001f600\n", "--copy-unknown")) == 2


def test_unknown_output_copies_the_raw_source_symbol_when_asked(tmp_path):
    rng = random.Random(1)
    lines = {" ".join(rng.choice("abcdef") for _ in range(rng.randint(1, 5))) for _ in range(300)}
    ends = rng.sample(sorted(lines), len(lines))
    rare = [f"{line} z{n} {end}" for n, (line, end) in enumerate(zip(sorted(lines), ends, strict=True))]
    model = package.train(
        [(line, line) for line in [*sorted(lines), *rare]],
        settings={
            "data": {side: {"tokenizer": "space", "min_frequency": 3} for side in ("source", "target")},
            "model": {"hidden_size": 48, "embedding_size": 24, "dropout": 0.1},
            "training": {"epochs": 20, "batch_size": 32, "learning_rate": 0.01, "threads": 1, "minutes": 0},
        },
    )
    (plain,) = model.predict(["a b never c"])
    (copied,) = model.predict(["a b never c"], copy_unknown=True)
    assert plain.text == "a b \u2047 c"
    assert copied.text == "a b never c"
    assert plain.unknown == ("never",)


def test_reserved_words_of_others_come_back(tmp_path):
    text = "<eos>\t<pad> [X] {Y}\n"
    path = tmp_path / "a.tsv"
    path.write_text(text * 30, encoding="utf-8")
    options = [
        "--source-tokenizer",
        "space",
        "--target-tokenizer",
        "space",
        "--hidden",
        16,
        "--epochs",
        40,
        "--threads",
        1,
    ]
    assert regard("train", path, "-o", tmp_path / "m", *options, "--learning-rate", 0.02).returncode == 0
    assert predicted(tmp_path / "m", "<eos>\n") == ["<pad> [X] {Y}"]


def test_few_pairs_train_and_diphthongs_stay_one_symbol(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"n{c}w\tn a\u028a\n" for c in "abcdefghij") * 10, encoding="utf-8")
    done = regard("train", path, "-o", tmp_path / "m", *QUICK, "--batch-size", 64)
    assert done.returncode == 0
    assert '"a\u028a"' in (tmp_path / "m" / "target.tokenizer.json").read_text(encoding="utf-8")


# very-long-line


@pytest.mark.parametrize("policy", ["skip", "truncate", "error"])
def test_very_long_line_is_treated_as_asked_and_named(upper_model, policy):
    text = "abc\n" + "a" * 100_000 + "\nba\n"
    done = regard("predict", upper_model, "-", "--threads", 1, "--long-inputs", policy, stdin=text)
    said = done.stderr.decode()
    if policy == "error":
        assert done.returncode == 2
        assert "line 2: 100,000 source tokens, the limit is 500" in error_line(done)
        return
    lines = done.stdout.decode().split("\n")
    assert (lines[0], lines[2]) == ("A B C", "B A")
    assert (lines[1] == "") == (policy == "skip")
    assert "warning: line 2: 100,000 source tokens, the limit is 500" in said


# stop-and-resume, killed-while-saving


def train_process(pairs_file, folder, *extra):
    return start("train", pairs_file, "-o", folder, *QUICK, "--set", "training.validate_every=5", *extra)


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_terminated_training_says_how_to_go_on_and_does(pairs_file, tmp_path):
    folder = tmp_path / "m"
    process = train_process(pairs_file, folder, "--epochs", 200)
    assert wait_for((folder / "checkpoint" / "manifest.json").exists)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"--resume" in err
    assert predicted(folder, "a\n")
    done = regard("train", "-o", folder, "--resume", "--epochs", 1)
    assert done.returncode == 0, done.stderr.decode()
    assert b"going on after update" in done.stderr


def test_killed_at_any_moment_leaves_a_checkpoint_that_goes_on(pairs_file, tmp_path):
    folder, rng = tmp_path / "m", random.Random(7)
    manifest = folder / "checkpoint" / "manifest.json"
    step = 0
    for attempt in range(6):
        extra = ["--resume"] if attempt else []
        process = start(
            "train",
            pairs_file,
            "-o",
            folder,
            *QUICK,
            "--epochs",
            10_000,
            "--set",
            "training.save_every=1",
            "--set",
            "training.validate_every=1000000",
            *extra,
        )
        known = manifest.read_bytes() if attempt else b""
        assert wait_for(lambda known=known: manifest.exists() and manifest.read_bytes() != known), (
            process.stderr.read1()
        )
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.communicate()
        from regard.training.checkpoint import load_checkpoint

        found = load_checkpoint(folder / "checkpoint")
        assert found.state["step"] >= step
        step = found.state["step"]
    assert step > 6


# hostile-model-file


@pytest.fixture
def broken(upper_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(upper_model, folder, ignore=shutil.ignore_patterns("checkpoint"))
    return folder


class Bomb:
    """Unpickling it would leave a file behind."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_pickle_in_place_of_weights_is_refused_and_not_run(broken, tmp_path):
    (broken / "model.safetensors").write_bytes(pickle.dumps(Bomb(tmp_path / "ran")))
    done = regard("predict", broken, stdin="a\n")
    assert done.returncode == 2
    assert "model.safetensors: not a safetensors file, or damaged" in error_line(done)
    assert not (tmp_path / "ran").exists()


def test_truncated_weights_other_shapes_and_unknown_settings_are_named(broken):
    raw = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(raw[: len(raw) // 2])
    assert "model.safetensors: not a safetensors file, or damaged" in error_line(regard("info", broken))
    (broken / "model.safetensors").write_bytes(raw)
    config = json.loads((broken / "config.json").read_text(encoding="utf-8"))
    config["model"]["embedding_size"] += 2
    (broken / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert "config.json asks for" in error_line(regard("info", broken))
    config["model"]["embeding_size"] = 3
    (broken / "config.json").write_text(json.dumps(config), encoding="utf-8")
    message = error_line(regard("info", broken))
    assert "config.json: model.embeding_size: no such setting; did you mean 'embedding_size'?" in message


@pytest.mark.parametrize("name", ["config.json", "facts.json", "source.tokenizer.json", "model.safetensors"])
def test_missing_file_of_a_model_is_named(broken, name):
    (broken / name).unlink()
    done = regard("predict", broken, stdin="a\n")
    assert done.returncode == 2
    assert name in error_line(done)


def test_folder_that_is_no_model_says_so(tmp_path):
    assert "expected a model folder, found nothing" in error_line(
        regard("predict", tmp_path / "no", stdin="a\n")
    )
    assert "not a model folder" in error_line(regard("predict", tmp_path, stdin="a\n"))


# closed-pipe, one-line-at-a-time


def test_reader_that_goes_away_ends_it_quietly(upper_model, tmp_path):
    path = tmp_path / "lines"
    path.write_text("abc\n" * 10_000, encoding="utf-8")
    command = f"{sys.executable} -m regard predict {upper_model} {path} --threads 1 | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, env=ENV, check=False, timeout=120)
    assert done.stdout == b"A B C\n"
    assert done.stderr == b""


def test_one_line_at_a_time_is_answered_at_once(upper_model):
    with start("predict", upper_model, "-", "--threads", 1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line, answer in ((b"ab\n", b"A B\n"), (b"\n", b"\n"), (b"h\n", b"H\n")):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline() == answer
        process.stdin.close()
        assert process.wait(timeout=30) == 0


# one-pair, loss-not-finite


def test_one_pair_trains_with_a_warning(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tx\n", encoding="utf-8")
    done = regard("train", tmp_path / "a.tsv", "-o", tmp_path / "m", *QUICK)
    assert done.returncode == 0
    assert "nothing to validate on" in done.stderr.decode()


def test_loss_that_is_not_finite_is_one_line(pairs_file, tmp_path):
    done = regard(
        "train",
        pairs_file,
        "-o",
        tmp_path / "m",
        *QUICK,
        "--learning-rate",
        1e6,
        "--epochs",
        50,
        "--set",
        "training.warmup_steps=0",
    )
    assert done.returncode == 1
    assert "the loss is not finite at update" in error_line(done)
    assert "lower training.learning_rate" in error_line(done)


# plain-c-locale


def test_everything_is_the_same_in_the_plain_c_locale(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{c}\u00e9\u4e00\t\u0259 {c}\n" for c in "abcdef") * 5, encoding="utf-8")
    outputs = []
    for name, env in (("c", C_LOCALE), ("utf8", ENV)):
        folder = tmp_path / name
        done = regard("train", path, "-o", folder, *QUICK, env=env)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        outputs.append(predicted(folder, "a\u00e9\u4e00\n", env=env))
        shown = regard("explain", folder, "a\u00e9\u4e00", env=env)
        assert shown.returncode == 0, shown.stderr.decode("utf-8", "replace")
        assert "\u4e00" in shown.stdout.decode("utf-8")
    assert outputs[0] == outputs[1]


# attention-of-the-right-tokens


def test_each_hypothesis_has_the_weights_of_its_own_source(upper_model):
    model = package.load(upper_model)
    short, long = model.predict(["abc", "abcdefgha"], beam=5, nbest=5)
    for prediction, n in ((short, 3), (long, 9)):
        (alone,) = model.predict([prediction.source], beam=5, nbest=5)
        assert prediction.source_tokens == (*prediction.source, "<eos>")
        for one, other in zip(prediction.alternatives, alone.alternatives, strict=True):
            assert one.attention.shape == (len(one.target_tokens), n + 1)
            assert np.allclose(one.attention, other.attention, atol=1e-5)
