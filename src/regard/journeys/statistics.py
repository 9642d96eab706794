"""Intervals of shares, of differences of shares, and of means."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

import numpy as np

__all__ = ["difference_interval", "mean_interval", "wilson"]


def _z(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


def wilson(hits: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share (Wilson 1927); from 0 to 1 where there is nothing."""
    if not n:
        return 0.0, 1.0
    z, share = _z(level), hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def difference_interval(
    hits: int, n: int, other_hits: int, other_n: int, *, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the difference of two shares (Newcombe 1998, method 10)."""
    if not n or not other_n:
        return -1.0, 1.0
    one, other = hits / n, other_hits / other_n
    low, high = wilson(hits, n, level=level)
    other_low, other_high = wilson(other_hits, other_n, level=level)
    below = sqrt((one - low) ** 2 + (other_high - other) ** 2)
    above = sqrt((high - one) ** 2 + (other - other_low) ** 2)
    return one - other - below, one - other + above


def mean_interval(values: np.ndarray, *, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and its interval by the normal approximation; the interval is wide open below two values."""
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("-inf"), float("inf")
    half = _z(level) * float(values.std(ddof=1)) / sqrt(len(values))
    return mean, mean - half, mean + half
