"""Watching a search while it runs: a step engine around another, which reports the leading hypothesis.

Search reorders hypotheses through `DecoderState.select`; a state that carries its own history is therefore
always the history of the hypotheses that search goes on with, and search need not know that it is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from regard.nn.types import DecoderState, Memory, StepEngine, StepOutput

__all__ = ["Step", "WatchedEngine"]


@dataclass(frozen=True)
class Step:
    """The leading unfinished hypothesis of a source after a step.

    Attributes:
        source: Number of the source in the batch.
        tokens: Its token ids so far.
        log_prob: Log-probability of the last one.
        weights: What the last one attended to, float32 ``(heads, source_len)``; None for a fixed context.
    """

    source: int
    tokens: tuple[int, ...]
    log_prob: float
    weights: np.ndarray | None = field(repr=False)


@dataclass(frozen=True)
class _History(DecoderState):
    """A decoder state that knows how it came about; rows are hypotheses, source-major.

    Attributes:
        inner: The state that the watched engine made.
        sources: The source of each row, int64 ``(rows,)``.
        tokens: Tokens so far, int64 ``(rows, position)``.
        log_probs: What the last step gave, ``(rows, vocabulary_size)``; empty before the first.
        weights: What the last step attended to, ``(rows, heads, source_len)``, or None.
    """

    inner: DecoderState = field(kw_only=True)
    sources: Tensor = field(kw_only=True)
    tokens: Tensor = field(kw_only=True)
    log_probs: Tensor = field(kw_only=True)
    weights: Tensor | None = None

    def select(self, rows: Tensor) -> _History:
        """The state of the given hypotheses, in their order; ``rows`` is int64 ``(n,)``."""
        inner = self.inner.select(rows)
        return replace(
            self,
            hidden=inner.hidden,
            inner=inner,
            sources=self.sources.index_select(0, rows),
            tokens=self.tokens.index_select(0, rows),
            log_probs=self.log_probs.index_select(0, rows),
            weights=None if self.weights is None else self.weights.index_select(0, rows),
        )


class WatchedEngine:
    """A step engine that reports each step of a search over it.

    Args:
        engine: The model.
        report: Called with the leading hypothesis of each source whose search goes on.
    """

    def __init__(self, engine: StepEngine, report: Callable[[Step], None]) -> None:
        self._engine, self._report = engine, report

    def start(self, source: Tensor, source_lens: Tensor) -> tuple[Memory, DecoderState]:
        """Encode sources; see `StepEngine`."""
        memory, state = self._engine.start(source, source_lens)
        rows, device = source.shape[0], source.device
        history = _History(
            hidden=state.hidden,
            inner=state,
            sources=torch.arange(rows, device=device),
            tokens=torch.zeros(rows, 0, dtype=torch.long, device=device),
            log_probs=torch.zeros(rows, 0, device=device),
        )
        return memory, history

    def step(self, tokens: Tensor, memory: Memory, state: DecoderState) -> StepOutput:
        """Advance by the tokens ``(batch, beams)``, and report them unless they are the first ones."""
        assert isinstance(state, _History)
        chosen = tokens.flatten()
        history = state.tokens
        if state.log_probs.shape[1]:
            history = torch.cat([history, chosen[:, None]], 1)
            self._tell(state, history, memory.mask.lengths.tolist(), n_beams=tokens.shape[1])
        out = self._engine.step(tokens, memory, state.inner)
        weights = None if out.weights is None else out.weights.flatten(0, 1)
        # A copy, because search changes the log-probabilities in place.
        log_probs = out.log_probs.flatten(0, 1).clone()
        noted = replace(
            state,
            hidden=out.state.hidden,
            inner=out.state,
            tokens=history,
            log_probs=log_probs,
            weights=weights,
        )
        return replace(out, state=noted)

    def _tell(self, state: _History, history: Tensor, source_lens: list[int], *, n_beams: int) -> None:
        """Report the first row of each source: search keeps the best hypothesis there."""
        for place, source_len in enumerate(source_lens):
            row = place * n_beams
            weights = None if state.weights is None else state.weights[row, :, :source_len].cpu().numpy()
            self._report(
                Step(
                    source=int(state.sources[row]),
                    tokens=tuple(history[row].tolist()),
                    log_prob=float(state.log_probs[row, history[row, -1]]),
                    weights=weights,
                )
            )
