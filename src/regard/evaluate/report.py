"""A report: each metric over all examples and by source length, with bootstrap intervals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ConfigError
from regard.evaluate.metrics import Metric

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["Bucket", "Estimate", "Report", "bootstrap", "evaluate_outputs", "length_buckets"]

_RESAMPLES = 1000
_MOST_BUCKETS = 8
_MOST_COUNTS = 4_000_000
"""Numbers of the resampling held at once, so that memory does not grow with the test set."""


@dataclass(frozen=True)
class Estimate:
    """A value with the bounds of its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bucket:
    """Examples with source lengths from ``first`` to ``last`` tokens, and each metric's estimate."""

    first: int
    last: int
    n_examples: int
    estimates: dict[str, Estimate]

    @property
    def label(self) -> str:
        """The range as text."""
        return str(self.first) if self.first == self.last else f"{self.first}\u2013{self.last}"


def bootstrap(metric: Metric, statistics: np.ndarray, *, seed: int, resamples: int = _RESAMPLES) -> Estimate:
    """Estimate a metric and its 95 % percentile interval (Koehn 2004).

    The percentiles of a biased metric, such as BLEU of a few lines, may leave the value out; the interval is
    then widened to hold it.

    Args:
        metric: The metric.
        statistics: ``(n_examples, n_statistics)``.
        seed: Of the resampling.
        resamples: Number of samples, each as large as the data, drawn with replacement.
    """
    return _interval(metric, statistics.sum(0), _resample(statistics, seed=seed, resamples=resamples))


def _resample(statistics: np.ndarray, *, seed: int, resamples: int = _RESAMPLES) -> np.ndarray:
    """Sum ``(n_examples, n_statistics)`` over each sample: ``(resamples, n_statistics)``."""
    n = len(statistics)
    rng = np.random.default_rng([seed, n])
    # Samples are drawn one after the other, so that the size of a chunk does not change them.
    chunk = max(1, _MOST_COUNTS // n)
    sums = []
    for first in range(0, resamples, chunk):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(chunk, resamples - first))
        sums.append(counts.astype(np.float64) @ statistics)
    return np.concatenate(sums)


def _interval(metric: Metric, sums: np.ndarray, resampled: np.ndarray) -> Estimate:
    value = metric.aggregate(sums)
    low, high = np.percentile([metric.aggregate(sample) for sample in resampled], [2.5, 97.5])
    return Estimate(value, min(float(low), value), max(float(high), value))


def length_buckets(lengths: Sequence[int], edges: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Divide lengths into ranges ``(first, last)`` that cover all of them.

    Args:
        lengths: Source lengths.
        edges: Last length of each range; by default at most 8 ranges of about equal numbers.
    """
    values = np.asarray(sorted(lengths))
    if edges is None:
        shares = np.arange(1, _MOST_BUCKETS + 1) / _MOST_BUCKETS
        chosen = np.unique(np.quantile(values, shares, method="higher"))
    else:
        chosen = np.unique(np.asarray([*[edge for edge in edges if edge < values[-1]], values[-1]]))
    ranges, first = [], int(values[0])
    for last in chosen.tolist():
        if ((values >= first) & (values <= last)).any():
            ranges.append((first, int(last)))
            first = int(last) + 1
    return ranges


@dataclass(frozen=True)
class Report:
    """Estimates over all examples and by source length."""

    n_examples: int
    overall: dict[str, Estimate]
    buckets: list[Bucket]
    labels: dict[str, str]
    signatures: dict[str, str]

    def to_json(self) -> str:
        """The report as JSON text."""

        def show(estimates: dict[str, Estimate]) -> dict[str, Any]:
            return {
                name: {key: round(number, 4) for key, number in vars(e).items()}
                for name, e in estimates.items()
            }

        record = {
            "format": "regard-report",
            "version": 1,
            "n_examples": self.n_examples,
            "overall": show(self.overall),
            "by_source_length": [
                {"first": b.first, "last": b.last, "n_examples": b.n_examples, **show(b.estimates)}
                for b in self.buckets
            ],
            "signatures": self.signatures,
        }
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"

    def table(self) -> Table:
        """The report as a table for the terminal."""
        from rich.table import Table

        meanings = [
            f"{_short(name)}: {label}" for name, label in self.labels.items() if _short(name) != label
        ]
        table = Table(
            title=f"{self.n_examples:,} examples, with 95 % intervals",
            title_justify="left",
            caption=", ".join(meanings),
            caption_justify="left",
        )
        table.add_column("length", overflow="fold")
        table.add_column("n", justify="right", overflow="fold")
        for name in self.overall:
            table.add_column(_short(name), justify="right", overflow="fold")
        for bucket in self.buckets:
            table.add_row(bucket.label, f"{bucket.n_examples:,}", *map(_shown, bucket.estimates.values()))
        table.add_section()
        table.add_row("all", f"{self.n_examples:,}", *map(_shown, self.overall.values()), style="bold")
        return table

    def plot(self, path: str | Path) -> None:
        """Draw each metric against source length, with interval bands.

        Raises:
            ConfigError: The file's ending is none that can be drawn.
        """
        from regard.evaluate.plot import plot_report

        plot_report(self, Path(path))


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.1f} [dim]{estimate.low:.0f}\u2013{estimate.high:.0f}[/dim]"


def _short(name: str) -> str:
    """A metric's name as it is usually written."""
    return {"exact": "exact", "chrf": "chrF"}.get(name, name.upper())


def evaluate_outputs(
    source_lens: Sequence[int],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[Metric],
    edges: Sequence[int] | None = None,
    seed: int = 1,
) -> Report:
    """Compare outputs with references.

    Args:
        source_lens: Source lengths in tokens.
        hypotheses: Outputs.
        references: What they should be.
        metrics: What to compute.
        edges: Last source length of each bucket; by default buckets of about equal numbers.
        seed: Of the bootstrap.

    Raises:
        ConfigError: There is nothing to compare, or the numbers of examples differ.
    """
    if not references or not len(source_lens) == len(hypotheses) == len(references):
        raise ConfigError(
            f"{len(hypotheses)} outputs for {len(references)} references and {len(source_lens)} sources"
        )
    statistics = {metric.name: metric.statistics(hypotheses, references) for metric in metrics}
    lengths = np.asarray(source_lens)

    def estimate(rows: np.ndarray) -> dict[str, Estimate]:
        # All metrics are judged on the same samples, which are drawn once: drawing is what takes the time.
        parts = [statistics[metric.name][rows] for metric in metrics]
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        samples = np.split(_resample(np.hstack(parts), seed=seed), ends, axis=1)
        return {
            metric.name: _interval(metric, part.sum(0), sample)
            for metric, part, sample in zip(metrics, parts, samples, strict=True)
        }

    buckets = []
    for first, last in length_buckets(source_lens, edges):
        rows = (lengths >= first) & (lengths <= last)
        buckets.append(Bucket(first, last, int(rows.sum()), estimate(rows)))
    return Report(
        n_examples=len(references),
        overall=estimate(np.ones(len(references), bool)),
        buckets=buckets,
        labels={metric.name: metric.label for metric in metrics},
        signatures={metric.name: metric.signature() for metric in metrics},
    )
