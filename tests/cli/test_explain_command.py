from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import regard as package
from cli.commands import QUICK, error_line, regard

MODEL = Path(__file__).parents[1] / "stored" / "version-1"


def test_one_command_writes_page_animation_and_numbers_of_every_hypothesis(tmp_path):
    files = {kind: tmp_path / f"a.{kind}" for kind in ("html", "gif", "json", "npz", "png")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", path)]
    done = regard("explain", MODEL, "abc", "--beam", 3, "--vectors", *options)
    assert done.returncode == 0, done.stderr.decode()
    assert (
        "A B C   (the model's own output, hypothesis 1 of 3, log-probability -1.290)" in done.stdout.decode()
    )
    record = json.loads(files["json"].read_text(encoding="utf-8"))
    expected = package.load(MODEL).predict(["abc"], beam=3, nbest=3)[0].alternatives
    assert [made["text"] for made in record["hypotheses"]] == [made.text for made in expected]
    with np.load(files["npz"], allow_pickle=False) as arrays:
        for number, made in enumerate(expected, 1):
            np.testing.assert_allclose(arrays[f"h{number}_weights"], made.attention_heads, atol=1e-5)
            for name in ("queries", "states", "contexts", "outputs"):
                assert arrays[f"h{number}_{name}"].shape == (len(made.target_tokens), 24)
    assert len(record["hypotheses"][2]["steps"][0]["query"]) == 24
    assert '"query"' not in files["html"].read_text(encoding="utf-8")
    with Image.open(files["gif"]) as film:
        assert film.n_frames > 10
    assert '"schema": "regard-decoding/1"' in files["html"].read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in files.values())


def test_hypothesis_chooses_what_is_shown():
    shown = regard("explain", MODEL, "abc", "--beam", 3, "--hypothesis", 2).stdout.decode()
    expected = package.load(MODEL).predict(["abc"], beam=3, nbest=3)[0].alternatives[1]
    assert shown.startswith(f"{expected.text}   (the model's own output, hypothesis 2 of 3")
    problem = error_line(regard("explain", MODEL, "abc", "--beam", 2, "--hypothesis", 3))
    assert "--hypothesis 3: there are 2" in problem


def test_words_group_the_characters_of_the_source():
    shown = regard("explain", MODEL, "ab cd", "--words").stdout.decode().splitlines()
    assert shown[2].split() == ["ab", "cd", "<eos>"]
    pairs = regard("explain", MODEL, "ab cd", "--words", "--align").stdout.decode().split()
    assert {pair.split("-")[0] for pair in pairs} <= {"0", "1"}


def test_check_reports_the_falls_and_says_what_they_mean():
    one, again = (regard("explain", MODEL, "abcdef", "--check", "--draws", 5, "--seed", 3) for _ in range(2))
    shown = one.stdout.decode()
    assert one.returncode == 0, one.stderr.decode()
    assert shown == again.stdout.decode()
    assert "most attended" in shown
    assert "of 5 random orders do less" in " ".join(shown.split())


def test_head_that_does_not_exist_is_refused():
    assert "head 2 does not exist: this model has 1" in error_line(
        regard("explain", MODEL, "abc", "--head", 2)
    )


def test_fixed_context_writes_its_one_vector(upper_pairs, tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in upper_pairs[:50]), encoding="utf-8")
    assert regard("train", path, "-o", tmp_path / "m", "--context", "last", *QUICK).returncode == 0
    done = regard(
        "explain", tmp_path / "m", "abc", "--json", tmp_path / "a.json", "--html", tmp_path / "a.html"
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "through one vector of 16 numbers" in done.stdout.decode()
    record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert len(record["vector"]) == 16
    assert record["hypotheses"][0]["steps"][0]["weights"] is None
    for option in (["--png", tmp_path / "a.png"], ["--align"], ["--check"]):
        assert "one fixed vector" in error_line(regard("explain", tmp_path / "m", "abc", *option))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--html", "no/such/a.html"], "the folder no/such does not exist"),
        (["--json", "."], "is a folder; name a file"),
        (["--gif", "a.png"], "what --gif writes ends in .gif, not in '.png'"),
        (["--npz", "a"], "ends in .npz, not in 'nothing'"),
    ],
)
def test_file_that_cannot_be_written_is_refused_before_anything_is_done(options, message, tmp_path):
    done = regard("explain", MODEL, "abc", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in error_line(done)
    assert not list(tmp_path.iterdir())
    assert not done.stdout
