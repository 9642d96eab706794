"""The figures of the document can be made: each command runs, small, and gives what the document shows."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.compare.variants import choose_variants

SCRIPT = Path(__file__).parents[2] / "docs" / "figures.py"


def _load():
    spec = importlib.util.spec_from_file_location("figures_of_the_document", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FIGURES = [figure for figure in _load().FIGURES if "{data}" not in figure.data]


def _option(figure, name: str) -> str:
    words = shlex.split(figure.options)
    return words[words.index(name) + 1]


def _rows(table: str) -> list[list[str]]:
    """Cells of the first table in Markdown, without its head."""
    lines = table.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_small_figure_has_its_pictures_and_a_row_for_each_variant(figure, tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--small", "--only", figure.name, "--work", tmp_path],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert f"$ regard compare {shlex.quote(figure.small['data'])} " in done.stdout
    images = tmp_path / "small" / "images"
    assert sorted(path.name for path in images.iterdir()) == sorted(f"{figure.name}-{n}" for n in figure.made)
    for name in figure.made:
        path = images / f"{figure.name}-{name}"
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert min(picture.size) > 200
                assert len(np.unique(np.asarray(picture.convert("L")))) > 20
        else:
            labels = [variant.label for variant in choose_variants(_option(figure, "--variants").split(","))]
            rows = _rows(path.read_text(encoding="utf-8"))
            assert [row[0] for row in rows] == labels
            assert all(len(row) == len(rows[0]) > 3 for row in rows)


def test_there_are_figures_that_need_no_data_of_others():
    assert {"lists", "copy", "capacity"} <= {figure.name for figure in FIGURES}
