"""The notebook runs from its first cell to its last, and shows what its text says."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = DOCS / "from-seq2seq-to-attention.ipynb"


@pytest.fixture(scope="module")
def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def executed(stored: Any) -> dict[str, Any]:
    """The cells by name, after a run with small settings on one thread."""
    environment = pytest.MonkeyPatch()
    for name, value in (("REGARD_SMALL", "1"), ("OMP_NUM_THREADS", "1")):
        environment.setenv(name, value)
    try:
        client = NotebookClient(
            stored.copy(), timeout=240, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}}
        )
        run = client.execute()
    finally:
        environment.undo()
    return {cell["id"]: cell for cell in run.cells if cell.cell_type == "code"}


def printed(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.get("name") == "stdout")


def shown(cell: Any, kind: str) -> list[str]:
    return [output.data[kind] for output in cell.outputs if kind in output.get("data", {})]


def test_notebook_is_valid_and_every_section_is_also_chinese(stored):
    nbformat.validate(stored)
    texts = [cell.source for cell in stored.cells if cell.cell_type == "markdown"]
    sections = [text for text in texts if text.startswith("#")]
    assert len(sections) >= 10
    for section in sections[1:]:
        assert re.search(r"^>.*[\u4e00-\u9fff]", section, flags=re.MULTILINE), section
        assert re.search(r"· .*[\u4e00-\u9fff]", section.splitlines()[0]), section


def test_stored_notebook_names_no_machine_and_no_error():
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not re.search(r"(/home/|/root/|/work/|/tmp/|/Users/|[A-Z]:\\\\)", text)
    assert '"output_type": "error"' not in text


def test_no_cell_fails_or_warns(executed):
    for name, cell in executed.items():
        assert cell.execution_count, name
        kinds = [output.output_type for output in cell.outputs]
        assert "error" not in kinds, name
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], name


def test_comparison_has_a_row_for_each_variant_and_a_picture(executed):
    cell = executed["bottleneck"]
    rows = printed(cell).splitlines()
    assert [row[:20].strip() for row in rows[1:]] == ["last state", "pooled, mean", "attention, general"]
    for row in rows[1:]:
        *values, _ = row[20:].split()
        assert len(values) == 2
        assert all(0 <= float(value) <= 100 for value in values)
    assert len(shown(cell, "image/png")) == 1


def test_weights_that_are_shown_sum_to_1(executed):
    (sums,) = re.findall(r"row sums (\[.*\])", printed(executed["weights"]))
    assert json.loads(sums) == pytest.approx([1] * len(json.loads(sums)), abs=1e-3)
    steps = printed(executed["by-hand"]).splitlines()
    assert len(steps) == len("December 1, 2026") + 1
    assert all(step.endswith("weights sum to 1.0000") for step in steps)
    scores = printed(executed["scores"]).splitlines()
    assert sum("sum 1.0000" in line for line in scores) == 6


def test_decoding_by_hand_equals_the_record(executed):
    lines = printed(executed["by-hand-checked"]).splitlines()
    assert [line.split(":")[0].strip() for line in lines] == [
        *("scores", "weights", "length of c_t", "probability")
    ]
    assert all(float(line.split()[-1]) < 1e-3 for line in lines)


def test_what_the_text_says_of_attention_alone_holds(executed):
    assert "equal characters, equal rows: True" in printed(executed["self-attention"])
    assert "shuffled in, shuffled out: True" in printed(executed["self-attention"])
    kept = [line for line in printed(executed["memory"]).splitlines() if "noise  0.0" in line]
    assert [line.split(": ")[1].split()[0] for line in kept] == ["100%", "100%"]
    scores = printed(executed["scores"])
    assert [line.split(":")[0].strip() for line in scores.splitlines() if "blind" in line] == ["location"]
    assert scores.splitlines()[-1] == "every score of the library is here: True"


@pytest.mark.parametrize("name", ["alignment", "stages", "self-attention"])
def test_cell_draws_a_picture(executed, name):
    (picture,) = shown(executed[name], "image/png")
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert len(picture) > 5000


def test_prediction_and_player_are_shown(executed):
    (table,) = shown(executed["prediction"], "text/html")
    assert "2026年12月1日" in table
    assert "<table" in table
    (player,) = shown(executed["player"], "text/html")
    assert player.startswith("<div><iframe srcdoc=")
    assert "createPlayer" in player
