"""Is the picture faithful? What is attended to most should be what the output needs most.

Source tokens are erased one by one, the most attended first, and the log-probability of the same output is taken
each time (comprehensiveness, DeYoung et al. 2020); the fall is compared with that of erasing random tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from regard.errors import ConfigError, DataError
from regard.explain.decoding import DecodingRecord

__all__ = ["Faithfulness", "check_faithfulness"]

_MOST_ERASED = 10

Scorer = Callable[[Sequence[Sequence[int]]], list[float]]
"""Kept source places, several lists of them, to the log-probability of the output given each."""


@dataclass(frozen=True)
class Faithfulness:
    """How far the log-probability of an output falls when source tokens are erased.

    Attributes:
        log_prob: With the whole source.
        erased: Source places in the order of erasing, the most attended first.
        tokens: Their tokens.
        attended: Fall after erasing the first 1, 2, … of them, float64 ``(n,)``, in nats.
        random: Mean fall after erasing as many random ones, ``(n,)``.
        draws: Falls of each random order, ``(n_draws, n)``.
        seed: Of the random orders.
    """

    log_prob: float
    erased: tuple[int, ...]
    tokens: tuple[str, ...]
    attended: np.ndarray = field(repr=False)
    random: np.ndarray = field(repr=False)
    draws: np.ndarray = field(repr=False)
    seed: int

    @property
    def share_beaten(self) -> float:
        """Share of the random orders whose mean fall is smaller than that of the attended order; a tie is half.

        There are ties where a random order begins with the very token that the output needs.
        """
        falls, attended = self.draws.mean(1), self.attended.mean()
        tied = np.isclose(falls, attended, rtol=1e-6, atol=1e-9)
        return float(np.where(tied, 0.5, falls < attended).mean())

    def sentence(self) -> str:
        """What the numbers mean."""
        attended, random = self.attended.mean(), self.random.mean()
        numbers = (
            f"erasing the most attended source tokens lowers the log-probability of the output by {attended:.2f} "
            f"on average, erasing random ones by {random:.2f} ({self.share_beaten:.0%} of {len(self.draws)} random "
            "orders do less)"
        )
        if attended > random and self.share_beaten >= 0.9:
            return f"Faithful here: {numbers}. What the picture shows is what this output depends on."
        if attended > random and self.share_beaten >= 0.5:
            return (
                f"Partly faithful: {numbers}. The picture is a hint at what this output depends on, no proof."
            )
        return f"Not faithful here: {numbers}. Do not read the picture as the reason for this output."


def check_faithfulness(
    record: DecodingRecord, score: Scorer, *, hypothesis: int = 0, n_draws: int = 20, seed: int = 1
) -> Faithfulness:
    """Erase source tokens and see what the output loses.

    Args:
        record: With attention; a token's attention is its mean over heads, summed over the output.
        score: Gives the log-probability of the hypothesis for sources that keep only some places.
        hypothesis: Which one.
        n_draws: Random orders.
        seed: Of them.

    Raises:
        ConfigError: The model has no attention.
        DataError: The source has too few tokens to compare.
    """
    if n_draws < 1:
        raise ConfigError(f"{n_draws} random orders compare nothing; take 1 or more")
    alignment = record.alignment(hypothesis)
    n_tokens = len(record.source_tokens) - 1  # the end stays
    if n_tokens < 2:
        raise DataError("the source has one token: there is nothing else to erase for comparison")
    attention = alignment.alignment.sum(0)[:n_tokens]
    # Beyond the half of them, random orders have erased the same tokens.
    n_erased = min(_MOST_ERASED, (n_tokens + 1) // 2)
    order = np.argsort(-attention, kind="stable")[:n_erased]
    rng = np.random.default_rng(seed)
    orders = [order, *(rng.permutation(n_tokens)[:n_erased] for _ in range(n_draws))]
    kept = [list(range(n_tokens))]
    for one in orders:
        for n in range(1, n_erased + 1):
            gone = set(one[:n].tolist())
            kept.append([place for place in range(n_tokens) if place not in gone])
    log_probs = np.array(score(kept))
    falls = (log_probs[0] - log_probs[1:]).reshape(len(orders), n_erased)
    return Faithfulness(
        log_prob=float(log_probs[0]),
        erased=tuple(order.tolist()),
        tokens=tuple(record.source_tokens[place] for place in order.tolist()),
        attended=falls[0],
        random=falls[1:].mean(0),
        draws=falls[1:],
        seed=seed,
    )
