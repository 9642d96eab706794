"""Making the record: a model is asked for its hypotheses, and each is decoded again with all that happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.errors import ConfigError, DataError
from regard.explain.check import Faithfulness, check_faithfulness
from regard.explain.decoding import Candidate, DecodingRecord, HypothesisRecord, Origin, Step
from regard.prediction import EOS_LABEL, Prediction

if TYPE_CHECKING:
    from regard.nn.replay import Replay
    from regard.seq2seq import Seq2Seq

__all__ = ["check", "trace"]

_TOP = 8


def trace(
    model: Seq2Seq,
    source: str,
    *,
    target: str | None = None,
    top: int = _TOP,
    vectors: bool = False,
    **decoding: Any,
) -> DecodingRecord:
    """Record what happens when a model decodes a source.

    Args:
        model: The model.
        source: The text to explain.
        target: A given target to explain (forced decoding); the model's own output if None.
        top: Candidates kept at each step.
        vectors: Keep the encoder's states and each step's query, state, context and output too, not only their
            lengths: four vectors a step, which make the JSON some 20 times as large at the default size.
        decoding: Settings of `DecodingSettings`, such as ``beam=5``; every hypothesis of the beam is recorded.

    Raises:
        ConfigError: A setting does not fit.
        DataError: The source is blank, or longer than the model's limit.
    """
    if not source.strip():
        raise DataError("the source is blank; pass a text to explain")
    if top < 1:
        raise ConfigError(f"{top} candidates cannot be shown; take 1 or more")
    origin: Origin
    if target is None:
        origin = "output"
        settings = model.decoding(**{"nbest": 1, **decoding})
        found = model.predict([source], **{**decoding, "nbest": decoding.get("nbest") or settings.beam})[0]
        predictions = found.alternatives or (found,)
    else:
        origin = "target"
        predictions = tuple(model.score([(source, target)]))
    first = predictions[0]
    if first.note:
        raise DataError(f"the source has {first.note}")
    replays = [model.replay(source, prediction) for prediction in predictions]
    return _record(model, predictions, replays, origin=origin, top=top, vectors=vectors)


def check(
    model: Seq2Seq, record: DecodingRecord, *, hypothesis: int = 0, n_draws: int = 20, seed: int = 1
) -> Faithfulness:
    """Erase source tokens of a record that `trace` made with this model; see `regard.explain.check`.

    Raises:
        ConfigError: The model has no attention.
        DataError: The source has too few tokens to compare.
    """
    chosen = record.hypotheses[hypothesis]
    if not chosen.finished:
        raise DataError(
            "the output was cut at the length limit, so it has no probability to compare; check a given --target"
        )
    source = model.source_tokenizer.encode(record.source)
    target = list(chosen.ids)

    def score(kept: Sequence[Sequence[int]]) -> list[float]:
        return model.log_probs([[source[place] for place in places] for places in kept], [target] * len(kept))

    return check_faithfulness(record, score, hypothesis=hypothesis, n_draws=n_draws, seed=seed)


def _record(
    model: Seq2Seq,
    predictions: tuple[Prediction, ...],
    replays: list[Replay],
    *,
    origin: Origin,
    top: int,
    vectors: bool,
) -> DecodingRecord:
    settings, replay, first = model.config.model, replays[0], predictions[0]
    attends = settings.context == "attention"
    return DecodingRecord(
        source=first.source,
        source_tokens=first.source_tokens,
        unknown=first.unknown,
        encoder_norms=replay.encoder_states.norm(dim=-1).cpu().numpy(),
        context=settings.context,
        vector=None if replay.vector is None else replay.vector.cpu().numpy(),
        heads=settings.attention.heads if attends else 0,
        score_function=settings.attention.score if attends else "",
        normaliser=settings.attention.normaliser if attends else "",
        attends="before" if settings.attend_before_cell else "after",
        source_kind=model.source_tokenizer.kind,
        target_kind=model.target_tokenizer.kind,
        hypotheses=tuple(
            HypothesisRecord(
                origin=origin,
                rank=rank,
                text=prediction.text,
                score=prediction.score,
                normalised=prediction.normalised,
                finished=prediction.finished,
                ids=prediction.step_ids[: -1 if prediction.finished else None],
                steps=_steps(model, prediction, replay, top=top, vectors=vectors),
            )
            for rank, (prediction, replay) in enumerate(zip(predictions, replays, strict=True), 1)
        ),
        encoder_states=replay.encoder_states.cpu().numpy() if vectors else None,
    )


def _steps(
    model: Seq2Seq, prediction: Prediction, replay: Replay, *, top: int, vectors: bool
) -> tuple[Step, ...]:
    log_probs = replay.log_probs.cpu().numpy()
    best = np.argsort(-log_probs, axis=1, kind="stable")[:, :top]
    scores, weights = (
        None if tensor is None else tensor.cpu().numpy() for tensor in (replay.scores, replay.weights)
    )
    made_of = {
        "query": replay.queries, "state": replay.states, "context": replay.contexts, "output": replay.outputs,
    }  # fmt: skip
    kept = {name: rows.cpu().numpy() for name, rows in made_of.items() if rows is not None}
    norms = {name: np.linalg.norm(rows, axis=-1).tolist() for name, rows in kept.items()}
    made = []
    for t, (token, number) in enumerate(zip(prediction.target_tokens, prediction.step_ids, strict=True)):
        log_prob = float(log_probs[t, number])
        made.append(
            Step(
                token=token,
                log_prob=log_prob,
                rank=1 + int((log_probs[t] > log_prob).sum()),
                candidates=tuple(
                    Candidate(_shown(model, int(choice)), float(np.exp(log_probs[t, choice])))
                    for choice in best[t]
                    if np.isfinite(log_probs[t, choice])
                ),
                query_norm=norms["query"][t],
                state_norm=norms["state"][t],
                output_norm=norms["output"][t],
                scores=None if scores is None else scores[:, t],
                weights=None if weights is None else weights[:, t],
                context_norm=norms["context"][t] if "context" in norms else None,
                **({name: rows[t] for name, rows in kept.items()} if vectors else {}),
            )
        )
    return tuple(made)


def _shown(model: Seq2Seq, number: int) -> str:
    return EOS_LABEL if number == model.eos else model.target_tokenizer.token(number)
