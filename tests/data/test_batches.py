from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import SideSettings
from regard.data.batches import Batches
from regard.data.pairs import EncodedPairs, EncodedSide, split_held_out
from regard.data.tokenizers import Tokenizer
from regard.data.vocabulary import EOS

quick = settings(deadline=None, max_examples=30)
LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60)


def pairs_of(lengths) -> EncodedPairs:
    """Pairs whose tokens tell their row and place."""
    sides = []
    for side in (0, 1):
        sides.append(
            EncodedSide.join(
                [[3 + 100 * row + place for place in range(pair[side])] for row, pair in enumerate(lengths)]
            )
        )
    return EncodedPairs(*sides)


@quick
@given(
    lengths=LENGTHS,
    size=st.integers(1, 7),
    unit=st.sampled_from(["sentences", "tokens"]),
    epoch=st.integers(0, 3),
)
def test_each_pair_once_an_epoch_with_exact_content(lengths, size, unit, epoch):
    batches = Batches(
        pairs_of(lengths), batch_size=size * (1 if unit == "sentences" else 5), unit=unit, seed=3
    )
    seen = []
    for batch in batches.epoch(epoch):
        for place, row in enumerate(batch.rows.tolist()):
            source = [3 + 100 * row + i for i in range(lengths[row][0])]
            target = [3 + 100 * row + i for i in range(lengths[row][1])]
            width, out_width = batch.source.shape[1], batch.target_out.shape[1]
            assert batch.source[place].tolist() == [*source, EOS] + [0] * (width - len(source) - 1)
            assert batch.target_out[place].tolist() == [*target, EOS] + [0] * (out_width - len(target) - 1)
            assert batch.target_in[place].tolist() == [EOS, *target] + [0] * (out_width - len(target) - 1)
            assert batch.source_lens[place] == len(source) + 1
            assert batch.target_lens[place] == len(target) + 1
            seen.append(row)
        assert batch.n_tokens == sum(lengths[row][1] + 1 for row in batch.rows)
        if unit == "sentences":
            assert len(batch.rows) <= size
        else:
            assert len(batch.rows) == 1 or batch.target_out.size <= size * 5
    assert sorted(seen) == list(range(len(lengths)))


@quick
@given(
    lengths=LENGTHS,
    size=st.integers(1, 7),
    unit=st.sampled_from(["sentences", "tokens"]),
    start=st.integers(0, 5),
)
def test_order_depends_on_seed_and_epoch_and_can_be_entered_anywhere(lengths, size, unit, start):
    def order(seed, epoch, start=0):
        made = Batches(pairs_of(lengths), batch_size=size, unit=unit, seed=seed)
        return [batch.rows.tolist() for batch in made.epoch(epoch, start=start)]

    assert order(1, 2) == order(1, 2)
    assert order(1, 2, start) == order(1, 2)[start:]
    assert len(order(1, 0)) == Batches(pairs_of(lengths), batch_size=size, unit=unit, seed=1).n_batches


def test_epochs_and_seeds_differ():
    pairs = pairs_of([(3, 3)] * 50)

    def order(seed, epoch):
        return [batch.rows.tolist() for batch in Batches(pairs, batch_size=5, seed=seed).epoch(epoch)]

    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_like_lengths_share_batches():
    rng = np.random.default_rng(1)
    lengths = [(int(n), int(n)) for n in rng.integers(1, 40, 3000)]
    padded = sum(b.source.size for b in Batches(pairs_of(lengths), batch_size=32).epoch(0))
    assert padded < 1.1 * sum(n + 1 for n, _ in lengths)


def test_unshuffled_batches_go_by_length_and_stay():
    batches = Batches(pairs_of([(4, 1), (1, 1), (3, 1), (2, 1)]), batch_size=2, shuffle=False)
    assert [batch.rows.tolist() for batch in batches.epoch(0)] == [[1, 3], [2, 0]]
    assert [batch.rows.tolist() for batch in batches.epoch(9)] == [[1, 3], [2, 0]]


def test_pairs_are_encoded_and_too_long_ones_counted():
    tokenizer = Tokenizer.train(["abc"], SideSettings(tokenizer="char"))
    encoded, n_too_long = EncodedPairs.from_pairs(
        [("ab", "c"), ("abca", "c"), ("a", "abca")], tokenizer, tokenizer, max_source_len=3, max_target_len=3
    )
    assert len(encoded) == 1
    assert n_too_long == 2
    assert encoded.source.tokens.tolist() == [*tokenizer.encode("ab"), EOS]
    other, _ = EncodedPairs.from_pairs(
        [("ab", "b")], tokenizer, tokenizer, max_source_len=3, max_target_len=3
    )
    assert encoded.fingerprint() != other.fingerprint()


def test_no_pairs_make_no_arrays():
    assert len(EncodedPairs(EncodedSide.join([]), EncodedSide.join([]))) == 0


@quick
@given(
    keys=st.lists(st.sampled_from("abcdefghij"), max_size=40),
    fraction=st.sampled_from([0.05, 0.3]),
    seed=st.integers(0, 9),
)
def test_no_source_stands_on_both_sides_of_the_split(keys, fraction, seed):
    train, dev = split_held_out(keys, fraction=fraction, seed=seed)
    assert sorted([*train, *dev]) == list(range(len(keys)))
    assert not {keys[row] for row in train} & {keys[row] for row in dev}
    assert bool(dev) == (len(set(keys)) > 1)
    assert (train, dev) == split_held_out(keys, fraction=fraction, seed=seed)


def test_held_out_number_has_a_limit():
    keys = [str(n) for n in range(1000)]
    assert len(split_held_out(keys, fraction=0.2, seed=1, limit=50)[1]) == 50
    assert len(split_held_out(keys, fraction=0.2, seed=1)[1]) == 200


@pytest.mark.parametrize("unit", ["sentences", "tokens"])
def test_pair_over_the_size_makes_a_batch_of_its_own(unit):
    batches = Batches(pairs_of([(2, 30), (2, 2), (2, 2)]), batch_size=8 if unit == "tokens" else 1, unit=unit)
    assert any(batch.rows.tolist() == [0] for batch in batches.epoch(0))
