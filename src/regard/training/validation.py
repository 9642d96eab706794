"""What is measured on the dev data during training: the loss, and a decoded metric if one is watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from regard.data.batches import Batches
from regard.device import autocast
from regard.registry import METRICS
from regard.training.loop import batch_tensors, smoothed_loss

if TYPE_CHECKING:
    from regard.seq2seq import Seq2Seq

__all__ = ["dev_loss", "make_validation"]


@torch.inference_mode()
def dev_loss(model: nn.Module, batches: Batches, *, dtype: torch.dtype = torch.float32) -> float:
    """Return the cross-entropy for each target token in nats, without label smoothing."""
    device = next(model.parameters()).device
    model.eval()
    total, n_tokens = 0.0, 0
    for batch in batches.epoch(0):
        source, source_lens, target_in, chosen, target = batch_tensors(batch, device)
        with autocast(device, dtype):
            logits = model(source, source_lens, target_in, chosen=chosen).logits
        total += float(smoothed_loss(logits, target, smoothing=0.0))
        n_tokens += batch.n_tokens
    return total / max(1, n_tokens)


def make_validation(
    batches: Batches,
    pairs: Sequence[tuple[str, str]],
    *,
    metric: str,
    dtype: torch.dtype,
    as_seq2seq: Callable[[nn.Module], Seq2Seq],
) -> Callable[[nn.Module], dict[str, float]]:
    """Make the function that a trainer calls to validate.

    Args:
        batches: The dev data.
        pairs: Texts of the dev pairs that are decoded.
        metric: ``loss``, or a name in `regard.registry.METRICS`.
        dtype: Precision of the loss; decoding is float32 as in use.
        as_seq2seq: Dresses a network with its tokenizers.
    """

    def validate(model: nn.Module) -> dict[str, float]:
        values = {"loss": dev_loss(model, batches, dtype=dtype)}
        if metric != "loss":
            dressed = as_seq2seq(model)
            predictions = dressed.predict([source for source, _ in pairs], beam=1, nbest=1)
            texts, references = [p.text for p in predictions], [target for _, target in pairs]
            values[metric] = METRICS.get(metric).score(texts, references)
        return values

    return validate
