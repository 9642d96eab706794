"""Simple ways to say what comes next and the rest, learnt from the same cases; what a model has to beat."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from regard.journeys.cases import EncodedLog
from regard.journeys.suffixes import Rest
from regard.nn.types import EOS

__all__ = ["Baseline", "MostFrequentNext", "NGram", "NearestPrefix", "all_baselines", "baselines_of"]

_LONGEST = 100


class Baseline(ABC):
    """Learns from paths (ids of activities, without the end) and answers for prefixes."""

    name: str

    def __init__(self, paths: Sequence[Rest]) -> None:
        self.paths = paths
        self.fit()

    @abstractmethod
    def fit(self) -> None:
        """Learn."""

    @abstractmethod
    def ranked(self, prefix: Rest) -> list[int]:
        """What may come next, the likeliest first; `EOS` is the end."""

    def next(self, prefix: Rest, *, goes_on: bool = False) -> int:
        """What comes next; with ``goes_on`` the end is no answer."""
        return next((token for token in self.ranked(prefix) if not (goes_on and token == EOS)), EOS)

    def rest(self, prefix: Rest, *, goes_on: bool = False) -> Rest:
        """The likeliest next activity again and again; with ``goes_on`` there is at least one."""
        made: list[int] = []
        while len(made) < _LONGEST:
            token = self.next((*prefix, *made), goes_on=goes_on and not made)
            if token == EOS:
                break
            made.append(token)
        return tuple(made)


class NGram(Baseline):
    """The most frequent after the longest ending of the prefix that was seen often enough (back-off)."""

    name = "n-gram with back-off"
    order = 6
    """Activities looked back at, and the one named."""
    least = 5
    """Times that an ending must have been seen."""

    def fit(self) -> None:
        """Count what follows each ending."""
        self.counts: dict[Rest, Counter[int]] = defaultdict(Counter)
        for path in self.paths:
            for place, token in enumerate((*path, EOS)):
                for size in range(min(self.order, place + 1)):
                    self.counts[path[place - size : place]][token] += 1

    def ranked(self, prefix: Rest) -> list[int]:
        """Back off from long endings to short ones."""
        for size in range(min(self.order - 1, len(prefix)), -1, -1):
            found = self.counts.get(prefix[len(prefix) - size :])
            if found is not None and (size == 0 or found.total() >= self.least):
                others = [token for token, _ in self.counts[()].most_common()]
                return [*(token for token, _ in found.most_common()), *others]
        return [EOS]


class MostFrequentNext(NGram):
    """The most frequent after the last activity (bigram)."""

    name = "most frequent next"
    order = 2
    least = 1


class NearestPrefix(Baseline):
    """What followed the most similar prefix of training, by edit distance; of several, most often."""

    name = "rest of the nearest prefix"
    most = 2_000
    """Prefixes with the same last activity that are compared, the most frequent ones."""

    def fit(self) -> None:
        """Collect the rests of each prefix."""
        self.rests: dict[Rest, Counter[Rest]] = defaultdict(Counter)
        for path in self.paths:
            for size in range(1, min(len(path), _LONGEST) + 1):
                self.rests[path[:size]][path[size:]] += 1
        by_last: dict[int, list[Rest]] = defaultdict(list)
        for prefix in sorted(self.rests, key=lambda prefix: (-self.rests[prefix].total(), prefix)):
            if len(by_last[prefix[-1]]) < self.most:
                by_last[prefix[-1]].append(prefix)
        self.by_last = dict(by_last)
        self.known: dict[Rest, Rest] = {}

    def nearest(self, prefix: Rest) -> Rest:
        """The most similar prefix of training."""
        if prefix in self.rests:
            return prefix
        if prefix not in self.known:
            candidates = self.by_last.get(prefix[-1]) or next(iter(self.by_last.values()))
            found = process.extractOne(prefix, candidates, scorer=Levenshtein.distance)
            self.known[prefix] = found[0]
        return self.known[prefix]

    def ranked(self, prefix: Rest) -> list[int]:
        """First activities of the rests, the most frequent first."""
        firsts: Counter[int] = Counter()
        for rest, count in self.rests[self.nearest(prefix)].items():
            firsts[rest[0] if rest else EOS] += count
        return [token for token, _ in firsts.most_common()]

    def rest(self, prefix: Rest, *, goes_on: bool = False) -> Rest:
        """The most frequent rest."""
        ranked = (rest for rest, _ in self.rests[self.nearest(prefix)].most_common())
        return next((rest for rest in ranked if rest or not goes_on), ())


def all_baselines(paths: Sequence[Rest]) -> list[Baseline]:
    """Make all baselines from the paths of training."""
    return [MostFrequentNext(paths), NGram(paths), NearestPrefix(paths)]


def baselines_of(log: EncodedLog, *, most: int = 50_000) -> list[Baseline]:
    """Make all baselines from the cases of a log, or from ``most`` evenly chosen ones of a large log."""
    n = len(log.lengths)
    cases = np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
    return all_baselines([tuple(log.path(case).tolist()) for case in cases])
