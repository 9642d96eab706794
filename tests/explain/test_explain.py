from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from regard import figures
from regard.errors import ConfigError
from regard.explain.heatmap import draw_heatmap
from regard.explain.record import AlignmentRecord
from regard.explain.terminal import render_alignment


def record(
    heads: int = 1, source=("1", "2", "\u6708", "<eos>"), target=("Dec", " ", "<eos>")
) -> AlignmentRecord:
    weights = np.array([[0.01, 0.3, 0.69, 0.0], [0.2, 0.8, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]], np.float32)
    return AlignmentRecord(source, target, np.stack([weights] * heads), text="Dec", score=-0.5)


def test_record_is_checked():
    weights = record().weights
    with pytest.raises(ValueError, match="do not fit"):
        AlignmentRecord(("a",), ("b",), weights)
    with pytest.raises(ValueError, match="never negative"):
        AlignmentRecord(*["abcd", "xyz"], weights - 0.5)
    with pytest.raises(ValueError, match="sum to 1"):
        AlignmentRecord(*["abcd", "xyz"], weights / 2)


def test_alignment_is_the_mean_over_heads_and_pharaoh_leaves_the_ends_out():
    made = record(heads=2)
    assert made.alignment.shape == (3, 4)
    assert made.pharaoh() == "2-0 1-1"
    assert (
        AlignmentRecord(("<eos>",), ("x",), np.ones((1, 1, 1), np.float32), target_eos=False).pharaoh() == ""
    )


def test_literal_end_symbol_is_told_apart_from_the_end():
    made = AlignmentRecord(("<eos>", "<eos>"), ("<eos>",), np.array([[[1.0, 0.0]]]), target_eos=False)
    assert made.pharaoh() == "0-0"
    assert json.loads(made.to_json())["target_eos"] is False


def test_json_has_the_numbers():
    made = json.loads(record(heads=2).to_json())
    assert made["format"] == "regard-alignment"
    assert np.shape(made["weights"]) == (2, 3, 4)
    assert made["source_tokens"][2] == "\u6708"


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_heat_map_is_drawn_in_the_format_of_its_name(tmp_path, heads, suffix):
    path = tmp_path / f"a.{suffix}"
    draw_heatmap(record(heads, source=("a", "b", "c", "<eos>")), path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


def test_heat_map_has_the_tokens_as_text(tmp_path):
    draw_heatmap(record(source=("alpha", "b", "c", "<eos>")), tmp_path / "a.svg", title="a title")
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for text in ("alpha", "Dec", "\u2423", "&lt;eos&gt;", "a title", "attention weight", "source", "target"):
        assert text in drawn


def test_other_format_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"not in '?\.bmp"):
        draw_heatmap(record(), tmp_path / "a.bmp")


def test_missing_font_is_said_once_with_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "_covered", lambda path: set(range(0x250)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hint = draw_heatmap(record(), tmp_path / "a.png")
    assert "\u6708" in hint
    assert "fonts-noto-cjk" in hint


def test_font_is_chosen_that_has_the_characters(monkeypatch):
    covered = {"plain.ttf": set(range(0x250)), "cjk.ttc": {ord("\u6708")}}

    class Entry:
        def __init__(self, name, fname):
            self.name, self.fname = name, fname

    class Manager:
        def __init__(self):
            self.ttflist = [Entry("DejaVu Sans", "plain.ttf"), Entry("X", "x.ttf")]

        def addfont(self, path):
            self.ttflist.append(Entry("Noto Sans CJK SC", path))

    # Installed since the list was made, so that it is only found by looking again.
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: ["cjk.ttc"])
    monkeypatch.setattr("matplotlib.font_manager.fontManager", Manager())
    monkeypatch.setattr(figures, "_covered", lambda path: covered[path])
    assert figures.font_families(["a\u6708"]) == (["DejaVu Sans", "Noto Sans CJK SC"], "")
    assert figures.font_families(["abc"])[0] == ["DejaVu Sans"]


def test_terminal_shades_read_without_colour():
    lines = render_alignment(record(), width=60).plain.splitlines()
    assert lines[0].split() == ["1", "2", "\u6708", "<eos>"]
    assert lines[1].startswith("  Dec")
    assert lines[1][6:].rstrip() == "   \u2592\u2592 \u2593\u2593"
    assert lines[2].lstrip().startswith("\u2423")
    assert lines[3].rstrip().endswith("\u2588" * 5)
    assert "from 75 %" in lines[-1]


def test_terminal_without_unicode_gets_ascii():
    shown = render_alignment(record(), width=60, ascii_only=True).plain
    assert shown.isascii()
    assert "\\u6708" in shown
    assert "#####" in shown


def test_source_wider_than_the_terminal_is_cut_into_blocks():
    n = 30
    wide = AlignmentRecord([f"w{i}" for i in range(n)], ("t", "<eos>"), np.full((1, 2, n), 1 / n, np.float32))
    shown = render_alignment(wide, width=40).plain
    assert max(map(len, shown.splitlines()[:-1])) <= 41
    assert all(f"w{i}" in shown for i in range(n))
