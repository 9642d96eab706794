"""Optimiser, learning-rate schedule and running average of the weights."""

from __future__ import annotations

import copy
import math

import torch
from torch import nn

from regard.config import TrainingSettings

__all__ = ["WeightAverage", "learning_rate", "make_optimiser"]


def make_optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.AdamW:
    """Make AdamW (Loshchilov & Hutter 2019); matrices decay, biases and other vectors do not."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        eps=1e-8,
        fused=True,
    )


def learning_rate(settings: TrainingSettings, *, step: int, total: int, halvings: int = 0) -> float:
    """Return the learning rate of an update.

    Args:
        settings: The schedule, the highest rate and the length of the warm-up.
        step: The update, counted from 1.
        total: Updates planned in all; only ``cosine`` goes by it.
        halvings: How often ``plateau`` has halved the rate.
    """
    peak, warmup = settings.learning_rate, settings.warmup_steps
    # A training shorter than four warm-ups would otherwise hardly leave it.
    warmup = min(warmup, max(1, total // 4)) if settings.schedule == "cosine" else warmup
    if step <= warmup:
        return peak * step / warmup
    if settings.schedule == "inverse_sqrt":
        return peak * math.sqrt(max(1, warmup) / step)
    if settings.schedule == "plateau":
        return peak * 0.5**halvings
    if settings.schedule == "cosine":
        progress = min(1.0, (step - warmup) / max(1, total - warmup))
        return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))
    return peak


class WeightAverage:
    """Exponential running average of a model's weights, warmed up so that early ones are forgotten.

    Averaged weights generalise better than the last ones (Polyak & Juditsky 1992). The decay at update t is
    min(decay, (1 + t) / (10 + t)).

    Args:
        model: The model that is trained.
        decay: The decay; at 0 the average is the model itself.

    Attributes:
        model: A model with the averaged weights.
    """

    def __init__(self, model: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False).eval() if decay else model
        self._averaged: list[torch.Tensor] = list(self.model.parameters())
        self._trained: list[torch.Tensor] = list(model.parameters())

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after update ``step``, counted from 1."""
        if self.decay:
            decay = min(self.decay, (1 + step) / (10 + step))
            torch._foreach_lerp_(self._averaged, self._trained, 1 - decay)
