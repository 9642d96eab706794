"""What the worker thread does with a batch: asks the model it is for, once for all inputs of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.prediction import Prediction
from regard.seq2seq import Seq2Seq
from regard.serve.batching import Batch
from regard.serve.catalogue import Catalogue

__all__ = ["ExplainKey", "JourneysKey", "PredictKey", "ScoreKey", "make_answerer"]

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


@dataclass(frozen=True)
class JourneysKey:
    """Journeys to be foretold by a model."""

    model: str
    draws: int
    explain: bool


def make_answerer(catalogue: Catalogue) -> Callable[[Batch], Sequence[Any]]:
    """Return the function that answers batches with the models of a catalogue."""

    def answer(batch: Batch) -> Sequence[Any]:
        key = batch.key
        if isinstance(key, PredictKey):
            return _predict(catalogue.get(key.model).model, batch, key.options)
        if isinstance(key, ScoreKey):
            return catalogue.get(key.model).model.score(batch.inputs)
        if isinstance(key, ExplainKey):
            model = catalogue.get(key.model).model
            return [_explain(model, source, target, key.options) for source, target in batch.inputs]
        if isinstance(key, JourneysKey):
            served = catalogue.journeys(key.model)
            return served.answer(batch.inputs, draws=key.draws, explain=key.explain)
        raise TypeError(f"no way to answer {type(key).__name__}")

    return answer


def _predict(model: Seq2Seq, batch: Batch, options: Options) -> list[Prediction]:
    watch = batch.show_step if batch.is_watched else None
    return model.predict(batch.inputs, watch=watch, **dict(options))


def _explain(model: Seq2Seq, source: str, target: str | None, options: Options) -> dict[str, Any]:
    from regard.explain.serial import to_object
    from regard.explain.trace import trace

    return to_object(trace(model, source, target=target, **dict(options)))
