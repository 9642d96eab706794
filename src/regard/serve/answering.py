"""What the worker thread does with a batch: asks the model it is for, once for all inputs of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.serve.batching import Batch
from regard.serve.catalogue import Catalogue

__all__ = ["ExplainKey", "PredictKey", "ScoreKey", "make_answerer"]

Options = tuple[tuple[str, Any], ...]
"""Settings of the decoding as sorted pairs, so that equal settings are equal keys."""


@dataclass(frozen=True)
class PredictKey:
    """Texts to be predicted by a model with settings."""

    model: str
    options: Options


@dataclass(frozen=True)
class ScoreKey:
    """Pairs of source and target to be scored by a model."""

    model: str


@dataclass(frozen=True)
class ExplainKey:
    """Pairs of source and target (or None, for the model's own outputs) to be explained."""

    model: str
    options: Options


class make_answerer:  # noqa: N801
    """Answers batches with the models of a catalogue."""
