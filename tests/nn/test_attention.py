from __future__ import annotations

import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn.references import NORMALISERS as NORMALISE
from nn.references import attend_one
from regard.errors import ConfigError
from regard.nn.attention import Attention
from regard.nn.normalisers import masked_entmax15, masked_softmax, masked_sparsemax
from regard.nn.types import AttentionMask
from regard.registry import NORMALISERS, SCORES, Registry

SCORE_NAMES = ["additive", "cosine", "dot", "general", "location", "scaled_dot"]
WINDOWS = ["global", "local_m", "local_p"]
SIZE, BATCH, N_QUERIES, SOURCE_LEN = 6, 3, 5, 7


def make(seed: int, **options) -> Attention:
    torch.manual_seed(seed)
    attention = Attention(SIZE, SIZE, window_size=2, max_positions=5, **options).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return attention


def inputs(seed: int):
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(BATCH, N_QUERIES, SIZE, dtype=torch.double, generator=generator)
    keys = torch.randn(BATCH, SOURCE_LEN, SIZE, dtype=torch.double, generator=generator)
    values = torch.randn(BATCH, SOURCE_LEN, SIZE, dtype=torch.double, generator=generator)
    return query, keys, values, torch.tensor([7, 1, 4])


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "entmax15"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_attention_equals_the_formulas(score, window, normaliser, heads):
    attention = make(1, score=score, window=window, normaliser=normaliser, heads=heads)
    query, keys, values, lens = inputs(2)
    mask = AttentionMask.from_lengths(lens, SOURCE_LEN)
    made = attention.attend(query, attention.prepare(keys, mask, values=values))
    for row, length in enumerate(lens.tolist()):
        for step in range(N_QUERIES):
            context, weights = attend_one(
                attention,
                score,
                normaliser,
                query[row, step].numpy(),
                keys[row, :length].numpy(),
                values[row, :length].numpy(),
                step,
            )
            assert np.allclose(made.context[row, step].detach().numpy(), context, atol=1e-9)
            assert np.allclose(made.weights[row, :, step, :length].detach().numpy(), weights, atol=1e-9)
            assert not made.weights[row, :, step, length:].any()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("score", SCORE_NAMES)
def test_gradients_equal_differences(score, window):
    attention = make(3, score=score, window=window, heads=2)
    query, keys, values, lens = inputs(4)
    mask = AttentionMask.from_lengths(lens[1:2] + 3, 4)

    def run(query, keys, values):
        return attention.attend(query, attention.prepare(keys, mask, values=values)).context

    sliced = [tensor[:1, :n].clone().requires_grad_() for tensor, n in ((query, 3), (keys, 4), (values, 4))]
    assert torch.autograd.gradcheck(run, sliced)


def test_dot_attention_by_hand():
    attention = Attention(2, 2, score="dot").double()
    keys = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]], dtype=torch.double)
    values = torch.tensor([[[1.0, 2.0], [5.0, 6.0], [7.0, 7.0]]], dtype=torch.double)
    mask = AttentionMask(torch.tensor([[True, True, False]]))
    query = torch.tensor([[[math.log(3.0), 0.0]]], dtype=torch.double)
    made = attention.attend(query, attention.prepare(keys, mask, values=values))
    assert made.weights[0, 0, 0].tolist() == pytest.approx([0.75, 0.25, 0.0])
    assert made.context[0, 0].tolist() == pytest.approx([2.0, 3.0])
    assert made.scores[0, 0, 0, :2].tolist() == pytest.approx([math.log(3.0), 0.0])


def test_values_are_the_keys_unless_given():
    attention = make(5, score="dot")
    query, keys, _, lens = inputs(5)
    memory = attention.prepare(keys, AttentionMask.from_lengths(lens, SOURCE_LEN))
    assert torch.equal(memory.values[:, 0], keys)
    assert attention.attend(query, memory).context.shape == (BATCH, N_QUERIES, SIZE)


def test_values_may_be_of_another_size():
    attention = Attention(4, 6, value_size=3, score="general")
    mask = AttentionMask.from_lengths(torch.tensor([2, 5]), 5)
    memory = attention.prepare(torch.randn(2, 5, 6), mask, values=torch.randn(2, 5, 3))
    assert attention.attend(torch.randn(2, 7, 4), memory).context.shape == (2, 7, 3)
    assert memory.select(torch.tensor([1])).values.shape == (1, 1, 5, 3)
    assert memory.batch_size == 2


quick = settings(deadline=None, max_examples=40)


@quick
@given(
    scores=st.lists(st.floats(-50, 50), min_size=1, max_size=7),
    shift=st.sampled_from([0.0, -1e4, 1e4]),
    seed=st.integers(0, 999),
    name=st.sampled_from(["softmax", "sparsemax", "entmax15"]),
)
def test_weights_sum_to_one_whatever_the_size_of_the_scores(scores, shift, seed, name):
    allowed = torch.rand(len(scores), generator=torch.Generator().manual_seed(seed)) < 0.6
    weights = NORMALISERS.get(name)(torch.tensor(scores, dtype=torch.double) + shift, allowed)
    assert (weights >= 0).all()
    assert not weights[~allowed].any()
    assert weights.sum().item() == pytest.approx(1.0 if allowed.any() else 0.0, abs=1e-6)
    if allowed.any():
        expected = NORMALISE[name](np.array(scores)[allowed.numpy()])
        assert np.allclose(weights[allowed].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("normalise", [masked_softmax, masked_sparsemax, masked_entmax15])
def test_row_without_a_key_has_zero_weights_and_no_gradient(normalise):
    scores = torch.randn(2, 3, dtype=torch.double, requires_grad=True)
    allowed = torch.tensor([[False] * 3, [True, True, False]])
    weights = normalise(scores, allowed)
    assert weights[0].tolist() == [0, 0, 0]
    weights.square().sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[0].tolist() == [0, 0, 0]


def test_normaliser_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "entmax", None)
    with pytest.raises(ConfigError, match=r'needs the package entmax: pip install "regard\[entmax\]"'):
        masked_sparsemax(torch.zeros(2), torch.ones(2, dtype=torch.bool))


def test_mask_is_bool_and_of_two_dimensions():
    with pytest.raises(TypeError, match="True = may be attended"):
        AttentionMask(torch.ones(2, 3))
    with pytest.raises(ValueError, match="batch, source_len"):
        AttentionMask(torch.ones(3, dtype=torch.bool))
    mask = AttentionMask.from_lengths(torch.tensor([2, 0]), 3)
    assert mask.allowed.tolist() == [[True, True, False], [False, False, False]]
    assert mask.lengths.tolist() == [2, 0]
    assert mask.select(torch.tensor([1, 1])).allowed.shape == (2, 3)


def test_mask_that_does_not_fit_the_keys_is_refused():
    with pytest.raises(ValueError, match="does not fit keys"):
        make(1).prepare(torch.zeros(2, 4, SIZE).double(), AttentionMask.from_lengths(torch.tensor([1, 1]), 3))


def test_sizes_that_do_not_fit_are_refused_with_the_reason():
    with pytest.raises(ValueError, match="query_size 5 cannot be shared among 2 heads"):
        Attention(5, 6, heads=2)
    for name in ("dot", "scaled_dot", "cosine"):
        with pytest.raises(ValueError, match="take general or additive"):
            Attention(4, 6, score=name)


def test_score_of_another_package_can_be_used(monkeypatch):
    from regard.nn.scores import DotScore

    class Half(DotScore):
        def forward(self, query, prepared):
            return super().forward(query, prepared) / 2

    registry = Registry("scores", SCORES._paths)
    registry.register("half")(Half)
    monkeypatch.setattr("regard.nn.attention.SCORES", registry)
    query, keys, _, lens = inputs(6)
    mask = AttentionMask.from_lengths(lens, SOURCE_LEN)
    half, whole = make(1, score="half"), make(1, score="dot")
    made = half.attend(query * 2, half.prepare(keys, mask))
    assert torch.allclose(made.weights, whole.attend(query, whole.prepare(keys, mask)).weights)


def test_location_gives_no_weight_to_positions_it_does_not_know():
    attention = make(7, score="location")
    query, keys, _, _ = inputs(7)
    mask = AttentionMask.from_lengths(torch.tensor([7, 6, 2]), SOURCE_LEN)
    weights = attention.attend(query, attention.prepare(keys, mask)).weights
    assert not weights[..., 5:].any()
    assert torch.allclose(weights.sum(-1), torch.ones(()).double())
