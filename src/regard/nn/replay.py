"""One decoding again, slowly, with all that happens in it: what explanations are made of.

The model's own layers are run step by step (`Decoder.look`), in float32; search runs the same function through
`regard.nn.engine`, so numbers agree up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn.attention import Attended
from regard.nn.context import FixedContext
from regard.nn.decoder import Stepped
from regard.nn.model import EncoderDecoder
from regard.nn.types import EOS, PAD

__all__ = ["Replay", "replay"]


@dataclass(frozen=True)
class Replay:
    """What happened in one decoding of one source; n is the number of steps, the end's counted if there is one.

    Attributes:
        encoder_states: h_1 … h_S, ``(source_len, encoder_size)``.
        vector: The one vector of a fixed context, ``(context_size,)``, or None.
        log_probs: Of the whole vocabulary at each step, ``(n, vocabulary_size)``; padding is never an output.
        scores: Before masking and normalising, ``(heads, n, source_len)``, or None for a fixed context.
        weights: ``(heads, n, source_len)``, or None for a fixed context.
        contexts: c_t, ``(n, context_size)``, or None for a fixed context.
        queries: What was attended with, ``(n, hidden_size)``.
        states: s_t, ``(n, hidden_size)``.
        outputs: h~_t, ``(n, hidden_size)``.
    """

    encoder_states: Tensor
    vector: Tensor | None
    log_probs: Tensor
    scores: Tensor | None
    weights: Tensor | None
    contexts: Tensor | None
    queries: Tensor
    states: Tensor
    outputs: Tensor


def _per_head(attended: list[Attended], name: str) -> Tensor:
    """Put ``(1, heads, 1, source_len)`` of all steps together, ``(heads, n, source_len)``."""
    return torch.cat([getattr(found, name) for found in attended], 2)[0].float()


def replay(model: EncoderDecoder, source: Tensor, target: list[int]) -> Replay:
    """Decode given tokens.

    Args:
        model: In evaluation mode.
        source: int64 ``(source_len,)``, ending in `EOS`.
        target: The chosen token of each step, `EOS` last unless the output was cut.
    """
    lengths = torch.tensor([len(source)], device=source.device)
    encoded = model.encoder(source[None], lengths)
    memory, state = model.decoder.start(encoded)
    steps: list[Stepped] = []
    for token in [EOS, *target[:-1]][: len(target)]:
        inputs = torch.tensor([[token]], device=source.device)
        steps.append(model.decoder.look(inputs, memory, state))
        state = steps[-1].state
    attentional = torch.cat([step.attentional for step in steps], 1)  # (1, n, hidden_size)
    logits = model.decoder.output(attentional)[0].float()
    log_probs = torch.log_softmax(logits, -1)
    log_probs[:, PAD] = float("-inf")
    fixed = isinstance(model.decoder.context, FixedContext)
    attended = [] if fixed else [step.attended for step in steps if step.attended is not None]
    return Replay(
        encoder_states=encoded.states[0].float(),
        vector=memory.values[0, 0, 0] if fixed else None,
        log_probs=log_probs,
        scores=_per_head(attended, "scores") if attended else None,
        weights=_per_head(attended, "weights") if attended else None,
        contexts=torch.cat([found.context for found in attended], 1)[0].float() if attended else None,
        queries=torch.cat([step.query for step in steps], 1)[0].float(),
        states=torch.cat([step.outputs for step in steps], 1)[0].float(),
        outputs=attentional[0].float(),
    )
