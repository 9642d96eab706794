"""What a search returns, and how its back-pointers become sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["End", "Hypothesis", "Trace"]


@dataclass(frozen=True)
class Hypothesis:
    """One output for one source.

    Attributes:
        tokens: Token ids, without the end.
        score: Sum of the log-probabilities of the tokens and, if ``finished``, of the end.
        normalised: What hypotheses are ranked by.
        token_log_probs: Log-probability of each token, the end last.
        weights: float32 ``(heads, len(token_log_probs), source_len)`` with the source's own length, its end
            counted; None for a fixed context.
        finished: False if the output was cut at the length limit, before its end.
    """

    tokens: tuple[int, ...]
    score: float
    normalised: float
    token_log_probs: tuple[float, ...]
    weights: np.ndarray | None = field(default=None, repr=False)
    finished: bool = True


@dataclass(frozen=True)
class End:
    """Where a hypothesis ends in a `Trace`: its source, last step, choice there, and scores."""

    source: int
    step: int
    choice: int
    score: float
    normalised: float
    finished: bool


class Trace:
    """The steps of a search as back-pointers; sequences are only read off at the end.

    A step has engine rows (hypotheses that were extended) and choices (a token for one of them). The engine
    rows of a step are some choices of the step before.
    """

    def __init__(self) -> None:
        self._tokens: list[np.ndarray] = []
        self._log_probs: list[np.ndarray] = []
        self._extended: list[np.ndarray] = []
        self._weights: list[np.ndarray | None] = []
        self._origin: list[np.ndarray] = [np.zeros(0, np.int64)]

    def add(self, tokens: Tensor, log_probs: Tensor, extended: Tensor, weights: Tensor | None) -> None:
        """Note a step's choices.

        Args:
            tokens: Chosen tokens ``(n_choices,)``.
            log_probs: Their log-probabilities ``(n_choices,)``.
            extended: The engine row that each extends ``(n_choices,)``.
            weights: Of the engine's rows, ``(n_engine_rows, heads, source_len)``.
        """
        self._tokens.append(tokens.cpu().numpy())
        self._log_probs.append(log_probs.cpu().numpy())
        self._extended.append(extended.cpu().numpy())
        self._weights.append(None if weights is None else weights.cpu().numpy())

    def go_on_from(self, choices: Tensor) -> None:
        """Note which choices of the last step are the engine's rows of the next."""
        self._origin.append(choices.cpu().numpy())

    def read(self, ends: list[End], source_lens: list[int]) -> list[Hypothesis]:
        """Read off the hypotheses that end at ``ends``, of sources of the given true lengths."""
        if not ends:
            return []
        n, longest = len(ends), max(end.step for end in ends) + 1
        tokens = np.zeros((n, longest), np.int64)
        log_probs = np.zeros((n, longest), np.float32)
        weights = self._room_for_weights(n, longest)
        last = np.array([end.step for end in ends])
        rows = np.array([end.choice for end in ends])
        for step in range(longest - 1, -1, -1):
            here = np.flatnonzero(last >= step)
            at = rows[here]
            tokens[here, step] = self._tokens[step][at]
            log_probs[here, step] = self._log_probs[step][at]
            engine_rows = self._extended[step][at]
            if weights is not None:
                step_weights = self._weights[step]
                assert step_weights is not None
                made = step_weights[engine_rows]
                weights[here, :, step, : made.shape[2]] = made
            if step:
                rows[here] = self._origin[step][engine_rows]
        return [
            self._hypothesis(
                end, tokens[i], log_probs[i], None if weights is None else weights[i], source_lens
            )
            for i, end in enumerate(ends)
        ]

    def _room_for_weights(self, n: int, longest: int) -> np.ndarray | None:
        given = [weights for weights in self._weights if weights is not None]
        if not given:
            return None
        source_len = max(weights.shape[2] for weights in given)
        return np.zeros((n, given[0].shape[1], longest, source_len), np.float32)

    @staticmethod
    def _hypothesis(
        end: End,
        tokens: np.ndarray,
        log_probs: np.ndarray,
        weights: np.ndarray | None,
        source_lens: list[int],
    ) -> Hypothesis:
        n_steps = end.step + 1
        if weights is not None:
            weights = weights[:, :n_steps, : source_lens[end.source]].copy()
        return Hypothesis(
            tokens=tuple(tokens[: n_steps - end.finished].tolist()),
            score=end.score,
            normalised=end.normalised,
            token_log_probs=tuple(log_probs[:n_steps].tolist()),
            weights=weights,
            finished=end.finished,
        )
