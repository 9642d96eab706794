"""What a model answers for one source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from regard.explain.record import AlignmentRecord

__all__ = ["EOS_LABEL", "PartialOutput", "Prediction"]

EOS_LABEL = "<eos>"
"""How the end token is shown in rows and columns of the attention."""


@dataclass(frozen=True)
class PartialOutput:
    """The leading unfinished hypothesis of a search after one of its steps.

    Attributes:
        text: The output so far; with a beam, a later step may lead with another beginning.
        token: Its last token.
        position: Place of that token, counted from 0.
        log_prob: Its log-probability.
        weights: What it attended to, float32 ``(source_len,)``, the mean over heads; None for a fixed context.
    """

    text: str
    token: str
    position: int
    log_prob: float
    weights: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Prediction:
    """An output for one source, with what the model attended to while making it.

    Attributes:
        source: The source as given.
        text: The output.
        score: Sum of the log-probabilities of its tokens, the end counted; what `Seq2Seq.score` gives too.
        normalised: The score that hypotheses are ranked by (length and coverage penalty).
        source_tokens: Source tokens as the model saw them; ``<eos>`` is the last.
        target_tokens: Output tokens; ``<eos>`` is the last unless the output was cut.
        token_log_probs: Log-probability of each of ``target_tokens``.
        attention_heads: Weights float32 ``(heads, target_len, source_len)``, or None for a fixed context.
        unknown: Source tokens that the vocabulary lacks.
        finished: False if the output was cut at the length limit.
        note: What happened to an input over the length limit, or empty.
        alternatives: The n-best list, this prediction first; empty unless asked for.
        step_ids: Vocabulary numbers of ``target_tokens``.
        source_kind: Into what the source was split: char, grapheme, space, word, bpe or unigram.
        target_kind: Likewise for the target.
    """

    source: str
    text: str
    score: float = 0.0
    normalised: float = 0.0
    source_tokens: tuple[str, ...] = ()
    target_tokens: tuple[str, ...] = ()
    token_log_probs: tuple[float, ...] = ()
    attention_heads: np.ndarray | None = field(default=None, repr=False)
    unknown: tuple[str, ...] = ()
    finished: bool = True
    note: str = ""
    alternatives: tuple[Prediction, ...] = field(default=(), repr=False)
    step_ids: tuple[int, ...] = field(default=(), repr=False)
    source_kind: str = field(default="", repr=False)
    target_kind: str = field(default="", repr=False)

    @property
    def attention(self) -> np.ndarray | None:
        """Weights ``(target_len, source_len)``, the mean over heads; None for a fixed context."""
        return None if self.attention_heads is None else self.attention_heads.mean(0)

    def record(self) -> AlignmentRecord:
        """The attention as a record that can be drawn and written.

        Raises:
            ConfigError: The model has no attention.
        """
        from regard.errors import ConfigError
        from regard.explain.record import AlignmentRecord

        if self.attention_heads is None:
            raise ConfigError(
                "this model puts the source into one fixed vector and has no attention to show; train with "
                "context: attention"
            )
        return AlignmentRecord(
            source_tokens=self.source_tokens,
            target_tokens=self.target_tokens,
            weights=self.attention_heads,
            score=self.score,
            text=self.text,
            source_eos=True,
            target_eos=self.finished,
            source_kind=self.source_kind,
            target_kind=self.target_kind,
        )

    def _repr_html_(self) -> str:
        """How a notebook shows it: the text, the score, the weights and the n-best list."""
        from regard.explain.record import shown_token
        from regard.explain.table import render_table

        return render_table(
            self.source,
            self.text,
            self.score,
            source_tokens=[shown_token(token, self.source_kind) for token in self.source_tokens],
            target_tokens=[shown_token(token, self.target_kind) for token in self.target_tokens],
            weights=self.attention,
            alternatives=[(other.text, other.score) for other in self.alternatives],
        )

    def to_json(self, *, attention: bool = False) -> dict[str, object]:
        """The prediction as a JSON object.

        Args:
            attention: Include tokens and weights.
        """
        made: dict[str, object] = {"source": self.source, "text": self.text, "score": round(self.score, 6)}
        made["normalised"] = round(self.normalised, 6)
        if self.unknown:
            made["unknown"] = list(self.unknown)
        if not self.finished:
            made["finished"] = False
        if self.note:
            made["note"] = self.note
        if attention:
            made["source_tokens"], made["target_tokens"] = list(self.source_tokens), list(self.target_tokens)
            weights = self.attention
            made["attention"] = None if weights is None else np.round(weights.astype(float), 5).tolist()
        if self.alternatives:
            made["alternatives"] = [other.to_json(attention=attention) for other in self.alternatives]
        return made
