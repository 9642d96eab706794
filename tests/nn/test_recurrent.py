from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn.references import cell_parameters, run_cell
from regard.nn.recurrent import Direction, LayerState, SharedDropout, reversal_index
from regard.registry import CELLS

NAMES = ["gru", "lstm", "rnn"]
LENGTHS = torch.tensor([7, 1, 4])


def make(name: str, seed: int = 0):
    torch.manual_seed(seed)
    return CELLS.get(name)(5, 3).double()


def steps(seed: int = 1):
    return torch.randn(3, 7, 5, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("need_cell", [False, True])
def test_layer_equals_the_formulas_up_to_each_true_end(name, need_cell):
    layer, inputs = make(name), steps()
    outputs, state = layer.run_to_ends(inputs, LENGTHS, need_cell=need_cell)
    for row, length in enumerate(LENGTHS.tolist()):
        expected, h, c = run_cell(name, inputs[row, :length].numpy(), cell_parameters(layer))
        assert np.allclose(outputs[row, :length].detach().numpy(), expected, atol=1e-12)
        assert np.allclose(state.hidden[row].detach().numpy(), h, atol=1e-12)
        if need_cell and name == "lstm":
            assert np.allclose(state.cell[row].detach().numpy(), c, atol=1e-12)
    assert (state.cell is not None) == (need_cell and name == "lstm")


@pytest.mark.parametrize("name", NAMES)
def test_layer_goes_on_from_a_state(name):
    layer, inputs = make(name), steps()
    whole, end = layer(inputs)
    first, state = layer(inputs[:, :3])
    second, again = layer(inputs[:, 3:], state)
    assert torch.allclose(torch.cat([first, second], 1), whole)
    assert torch.allclose(again.hidden, end.hidden)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_equal_differences_with_padding(name):
    torch.manual_seed(2)
    layer = Direction(CELLS.get(name), input_size=3, hidden_size=4, bidirectional=True).double()
    inputs = torch.randn(2, 4, 3, dtype=torch.double, requires_grad=True)
    lengths = torch.tensor([4, 2])

    def run(inputs):
        outputs, state = layer(inputs, lengths, reversal_index(lengths, 4), need_cell=False)
        real = torch.arange(4) < lengths[:, None]
        return (outputs * real[:, :, None]).sum((0, 1)), state.hidden

    assert torch.autograd.gradcheck(run, (inputs,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("need_cell", [False, True])
def test_backward_direction_reads_each_row_from_its_own_end(name, need_cell):
    torch.manual_seed(3)
    layer = Direction(CELLS.get(name), input_size=5, hidden_size=6, bidirectional=True).double()
    inputs = steps(4)
    outputs, state = layer(inputs, LENGTHS, reversal_index(LENGTHS, 7), need_cell=need_cell)
    for row, length in enumerate(LENGTHS.tolist()):
        back, h, c = run_cell(name, inputs[row, :length].numpy()[::-1], cell_parameters(layer.backwards))
        assert np.allclose(outputs[row, :length, 3:].detach().numpy(), back[::-1], atol=1e-12)
        assert np.allclose(state.hidden[row, 3:].detach().numpy(), h, atol=1e-12)
        if state.cell is not None:
            assert np.allclose(state.cell[row, 3:].detach().numpy(), c, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=5), padding=st.integers(0, 3))
def test_reversal_turns_the_real_part_and_is_its_own_inverse(lengths, padding):
    size = max(lengths) + padding
    index = reversal_index(torch.tensor(lengths), size)
    for row, length in enumerate(lengths):
        assert index[row].tolist() == [*range(length - 1, -1, -1), *range(length, size)]
    assert torch.equal(index.gather(1, index), torch.arange(size).expand(len(lengths), -1))


def test_dropout_drops_the_same_units_at_each_step_and_keeps_the_mean():
    torch.manual_seed(4)
    dropout = SharedDropout(0.4).train()
    made = dropout(torch.ones(50, 7, 101))
    assert torch.equal(made, made[:, :1].expand(-1, 7, -1))
    assert made.unique().tolist() == pytest.approx([0.0, 1 / 0.6])
    assert made.mean().item() == pytest.approx(1.0, abs=0.05)
    ones = torch.ones(2, 3, 5)
    assert dropout.eval()(ones) is ones
    assert SharedDropout(0.0).train()(ones) is ones


def test_forget_gate_starts_open():
    layer = make("lstm")
    assert layer.kernel.bias_ih_l0.tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6


def test_layer_state_holds_what_it_is_given():
    state = LayerState(torch.zeros(2, 3))
    assert state.cell is None
