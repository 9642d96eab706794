"""Which of many possible rests of a journey to name: the one most like all others, not the likeliest one.

The likeliest rest of a journey is short and typical of nothing: a path that loops spreads its probability over the
number of loops. Rests drawn from the model stand for what may come, and the one with the highest expected similarity
to them is the answer (minimum Bayes risk, Kumar & Byrne 2004).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from rapidfuzz.distance import DamerauLevenshtein
from rapidfuzz.process import cdist

from regard.config import DecodingSettings
from regard.decode.greedy import greedy_search
from regard.decode.sampling import sample
from regard.journeys.network import JourneyNetwork, PrefixEngine
from regard.nn.encoder import Encoded

__all__ = ["Rest", "draw_rests", "likeliest_rests", "most_expected", "similarity"]

Rest = tuple[int, ...]
"""Ids of the activities that follow, the end not counted."""


def similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """1 - Damerau-Levenshtein distance / length of the longer; 1 for two empty rests."""
    return float(DamerauLevenshtein.normalized_similarity(one, other))


def most_expected(drawn: Sequence[Rest]) -> tuple[Rest, float]:
    """The rest with the highest mean similarity to all that were drawn, and that mean.

    Of equals the one that was drawn most often, then the shorter.
    """
    counts = Counter(drawn)
    rests = sorted(counts, key=lambda rest: (-counts[rest], len(rest), rest))
    weights = np.array([counts[rest] for rest in rests], np.float64)
    table = cdist(rests, rests, scorer=DamerauLevenshtein.normalized_similarity, dtype=np.float64)
    expected = table @ weights / weights.sum()
    best = int(np.argmax(expected.round(9)))
    return rests[best], float(expected[best])


@torch.inference_mode()
def draw_rests(
    network: JourneyNetwork,
    encoded: Encoded,
    *,
    n: int,
    max_lens: Sequence[int],
    keys: Sequence[int],
    seed: int = 1,
) -> list[list[Rest]]:
    """Draw ``n`` rests for each prefix; its draws depend on ``seed`` and its key only."""
    settings = DecodingSettings(sample=True, nbest=n, beam=n, seed=seed, length_penalty=0.0)
    engine = PrefixEngine(network, encoded)
    source, lengths = _rows(encoded)
    found = sample(engine, source, lengths, settings=settings, max_lens=max_lens, keys=keys)
    return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in found]


@torch.inference_mode()
def likeliest_rests(network: JourneyNetwork, encoded: Encoded, *, max_lens: Sequence[int]) -> list[Rest]:
    """The rest that taking the likeliest activity at each step gives."""
    settings = DecodingSettings(beam=1, length_penalty=0.0)
    source, lengths = _rows(encoded)
    found = greedy_search(
        PrefixEngine(network, encoded), source, lengths, settings=settings, max_lens=max_lens
    )
    return [hypotheses[0].tokens for hypotheses in found]


def _rows(encoded: Encoded) -> tuple[torch.Tensor, torch.Tensor]:
    n = encoded.states.shape[0]
    rows = torch.arange(n, device=encoded.states.device)[:, None]
    return rows, torch.ones(n, dtype=torch.long, device=rows.device)
