"""Pairs on disk are the pairs in memory, in shards."""

from __future__ import annotations

import numpy as np
import pytest

from regard.config import SideSettings
from regard.data import store
from regard.data.batches import Batches
from regard.data.pairs import EncodedPairs
from regard.data.store import PairStore, store_key, write_store
from regard.data.tokenizers import Tokenizer

LIMITS = {"max_source_len": 6, "max_target_len": 6}


@pytest.fixture
def texts():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdef"), rng.integers(1, 9))) for _ in range(100)]
    return [(word, word[::-1]) for word in words]


@pytest.fixture
def tokenizer(texts):
    return Tokenizer.train([source for source, _ in texts], SideSettings(tokenizer="char"))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Shards and chunks of a few pairs, so that there are several."""
    monkeypatch.setattr(store, "SHARD", 16)
    monkeypatch.setattr(store, "CHUNK", 7)


def test_shards_hold_what_memory_holds(tmp_path, texts, tokenizer):
    memory, n_too_long = EncodedPairs.from_pairs(texts, tokenizer, tokenizer, **LIMITS)
    made = write_store(tmp_path / "s", texts, tokenizer, tokenizer, **LIMITS)
    assert n_too_long > 0
    assert (len(made), made.n_too_long) == (len(memory), n_too_long)
    assert sum(made.shard_sizes) == len(memory)
    assert len(made.shard_sizes) > 2
    first = 0
    for number, size in enumerate(made.shard_sizes):
        shard = made.shard(number)
        assert len(shard) == size
        for row in range(size):
            for ours, theirs in ((shard.source, memory.source), (shard.target, memory.target)):
                found = ours.padded(np.array([row]))[0][0]
                assert found.tolist() == theirs.padded(np.array([first + row]))[0][0].tolist()
        first += size


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
@pytest.mark.parametrize("shuffle", [True, False])
def test_an_epoch_has_each_pair_once_and_can_be_entered_anywhere(tmp_path, texts, tokenizer, unit, shuffle):
    made = write_store(tmp_path / "s", texts, tokenizer, tokenizer, **LIMITS)
    batches = Batches(made, batch_size=5 if unit == "sentences" else 24, unit=unit, shuffle=shuffle)
    whole = [batch.rows.tolist() for batch in batches.epoch(3)]
    assert sorted(row for rows in whole for row in rows) == list(range(len(made)))
    for start in range(len(whole) + 1):
        assert [batch.rows.tolist() for batch in batches.epoch(3, start=start)] == whole[start:]
    if unit == "sentences":
        assert len(whole) == batches.n_batches
    memory, _ = EncodedPairs.from_pairs(texts, tokenizer, tokenizer, **LIMITS)
    for batch in batches.epoch(3):
        expected, lengths = memory.source.padded(batch.rows)
        assert (batch.source == expected).all()
        assert (batch.source_lens == lengths).all()
    other = [batch.rows.tolist() for batch in batches.epoch(4)]
    assert (other != whole) == shuffle


def test_unfinished_and_missing_stores_are_not_found(tmp_path, texts, tokenizer):
    def failing():
        yield from texts[:10]
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write_store(tmp_path / "s", failing(), tokenizer, tokenizer, **LIMITS)
    assert PairStore.find(tmp_path / "s") is None
    assert PairStore.find(tmp_path / "none") is None
    made = write_store(tmp_path / "s", texts, tokenizer, tokenizer, **LIMITS)
    found = PairStore.find(tmp_path / "s")
    assert found is not None
    assert found.fingerprint() == made.fingerprint()
    other = write_store(tmp_path / "t", texts[1:], tokenizer, tokenizer, **LIMITS)
    assert other.fingerprint() != made.fingerprint()


def test_keys_tell_contents_apart():
    assert store_key("a", 1) == store_key("a", 1)
    assert len({store_key("a", 1), store_key("a", 2), store_key("b", 1), store_key("a1")}) == 4
