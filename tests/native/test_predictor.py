"""`regard predict` without torch: the same lines, and no torch loaded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import regard
from regard.errors import ConfigError, ModelFolderError
from regard.native import predictor
from regard.native.library import load_library

pytestmark = pytest.mark.skipif(
    isinstance(load_library(), str), reason="regard was installed without a C compiler"
)

LINES = ["abc", "", "hello world", "a", "zz top"]


def opened(folder: Path, **overrides):
    return predictor.open_native(folder, device="cpu", threads=1, overrides=overrides)


def test_predictions_are_those_with_torch(upper_model, monkeypatch):
    found = opened(upper_model, beam=4, nbest=3).predict(LINES, beam=4, nbest=3)
    monkeypatch.setenv("REGARD_ENGINE", "torch")
    wanted = regard.load(upper_model, device="cpu").predict(LINES, beam=4, nbest=3)
    for mine, theirs in zip(found, wanted, strict=True):
        assert mine.text == theirs.text
        assert mine.source_tokens == theirs.source_tokens
        assert mine.score == pytest.approx(theirs.score, abs=1e-4)
        assert [other.text for other in mine.alternatives] == [other.text for other in theirs.alternatives]


def test_a_loaded_model_uses_the_library_until_its_weights_change(upper_model, monkeypatch):
    monkeypatch.delenv("REGARD_ENGINE", raising=False)
    model = regard.load(upper_model, device="cpu")
    before = model.predict(["abc"])[0]
    assert model._native is not None
    first = model._native[1]
    assert model.predict(["abc"])[0].score == before.score
    assert model._native[1] is first
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.mul_(0.5)
    changed = model.predict(["abc"])[0]
    monkeypatch.setenv("REGARD_ENGINE", "torch")
    assert changed.score == pytest.approx(model.predict(["abc"])[0].score, abs=1e-4)
    assert changed.score != before.score


def test_weights_that_are_no_numbers_are_told(upper_model, tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(upper_model, folder)
    weights = load_file(folder / "model.safetensors")
    weights["decoder.output.bias"][:] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelFolderError, match="not numbers"):
        opened(folder).predict(["abc"])
    with pytest.raises(ModelFolderError, match="not numbers"):
        regard.load(folder, device="cpu").predict(["abc"])


def run(*arguments, code, **environment):
    script = f"import sys\nsys.argv = ['regard', *{[str(a) for a in arguments]!r}]\n{code}"
    return subprocess.run(
        [sys.executable, "-c", script],
        input="abc\n\nhello\n",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


CODE = """
from regard.cli import main
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def test_predict_loads_no_torch_unless_it_must(upper_model):
    quick = run("predict", upper_model, "--device", "cpu", code=CODE, REGARD_ENGINE="auto")
    assert quick.stderr.split()[-1] == "False", quick.stderr
    slow = run("predict", upper_model, "--device", "cpu", code=CODE, REGARD_ENGINE="torch")
    assert slow.stderr.split()[-1] == "True"
    assert quick.stdout == slow.stdout
    assert len(quick.stdout.splitlines()) == 3


def test_other_devices_and_settings_are_left_to_torch(upper_model, monkeypatch):
    monkeypatch.delenv("REGARD_ENGINE", raising=False)
    assert opened(upper_model) is not None
    assert predictor.open_native(upper_model, device="cuda", threads=1, overrides={}) is None
    monkeypatch.setattr(predictor, "_may_have_accelerator", lambda: True)
    assert predictor.open_native(upper_model, device="auto", threads=1, overrides={}) is None
    assert opened(upper_model, coverage_penalty=0.3) is None


def test_weights_that_do_not_fit_are_left_to_torch_which_says_so(upper_model, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(upper_model, folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    settings["model"]["hidden_size"] += 2
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert opened(folder) is None
    with pytest.raises(ModelFolderError, match="has shape"):
        regard.load(folder, device="cpu")


def test_errors_are_those_with_torch(upper_model, tmp_path):
    with pytest.raises(ConfigError, match="beam"):
        opened(upper_model, beam=0)
    with pytest.raises(ModelFolderError, match="expected a model folder"):
        opened(tmp_path / "none")
    folder = tmp_path / "model"
    shutil.copytree(upper_model, folder)
    (folder / "model.safetensors").write_bytes(b"nonsense")
    with pytest.raises(ModelFolderError, match="damaged"):
        opened(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelFolderError, match="missing"):
        opened(folder)
