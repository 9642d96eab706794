"""The types that encoder, attention, decoder and search share.

Dimensions, in every docstring of `regard.nn`: ``batch`` sources; ``beams`` hypotheses of a source;
``source_len`` and ``target_len`` padded lengths; ``heads`` of the attention; sizes end in ``_size``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from regard.nn.ids import EOS, PAD, UNK

__all__ = ["EOS", "PAD", "UNK", "AttentionMask", "DecoderState", "Memory", "StepEngine", "StepOutput"]


@dataclass(frozen=True)
class AttentionMask:
    """Which keys may be attended: True = may be attended.

    Args:
        allowed: Bool ``(batch, source_len)``.

    Raises:
        TypeError: ``allowed`` is not bool.
        ValueError: ``allowed`` has not two dimensions.
    """

    allowed: Tensor

    def __post_init__(self) -> None:
        if self.allowed.dtype != torch.bool:
            raise TypeError(f"an attention mask is bool (True = may be attended), not {self.allowed.dtype}")
        if self.allowed.dim() != 2:
            raise ValueError(f"an attention mask is (batch, source_len), not {tuple(self.allowed.shape)}")

    @classmethod
    def from_lengths(cls, lengths: Tensor, size: int) -> AttentionMask:
        """Allow the first ``lengths[b]`` of ``size`` keys in each row ``b``."""
        return cls(torch.arange(size, device=lengths.device)[None, :] < lengths[:, None])

    @property
    def lengths(self) -> Tensor:
        """Number of allowed keys in each row, ``(batch,)``."""
        return self.allowed.sum(1)

    def select(self, rows: Tensor) -> AttentionMask:
        """The mask of the given rows, in their order."""
        return AttentionMask(self.allowed.index_select(0, rows))


@dataclass(frozen=True)
class Memory:
    """What a context provider keeps of a batch of sources: made once, attended at each step.

    Attributes:
        keys: ``(batch, heads, source_len, key_size)``, projected as far as the score allows; for a fixed
            context the one vector, ``(batch, 1, 1, context_size)``.
        values: ``(batch, heads, source_len, value_size)``; may be the same tensor as ``keys``.
        mask: Which source positions are real.
    """

    keys: Tensor
    values: Tensor
    mask: AttentionMask

    @property
    def batch_size(self) -> int:
        """Number of sources."""
        return self.keys.shape[0]

    def select(self, rows: Tensor) -> Memory:
        """The memory of the given sources, in their order; ``rows`` is int64 ``(n,)``."""
        keys = self.keys.index_select(0, rows)
        values = keys if self.values is self.keys else self.values.index_select(0, rows)
        return Memory(keys, values, self.mask.select(rows))


@dataclass(frozen=True)
class DecoderState:
    """The decoder between two steps; rows are hypotheses (``batch * beams``, source-major).

    Attributes:
        hidden: ``(layers, rows, hidden_size)``.
        cell: The LSTM's cell state, of the same shape, or None.
        fed: The attentional state to feed back (input feeding), ``(rows, hidden_size)``, or None.
        position: Index of the next target token, counted from 0 (the same for all rows).
    """

    hidden: Tensor
    cell: Tensor | None = None
    fed: Tensor | None = None
    position: int = 0

    def select(self, rows: Tensor) -> DecoderState:
        """The state of the given hypotheses, in their order; ``rows`` is int64 ``(n,)``."""
        return replace(
            self,
            hidden=self.hidden.index_select(1, rows),
            cell=None if self.cell is None else self.cell.index_select(1, rows),
            fed=None if self.fed is None else self.fed.index_select(0, rows),
        )


@dataclass(frozen=True)
class StepOutput:
    """What one decoding step gives.

    Attributes:
        log_probs: float32 ``(batch, beams, vocabulary_size)``, normalised.
        weights: Attention weights ``(batch, beams, heads, source_len)``, or None for a fixed context.
        state: The state after the step, of ``batch * beams`` rows.
    """

    log_probs: Tensor
    weights: Tensor | None
    state: DecoderState


class StepEngine(Protocol):
    """All that search knows of a model."""

    def start(self, source: Tensor, source_lens: Tensor) -> tuple[Memory, DecoderState]:
        """Encode int64 ``(batch, source_len)`` of given lengths; the state has ``batch`` rows."""
        ...

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> StepOutput:
        """Advance by the tokens int64 ``(batch, beams)``; the first ones are `EOS`."""
        ...
