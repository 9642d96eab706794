"""Metrics made of per-example statistics, so that buckets and bootstrap samples are sums, not new runs.

BLEU, chrF and TER are sacrebleu's, with its signature. Edit distances are rapidfuzz's.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regard.registry import METRICS

__all__ = [
    "BLEU",
    "CER",
    "CHRF",
    "PER",
    "TER",
    "WER",
    "Exact",
    "Metric",
    "TokenAccuracy",
    "WholeLineErrors",
    "bleu",
    "cer",
    "chrf",
    "exact",
    "make_metrics",
    "per",
    "ter",
    "token",
    "wer",
]


class Metric(ABC):
    """A corpus metric, in per cent.

    Attributes:
        name: Short name.
        label: Name in tables and plots.
        higher_is_better: Whether more is better.
    """

    name: str
    label: str
    higher_is_better: bool

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Return float64 ``(n_examples, n_statistics)`` that add up over examples."""

    @abstractmethod
    def aggregate(self, sums: np.ndarray) -> float:
        """Return the metric of summed statistics ``(n_statistics,)``."""

    def score(self, hypotheses: Sequence[str], references: Sequence[str]) -> float:
        """Return the metric of a corpus.

        Raises:
            ValueError: There are not as many hypotheses as references.
        """
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} references")
        if not references:
            return float("nan")
        return self.aggregate(self.statistics(hypotheses, references).sum(0))

    def signature(self) -> str:
        """How the metric was computed, for reports."""
        return self.name


class _SacreMetric(Metric):
    """A metric of sacrebleu, through its own sentence statistics."""

    def __init__(self) -> None:
        self._metric: Any = None

    @abstractmethod
    def make(self) -> Any:
        """Make sacrebleu's object; it is slow to import, so not before it is needed."""

    @property
    def backend(self) -> Any:
        """The object of sacrebleu."""
        if self._metric is None:
            self._metric = self.make()
        return self._metric

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Count what sacrebleu counts."""
        if not references:
            return np.zeros((0, 0))
        counts = self.backend._extract_corpus_statistics(list(hypotheses), [list(references)])
        return np.array(counts, dtype=np.float64)

    def aggregate(self, sums: np.ndarray) -> float:
        """Let sacrebleu make the score of its sums."""
        return float(self.backend._compute_score_from_stats(sums.tolist()).score)

    def signature(self) -> str:
        """The signature of sacrebleu."""
        # sacrebleu knows the number of references only once it has scored something.
        self.backend.corpus_score(["a"], [["a"]])
        return f"{self.label}|{self.backend.get_signature()}"


class BLEU(_SacreMetric):
    """BLEU (Papineni 2002).

    Args:
        tokenize: sacrebleu's tokenizer: 13a, zh, char, none, …
    """

    name, label, higher_is_better = "bleu", "BLEU", True

    def __init__(self, *, tokenize: str = "13a") -> None:
        super().__init__()
        self.tokenize = tokenize

    def make(self) -> Any:
        """Make the scorer; lines that are tokenized already are no cause for a warning."""
        from sacrebleu.metrics.bleu import BLEU as Backend

        return Backend(tokenize=self.tokenize, force=True)

    def aggregate(self, sums: np.ndarray) -> float:
        """Let sacrebleu make the score of its sums, which must be whole numbers."""
        return float(self.backend._compute_score_from_stats([round(value) for value in sums.tolist()]).score)


class CHRF(_SacreMetric):
    """chrF (Popović 2015), character n-grams up to 6."""

    name, label, higher_is_better = "chrf", "chrF", True

    def make(self) -> Any:
        """Make the scorer."""
        from sacrebleu.metrics.chrf import CHRF as Backend

        return Backend()


class TER(_SacreMetric):
    """Translation edit rate (Snover 2006)."""

    name, label, higher_is_better = "ter", "TER", False

    def make(self) -> Any:
        """Make the scorer."""
        from sacrebleu.metrics.ter import TER as Backend

        return Backend()


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


class Exact(Metric):
    """Share of outputs that equal their reference, in NFC."""

    name, label, higher_is_better = "exact", "exact match", True

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Count hits and examples."""
        hits = [_nfc(a) == _nfc(b) for a, b in zip(hypotheses, references, strict=True)]
        return np.stack([np.array(hits, dtype=np.float64), np.ones(len(hits))], 1)

    def aggregate(self, sums: np.ndarray) -> float:
        """Divide."""
        return float(100 * sums[0] / sums[1])


class WholeLineErrors(Exact):
    """Share of lines that are not wholly right: the word error rate of pronunciations (SIGMORPHON)."""

    name, label, higher_is_better = "wer", "word error rate (whole lines)", False

    def aggregate(self, sums: np.ndarray) -> float:
        """Count what is not hit."""
        return float(100 - 100 * sums[0] / sums[1])


def _blank_separated(text: str) -> Sequence[str]:
    return [symbol for symbol in text.split(" ") if symbol]


class TokenAccuracy(Metric):
    """Share of places at which the output has the reference's token, of all places that either of them has.

    Outputs are what the model says when it hears itself, not the references' tokens; one left out puts all that
    follow in wrong places. It is 100 only if all lines are right.

    Args:
        split: Divides a text into tokens; by default at blanks.
    """

    name, label, higher_is_better = "token", "token accuracy", True

    def __init__(self, split: Callable[[str], Sequence[str]] = _blank_separated) -> None:
        self.split = split

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Count right places and all places."""
        rows = []
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            said, expected = self.split(_nfc(hypothesis)), self.split(_nfc(reference))
            hits = sum(one == other for one, other in zip(said, expected, strict=False))
            rows.append((hits, max(len(said), len(expected))))
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def aggregate(self, sums: np.ndarray) -> float:
        """Divide; of nothing at all, everything is right."""
        return float(100 * sums[0] / sums[1]) if sums[1] else 100.0


class _EditRate(Metric):
    """Edits for each symbol of the references; with empty references, 0 if nothing was said, else 100."""

    higher_is_better = False

    @abstractmethod
    def symbols(self, text: str) -> Sequence[str]:
        """Split a text into what is counted."""

    def statistics(self, hypotheses: Sequence[str], references: Sequence[str]) -> np.ndarray:
        """Count edits and reference symbols."""
        from rapidfuzz.distance import Levenshtein

        rows = []
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            expected = self.symbols(_nfc(reference))
            rows.append((Levenshtein.distance(self.symbols(_nfc(hypothesis)), expected), len(expected)))
        return np.array(rows, dtype=np.float64).reshape(-1, 2)

    def aggregate(self, sums: np.ndarray) -> float:
        """Divide."""
        if not sums[1]:
            return 100.0 if sums[0] else 0.0
        return float(100 * sums[0] / sums[1])


class WER(_EditRate):
    """Word error rate: edits for each blank-separated word."""

    name, label = "wer", "word error rate"

    def symbols(self, text: str) -> Sequence[str]:
        """Split into words."""
        return text.split()


class CER(_EditRate):
    """Character error rate: edits for each code point of NFC."""

    name, label = "cer", "character error rate"

    def symbols(self, text: str) -> Sequence[str]:
        """Split into characters."""
        return text


class PER(_EditRate):
    """Phone error rate: edits for each symbol, symbols being divided by blanks (U+0020)."""

    name, label = "per", "phone error rate"

    def symbols(self, text: str) -> Sequence[str]:
        """Split into phones."""
        return _blank_separated(text)


bleu, chrf, ter, exact, wer, cer, per = BLEU(), CHRF(), TER(), Exact(), WER(), CER(), PER()
token = TokenAccuracy()


def make_metrics(
    names: Sequence[str] | None, *, symbol_target: bool, references: Sequence[str] = ()
) -> list[Metric]:
    """Choose metrics for a kind of target.

    Args:
        names: Names in `regard.registry.METRICS`; a fitting choice if None.
        symbol_target: Whether targets are symbols with blanks between them (phones): then ``wer`` counts
            whole lines, as the literature on pronunciation does.
        references: Looked at for the tokenizer of BLEU: Chinese is not divided by blanks.
    """
    if names is None:
        names = ["exact", "wer", "per"] if symbol_target else ["bleu", "chrf", "ter", "exact", "wer", "cer"]
    made: list[Metric] = []
    for name in names:
        metric: Metric = METRICS.get(name)
        if name == "wer" and symbol_target:
            metric = WholeLineErrors()
        elif name == "bleu":
            metric = BLEU(tokenize="zh" if _mostly_han(references) else "none" if symbol_target else "13a")
        made.append(metric)
    return made


def _mostly_han(texts: Sequence[str]) -> bool:
    letters = [character for text in texts[:200] for character in text if character.isalpha()]
    return sum("\u4e00" <= letter <= "\u9fff" for letter in letters) > 0.3 * max(1, len(letters))
