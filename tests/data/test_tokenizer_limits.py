"""Tokenizers at their limits: large inventories, blanks at the edges, hostile files, repeated training."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import SideSettings
from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import RESERVED, UNK
from regard.errors import ModelFolderError

MARKED = ["word", "bpe", "unigram"]
# 300 characters, of which the later ones are rarer.
MANY = [chr(0x4E00 + number) * (7 - number // 50) for number in range(300)]


def make(kind: str, texts, **changes) -> Tokenizer:
    return Tokenizer.train(texts, SideSettings(tokenizer=kind, **changes))


@pytest.mark.parametrize("kind", ["char", "grapheme", "space", *MARKED])
@pytest.mark.parametrize("size", [16, 53])
def test_vocabulary_is_never_larger_than_asked(kind, size):
    made = make(kind, MANY, vocabulary_size=size)
    assert len(made) <= size
    # What there is no room for is unknown, and the commonest character is not.
    assert UNK in made.encode(MANY[-1])
    assert UNK not in made.encode(MANY[0])


@pytest.mark.parametrize("kind", MARKED)
@settings(deadline=None, max_examples=30)
@given(text=st.text(alphabet="ab,. ", max_size=13))
def test_blanks_at_the_edges_come_back(kind, text):
    made = make(kind, ["a b , . ab ba", "aa bb a, b."] * 3, vocabulary_size=40)
    ids = made.encode(text)
    if UNK not in ids:
        assert made.decode(ids) == text
    assert made.decode(made.encode("  a  b ")) == "  a  b "


@pytest.mark.parametrize(("kind", "tokens"), [("word", ["▁a", "▁q☃"]), ("bpe", ["▁a", "▁", "q", "☃"])])
def test_unknown_symbols_show_the_blank_as_its_mark(kind, tokens):
    made = make(kind, ["a b"] * 3)
    assert made.tokens("a q☃") == tokens
    assert made.pieces("a q☃").unknown == [token.removeprefix("▁") for token in tokens if token[-1] in "q☃"]


@pytest.mark.parametrize("kind", ["char", "grapheme", "space", *MARKED])
def test_copied_word_carries_no_mark_into_the_text(kind):
    source, target = make("word", ["a b"] * 3), make(kind, ["a b"] * 3)
    copied = source.tokens("a zz")[1]
    ids = target.encode("a")
    assert target.decode([*ids, UNK], replacements={len(ids): copied}) == "a zz"
    assert target.decode([UNK], replacements={0: copied}) == "zz"


def test_copied_symbol_that_is_the_mark_itself_is_kept():
    made = make("char", ["ab"])
    assert made.decode([UNK, *made.encode("a")], replacements={0: "▁"}) == "▁a"


@pytest.mark.parametrize("kind", ["char", "grapheme", "space", *MARKED])
def test_half_a_surrogate_pair_is_an_unknown_symbol_and_no_crash(kind):
    made = make(kind, ["a b", "b \ud800"])
    assert len(made.encode("a \ud800")) == len(made.tokens("a \udfff"))
    assert "\ufffd" in made.tokens("a \udfff")[-1]


def test_unigram_numbers_do_not_depend_on_the_run():
    """The library scores rare characters in the order of a hash table that is seeded anew in each training."""
    texts = [
        "The cat sat on the mat, and the dog (old, tired) looked at 12 mats.",
        "It's the cat that sat; the dog didn't sit on 2026 mats!",
        "Dogs look at cats, cats look at mats.",
    ] * 4
    made = [make("unigram", texts, vocabulary_size=60) for _ in range(7)]
    assert len({tuple(map(tokenizer.token, range(len(tokenizer)))) for tokenizer in made}) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "letters"},
        {"normal_form": "NFX"},
        {"tokenizer": {"model": {}}},
        {"why": ...},
    ],
)
def test_file_with_a_wrong_or_missing_part_is_refused(tmp_path, change):
    path = tmp_path / "t.json"
    make("char", ["ab"]).save(path)
    described = {**json.loads(path.read_text(encoding="utf-8")), **change}
    kept = {name: value for name, value in described.items() if value is not ...}
    path.write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"t\.json: not a tokenizer of regard"):
        Tokenizer.load(path)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_file_without_its_reserved_entries_is_refused(tmp_path, number):
    path = tmp_path / "t.json"
    make("char", ["ab"]).save(path)
    text = path.read_text(encoding="utf-8").replace(f'"{RESERVED[number]}":', '"other":')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelFolderError, match=r"t\.json: not a tokenizer of regard"):
        Tokenizer.load(path)


@pytest.mark.parametrize("kind", MARKED)
def test_lowercase_and_form_apply_to_what_is_trained_on(kind):
    made = make(kind, ["Cafe\u0301 CAFE\u0301"] * 3, lowercase=True, normal_form="NFC")
    assert UNK not in made.encode("caf\u00e9")
    assert made.decode(made.encode("CAF\u00c9")) == "caf\u00e9"


@pytest.mark.parametrize("kind", ["char", "grapheme", "space", *MARKED])
def test_blank_training_text_makes_a_tokenizer_of_reserved_entries(kind):
    made = make(kind, [""])
    assert len(made) == len(RESERVED)
    assert made.encode("") == []
    assert set(made.encode("ab")) == {UNK}
