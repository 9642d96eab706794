"""Drawing outputs at random, with temperature, top-k and top-p."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodingSettings
from regard.decode.hypothesis import Hypothesis
from regard.decode.penalties import Penalties
from regard.decode.rollout import roll_out
from regard.nn.types import PAD, StepEngine

__all__ = ["LogitsTransform", "Temperature", "TopK", "TopP", "make_transforms", "sample"]


class LogitsTransform(Protocol):
    """Changes log-probabilities ``(batch, rows, vocabulary_size)`` before a draw; they need not sum to 1."""

    def __call__(self, logits: Tensor) -> Tensor:
        """Return the changed logits."""
        ...


class Temperature:
    """Divides the logits: above 1 draws more evenly, below 1 more like greedy search."""

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def __call__(self, logits: Tensor) -> Tensor:
        """Divide."""
        return logits / self.temperature


class TopK:
    """Leaves the k likeliest tokens (Fan 2018)."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, logits: Tensor) -> Tensor:
        """Put the others at minus infinity."""
        kept = logits.topk(min(self.k, logits.shape[-1]), -1)
        return torch.full_like(logits, float("-inf")).scatter(-1, kept.indices, kept.values)


class TopP:
    """Leaves the fewest likeliest tokens whose probabilities sum to at least p (Holtzman 2020)."""

    def __init__(self, p: float) -> None:
        self.p = p

    def __call__(self, logits: Tensor) -> Tensor:
        """Put the others at minus infinity."""
        ordered, places = logits.sort(-1, descending=True)
        probs = ordered.softmax(-1)
        # A token stays if what comes before it has not reached p; so the likeliest always stays.
        ordered = ordered.masked_fill(probs.cumsum(-1) - probs >= self.p, float("-inf"))
        return torch.empty_like(logits).scatter(-1, places, ordered)


def make_transforms(settings: DecodingSettings) -> list[LogitsTransform]:
    """Make the transforms that the settings ask for, in the order temperature, top-k, top-p."""
    made: list[LogitsTransform] = []
    if settings.temperature != 1.0:
        made.append(Temperature(settings.temperature))
    if settings.top_k:
        made.append(TopK(settings.top_k))
    if settings.top_p < 1.0:
        made.append(TopP(settings.top_p))
    return made


def sample(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    *,
    settings: DecodingSettings,
    max_lens: Sequence[int],
    keys: Sequence[int],
) -> list[list[Hypothesis]]:
    """Draw ``settings.nbest`` outputs for each source, which may be equal; best first.

    A source's draws depend on ``settings.seed`` and its key only, not on its batch. Scores are the model's
    own log-probabilities, before any transform.
    """
    transforms = make_transforms(settings)
    generators = [np.random.default_rng([settings.seed, key]) for key in keys]
    n_rows = settings.nbest

    def draw(log_probs: Tensor, sources: np.ndarray, step: int) -> Tensor:
        logits = log_probs.clone()
        logits[:, :, PAD] = float("-inf")
        for transform in transforms:
            logits = transform(logits)
        cumulated = logits.double().softmax(-1).cumsum(-1)
        uniform = np.stack([generators[number].random(n_rows) for number in sources])
        # Scaled by the last sum, a draw can never lie above it through rounding.
        threshold = torch.from_numpy(uniform).to(cumulated)[:, :, None] * cumulated[:, :, -1:]
        return torch.searchsorted(cumulated, threshold, right=True)[:, :, 0].clamp(
            max=cumulated.shape[-1] - 1
        )

    penalties = Penalties(settings.length_penalty, settings.coverage_penalty)
    drawn = roll_out(
        engine, source, source_lens, choose=draw, n_rows=n_rows, max_lens=max_lens, penalties=penalties
    )
    return [sorted(row, key=lambda hypothesis: -hypothesis.normalised) for row in drawn]
