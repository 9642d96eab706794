"""The plan of a comparison: which runs there are, each with its settings and the key it is known by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.compare.data import ComparisonData, fingerprint
from regard.compare.sizes import count_parameters, fit_hidden_size, with_hidden_size
from regard.compare.variants import Family, Variant, family_of
from regard.config import Config, merge
from regard.errors import ConfigError

__all__ = ["BASE", "Evaluation", "Match", "Plan", "Run", "make_plan"]

Match = Literal["parameters", "hidden"]

BASE: dict[str, Any] = {
    # The budget is what ends each training, and all spend it: no early stop, no last epoch.
    "training": {"epochs": 100_000, "patience": 0, "max_dev_decoded": 200},
}
"""Settings of a comparison where nobody says otherwise."""


@dataclass(frozen=True)
class Evaluation:
    """How every run is judged.

    Attributes:
        metrics: Names; the first is the main one.
        edges: Last source length of each range.
        beam: Hypotheses kept while decoding; 1 is greedy.
    """

    metrics: tuple[str, ...]
    edges: tuple[int, ...]
    beam: int = 1

    def key(self, data: ComparisonData) -> str:
        """What a result depends on besides its run."""
        return fingerprint([list(self.metrics), list(self.edges), self.beam, data.test])


@dataclass(frozen=True)
class Run:
    """One training of one variant.

    Attributes:
        variant: The variant's name.
        label: Its name in tables.
        family: Fixed context or attention.
        seed: Of everything random.
        config: All settings.
        key: A digest of the settings and the training data, by which a finished run is found again.
    """

    variant: str
    label: str
    family: Family
    seed: int
    config: Config
    key: str

    @property
    def hidden_size(self) -> int:
        """Units of a layer."""
        return self.config.model.hidden_size

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.variant}-h{self.hidden_size}-s{self.seed}-{self.key[:8]}"


@dataclass(frozen=True)
class Plan:
    """All runs of a comparison, and how they are judged.

    Attributes:
        folder: Where everything goes.
        data: What all train on.
        evaluation: How all are judged.
        runs: In the order they are done: all variants with the first seed, then with the next.
        budget: Minutes, updates and parameters that each may use, for reports.
    """

    folder: Path
    data: ComparisonData
    evaluation: Evaluation
    runs: list[Run]
    budget: dict[str, Any]

    def run_folder(self, run: Run) -> Path:
        """The model folder of a run."""
        return self.folder / "runs" / run.name


def choose_metrics(names: Sequence[str] | None, target_kind: str) -> tuple[str, ...]:
    """The metrics of a comparison; by default those that fit the targets.

    Raises:
        ConfigError: A name is unknown.
    """
    from regard.registry import METRICS

    if names:
        return tuple(dict.fromkeys(METRICS.check(name) for name in names))
    if target_kind == "space":
        return ("token", "exact")
    if target_kind in ("char", "grapheme"):
        return ("token", "exact", "chrf")
    return ("bleu", "chrf", "exact", "token")


def _shared_settings(base: dict[str, Any], data: ComparisonData) -> dict[str, Any]:
    """The base, with what the data decide: tokens to watch, and no more positions than there are."""
    settings = merge(BASE, base)
    if data.target_kind == "space":
        settings = merge({"training": {"metric": "token"}}, settings)
    if data.source_kind in ("bpe", "unigram"):
        return settings  # trained again for each run, they may split a text otherwise here and there
    limit = settings.get("data", {}).get("max_source_len") or Config().data.max_source_len
    return merge(settings, {"data": {"max_source_len": min(limit, data.longest)}})


def make_plan(
    data: ComparisonData,
    variants: Sequence[Variant],
    *,
    folder: Path,
    evaluation: Evaluation,
    settings: dict[str, Any],
    seeds: Sequence[int] = (1, 2, 3),
    match: Match = "parameters",
    hidden_sizes: Sequence[int] = (256,),
) -> Plan:
    """Plan all runs.

    Args:
        data: What all train on.
        variants: What is compared.
        folder: Where everything goes.
        evaluation: How all are judged.
        settings: Nested settings that all share, the time budget among them.
        seeds: One run of each variant with each.
        match: ``parameters``: each variant gets the hidden size at which it has as many parameters as the default
            model (attention, general) has at the given hidden size; ``hidden``: all have that hidden size.
        hidden_sizes: Units of a layer; more than one for a question of size.

    Raises:
        ConfigError: A variant's settings cannot work.
    """
    if not variants or not seeds or not hidden_sizes:
        raise ConfigError(
            "there is nothing to compare: name at least one variant, one seed and one hidden size"
        )
    shared = _shared_settings(settings, data)
    sizes = {"source_size": data.source_size, "target_size": data.target_size}
    trained_on = [data.train, data.dev]
    digest = fingerprint(trained_on)
    reference = Variant("default", "default", {"model": {"context": "attention"}}).config(shared)
    targets = {size: count_parameters(with_hidden_size(reference, size), **sizes) for size in hidden_sizes}
    chosen: list[tuple[Variant, Config]] = []
    for variant in variants:
        config = variant.config(shared)
        for size in hidden_sizes:
            if match == "parameters":
                chosen.append((variant, fit_hidden_size(config, targets[size], **sizes)))
            else:
                chosen.append((variant, with_hidden_size(config, size)))
    runs = [_make_run(variant, config, seed, digest) for seed in seeds for variant, config in chosen]
    training = reference.training
    budget = {
        "minutes": training.minutes,
        "max_steps": training.max_steps,
        "threads": training.threads,
        "match": match,
        "hidden_sizes": list(hidden_sizes),
        "parameters": list(targets.values()) if match == "parameters" else None,
    }
    return Plan(folder, data, evaluation, runs, budget)


def _make_run(variant: Variant, config: Config, seed: int, digest: str) -> Run:
    training = config.training.model_copy(update={"seed": seed})
    config = config.model_copy(update={"training": training})
    key = fingerprint([config.model_dump(), digest])
    return Run(variant.name, variant.label, family_of(config), seed, config, key)
