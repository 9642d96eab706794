"""From events to states: embeddings of what happened and when, then an LSTM or self-attention.

Both encoders look back only: the state of an event knows that event and those before it. So a journey is encoded
once, and each of its prefixes is read off.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.journeys.cases import N_CLOCK, N_DAYS, N_GAPS, N_HOURS, CaseBatch, JourneyVocabulary
from regard.journeys.settings import JourneyModelSettings
from regard.nn.recurrent import LSTMLayer, SharedDropout

__all__ = ["AttentionEncoder", "BatchTensors", "EventEmbedding", "LSTMEncoder", "batch_tensors"]

_CATEGORY_SIZE, _BUCKET_SIZE = 12, 8
_N_DISTANCES = 33
"""Distances that self-attention tells apart; farther ones are alike."""


@dataclass(frozen=True)
class BatchTensors:
    """A `CaseBatch` on a device."""

    activity: Tensor
    categories: Tensor
    numbers: Tensor
    clock: Tensor
    buckets: Tensor
    seconds: Tensor
    lengths: Tensor


def batch_tensors(batch: CaseBatch, device: torch.device) -> BatchTensors:
    """Move a batch to a device."""
    names = ("activity", "categories", "numbers", "clock", "buckets", "seconds", "lengths")
    return BatchTensors(**{name: torch.from_numpy(getattr(batch, name)).to(device) for name in names})


class EventEmbedding(nn.Module):
    """One vector an event: activity, further columns, and when it was, brought to the hidden size.

    Args:
        vocabulary: Activities and further columns.
        settings: Sizes and dropout.
    """

    def __init__(self, vocabulary: JourneyVocabulary, settings: JourneyModelSettings) -> None:
        super().__init__()
        self.activity = nn.Embedding(vocabulary.size, settings.embedding_size, padding_idx=0)
        self.categories = nn.ModuleList(
            nn.Embedding(len(category.names) + 1, _CATEGORY_SIZE, padding_idx=0)
            for category in vocabulary.categories
        )
        self.buckets = nn.ModuleList(nn.Embedding(n, _BUCKET_SIZE) for n in (N_GAPS, N_HOURS, N_DAYS))
        for table in (self.activity, *self.categories, *self.buckets):
            nn.init.normal_(table.weight, std=table.embedding_dim**-0.5)
            if table.padding_idx is not None:
                nn.init.zeros_(table.weight.data[0])
        n_numbers = len(vocabulary.numbers)
        width = settings.embedding_size + _CATEGORY_SIZE * len(vocabulary.categories)
        width += 3 * _BUCKET_SIZE + N_CLOCK + 2 * n_numbers
        self.project = nn.Linear(width, settings.hidden_size)
        self.dropout = SharedDropout(settings.dropout)

    def forward(self, batch: BatchTensors) -> Tensor:
        """Embed; returns ``(batch, longest, hidden_size)``."""
        parts = [self.activity(batch.activity)]
        parts += [table(batch.categories[:, :, place]) for place, table in enumerate(self.categories)]
        parts += [table(batch.buckets[:, :, place]) for place, table in enumerate(self.buckets)]
        missing = batch.numbers.isnan()
        parts += [batch.clock, batch.numbers.nan_to_num(0.0), missing.to(batch.clock.dtype)]
        embedded: Tensor = self.project(self.dropout(torch.cat(parts, -1)))
        return embedded


class LSTMEncoder(nn.Module):
    """Layers of `LSTMLayer`, forward in time, with a residual from the second layer on."""

    def __init__(self, settings: JourneyModelSettings) -> None:
        super().__init__()
        size = settings.hidden_size
        self.layers = nn.ModuleList(LSTMLayer(size, size) for _ in range(settings.layers))
        self.dropout = SharedDropout(settings.dropout)

    def forward(self, events: Tensor, batch: BatchTensors) -> Tensor:
        """States ``(batch, longest, hidden_size)`` of embedded events."""
        inputs = events
        for number, layer in enumerate(self.layers):
            outputs, _ = layer(self.dropout(inputs))
            inputs = outputs + inputs if number else outputs
        return inputs


class AttentionEncoder(nn.Module):
    """Causal multi-head self-attention (Vaswani 2017) whose scores know distance and time gap.

    To each score a learnt number is added for how many events and how much time lie between (as the relative
    positions of Raffel 2020); absolute positions are learnt too.
    """

    def __init__(self, settings: JourneyModelSettings) -> None:
        super().__init__()
        self.position = nn.Embedding(settings.max_events, settings.hidden_size)
        nn.init.normal_(self.position.weight, std=0.02)
        self.distance_bias = nn.Embedding(_N_DISTANCES, settings.heads)
        self.gap_bias = nn.Embedding(N_GAPS, settings.heads)
        nn.init.zeros_(self.distance_bias.weight)
        nn.init.zeros_(self.gap_bias.weight)
        self.blocks = nn.ModuleList(_Block(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.hidden_size)

    def forward(self, events: Tensor, batch: BatchTensors) -> Tensor:
        """States ``(batch, longest, hidden_size)`` of embedded events."""
        longest = events.shape[1]
        steps = torch.arange(longest, device=events.device)
        distance = steps[:, None] - steps[None, :]
        span = (batch.seconds[:, :, None] - batch.seconds[:, None, :]).clamp(min=0)
        gaps = torch.log2(span + 1).ceil().long().clamp(max=N_GAPS - 1)
        bias = self.distance_bias(distance.clamp(0, _N_DISTANCES - 1)) + self.gap_bias(gaps)
        bias = bias.permute(0, 3, 1, 2).masked_fill(distance < 0, float("-inf"))  # (batch, heads, to, from)
        states = events + self.position(steps.clamp(max=self.position.num_embeddings - 1))
        for block in self.blocks:
            states = block(states, bias)
        normed: Tensor = self.norm(states)
        return normed


class _Block(nn.Module):
    """Self-attention and a feed-forward layer, each normalised before and added to its input."""

    def __init__(self, settings: JourneyModelSettings) -> None:
        super().__init__()
        size = settings.hidden_size
        self.heads = settings.heads
        self.before_attention, self.before_feed = nn.LayerNorm(size), nn.LayerNorm(size)
        self.project = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        self.feed = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.dropout = SharedDropout(settings.dropout)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        """One block over ``(batch, longest, hidden_size)``."""
        batch, longest, size = states.shape
        projected = self.project(self.before_attention(states)).view(batch, longest, 3, self.heads, -1)
        query, key, value = projected.permute(2, 0, 3, 1, 4)  # each (batch, heads, longest, size / heads)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        states = states + self.dropout(self.output(attended.transpose(1, 2).reshape(batch, longest, size)))
        return states + self.dropout(self.feed(self.before_feed(states)))
