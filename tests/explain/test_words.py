from __future__ import annotations

import numpy as np
import pytest

from regard.explain.record import AlignmentRecord
from regard.explain.words import by_words, word_numbers


def grouped(tokens: list[str], kind: str, *, eos: bool = False) -> list[str]:
    groups: dict[int, str] = {}
    for token, number in zip(tokens, word_numbers(tokens, kind, eos=eos), strict=True):
        groups[number] = groups.get(number, "") + token
    assert list(groups) == list(range(len(groups)))
    return list(groups.values())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dec 1, 2026", ["Dec", " 1", ",", " 2026"]),
        ("it's 12,500.00.", ["it's", " 12,500.00", "."]),
        ("2026年12月1日", ["2026", "年", "12", "月", "1", "日"]),
        ("a  b ", ["a", "  b", " "]),
        (" a", [" a"]),
        ("कि है", ["कि", " है"]),
        ("'a' 1,b", ["'", "a", "'", " 1", ",", "b"]),
        ("", []),
    ],
)
def test_characters_make_words(text, words):
    assert grouped(list(text), "char") == words


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram"])
def test_subwords_make_words_and_the_end_is_one_of_its_own(kind):
    tokens = ["▁Decem", "ber", "▁1", ",", "▁", "2026", "<eos>"]
    assert grouped(tokens, kind, eos=True) == ["▁December", "▁1", ",", "▁2026", "<eos>"]


def test_tokens_between_blanks_are_words_as_they_are():
    assert grouped(["a", "b", "<eos>"], "space", eos=True) == ["a", "b", "<eos>"]


def test_only_the_end_is_one_word():
    assert word_numbers(["<eos>"], "char", eos=True) == [0]


def test_weights_are_summed_over_source_pieces_and_averaged_over_target_pieces():
    weights = np.array([[[0.1, 0.2, 0.3, 0.4], [0.3, 0.4, 0.1, 0.2], [0.0, 0.0, 0.5, 0.5]]], np.float32)
    record = AlignmentRecord(["a", "b", " c", "<eos>"], ["X", "Y", "<eos>"], weights)
    made = by_words(record, source_kind="char", target_kind="char")
    assert list(made.source_tokens) == ["ab", "c", "<eos>"]
    assert list(made.target_tokens) == ["XY", "<eos>"]
    np.testing.assert_allclose(made.weights, [[[0.5, 0.2, 0.3], [0.0, 0.5, 0.5]]], atol=1e-6)


def test_words_of_each_head_still_sum_to_1():
    rng = np.random.default_rng(2)
    source, target = [*"one two, 三四"], [*"uno dos"]
    weights = rng.dirichlet(np.ones(len(source)), (3, len(target))).astype(np.float32)
    record = AlignmentRecord(source, target, weights, source_eos=False, target_eos=False)
    made = by_words(record, source_kind="char", target_kind="char")
    assert list(made.source_tokens) == ["one", "two", ",", "三", "四"]
    assert made.weights.shape == (3, 2, 5)
    np.testing.assert_allclose(made.weights.sum(-1), 1, atol=1e-5)
    assert made.pharaoh().count("-") == 2
