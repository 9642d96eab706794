"""The engine that decodes is the model: step by step, whatever its parts."""

from __future__ import annotations

import pytest
import torch

from nn.test_model import ALL, TARGET_SIZE, batch, make
from regard.nn import engine as engine_module
from regard.nn.engine import DecodingEngine, Int8Product, make_engine
from regard.nn.recurrent import LSTMLayer

BEAMS = 3
LENS = [4, 9, 2]


def walk(engine, steps=6):
    """Log-probabilities and weights along a path that reorders beams and drops a source."""
    source, lens, _ = batch(3, LENS, 2)
    generator = torch.Generator().manual_seed(5)
    made = []
    with torch.inference_mode():
        memory, state = engine.start(source, lens)
        state = state.select(torch.arange(len(LENS)).repeat_interleave(BEAMS))
        n_sources = len(LENS)
        for number in range(steps):
            tokens = torch.randint(1, TARGET_SIZE, (n_sources, BEAMS), generator=generator)
            out = engine.step(tokens, memory, state)
            made.append((out.log_probs, out.weights))
            state = out.state
            if number == 2:
                memory, n_sources = memory.select(torch.tensor([2, 0])), 2
                rows = torch.tensor([7, 6, 6, 0, 2, 1])
            else:
                rows = torch.randperm(BEAMS, generator=generator).repeat(n_sources)
                rows = rows + torch.arange(n_sources).repeat_interleave(BEAMS) * BEAMS
            state = state.select(rows)
    return made


def worst(one, other):
    """Largest difference of log-probabilities and of weights."""
    differences = []
    for (log_probs, weights), (expected, expected_weights) in zip(one, other, strict=True):
        differences.append((log_probs - expected).abs().max())
        assert (weights is None) == (expected_weights is None)
        if weights is not None:
            differences.append((weights - expected_weights).abs().max())
    return float(max(differences))


@pytest.mark.parametrize("choice", ALL, ids=str)
def test_it_is_the_model(choice):
    model = make(choice)
    engine = make_engine(model)
    assert isinstance(engine, DecodingEngine)
    # The reference gives probabilities in float32.
    assert worst(walk(engine), walk(model)) < 2e-6


@pytest.mark.parametrize("choice", ALL, ids=str)
def test_without_a_table_it_is_the_same(choice, monkeypatch):
    model = make(choice)
    with_table = walk(make_engine(model))
    monkeypatch.setattr(engine_module, "_TABLE_LIMIT", 0)
    engine = make_engine(model)
    assert engine.table is None
    assert worst(walk(engine), with_table) < 1e-12


@pytest.mark.parametrize("choice", ALL, ids=str)
def test_int8_is_near(choice):
    model = make(choice).float()
    assert worst(walk(make_engine(model, precision="int8")), walk(model)) < 0.6
    assert worst(walk(make_engine(model, precision="int8")), walk(model)) > 0


@pytest.mark.skipif(
    not torch.ops.mkldnn._is_mkldnn_bf16_supported(), reason="this processor has no bfloat16 kernels"
)
@pytest.mark.parametrize("choice", ALL, ids=str)
def test_bfloat16_is_near(choice):
    model = make(choice).float()
    assert 0 < worst(walk(make_engine(model, precision="bfloat16")), walk(model)) < 0.6


def test_an_int8_row_does_not_depend_on_the_others():
    torch.manual_seed(1)
    product = Int8Product(torch.randn(24, 40))
    rows = torch.randn(7, 40) * torch.logspace(-3, 3, 7)[:, None]
    together = product(rows, torch.zeros(24))
    for row in range(7):
        assert torch.equal(product(rows[row : row + 1], torch.zeros(24))[0], together[row])


def test_int8_rounds_no_more_than_half_a_step():
    torch.manual_seed(1)
    weight, rows = torch.randn(16, 32), torch.randn(5, 32)
    made = Int8Product(weight)(rows, torch.zeros(16))
    weight_step = weight.abs().amax(1) / 127
    row_step = rows.abs().amax(1) / 127
    # |x w - x' w'| <= |x| dw / 2 + |w| dx / 2 + dx dw / 4, summed over the 32 inputs
    bound = (
        rows.abs().sum(1)[:, None] * weight_step / 2
        + weight.abs().sum(1) * row_step[:, None] / 2
        + 32 * row_step[:, None] * weight_step / 4
    )
    assert bool(((made - rows @ weight.t()).abs() <= bound + 1e-5).all())


def test_a_foreign_cell_decodes_with_the_model_itself():
    class Foreign(LSTMLayer):
        pass

    model = make({})
    layer = model.decoder.layers[0]
    layer.__class__ = Foreign
    assert make_engine(model) is model
    with pytest.raises(ValueError, match="float32 only"):
        make_engine(model, precision="int8")
