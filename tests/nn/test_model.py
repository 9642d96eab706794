from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn.references import ReferenceModel
from regard.config import PRESETS, make_config
from regard.nn.model import EncoderDecoder
from regard.nn.types import EOS, PAD

SMALL = {"hidden_size": 10, "embedding_size": 7, "dropout": 0.0}
SOURCE_SIZE, TARGET_SIZE = 11, 13

EXTRAS = [
    {},
    {"context": "last", "context_every_step": True},
    {"context": "projected"},
    {"context": "pooled", "pool": "mean", "cell": "gru"},
    {"context": "pooled", "pool": "max", "context_every_step": True},
    {"context": "pooled", "pool": "query"},
    {"context": "last", "bridge": "copy"},
    {"encoder_layers": 3, "decoder_layers": 2, "residual": True, "cell": "gru"},
    {"encoder_layers": 2, "reverse_source": True, "cell": "rnn"},
    {"input_feeding": True, "attention": {"score": "additive", "heads": 2, "size": 3}},
    {"attend_before_cell": True, "attention": {"score": "cosine", "window": "local_p", "window_size": 2}},
    {"attention": {"score": "location", "normaliser": "sparsemax"}, "decoder_layers": 2},
    {"attention": {"score": "scaled_dot", "heads": 5, "normaliser": "entmax15"}, "cell": "gru"},
    {"attention": {"score": "dot", "window": "local_m", "window_size": 1}, "bidirectional": False},
    {"bridge": "copy", "encoder_layers": 2, "decoder_layers": 2, "cell": "lstm"},
    {"tie_embeddings": True, "embedding_size": 10},
]
ALL = [{"preset": name} for name in PRESETS] + [{"model": extra} for extra in EXTRAS]


def make(choice: dict, seed: int = 0, dropout: float = 0.0) -> EncoderDecoder:
    torch.manual_seed(seed)
    model = {**SMALL, "dropout": dropout, **choice.get("model", {})}
    config = make_config({**choice, "model": model})
    network = EncoderDecoder(
        config.model, source_size=SOURCE_SIZE, target_size=TARGET_SIZE, max_positions=19
    ).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return network.eval()


def batch(seed: int, source_lens: list[int], target_len: int, padding: int = 0, filler: int = PAD):
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(source_lens), max(source_lens) + padding), filler)
    for row, length in enumerate(source_lens):
        source[row, : length - 1] = torch.randint(3, SOURCE_SIZE, (length - 1,), generator=generator)
        source[row, length - 1] = EOS
    target = torch.randint(3, TARGET_SIZE, (len(source_lens), target_len), generator=generator)
    target[:, 0] = EOS
    return source, torch.tensor(source_lens), target


@pytest.mark.parametrize("choice", ALL, ids=str)
def test_model_equals_the_formulas(choice):
    model = make(choice)
    source, lens, target = batch(1, [7, 2, 5], 5)
    found = model(source, lens, target).logits.log_softmax(-1).detach().numpy()
    reference = ReferenceModel(model)
    for row, length in enumerate(lens.tolist()):
        expected = reference.log_probs(source[row, :length].tolist(), target[row].tolist())
        assert np.allclose(found[row], expected, atol=1e-10)


choices = st.sampled_from(ALL)
quick = settings(deadline=None, max_examples=40)


@quick
@given(choice=choices, seed=st.integers(0, 99), padding=st.integers(0, 3), filler=st.sampled_from([PAD, 5]))
def test_row_alone_equals_the_row_in_a_padded_batch(choice, seed, padding, filler):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 5, padding, filler)
    together = model(source, lens, target)
    for row, length in enumerate(lens.tolist()):
        one = slice(row, row + 1)
        alone = model(source[one, :length], lens[one], target[one])
        assert torch.allclose(alone.logits, together.logits[one], atol=1e-10)
        if alone.weights is not None:
            assert torch.allclose(alone.weights, together.weights[one, ..., :length], atol=1e-10)
            assert not together.weights[one, ..., length:].any()


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_weights_are_a_distribution_over_the_real_source(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 5, 2)
    weights = model(source, lens, target).weights
    if model.settings.context != "attention":
        assert weights is None
        return
    assert weights.shape == (3, model.settings.attention.heads, 5, 9)
    assert (weights >= 0).all()
    assert torch.allclose(weights.sum(-1), torch.ones(()).double())


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_step_by_step_equals_teacher_forcing(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 5)
    forced = model(source, lens, target)
    memory, state = model.start(source, lens)
    for step in range(5):
        out = model.step(target[:, step : step + 1], memory, state)
        state = out.state
        expected = forced.logits[:, step].float().log_softmax(-1)
        assert torch.allclose(out.log_probs[:, 0], expected, atol=1e-5)
        if forced.weights is not None:
            assert torch.allclose(out.weights[:, 0], forced.weights[:, :, step].float(), atol=1e-6)
    assert state.position == 5


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_teacher_forcing_can_go_on_from_a_state(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 5)
    whole = model(source, lens, target)
    memory, state = model.start(source, lens)
    first = model.decoder(target[:, :2], memory, state)
    second = model.decoder(target[:, 2:], memory, first.state)
    assert torch.allclose(torch.cat([first.logits, second.logits], 1), whole.logits, atol=1e-10)


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_beams_equal_rows_of_a_repeated_source(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 4)
    memory, state = model.start(source, lens)
    rows = torch.arange(3).repeat_interleave(4)
    beams = model.step(target, memory, state.select(rows))
    again = model.step(target.reshape(12, 1), memory.select(rows), state.select(rows))
    assert torch.allclose(beams.log_probs.reshape(12, 1, -1), again.log_probs, atol=1e-6)
    assert torch.allclose(beams.state.hidden, again.state.hidden, atol=1e-10)
    if beams.weights is not None:
        assert torch.allclose(beams.weights.reshape(again.weights.shape), again.weights, atol=1e-6)


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_selected_rows_go_on_as_they_were(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 3)
    memory, state = model.start(source, lens)
    whole = model.step(target[:, :1], memory, state)
    rows = torch.tensor([2, 0])
    part = model.step(target[rows, :1], memory.select(rows), state.select(rows))
    assert torch.allclose(part.log_probs, whole.log_probs[rows], atol=1e-6)


@quick
@given(choice=choices, seed=st.integers(0, 99))
def test_chosen_positions_are_those_of_the_whole(choice, seed):
    model = make(choice, seed)
    source, lens, target = batch(seed, [7, 2, 5], 5)
    chosen = torch.tensor([0, 4, 7, 14])
    whole = model(source, lens, target).logits.flatten(0, 1)[chosen]
    assert torch.allclose(model(source, lens, target, chosen=chosen).logits, whole, atol=1e-12)


@pytest.mark.parametrize("choice", ALL, ids=str)
def test_gradient_reaches_each_parameter(choice):
    model = make(choice, dropout=0.1).train()
    source, lens, target = batch(3, [7, 2, 5], 5)
    model(source, lens, target).logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_dropout_is_for_training_only():
    model = make({}, dropout=0.5)
    source, lens, target = batch(3, [7, 2], 5)
    assert torch.equal(model(source, lens, target).logits, model(source, lens, target).logits)
    model.train()
    assert not torch.equal(model(source, lens, target).logits, model(source, lens, target).logits)


def test_parameters_are_counted():
    model = make({})
    assert model.n_parameters == sum(p.numel() for p in model.parameters())
