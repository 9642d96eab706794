"""A guard on work, not on seconds: how many operator calls an update, a step and a start of decoding take.

A call of an operator costs some microseconds whatever its size, which is what small models spend their time on. The
numbers are what the code took when this was written; a change that needs more has to say why.
"""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.config import make_config
from regard.nn.engine import make_engine
from regard.nn.model import EncoderDecoder
from regard.training.loop import smoothed_loss

VIEWS = {
    "view", "_unsafe_view", "transpose", "t", "slice", "select", "unsqueeze", "expand", "squeeze", "permute", "detach",
    "as_strided", "split", "alias", "reshape", "unbind", "chunk", "split_with_sizes", "lift_fresh", "_reshape_alias",
}  # fmt: skip


class Calls(TorchDispatchMode):
    """Counts the calls of operators that compute something."""

    def __init__(self):
        super().__init__()
        self.counted = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name not in VIEWS:
            self.counted[name] += 1
        return func(*args, **(kwargs or {}))

    @property
    def total(self):
        return self.counted.total()


def batch(n=8, source_len=7, target_len=6):
    source = torch.randint(3, 20, (n, source_len))
    source[:, -1] = 1
    target = torch.randint(3, 20, (n, target_len))
    return source, torch.full((n,), source_len), target


def network(**model):
    torch.manual_seed(1)
    config = make_config({"model": {"hidden_size": 16, "embedding_size": 8, **model}})
    return EncoderDecoder(config.model, source_size=20, target_size=20)


@pytest.mark.parametrize(("model", "allowed"), [({}, 145), ({"context": "last"}, 121)], ids=str)
def test_an_update_takes_no_more_calls(model, allowed):
    made = network(**model).train()
    source, lens, target = batch()
    with Calls() as calls:
        logits = made(source, lens, target, chosen=torch.arange(target.numel())).logits
        (smoothed_loss(logits, target.flatten(), smoothing=0.1) / target.numel()).backward()
    assert calls.total <= allowed, calls.counted


def test_an_update_of_a_longer_target_takes_as_many_calls():
    totals = []
    for target_len in (3, 30):
        made = network().train()
        source, lens, target = batch(target_len=target_len)
        with Calls() as calls:
            made(source, lens, target).logits.sum().backward()
        totals.append(calls.total)
    assert totals[0] == totals[1]


@pytest.mark.parametrize(
    ("model", "allowed"), [({}, 27), ({"cell": "gru"}, 26), ({"input_feeding": True}, 28)], ids=str
)
def test_a_step_of_decoding_takes_no_more_calls(model, allowed):
    engine = make_engine(network(**model).eval())
    source, lens, _ = batch()
    with torch.inference_mode():
        memory, state = engine.start(source, lens)
        tokens = torch.ones(8, 1, dtype=torch.long)
        with Calls() as calls:
            engine.step(tokens, memory, state)
    assert calls.total <= allowed, calls.counted
