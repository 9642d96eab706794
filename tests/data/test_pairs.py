"""Encoded pairs across chunks, and the held-out split where sources repeat."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import regard.data
from regard.config import SideSettings
from regard.data import pairs as pairs_module
from regard.data.batches import Batches
from regard.data.pairs import EncodedPairs, EncodedSide, split_held_out
from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import EOS, RESERVED, make_vocabulary


def test_chunks_join_to_what_one_piece_gives(monkeypatch):
    tokenizer = Tokenizer.train(["abcdefg"], SideSettings(tokenizer="char"))
    pairs = [("abcdefg"[: 1 + n % 7], "gfedcba"[: 1 + n % 5]) for n in range(23)]

    def encode(limit):
        return EncodedPairs.from_pairs(pairs, tokenizer, tokenizer, max_source_len=limit, max_target_len=4)

    whole, n_whole = encode(6)
    monkeypatch.setattr(pairs_module, "CHUNK", 5)
    parts, n_parts = encode(6)
    assert n_whole == n_parts == sum(n % 7 == 6 or n % 5 == 4 for n in range(23))
    assert parts.fingerprint() == whole.fingerprint()
    assert len(parts) == 23 - n_parts
    assert parts.source.tokens.dtype == np.int32
    assert parts.source.offsets.dtype == np.int64


def test_concatenated_sides_keep_their_order():
    one, two = EncodedSide.join([[5, 7], []]), EncodedSide.join([[11]])
    both = EncodedSide.concatenate([one, two])
    assert both.tokens.tolist() == [5, 7, EOS, EOS, 11, EOS]
    assert both.offsets.tolist() == [0, 3, 4, 6]
    assert EncodedSide.concatenate([]).offsets.tolist() == [0]


def test_source_with_most_rows_stays_in_training():
    keys = ["common"] * 9000 + [str(n) for n in range(1000)]
    for seed in range(7):
        train, dev = split_held_out(keys, fraction=0.05, seed=seed)
        assert len(dev) == 500
        assert sum(keys[row] == "common" for row in train) == 9000


def test_repeated_sources_count_by_their_rows():
    keys = [str(n // 3) for n in range(300)]
    _, dev = split_held_out(keys, fraction=0.1, seed=2)
    assert len(dev) == 30


def test_source_with_fewest_rows_is_held_out_where_none_fits():
    keys = ["a"] * 20 + ["b"] * 11 + ["c"] * 30
    train, dev = split_held_out(keys, fraction=0.05, seed=1)
    assert {keys[row] for row in dev} == {"b"}
    assert len(train) == 50


def test_misspelt_unit_is_refused():
    sides = EncodedPairs(EncodedSide.join([[3]]), EncodedSide.join([[3]]))
    with pytest.raises(ValueError, match="sentences or tokens, not in 'token'"):
        Batches(sides, batch_size=2, unit="token")


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_no_pairs_make_no_batches(unit, shuffle):
    nothing = EncodedPairs(EncodedSide.join([]), EncodedSide.join([]))
    batches = Batches(nothing, batch_size=2, unit=unit, shuffle=shuffle)
    assert list(batches.epoch(0)) == []
    assert batches.n_batches == 0


def test_vocabulary_goes_by_frequency_then_symbol_and_keeps_its_size():
    made = make_vocabulary([["b", "c", "c"], ["a", "d"]], min_frequency=1, size=6)
    assert list(made) == [*RESERVED, "c", "a", "b"]
    assert list(made.values()) == [0, 1, 2, 3, 4, 5]


def test_package_names_lead_to_their_modules():
    assert regard.data.Tokenizer is Tokenizer
    assert all(getattr(regard.data, name).__name__ == name for name in regard.data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Tokeniser'"):
        _ = regard.data.Tokeniser


def test_reading_lines_loads_neither_torch_nor_tokenizers():
    code = "import sys, regard.data.lines; sys.exit(bool({'torch', 'tokenizers'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
