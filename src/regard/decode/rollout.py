"""Rolling hypotheses out token by token, each on its own way: greedy, sampling and forced.

Every source has a fixed number of rows; it leaves the batch when all of them have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from regard.decode.hypothesis import End, Hypothesis, Trace
from regard.decode.penalties import Penalties
from regard.nn.types import EOS, StepEngine

__all__ = ["Chooser", "roll_out"]

Chooser = Callable[[Tensor, np.ndarray, int], Tensor]
"""``(log_probs (batch, rows, vocabulary_size), source numbers (batch,), step) -> tokens (batch, rows)``."""


def roll_out(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    *,
    choose: Chooser,
    n_rows: int,
    max_lens: Sequence[int],
    penalties: Penalties,
) -> list[list[Hypothesis]]:
    """Extend every row by the token that ``choose`` picks until it picks the end or reaches the limit.

    Args:
        engine: The model.
        source: int64 ``(batch, source_len)``.
        source_lens: int64 ``(batch,)``.
        choose: Picks tokens.
        n_rows: Rows of each source.
        max_lens: Longest output of each source in tokens, the end counted.
        penalties: How results are ranked.

    Returns:
        For each source ``n_rows`` hypotheses, in the order of the rows.
    """
    rollout = _Rollout(engine, source, source_lens, n_rows=n_rows, max_lens=max_lens, penalties=penalties)
    while len(rollout.active):
        rollout.step(choose)
    made = rollout.trace.read(rollout.ends, source_lens.tolist())
    by_place = dict(zip(rollout.places, made, strict=True))
    return [[by_place[number, row] for row in range(n_rows)] for number in range(source.shape[0])]


class _Rollout:
    """The batch between two steps."""

    def __init__(
        self,
        engine: StepEngine,
        source: Tensor,
        source_lens: Tensor,
        *,
        n_rows: int,
        max_lens: Sequence[int],
        penalties: Penalties,
    ) -> None:
        n_sources, device = source.shape[0], source.device
        self.engine, self.n_rows, self.penalties = engine, n_rows, penalties
        self.memory, self.state = engine.start(source, source_lens)
        if n_rows > 1:
            self.state = self.state.select(torch.arange(n_sources, device=device).repeat_interleave(n_rows))
        self.tokens = torch.full((n_sources, n_rows), EOS, dtype=torch.long, device=device)
        self.active = np.arange(n_sources)
        self.limits = np.asarray(max_lens)
        self.scores = np.zeros((n_sources, n_rows))
        self.running = np.ones((n_sources, n_rows), bool)
        self.covered: Tensor | None = None
        self.trace = Trace()
        self.ends: list[End] = []
        self.places: list[tuple[int, int]] = []
        self.n_steps = 0

    def step(self, choose: Chooser) -> None:
        """Extend all rows by one token; drop sources whose rows have all ended."""
        out = self.engine.step(self.tokens, self.memory, self.state)
        self.state = out.state
        self.tokens = choose(out.log_probs, self.active, self.n_steps)
        picked = out.log_probs.gather(2, self.tokens[:, :, None])[:, :, 0]
        rows = torch.arange(self.tokens.numel())
        weights = None if out.weights is None else out.weights.flatten(0, 1)
        self.trace.add(self.tokens.flatten(), picked.flatten(), rows, weights)
        if self.penalties.beta and out.weights is not None:
            covered = out.weights.mean(2)
            self.covered = covered if self.covered is None else self.covered + covered
        self.scores += np.where(self.running, picked.double().cpu().numpy(), 0.0)
        self.n_steps += 1
        self._end_rows(self.tokens.cpu().numpy() == EOS)
        self._drop_ended()

    def _end_rows(self, is_end: np.ndarray) -> None:
        """Note the rows that end here."""
        ended = self.running & (is_end | (self.n_steps >= self.limits[self.active])[:, None])
        if not ended.any():
            return
        ranks = self.scores / self.penalties.length(self.n_steps)
        if self.covered is not None:
            allowed = self.memory.mask.allowed[:, None]
            ranks = ranks + self.penalties.coverage(self.covered, allowed).cpu().numpy()
        for place, row in zip(*(axis.tolist() for axis in np.nonzero(ended)), strict=True):
            number = int(self.active[place])
            self.ends.append(
                End(
                    source=number,
                    step=self.n_steps - 1,
                    choice=place * self.n_rows + row,
                    score=float(self.scores[place, row]),
                    normalised=float(ranks[place, row]),
                    finished=bool(is_end[place, row]),
                )
            )
            self.places.append((number, row))
        self.running &= ~ended

    def _drop_ended(self) -> None:
        keep = self.running.any(1)
        if keep.all():
            self.trace.go_on_from(torch.arange(self.tokens.numel()))
            return
        device = self.tokens.device
        sources = torch.from_numpy(np.flatnonzero(keep)).to(device)
        rows = (sources[:, None] * self.n_rows + torch.arange(self.n_rows, device=device)).flatten()
        self.trace.go_on_from(rows)
        self.memory, self.state = self.memory.select(sources), self.state.select(rows)
        self.tokens = self.tokens[sources]
        self.covered = None if self.covered is None else self.covered[sources]
        self.active, self.scores, self.running = self.active[keep], self.scores[keep], self.running[keep]
