"""Tokens on pictures and in the terminal: whatever stands in the data is shown as it is, or as its number."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from regard.errors import ConfigError
from regard.explain.heatmap import _HIGHEST, _WIDEST, _layout, draw_heatmap
from regard.explain.record import AlignmentRecord, shown_token, visible
from regard.explain.terminal import render_alignment


def record(source, target, *, heads: int = 1, text: str = "") -> AlignmentRecord:
    weights = np.random.default_rng(3).dirichlet(np.ones(len(source)), (heads, len(target)))
    return AlignmentRecord(source, target, weights.astype(np.float32), text=text)


def drawn(made: AlignmentRecord, path, **options) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_heatmap(made, path, **options)
    # The library repeats each text in a comment; what is drawn is outside of it.
    return re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_dollar_signs_are_no_formula(tmp_path):
    made = record([r"$\frac$", "<eos>"], ["US$", "<eos>"], text="US$5 to US$10")
    shown = drawn(made, tmp_path / "a.svg")
    for text in (r"$\frac$", "US$", "US$5 to US$10"):
        assert f">{text}<" in shown


def test_characters_that_do_not_print_are_drawn_as_their_numbers(tmp_path):
    made = record(["\x0c", "\x85", "\u2028", "<eos>"], ["\u3000", "<eos>"], text="a\x1cb")
    shown = drawn(made, tmp_path / "a.svg")
    for text in ("U+000C", "U+0085", "U+2028", "U+3000", "aU+001Cb"):
        assert f">{text}<" in shown
    terminal = render_alignment(made, width=80).plain
    assert all(text in terminal for text in ("U+000C", "U+0085", "U+2028", "U+3000"))
    assert "\x0c" not in terminal


def test_blanks_and_joiners_inside_a_token_are_kept():
    assert visible("a b", blank="\u2423") == "a\u2423b"
    assert visible("a b") == "a b"
    assert visible("\u0645\u06cc\u200c\u062e") == "\u0645\u06cc\u200c\u062e"
    assert visible("\u200c") == "U+200C"
    assert visible("\x1b[31m") == "U+001B[31m"


def test_blank_sign_of_subwords_is_shown_as_a_blank_everywhere_and_that_of_a_text_is_kept(tmp_path):
    tokens = ["\u2581Dec", "\u2581", "1", "<eos>"]
    made = replace(record(tokens, tokens), source_kind="char", target_kind="bpe")
    for kind in ("word", "bpe", "unigram"):
        assert shown_token("\u2581Dec", kind) == "\u2423Dec"
    for kind in ("char", "grapheme", "space", ""):
        assert shown_token("\u2581", kind) == "\u2581"
    shown = drawn(made, tmp_path / "a.svg")
    for text in (*tokens[:2], "\u2423Dec", "\u2423"):
        assert f">{text}<" in shown
    head, *rows = render_alignment(made, width=80).plain.splitlines()
    assert head.split() == tokens
    assert [row.split()[0] for row in rows[:4]] == ["\u2423Dec", "\u2423", "1", "<eos>"]
    assert "_Dec " in render_alignment(made, width=80, ascii_only=True).plain


def test_heads_have_a_panel_each_with_labelled_axes(tmp_path):
    shown = drawn(record(list("abcde"), list("xyz"), heads=3), tmp_path / "a.svg")
    for text in ("mean of heads", "head 1", "head 2", "head 3"):
        assert shown.count(f">{text}<") == 1
    assert shown.count(">source<") == shown.count(">target<") == 4


@pytest.mark.parametrize(("n_source", "n_target"), [(2, 3), (11, 7), (211, 13), (13, 211), (401, 397)])
@pytest.mark.parametrize("n_panels", [1, 2, 5, 17])
def test_picture_has_room_for_all_panels_and_stays_in_bounds(n_source, n_target, n_panels):
    layout = _layout(["s"] * n_source, ["t"] * n_target, n_panels)
    assert layout.n_rows * layout.n_columns >= n_panels
    assert (layout.n_rows - 1) * layout.n_columns < n_panels
    assert 2 < layout.width <= _WIDEST
    assert 2 < layout.height <= _HIGHEST
    assert 0 < layout.scale <= 1


def test_more_tokens_make_a_larger_picture_until_the_bound():
    small, large = _layout(["s"] * 11, ["t"] * 7, 1), _layout(["s"] * 23, ["t"] * 19, 1)
    assert small.width < large.width
    assert small.height < large.height
    assert small.scale == large.scale == 1


def test_long_title_is_shortened(tmp_path):
    shown = drawn(record(["a", "<eos>"], ["b", "<eos>"]), tmp_path / "a.svg", title="long " * 50)
    title = re.search(r">(long [long ]*)(\u2026?)<", shown)
    assert title is not None
    assert title[2] == "\u2026"
    assert len(title[1]) < 40


def test_end_is_grey_and_a_symbol_of_its_spelling_is_not(tmp_path):
    shown = drawn(record(["<eos>", "<eos>"], ["b", "<eos>"]), tmp_path / "a.svg")
    texts = re.findall(r"<text ([^>]*)>&lt;eos&gt;<", shown)
    assert len(texts) == 3
    assert ["#7a7a7a" in style for style in texts] == [False, True, True]


def test_output_without_tokens_is_refused_in_one_line(tmp_path):
    empty = AlignmentRecord(("a",), (), np.zeros((1, 0, 1), np.float32), target_eos=False)
    with pytest.raises(ConfigError, match="nothing to draw, the output has no tokens") as caught:
        draw_heatmap(empty, tmp_path / "a.png")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "a.png").exists()


def test_record_says_which_weights_are_wrong():
    good = np.full((2, 3, 5), 0.2, np.float32)
    source, target = tuple("abcde"), tuple("xyz")
    with pytest.raises(ValueError, match=r"\(2, 3, 5\) do not fit .* = \(heads, 3, 4\)"):
        AlignmentRecord(source[:4], target, good)
    with pytest.raises(ValueError, match="at least one head"):
        AlignmentRecord(source, target, good[:0])
    with pytest.raises(ValueError, match="are finite"):
        AlignmentRecord(source, target, np.where(np.arange(5) == 4, np.nan, good))
    wrong = good.copy()
    wrong[1, 2] *= 2
    with pytest.raises(ValueError, match="those of token 2 in head 1 to 2"):
        AlignmentRecord(source, target, wrong)


def test_numpy_copy_does_not_change_the_record():
    made = record(["a", "<eos>"], ["b", "<eos>"], heads=3)
    copy = made.to_numpy()
    assert copy.shape == (3, 2, 2)
    assert copy.dtype == np.float32
    copy[:] = 0
    assert np.allclose(made.weights.sum(-1), 1)
