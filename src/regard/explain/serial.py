"""The record of a decoding as JSON of a versioned schema, and as NumPy arrays.

Schema ``regard-decoding/1``. Fields are only added within a version; readers leave alone what they do not know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from regard.atomic import write_atomically
from regard.errors import DataError
from regard.explain.decoding import Candidate, DecodingRecord, HypothesisRecord, Step
from regard.explain.words import word_numbers

__all__ = ["SCHEMA", "from_json", "to_arrays", "to_json", "to_object", "write_npz"]

SCHEMA = "regard-decoding/1"
_DIGITS = 6
_VECTORS = ("query", "state", "context", "output")
"""Fields of a step that are there if vectors were asked for; one beside it has their length."""


def _exact(array: np.ndarray) -> Any:
    """Nested lists of numbers with as few digits as give each float32 back exactly."""
    return array.astype(np.float32).astype(np.str_).astype(np.float64).tolist()


def _numbers(array: np.ndarray | None) -> Any:
    """Nested lists of rounded numbers; what is not finite (a position out of reach) becomes null."""
    if array is None:
        return None
    rounded = np.round(array.astype(float), _DIGITS).astype(object)
    rounded[~np.isfinite(array)] = None
    return rounded.tolist()


def _number(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)


def to_object(record: DecodingRecord, *, vectors: bool = True) -> dict[str, Any]:
    """The record as JSON values; what the player takes and the server sends.

    Args:
        record: What to write.
        vectors: Write the vectors that the record has; the player needs none but that of a fixed context.
    """
    states = record.encoder_states if vectors else None
    return {
        "schema": SCHEMA,
        "source": record.source,
        "source_tokens": list(record.source_tokens),
        "source_words": word_numbers(record.source_tokens, record.source_kind, eos=True),
        "unknown": list(record.unknown),
        "encoder_norms": _numbers(record.encoder_norms),
        **({} if states is None else {"encoder_states": _exact(states)}),
        "context": record.context,
        "vector": None if record.vector is None else _exact(record.vector),
        "heads": record.heads,
        "score_function": record.score_function,
        "normaliser": record.normaliser,
        "attends": record.attends,
        "source_kind": record.source_kind,
        "target_kind": record.target_kind,
        "hypotheses": [_hypothesis(made, record, vectors=vectors) for made in record.hypotheses],
    }


def _hypothesis(hypothesis: HypothesisRecord, record: DecodingRecord, *, vectors: bool) -> dict[str, Any]:
    return {
        "origin": hypothesis.origin,
        "rank": hypothesis.rank,
        "text": hypothesis.text,
        "score": _number(hypothesis.score),
        "normalised": _number(hypothesis.normalised),
        "finished": hypothesis.finished,
        "ids": list(hypothesis.ids),
        "target_tokens": list(hypothesis.tokens),
        "target_words": word_numbers(hypothesis.tokens, record.target_kind, eos=hypothesis.finished),
        "steps": [_step(step, vectors=vectors) for step in hypothesis.steps],
    }


def _step(step: Step, *, vectors: bool) -> dict[str, Any]:
    made: dict[str, Any] = {
        "token": step.token,
        "log_prob": _number(step.log_prob),
        "rank": step.rank,
        "candidates": [{"token": c.token, "prob": _number(c.prob)} for c in step.candidates],
        "query_norm": _number(step.query_norm),
        "state_norm": _number(step.state_norm),
        "output_norm": _number(step.output_norm),
        "scores": _numbers(step.scores),
        "weights": _numbers(step.weights),
        "context_norm": _number(step.context_norm),
    }
    for name in _VECTORS if vectors else ():
        vector = getattr(step, name)
        if vector is not None:
            made[name] = _exact(vector)
    return made


def to_json(record: DecodingRecord) -> str:
    """The record as one line of JSON."""
    return json.dumps(to_object(record), ensure_ascii=False, allow_nan=False) + "\n"


def _array(values: Any) -> np.ndarray | None:
    if values is None:
        return None
    array = np.array(values, dtype=object)
    array[array == None] = -np.inf  # noqa: E711 (elementwise)
    return array.astype(np.float32)


def from_json(text: str) -> DecodingRecord:
    """Read what `to_json` wrote.

    Raises:
        DataError: It is no JSON, of another schema or not whole.
    """
    try:
        made = json.loads(text)
        if not isinstance(made, dict) or made.get("schema") != SCHEMA:
            found = made.get("schema", "none") if isinstance(made, dict) else "none"
            raise DataError(f"the record has the schema {found!r}, expected {SCHEMA!r}; write it anew")
        plain = ("source", "context", "heads", "score_function", "normaliser", "attends")
        return DecodingRecord(
            **{name: made[name] for name in plain},
            source_tokens=tuple(made["source_tokens"]),
            unknown=tuple(made["unknown"]),
            encoder_norms=np.array(made["encoder_norms"], np.float32),
            vector=_array(made["vector"]),
            source_kind=made["source_kind"],
            target_kind=made["target_kind"],
            hypotheses=tuple(_read_hypothesis(found) for found in made["hypotheses"]),
            encoder_states=_array(made.get("encoder_states")),
        )
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"this is no whole record of a decoding ({type(error).__name__}: {error})") from None


def _read_hypothesis(made: dict[str, Any]) -> HypothesisRecord:
    names = ("origin", "rank", "text", "score", "normalised", "finished")
    return HypothesisRecord(
        **{name: made[name] for name in names},
        steps=tuple(_read_step(step) for step in made["steps"]),
        ids=tuple(made["ids"]),
    )


def _read_step(made: dict[str, Any]) -> Step:
    names = ("token", "log_prob", "rank", "query_norm", "state_norm", "output_norm", "context_norm")
    vectors: dict[str, Any] = {name: _array(made.get(name)) for name in _VECTORS}
    return Step(
        **{name: made[name] for name in names},
        candidates=tuple(Candidate(found["token"], found["prob"]) for found in made["candidates"]),
        scores=_array(made["scores"]),
        weights=_array(made["weights"]),
        **vectors,
    )


def to_arrays(record: DecodingRecord) -> dict[str, np.ndarray]:
    """The record as named arrays; those of hypothesis N (from 1) are called ``hN_...``."""
    arrays: dict[str, np.ndarray] = {
        "schema": np.array(SCHEMA),
        "source": np.array(record.source),
        "source_tokens": np.array(record.source_tokens),
        "encoder_norms": record.encoder_norms.astype(np.float32),
        "context": np.array(record.context),
        "n_hypotheses": np.array(len(record.hypotheses)),
    }
    if record.encoder_states is not None:
        arrays["encoder_states"] = record.encoder_states.astype(np.float32)
    if record.vector is not None:
        arrays["vector"] = record.vector.astype(np.float32)
    for number, hypothesis in enumerate(record.hypotheses, 1):
        arrays.update({f"h{number}_{name}": value for name, value in _hypothesis_arrays(hypothesis).items()})
    return arrays


def _hypothesis_arrays(hypothesis: HypothesisRecord) -> dict[str, np.ndarray]:
    steps = hypothesis.steps
    n_candidates = max((len(step.candidates) for step in steps), default=0)
    blank = Candidate("", 0.0)
    rows = [[*step.candidates, *[blank] * (n_candidates - len(step.candidates))] for step in steps]
    arrays = {
        "origin": np.array(hypothesis.origin),
        "text": np.array(hypothesis.text),
        "score": np.array(hypothesis.score),
        "normalised": np.array(hypothesis.normalised),
        "finished": np.array(hypothesis.finished),
        "target_tokens": np.array(hypothesis.tokens, dtype=np.str_),
        "candidate_tokens": np.array([[c.token for c in row] for row in rows], dtype=np.str_),
        "candidate_probs": np.array([[c.prob for c in row] for row in rows], np.float32),
    }
    for name in ("log_prob", "query_norm", "state_norm", "output_norm"):
        arrays[f"{name}s"] = np.array([getattr(step, name) for step in steps], np.float32)
    for name, stacked in (("scores", hypothesis.scores), ("weights", hypothesis.weights)):
        if stacked is not None:
            arrays[name] = stacked.astype(np.float32)
            arrays["context_norms"] = np.array([step.context_norm for step in steps], np.float32)
    for name, plural in zip(_VECTORS, ("queries", "states", "contexts", "outputs"), strict=True):
        vectors = [getattr(step, name) for step in steps if getattr(step, name) is not None]
        if vectors:
            arrays[plural] = np.stack(vectors).astype(np.float32)
    return arrays


def write_npz(record: DecodingRecord, path: Path) -> None:
    """Write `to_arrays` as a compressed ``.npz`` that NumPy reads with ``allow_pickle=False``, atomically."""
    arrays = to_arrays(record)

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)

    write_atomically(path, write)
