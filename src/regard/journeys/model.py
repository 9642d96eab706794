"""A trained model of journeys: what comes next, the rest, and the outcomes of any prefix; and its folder.

::

    model/
      config.json           all settings
      journeys.json         what it knows of activities and columns, its outcomes, how it was made
      model.safetensors     the weights
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from regard.atomic import write_text
from regard.device import choose_device
from regard.errors import ConfigError, ModelFolderError
from regard.folder import load_weights, save_weights
from regard.journeys import FACTS, is_journey_folder
from regard.journeys.cases import EncodedLog, JourneyVocabulary, collate, cut_batches
from regard.journeys.encoder import batch_tensors
from regard.journeys.log import EventLog
from regard.journeys.network import JourneyNetwork, ReadJourneys
from regard.journeys.outcomes import Outcome, prefix_labels
from regard.journeys.settings import JourneyConfig, make_journey_config
from regard.journeys.suffixes import Rest, draw_rests, likeliest_rests, most_expected

__all__ = ["Answers", "JourneyFacts", "JourneyModel", "Journeys", "load_journey_model"]

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_BATCH_EVENTS = 4096
_PREFIXES_AT_ONCE = 256


class JourneyFacts(BaseModel):
    """What is known of a model besides settings and weights."""

    model_config = ConfigDict(extra="forbid")

    regard_version: str
    vocabulary: JourneyVocabulary
    outcomes: tuple[Outcome, ...] = ()
    longest: int = 100
    """Events of the longest case of training."""
    data: dict[str, Any] = {}
    training: dict[str, Any] = {}
    command: str = ""


@dataclass(frozen=True)
class Journeys:
    """Prefixes to answer for.

    Attributes:
        rows: Places, in the encoded log, of the events of each journey, in order.
        which: The journey of each prefix, int64 ``(n,)``; not falling.
        sizes: Events of each prefix, int64 ``(n,)``, at least 1.
    """

    rows: Sequence[np.ndarray]
    which: np.ndarray
    sizes: np.ndarray

    @classmethod
    def whole(cls, rows: Sequence[np.ndarray]) -> Journeys:
        """One prefix of each journey: all of it."""
        return cls(rows, np.arange(len(rows)), np.array([len(row) for row in rows], np.int64))

    @classmethod
    def of_cases(
        cls, log: EncodedLog, cases: np.ndarray, *, first: int = 1, complete: bool = True
    ) -> Journeys:
        """All prefixes of cases from ``first`` events on, with or without the complete journeys."""
        rows: list[np.ndarray] = []
        which, sizes = [], []
        for case in cases:
            start, end = int(log.offsets[case]), int(log.offsets[case + 1])
            last = end - start - (not complete)
            if last >= first:
                sizes.append(np.arange(first, last + 1))
                which.append(np.full(last + 1 - first, len(rows)))
                rows.append(np.arange(start, end))
        empty = np.zeros(0, np.int64)
        return cls(rows, np.concatenate([empty, *which]), np.concatenate([empty, *sizes]))

    @property
    def ends(self) -> np.ndarray:
        """Place of the last event of each prefix."""
        return np.array(
            [self.rows[row][size - 1] for row, size in zip(self.which, self.sizes, strict=True)], np.int64
        )


@dataclass(frozen=True)
class Answers:
    """Answers for prefixes.

    Attributes:
        next_probs: Of each id, float32 ``(n, vocabulary_size)``; the end is `EOS`.
        outcome_probs: float32 ``(n, n_outcomes)``.
        next_weights: Attention to the events of each prefix when the next one is named, or empty.
        outcome_weights: ``(n_outcomes, size)`` of each prefix, or empty.
    """

    next_probs: np.ndarray
    outcome_probs: np.ndarray
    next_weights: list[np.ndarray]
    outcome_weights: list[np.ndarray]


class JourneyModel:
    """A model that answers.

    Args:
        config: All settings.
        facts: What it knows of activities, columns and outcomes.
        network: The network.
    """

    def __init__(self, config: JourneyConfig, facts: JourneyFacts, network: JourneyNetwork) -> None:
        self.config, self.facts, self.network = config, facts, network.eval()

    @property
    def vocabulary(self) -> JourneyVocabulary:
        """Activities and further columns."""
        return self.facts.vocabulary

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """What is asked of a journey."""
        return self.facts.outcomes

    @property
    def kinds(self) -> dict[str, bool]:
        """Columns that it knows, with those of the outcomes' labels: whether each is one of numbers."""
        labels = {outcome.name: False for outcome in self.outcomes if outcome.value is not None}
        known = {category.name: False for category in self.vocabulary.categories}
        return {**labels, **known, **{number.name: True for number in self.vocabulary.numbers}}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.network.parameters()).device

    def encode(self, log: EventLog) -> EncodedLog:
        """A log in the model's ids, with labels of the outcomes."""
        return EncodedLog.from_log(log, self.vocabulary, [prefix_labels(log, o) for o in self.outcomes])

    def _read(
        self, log: EncodedLog, journeys: Journeys
    ) -> Iterator[tuple[np.ndarray, ReadJourneys, np.ndarray, np.ndarray]]:
        """Read journeys in batches.

        Yields:
            Numbers of the prefixes, what was read, and the row and size of each prefix in it. Of a journey over
            ``max_events`` each prefix is read by itself, its newest events only.
        """
        most = self.config.model.max_events
        rows, which, sizes = list(journeys.rows), journeys.which.copy(), journeys.sizes.copy()
        for number in np.flatnonzero(sizes > most):
            rows.append(journeys.rows[which[number]][sizes[number] - most : sizes[number]])
            which[number], sizes[number] = len(rows) - 1, most
        longest = np.zeros(len(rows), np.int64)
        np.maximum.at(longest, which, sizes)
        used = np.flatnonzero(longest)
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(len(rows) + 1))
        for batch in cut_batches(longest[used], batch_events=_BATCH_EVENTS):
            chosen = used[batch]
            tensors = batch_tensors(collate(log, [rows[row][: longest[row]] for row in chosen]), self.device)
            numbers = np.concatenate([order[starts[row] : starts[row + 1]] for row in chosen])
            local = np.repeat(np.arange(len(chosen)), starts[chosen + 1] - starts[chosen])
            read = self.network.read(tensors)
            for first in range(0, len(numbers), _PREFIXES_AT_ONCE):
                part = slice(first, first + _PREFIXES_AT_ONCE)
                yield numbers[part], read, local[part], sizes[numbers[part]]

    @torch.inference_mode()
    def answer(self, log: EncodedLog, journeys: Journeys, *, weights: bool = False) -> Answers:
        """Answer for prefixes: what comes next, and each outcome's probability.

        Args:
            log: Where the events are.
            journeys: The prefixes.
            weights: Whether the attention is wanted too.
        """
        n = len(journeys.sizes)
        next_probs = np.zeros((n, self.vocabulary.size), np.float32)
        outcome_probs = np.zeros((n, len(self.outcomes)), np.float32)
        next_weights: list[np.ndarray] = [np.zeros(0)] * (n if weights else 0)
        outcome_weights: list[np.ndarray] = [np.zeros(0)] * (n if weights else 0)
        for numbers, read, rows, sizes in self._read(log, journeys):
            encoded, events = read.prefixes(*(torch.from_numpy(x).to(self.device) for x in (rows, sizes)))
            log_probs, attended = self.network.next_log_probs(encoded)
            next_probs[numbers] = log_probs.exp().cpu().numpy()
            pooled = None
            if self.network.outcomes is not None:
                logits, pooled = self.network.outcomes(encoded, events)
                outcome_probs[numbers] = torch.sigmoid(logits).cpu().numpy()
            if weights:
                for place, (number, size) in enumerate(zip(numbers, sizes, strict=True)):
                    next_weights[number] = attended[place, :size].cpu().numpy()
                    if pooled is not None:
                        outcome_weights[number] = pooled[place, :, :size].cpu().numpy()
        return Answers(next_probs, outcome_probs, next_weights, outcome_weights)

    @torch.inference_mode()
    def draws(
        self,
        log: EncodedLog,
        journeys: Journeys,
        *,
        n: int = 24,
        seed: int = 1,
        keys: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, list[Rest]]]:
        """Draw ``n`` rests of each prefix; with ``n`` 0 the one that the likeliest activity at each step gives.

        They come as they are made, so that those of a large log need not be kept.

        Args:
            log: Where the events are.
            journeys: The prefixes.
            n: Number of draws.
            seed: Of the draws; those of a prefix depend on it and on its key only.
            keys: Of each prefix, not negative; the place of its last event in the log if None.

        Yields:
            Number of the prefix, in any order, and its rests.
        """
        limit = max(2, 2 * self.facts.longest)
        own = [int(end) for end in journeys.ends] if keys is None else keys
        for numbers, read, rows, sizes in self._read(log, journeys):
            encoded, _ = read.prefixes(*(torch.from_numpy(x).to(self.device) for x in (rows, sizes)))
            limits = [limit] * len(numbers)
            if n:
                chosen = [own[number] for number in numbers]
                drawn = draw_rests(self.network, encoded, n=n, max_lens=limits, keys=chosen, seed=seed)
            else:
                drawn = [[rest] for rest in likeliest_rests(self.network, encoded, max_lens=limits)]
            for number, rests in zip(numbers, drawn, strict=True):
                yield int(number), rests

    def rests(
        self,
        log: EncodedLog,
        journeys: Journeys,
        *,
        n_draws: int = 24,
        seed: int = 1,
        keys: Sequence[int] | None = None,
    ) -> tuple[list[Rest], np.ndarray]:
        """Name the rest of each prefix: of ``n_draws`` rests the one most like all (see `draws`).

        Returns:
            The rests, and the similarity that the model expects of each (NaN without draws).
        """
        named: list[Rest] = [()] * len(journeys.sizes)
        expected = np.full(len(named), np.nan)
        for number, drawn in self.draws(log, journeys, n=n_draws, seed=seed, keys=keys):
            named[number], value = most_expected(drawn)
            if n_draws:
                expected[number] = value
        return named, expected

    def names(self, rest: Sequence[int]) -> tuple[str, ...]:
        """Names of ids."""
        return tuple(self.vocabulary.activity(token) for token in rest)

    def save(self, folder: str | Path) -> None:
        """Write the model folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / FACTS, self.facts.model_dump_json(indent=2) + "\n")
        save_weights(folder, self.network)
        write_text(folder / CONFIG, self.config.model_dump_json(indent=2) + "\n")


def load_journey_model(folder: str | Path, *, device: str = "auto") -> JourneyModel:
    """Read a model folder.

    Raises:
        ModelFolderError: It is none of a model of journeys, or damaged.
    """
    folder = Path(folder)
    if not is_journey_folder(folder):
        raise ModelFolderError(f"{folder}: not a model of journeys; make one with `regard journeys train`")
    try:
        facts = JourneyFacts.model_validate_json((folder / FACTS).read_bytes())
        config = make_journey_config(json.loads((folder / CONFIG).read_bytes()), origin=str(folder / CONFIG))
    except (OSError, ValueError, ValidationError, ConfigError) as error:
        reason = str(error).splitlines()[0]
        raise ModelFolderError(f"{folder}: damaged, or of another version ({reason})") from None
    network = JourneyNetwork(facts.vocabulary, config.model, n_outcomes=len(facts.outcomes))
    load_weights(folder / WEIGHTS, network)
    network.to(choose_device(device))
    return JourneyModel(config, facts, network)
