"""Models of earlier versions go on giving the answers they gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import regard

STORED = sorted((Path(__file__).parent / "stored").iterdir())


@pytest.mark.parametrize("folder", STORED, ids=lambda path: path.name)
def test_stored_model_gives_the_answers_it_gave(folder):
    expected = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    made = regard.load(folder).predict([answer["source"] for answer in expected], beam=5)
    for prediction, answer in zip(made, expected, strict=True):
        assert prediction.text == answer["text"]
        assert prediction.score == pytest.approx(answer["score"], abs=1e-3)
