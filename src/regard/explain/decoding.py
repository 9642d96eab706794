"""What happened in a decoding, step by step: the one record that the player, the files and the server share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from regard.explain.record import AlignmentRecord

__all__ = ["Candidate", "DecodingRecord", "HypothesisRecord", "Origin", "Step"]

Origin = Literal["output", "target"]
"""Whether a hypothesis is the model's own output, or a target that it was given."""


@dataclass(frozen=True)
class Candidate:
    """A token that the model considered at a step, and its probability."""

    token: str
    prob: float


@dataclass(frozen=True)
class Step:
    """One step of a decoding.

    Attributes:
        token: The chosen word.
        log_prob: Its log-probability.
        rank: Its place among the whole vocabulary, 1 being the likeliest.
        candidates: The likeliest words, best first.
        query_norm: Length of what was attended with: s_t, or s_{t-1} where attention comes before the cell.
        state_norm: Length of the decoder's state s_t.
        output_norm: Length of h~_t, what the feed-forward layer made of [s_t; c_t].
        scores: float32 ``(heads, source_len)``, before masking and normalising; None for a fixed context.
        weights: float32 ``(heads, source_len)``, each row summing to 1; None for a fixed context.
        context_norm: Length of c_t; None for a fixed context.
        query: The query itself, float32 ``(hidden_size,)``, if vectors were asked for; so are those below.
        state: s_t, ``(hidden_size,)``.
        context: c_t, ``(context_size,)``; None for a fixed context too.
        output: h~_t, ``(hidden_size,)``.
    """

    token: str
    log_prob: float
    rank: int
    candidates: tuple[Candidate, ...]
    query_norm: float
    state_norm: float
    output_norm: float
    scores: np.ndarray | None = field(default=None, repr=False)
    weights: np.ndarray | None = field(default=None, repr=False)
    context_norm: float | None = None
    query: np.ndarray | None = field(default=None, repr=False)
    state: np.ndarray | None = field(default=None, repr=False)
    context: np.ndarray | None = field(default=None, repr=False)
    output: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class HypothesisRecord:
    """One output, or one given target, and how each of its tokens came about.

    Attributes:
        origin: ``output`` (the model's own) or ``target`` (a given one); never the one for the other.
        rank: Place among the hypotheses of its search, 1 being the best.
        text: As text.
        score: Its log-probability, the end counted.
        normalised: What hypotheses are ranked by.
        finished: Whether its last token is the end; False if it was cut at the length limit.
        steps: One for each token, the end's too.
        ids: Vocabulary numbers of the tokens, without the end.
    """

    origin: Origin
    rank: int
    text: str
    score: float
    normalised: float
    finished: bool
    steps: tuple[Step, ...] = field(repr=False)
    ids: tuple[int, ...] = field(default=(), repr=False)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Tokens as shown, ``<eos>`` last if finished."""
        return tuple(step.token for step in self.steps)

    @property
    def weights(self) -> np.ndarray | None:
        """float32 ``(heads, target_len, source_len)``, or None for a fixed context."""
        return _stacked([step.weights for step in self.steps])

    @property
    def scores(self) -> np.ndarray | None:
        """float32 ``(heads, target_len, source_len)``, or None for a fixed context."""
        return _stacked([step.scores for step in self.steps])


@dataclass(frozen=True)
class DecodingRecord:
    """A source and what was made of it.

    Attributes:
        source: The text as given.
        source_tokens: As the model saw them, ``<eos>`` last.
        unknown: Those of them that the vocabulary lacks.
        encoder_norms: Lengths of h_1 … h_S, float32 ``(source_len,)``.
        context: How the decoder sees the source: last, projected, pooled or attention.
        vector: The one vector of a fixed context, float32 ``(context_size,)``; None with attention.
        heads: Of the attention; 0 for a fixed context.
        score_function: Name of the attention's score, empty for a fixed context.
        normaliser: What makes weights of scores, empty for a fixed context.
        attends: ``before`` or ``after`` the decoder's cell.
        source_kind: Into what the source is split: char, grapheme, space, word, bpe or unigram.
        target_kind: Likewise for the target.
        hypotheses: Best first.
        encoder_states: h_1 … h_S themselves, float32 ``(source_len, encoder_size)``, if vectors were asked for.
    """

    source: str
    source_tokens: tuple[str, ...]
    unknown: tuple[str, ...]
    encoder_norms: np.ndarray = field(repr=False)
    context: str
    vector: np.ndarray | None = field(repr=False)
    heads: int
    score_function: str
    normaliser: str
    attends: str
    source_kind: str
    target_kind: str
    hypotheses: tuple[HypothesisRecord, ...] = field(repr=False)
    encoder_states: np.ndarray | None = field(default=None, repr=False)

    @property
    def has_attention(self) -> bool:
        """Whether there are weights."""
        return self.heads > 0

    def check_head(self, head: int | None) -> None:
        """Refuse a head, counted from 0, that the attention has not.

        Raises:
            ConfigError: There is no such head.
        """
        from regard.errors import ConfigError

        if head is not None and not 0 <= head < self.heads:
            has = f"has {self.heads}" if self.heads else "has no attention"
            raise ConfigError(f"head {head + 1} does not exist: this model {has}")

    def alignment(self, hypothesis: int = 0, *, head: int | None = None) -> AlignmentRecord:
        """The weights of a hypothesis as a matrix that can be drawn and written.

        Args:
            hypothesis: Its place in ``hypotheses``.
            head: One head alone, counted from 0; all if None.

        Raises:
            ConfigError: The model has no attention, or no such head.
        """
        from regard.errors import ConfigError

        chosen = self.hypotheses[hypothesis]
        weights = chosen.weights
        if weights is None:
            raise ConfigError(
                "this model puts the source into one fixed vector and has no attention to show; train with "
                "context: attention"
            )
        self.check_head(head)
        if head is not None:
            weights = weights[head : head + 1]
        return AlignmentRecord(
            source_tokens=self.source_tokens,
            target_tokens=chosen.tokens,
            weights=weights,
            text=chosen.text,
            score=chosen.score,
            source_eos=True,
            target_eos=chosen.finished,
            source_kind=self.source_kind,
            target_kind=self.target_kind,
        )


def _stacked(rows: Sequence[np.ndarray | None]) -> np.ndarray | None:
    given = [row for row in rows if row is not None]
    return np.stack(given, 1) if given else None
