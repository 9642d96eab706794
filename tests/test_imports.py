"""Imports point one way, and looking at settings loads no torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "regard"
ABOVE = {"compare", "journeys", "serve", "cli", "api"}
"""What nothing below them may know."""
UPPER = {"training", "decode", "evaluate", "explain", "seq2seq", "folder", "card", *ABOVE}
FORBIDDEN = {
    "nn": {"data", *UPPER},
    "data": {"nn", "device", *UPPER},
    "decode": {"data", "training", "evaluate", "explain", "seq2seq", "folder", *ABOVE},
    "evaluate": {"nn", "data", "training", "decode", "explain", "seq2seq", "folder", *ABOVE},
    "explain": {"data", "training", "decode", "evaluate", "folder", *ABOVE},
    "training": {"explain", *ABOVE},
    "compare": {"explain", *ABOVE - {"compare"}},
    "serve": {"nn", "data", "decode", "training", "evaluate", "card", *ABOVE - {"serve", "journeys"}},
    "journeys": {"seq2seq", "explain", "evaluate", *ABOVE - {"journeys"}},
    "config.py": {"nn", "data", "device", *UPPER},
    "errors.py": {"config", "registry", "nn", "data", *UPPER},
    "registry.py": {"config", "nn", "data", *UPPER},
    "native": {"training", "evaluate", "explain", "seq2seq", "card", *ABOVE},
    "answering.py": {"native", "training", "evaluate", "explain", "seq2seq", "folder", *ABOVE},
    "seq2seq.py": {"training", "evaluate", "explain", *ABOVE},
}


def imported(path: Path) -> set[str]:
    """First parts, below regard, of all that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found.update(name.split(".")[1] for name in names if name.startswith("regard."))
    return found


@pytest.mark.parametrize("part", sorted(FORBIDDEN))
def test_part_imports_nothing_above_it(part):
    target = ROOT / part
    files = [target] if target.is_file() else sorted(target.rglob("*.py"))
    assert files
    for path in files:
        assert not imported(path) & FORBIDDEN[part], path


def test_of_all_the_server_two_files_know_journeys():
    knowing = {path.name for path in (ROOT / "serve").rglob("*.py") if "journeys" in imported(path)}
    assert knowing == {"journeys.py", "server.py"}


def test_of_all_explanations_only_their_making_knows_models():
    for path in sorted((ROOT / "explain").rglob("*.py")):
        assert path.name == "trace.py" or not imported(path) & {"nn", "seq2seq"}, path


@pytest.mark.parametrize(
    "module",
    [
        "regard",
        "regard.config",
        "regard.registry",
        "regard.cli.app",
        "regard.data.batches",
        "regard.native.predictor",
        "regard.explain.page",
    ],
)
def test_module_loads_no_torch(module):
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names_are_there():
    import regard

    assert set(regard.__all__) >= {"train", "load", "Seq2Seq", "Prediction"}
    assert callable(regard.train)
    assert callable(regard.load)
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        regard.trian  # noqa: B018
