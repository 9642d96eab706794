from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import regard as package
from cli.commands import QUICK, error_line, regard


def test_help_lists_the_commands_and_version_is_the_packages():
    shown = regard("--help").stdout.decode()
    for name in ("train", "predict", "evaluate", "score", "explain", "info", "settings", "demo", "data"):
        assert name in shown
    assert regard("--version").stdout.decode().strip() == f"regard {package.__version__}"


def test_misspelt_command_and_option_get_a_suggestion_in_one_line():
    done = regard("trian")
    assert done.returncode == 2
    assert "Did you mean 'train'" in error_line(done)
    done = regard("predict", "m", "--beem", 3)
    assert done.returncode == 2
    assert "--beam" in error_line(done)


@pytest.fixture(scope="module")
def pairs_file(upper_pairs, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "test.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in upper_pairs[:60]), encoding="utf-8")
    return path


def test_another_precision_says_what_it_costs_and_scores_what_it_found(upper_model, pairs_file):
    done = regard("evaluate", upper_model, pairs_file, "--metrics", "exact", "--precision", "int8")
    assert done.returncode == 0, done.stderr
    last = done.stdout.decode().strip().splitlines()[-1]
    assert re.fullmatch(
        r"int8 against float32: exact match [\d.]+ against [\d.]+; \d+ of 60 outputs differ; [\d.]+ s against [\d.]+ s",
        last,
    ), last
    done = regard("predict", upper_model, "--precision", "int8", "--format", "tsv", stdin="abcd\n")
    source, output, found = done.stdout.decode().rstrip("\n").split("\t")
    done = regard("score", upper_model, "-", "--precision", "int8", stdin=f"{source}\t{output}\n")
    scored = done.stdout.decode().split("\t")[0]
    assert abs(float(scored) - float(found)) <= 1e-4
    done = regard("predict", upper_model, "--precision", "int4", stdin="abcd\n")
    assert done.returncode == 2
    assert "precision" in error_line(done)


def test_evaluate_prints_table_and_writes_json_plot_and_outputs(upper_model, pairs_file, tmp_path):
    done = regard(
        "evaluate",
        upper_model,
        pairs_file,
        "--json",
        tmp_path / "r.json",
        "--plot",
        tmp_path / "r.svg",
        "--predictions",
        tmp_path / "p.tsv",
        "--buckets",
        "2,4",
        "--threads",
        1,
    )
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stdout.decode()
    assert "word error rate (whole lines)" in re.sub(r"\s+", " ", shown) or "whole lines" in shown
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert report["n_examples"] == 60
    assert [bucket["last"] for bucket in report["by_source_length"]][:2] == [2, 4]
    assert sum(bucket["n_examples"] for bucket in report["by_source_length"]) == 60
    assert report["overall"]["exact"]["value"] > 90
    assert "source length in tokens" in (tmp_path / "r.svg").read_text(encoding="utf-8")
    assert len((tmp_path / "p.tsv").read_text(encoding="utf-8").splitlines()) == 60


def test_evaluate_refuses_bad_buckets_metrics_and_pictures_before_it_works(upper_model, pairs_file, tmp_path):
    assert "expected rising lengths" in error_line(
        regard("evaluate", upper_model, pairs_file, "--buckets", "5,2")
    )
    assert "none of the metrics" in error_line(
        regard("evaluate", upper_model, pairs_file, "--metrics", "blue")
    )
    assert "a picture ends in" in error_line(
        regard("evaluate", upper_model, pairs_file, "--plot", tmp_path / "a.bmp")
    )


def test_score_of_the_own_output_is_the_score_of_predict(upper_model, tmp_path):
    rows = regard(
        "predict", upper_model, "--format", "tsv", "--threads", 1, stdin="abc\nhh\n"
    ).stdout.decode()
    fields = [line.split("\t") for line in rows.splitlines()]
    path = tmp_path / "own.tsv"
    path.write_text("".join(f"{source}\t{text}\n" for source, text, _ in fields), encoding="utf-8")
    done = regard("score", upper_model, path, "--threads", 1)
    scores = [line.split("\t")[0] for line in done.stdout.decode().splitlines()]
    for (_, _, expected), found in zip(fields, scores, strict=True):
        assert float(found) == pytest.approx(float(expected), abs=2e-4)
    assert "perplexity" in done.stderr.decode()


def test_explain_draws_and_writes_the_alignment(upper_model, tmp_path):
    done = regard(
        "explain",
        upper_model,
        "abc",
        "--png",
        tmp_path / "a.png",
        "--svg",
        tmp_path / "a.svg",
        "--json",
        tmp_path / "a.json",
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "A B C" in done.stdout.decode()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert record["source_tokens"] == ["a", "b", "c", "<eos>"]
    assert regard("explain", upper_model, "abc", "--align").stdout.decode().strip() == "0-0 1-1 2-2"


def test_explain_shows_a_given_target_and_not_the_own_output(upper_model, tmp_path):
    done = regard("explain", upper_model, "abc", "--target", "C C", "--json", tmp_path / "a.json")
    assert done.returncode == 0
    record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    (given,) = record["hypotheses"]
    assert given["origin"] == "target"
    assert given["target_tokens"] == ["C", "C", "<eos>"]
    assert "a given target" in done.stdout.decode()


def test_explain_of_a_blank_source_or_a_fixed_context_says_why_not(upper_model, upper_pairs, tmp_path):
    assert "the source is blank" in error_line(regard("explain", upper_model, " "))
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in upper_pairs[:50]), encoding="utf-8")
    assert regard("train", path, "-o", tmp_path / "m", "--context", "last", *QUICK).returncode == 0
    assert "one fixed vector" in error_line(regard("explain", tmp_path / "m", "abc"))


def test_info_describes_model_and_machine(upper_model):
    shown = regard("info", upper_model).stdout.decode()
    for text in ("1 bidirectional lstm layer", "attention (general", "char", "space", "precision auto"):
        assert text in shown
    assert "torch" in regard("info").stdout.decode()


def test_settings_are_all_listed_with_their_meaning():
    shown = regard("settings").stdout.decode()
    for name in ("model.attention.score", "training.minutes", "decoding.beam", "data.source.tokenizer"):
        assert name in shown
    assert json.loads(regard("settings", "--preset", "cho2014").stdout)["model"]["cell"] == "gru"


def test_every_setting_has_a_meaning():
    from regard.cli.settings import list_settings
    from regard.config import Config

    rows = list(list_settings(Config))
    assert len(rows) > 60
    assert all(meaning for _, _, meaning in rows)


def test_settings_come_from_file_options_and_set_in_rising_order(pairs_file, tmp_path):
    (tmp_path / "c.yaml").write_text(
        "model: {hidden_size: 20, cell: gru}\ntraining: {seed: 5}\n", encoding="utf-8"
    )
    done = regard(
        "train",
        pairs_file,
        "-o",
        tmp_path / "m",
        *QUICK,
        "--config",
        tmp_path / "c.yaml",
        "--set",
        "model.embedding_size=6",
    )
    assert done.returncode == 0, done.stderr.decode()
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config["model"]["hidden_size"] == 16
    assert config["model"]["cell"] == "gru"
    assert config["model"]["embedding_size"] == 6
    assert config["training"]["seed"] == 5
    card = (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
    assert "regard train" in card
    assert "test.tsv" in card


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "model.cell"], "expected NAME=VALUE"),
        (["--set", "model.cel=gru"], "did you mean 'cell'"),
        (["--set", "model=3", "--set", "model.cell=gru"], "is a value, not a group"),
        (["--preset", "luong"], "did you mean 'luong2015'"),
        (["--context", "last", "--score", "dot"], "attention settings have no effect"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(pairs_file, tmp_path, options, message):
    done = regard("train", pairs_file, "-o", tmp_path / "m", *options)
    assert done.returncode == 2
    assert message in error_line(done)
    assert not (tmp_path / "m").exists()


def test_train_without_where_to_or_what_says_so(tmp_path):
    assert "Pass -o MODEL" in error_line(regard("train", "a.tsv"))
    assert "what to train on" in error_line(regard("train", "-o", tmp_path / "m"))


def test_pairs_come_from_standard_input_and_corpora_by_name(upper_pairs, tmp_path):
    text = "".join(f"{s}\t{t}\n" for s, t in upper_pairs[:50])
    assert regard("train", "-", "-o", tmp_path / "m", *QUICK, stdin=text).returncode == 0
    done = regard("evaluate", tmp_path / "m", "copy?lengths=5-6", "--metrics", "exact", "--threads", 1)
    assert done.returncode == 0, done.stderr.decode()


def test_sampling_is_repeated_by_its_seed(upper_model):
    def drawn(seed):
        return regard(
            "predict",
            upper_model,
            "--sample",
            "--temperature",
            3,
            "--seed",
            seed,
            "--threads",
            1,
            stdin="abcdefg\n" * 5,
        ).stdout

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)


def test_output_goes_to_the_file_that_is_named(upper_model, tmp_path):
    done = regard("predict", upper_model, "-", "-o", tmp_path / "out", "--threads", 1, stdin="a\n\n")
    assert done.stdout == b""
    assert (tmp_path / "out").read_bytes() == b"A\n\n"
    assert "cannot be written" in error_line(
        regard("predict", upper_model, "-o", tmp_path / "no" / "out", stdin="a\n")
    )
    assert "none of text, tsv, jsonl" in error_line(
        regard("predict", upper_model, "--format", "csv", stdin="a\n")
    )
