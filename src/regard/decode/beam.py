"""Beam search: the best few hypotheses of a source are extended together.

A finished hypothesis leaves the beam and is never extended. The search of a source goes on until no
unfinished hypothesis can still become the best, and does not depend on how many are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.config import DecodingSettings
from regard.decode.hypothesis import End, Hypothesis, Trace
from regard.decode.penalties import Penalties
from regard.nn.types import EOS, PAD, StepEngine

__all__ = ["beam_search"]


def beam_search(
    engine: StepEngine,
    source: Tensor,
    source_lens: Tensor,
    *,
    settings: DecodingSettings,
    max_lens: Sequence[int],
) -> list[list[Hypothesis]]:
    """Search with ``settings.beam`` hypotheses; see `regard.decode.search.search`.

    Returns:
        For each source up to ``beam`` different hypotheses, best first; those cut at the limit come last.
    """
    beams = _Beams(engine, source, source_lens, settings=settings, max_lens=max_lens)
    while len(beams.active):
        candidates = beams.expand()
        beams.finish(candidates)
        beams.select(candidates)
    ranked = [end for ends in beams.ends for end in beams.ranked(ends)]
    made = iter(beams.trace.read(ranked, source_lens.tolist()))
    return [[next(made) for _ in beams.ranked(ends)] for ends in beams.ends]


class _Candidates:
    """The best continuations of a step, best first.

    Attributes:
        scores: float64 ``(batch, 2 * beam)``, minus infinity where there is none.
        beams: The hypothesis that each extends, ``(batch, 2 * beam)``.
        tokens: The token it is extended by, ``(batch, 2 * beam)``.
    """

    def __init__(self, scores: Tensor, beams: Tensor, tokens: Tensor) -> None:
        self.scores, self.beams, self.tokens = scores, beams, tokens
        self.is_end = tokens == EOS


class _Beams:
    """The batch between two steps."""

    def __init__(
        self,
        engine: StepEngine,
        source: Tensor,
        source_lens: Tensor,
        *,
        settings: DecodingSettings,
        max_lens: Sequence[int],
    ) -> None:
        n_sources, device = source.shape[0], source.device
        self.engine, self.beam = engine, settings.beam
        self.penalties = Penalties(settings.length_penalty, settings.coverage_penalty)
        self.memory, self.state = engine.start(source, source_lens)
        self.state = self.state.select(torch.arange(n_sources, device=device).repeat_interleave(self.beam))
        self.tokens = torch.full((n_sources, self.beam), EOS, dtype=torch.long, device=device)
        # All beams start alike, so only the first may be extended at the first step.
        self.scores = torch.full((n_sources, self.beam), float("-inf"), dtype=torch.float64, device=device)
        self.scores[:, 0] = 0.0
        self.covered: Tensor | None = None
        self.limits = np.asarray(max_lens)
        self.active = np.arange(n_sources)
        self.best = np.full(n_sources, float("-inf"))
        self.ends: list[list[End]] = [[] for _ in range(n_sources)]
        self.trace = Trace()
        self.n_steps = 0

    def expand(self) -> _Candidates:
        """Run the model one step and take the best 2 * beam continuations of each source.

        At most ``beam`` of them end, so that at least ``beam`` remain to go on with.
        """
        out = self.engine.step(self.tokens, self.memory, self.state)
        self.state = out.state
        batch, beam, vocabulary_size = out.log_probs.shape
        log_probs = out.log_probs
        log_probs[:, :, PAD] = float("-inf")
        totals = log_probs + self.scores.float()[:, :, None]
        top = totals.view(batch, -1).topk(min(2 * beam, beam * vocabulary_size), 1)
        beams = top.indices.div(vocabulary_size, rounding_mode="floor")
        tokens = top.indices - beams * vocabulary_size
        picked = log_probs.view(batch, -1).gather(1, top.indices)
        rows = torch.arange(batch, device=beams.device)[:, None] * beam + beams
        weights = None if out.weights is None else out.weights.flatten(0, 1)
        self.trace.add(tokens.flatten(), picked.flatten(), rows.flatten(), weights)
        if self.penalties.beta and out.weights is not None:
            covered = out.weights.mean(2)
            self.covered = covered if self.covered is None else self.covered + covered
        self.n_steps += 1
        return _Candidates(self.scores.gather(1, beams) + picked, beams, tokens)

    def finish(self, candidates: _Candidates) -> None:
        """Note hypotheses that end among the best ``beam``, and all others where the limit is reached."""
        alive = candidates.scores > float("-inf")
        ending = candidates.is_end & alive
        ending[:, self.beam :] = False
        at_limit = torch.from_numpy(self.n_steps >= self.limits[self.active]).to(alive.device)
        cut = alive & ~candidates.is_end & at_limit[:, None]
        noted = ending | cut
        if not bool(noted.any()):
            return
        ranks = candidates.scores / self.penalties.length(self.n_steps)
        if self.covered is not None:
            cover = self.penalties.coverage(self.covered, self.memory.mask.allowed[:, None])
            ranks = ranks + cover.gather(1, candidates.beams)
        n_candidates = noted.shape[1]
        found = noted.nonzero()
        columns = (found[:, 0], found[:, 1], candidates.scores[noted], ranks[noted], ending[noted])
        for place, choice, score, rank, finished in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            number = int(self.active[place])
            self.ends[number].append(
                End(number, self.n_steps - 1, place * n_candidates + choice, score, rank, finished)
            )
            if finished:
                self.best[number] = max(self.best[number], rank)

    def select(self, candidates: _Candidates) -> None:
        """Go on with the best ``beam`` unfinished hypotheses of each source whose search is not over."""
        beam, n_candidates = self.beam, candidates.scores.shape[1]
        # A stable sort by "has ended" keeps the order by score within the rest.
        order = candidates.is_end.to(torch.int8).sort(dim=1, stable=True).indices[:, :beam]
        scores = candidates.scores.gather(1, order)
        scores = scores.masked_fill(candidates.is_end.gather(1, order), float("-inf"))
        keep = self._goes_on(scores[:, 0].cpu().numpy())
        sources = torch.from_numpy(np.flatnonzero(keep)).to(scores.device)
        order, beams = order[sources], candidates.beams.gather(1, order)[sources]
        self.trace.go_on_from((sources[:, None] * n_candidates + order).flatten())
        self.state = self.state.select((sources[:, None] * beam + beams).flatten())
        if not keep.all():
            self.memory = self.memory.select(sources)
        self.tokens = candidates.tokens[sources].gather(1, order)
        self.scores = scores[sources]
        if self.covered is not None:
            covered = self.covered[sources]
            self.covered = covered.gather(1, beams[:, :, None].expand(-1, -1, covered.shape[2]))
        self.active = self.active[keep]

    def _goes_on(self, best_live: np.ndarray) -> np.ndarray:
        """Whether an unfinished hypothesis of each source can still win, or too few are finished."""
        limits = self.limits[self.active]
        divisors = np.array([self.penalties.length(int(limit)) for limit in limits])
        can_win = best_live / divisors > self.best[self.active]
        enough = np.array([len(self.ends[number]) >= self.beam for number in self.active])
        going = (can_win | ~enough) & (self.n_steps < limits) & (best_live > float("-inf"))
        return np.asarray(going)

    def ranked(self, ends: list[End]) -> list[End]:
        """The best ``beam`` of a source's ends: finished ones first, each kind by rank."""
        return sorted(ends, key=lambda end: (not end.finished, -end.normalised, end.step, end.choice))[
            : self.beam
        ]
