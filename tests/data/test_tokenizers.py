from __future__ import annotations

import json
import pickle
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import SideSettings
from regard.data.inspect import choose_kind, choose_normal_form
from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import EOS, PAD, UNK
from regard.errors import ModelFolderError

SENTENCES = [
    "The cat sat on the mat, and the dog (old, tired) looked at 12 mats.",
    "It's the cat that sat; the dog didn't sit on 2026 mats!",
    "Dogs look at cats, cats look at mats.",
] * 4

KINDS = ["char", "grapheme", "space", "word", "bpe", "unigram"]


def make(kind: str, texts=SENTENCES, **changes) -> Tokenizer:
    size = 60 if kind == "unigram" else 120
    return Tokenizer.train(
        texts, SideSettings(tokenizer=kind, **{"vocabulary_size": size, **changes}), side="source"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_training_text_comes_back_as_it_was(kind):
    tokenizer = make(kind, vocabulary_size=400 if kind != "unigram" else 60)
    for text in SENTENCES:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert UNK not in tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "unigram"])
@settings(deadline=None, max_examples=30)
@given(text=st.text(alphabet="Dog cat,sm.", max_size=20).map(str.strip))
def test_text_of_known_symbols_comes_back(kind, text):
    tokenizer = make("char") if kind == "char" else make(kind, texts=[*SENTENCES, "D o g c a t , s m ."])
    ids = tokenizer.encode(text)
    if UNK not in ids:
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", KINDS)
def test_reserved_ids_are_no_text(kind):
    tokenizer = make(kind, texts=[*SENTENCES, "<eos> <pad> <unk> < pad > < eos > < unk >"])
    for text in ("<eos>", "<pad>", "<unk>", "< eos >", "< pad >"):
        assert PAD not in tokenizer.encode(text)
        assert EOS not in tokenizer.encode(text)


@pytest.mark.parametrize("kind", ["char", "space"])
def test_reserved_words_of_others_are_ordinary_symbols(kind):
    source = "<eos> <pad> [X] {Y} <unk> <s> </s>"
    tokenizer = make(kind, texts=[source])
    assert UNK not in tokenizer.encode(source)
    assert tokenizer.decode(tokenizer.encode(source)) == source
    if kind == "space":
        assert tokenizer.tokens(source) == source.split()


def test_space_splits_on_the_plain_blank_only():
    tokenizer = make("space", texts=["10\u00a0kg zehn\u3000Kilo"])
    assert tokenizer.tokens("10\u00a0kg zehn\u3000Kilo") == ["10\u00a0kg", "zehn\u3000Kilo"]
    assert tokenizer.decode(tokenizer.encode("10\u00a0kg zehn\u3000Kilo")) == "10\u00a0kg zehn\u3000Kilo"


def test_char_keeps_every_space_and_separator():
    text = "10\u00a0kg\u3000\u2028\u0085x"
    tokenizer = make("char", texts=[text], normal_form="NFC")
    assert tokenizer.tokens(text) == list(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_symbols_of_several_characters_stay_one():
    tokenizer = make("space", texts=["n a\u028a", "t\u0361\u0283 i\u02d0"])
    assert tokenizer.tokens("n a\u028a") == ["n", "a\u028a"]


def test_graphemes_are_one_token():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert make("grapheme", texts=[family + "a"]).tokens(family + "a") == [family, "a"]


def test_same_word_in_either_normal_form_gives_the_same_tokens():
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    for form in ("NFC", "NFD"):
        tokenizer = make("char", texts=[composed], normal_form=form)
        assert tokenizer.encode(composed) == tokenizer.encode(decomposed)
        assert tokenizer.decode(tokenizer.encode(decomposed)) == composed
        assert tokenizer.normal_form == form
    untouched = make("char", texts=[decomposed], normal_form="none")
    assert untouched.decode(untouched.encode(decomposed)) == decomposed


def test_unknown_symbols_keep_their_own_spelling():
    tokenizer = make("char", texts=["ab"])
    tokens, unknown = tokenizer.pieces("a\u2603b")
    assert tokens == ["a", "\u2603", "b"]
    assert unknown == ["\u2603"]
    assert tokenizer.decode([3, UNK], replacements={1: "\u2603"}) == tokenizer.token(3) + "\u2603"
    assert tokenizer.decode([UNK]) == "\u2047"


def test_unknown_symbols_are_found_where_the_form_splits_them():
    tokenizer = make("char", texts=["\uac00\ub098"], normal_form="NFD")
    tokens, unknown = tokenizer.pieces("\ub2ec")
    assert unknown == ["\u1103", "\u11af"]
    assert tokens == ["\u1103", "\u1161", "\u11af"]


def test_rare_symbols_are_unknown_when_asked():
    tokenizer = make("char", texts=["aab", "a"], min_frequency=2)
    assert tokenizer.encode("ab") == [3, UNK]


def test_lowercase_applies_to_what_is_encoded():
    tokenizer = make("char", texts=["ABC"], lowercase=True)
    assert tokenizer.decode(tokenizer.encode("aBc")) == "abc"


def test_digits_of_subwords_stand_alone():
    for kind in ("bpe", "unigram"):
        assert make(kind).tokens("2026 mats")[:5] == ["\u2581", "2", "0", "2", "6"]


@pytest.mark.parametrize("kind", KINDS)
def test_saved_tokenizer_is_the_same(kind, tmp_path):
    tokenizer = make(kind)
    tokenizer.save(tmp_path / "t.json")
    loaded = Tokenizer.load(tmp_path / "t.json")
    assert len(loaded) == len(tokenizer)
    assert (loaded.kind, loaded.normal_form, loaded.why) == (
        tokenizer.kind,
        tokenizer.normal_form,
        tokenizer.why,
    )
    for text in [*SENTENCES, "unseen \u2603 words"]:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.tokens(text) == tokenizer.tokens(text)


def test_training_twice_gives_the_same_tokens():
    for kind in KINDS:
        if kind == "unigram":  # the library prunes in the order of a hash table
            continue
        one, two = make(kind), make(kind)
        assert [one.encode(text) for text in SENTENCES] == [two.encode(text) for text in SENTENCES]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        pickle.dumps({"a": 1}),
        b'{"format": "regard-tokenizer", "version": 1}',
        b"\xff\xfe",
    ],
)
def test_damaged_file_is_one_line_that_names_it(tmp_path, content):
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(ModelFolderError, match=r"t\.json: not a tokenizer of regard") as caught:
        Tokenizer.load(path)
    assert "\n" not in str(caught.value)


def test_missing_file_and_other_version_are_named(tmp_path):
    with pytest.raises(ModelFolderError, match="missing"):
        Tokenizer.load(tmp_path / "t.json")
    (tmp_path / "t.json").write_text(
        json.dumps({"format": "regard-tokenizer", "version": 9}), encoding="utf-8"
    )
    with pytest.raises(ModelFolderError, match="found regard-tokenizer version 9, expected"):
        Tokenizer.load(tmp_path / "t.json")


PHONES = ["n a\u028a", "t a k s t", "k \u00f8\u02d0 b", "a", "s t a\u028a b"] * 20


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (PHONES, "space"),
        (["word", "another", "third"], "char"),
        (["\u4ec0\u4e48\u65f6\u5019\u624d\u7ed3\u675f\u554a\uff1f"], "char"),
        (["We have no chance against those top players."], "bpe"),
        (["December 1, 2026", "twelve kilometres and Tuesday"], "bpe"),
        ([" "], "char"),
    ],
)
def test_auto_chooses_by_the_look_of_the_data(texts, kind):
    assert choose_kind(texts)[0] == kind
    assert choose_kind(texts)[1]


def test_auto_says_what_it_chose_and_why():
    tokenizer = Tokenizer.train(PHONES, SideSettings(), side="target")
    assert tokenizer.kind == "space"
    assert tokenizer.why.startswith("target: space, 8 short symbols")


def test_hangul_is_taken_apart_and_french_is_not():
    syllables = [chr(0xAC00 + 7 * n) for n in range(400)]
    assert choose_normal_form(syllables)[0] == "NFD"
    assert choose_normal_form(["\u00e9\u00e8\u00ea" + chr(97 + n % 26) for n in range(400)])[0] == "NFC"
    made = Tokenizer.train(syllables, SideSettings(tokenizer="char"))
    assert made.normal_form == "NFD"
    word = syllables[5] + syllables[9]
    assert made.decode(made.encode(word)) == unicodedata.normalize("NFC", word)


def test_auto_fits_the_real_data(shared_data):
    from regard.data.readers import read_pairs

    expected = {
        "g2p2020/ice_train.tsv": ("char", "space"),
        "g2p2020/vie_train.tsv": ("char", "space"),
        "g2p2020/jpn_train.tsv": ("char", "space"),
        "tatoeba_zh_en/train.tsv": ("char", "bpe"),
    }
    for name, kinds in expected.items():
        pairs = list(read_pairs(shared_data / name))
        assert choose_kind([pair.source for pair in pairs])[0] == kinds[0]
        assert choose_kind([pair.target for pair in pairs])[0] == kinds[1]
