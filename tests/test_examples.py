"""The examples are what they say they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from regard.config import load_config

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_example_settings_are_valid_and_begin_with_their_command(path):
    load_config(path)
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# regard train ")
    assert f"--config examples/{path.name}" in first


def test_attention_example_shows_the_three_stages():
    done = subprocess.run([sys.executable, EXAMPLES / "attention.py"], capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "1. scores  [4.0, 0.8, -4.0]"
    assert lines[1] == "2. weights [0.961, 0.039, 0.0]"
    assert lines[2].startswith("3. value   [0.96")
