"""What every model that answers has in common, whatever runs it: texts in, predictions out; knows no torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from regard.config import Config, DecodingSettings, make_config
from regard.data.tokenizers import Tokenizer
from regard.decode.align import copy_unknown
from regard.decode.hypothesis import Hypothesis
from regard.decode.stream import answer_group, stream
from regard.errors import ConfigError, DataError, ModelFolderError
from regard.facts import Facts
from regard.nn.ids import EOS
from regard.prediction import EOS_LABEL, PartialOutput, Prediction

__all__ = ["Predictor", "Watcher", "decoding_settings"]

Watcher = Callable[[int, PartialOutput], None]
"""Called with the place of a source and its leading unfinished hypothesis."""


def decoding_settings(config: Config, **overrides: Any) -> DecodingSettings:
    """Return a model's decoding settings with some of them replaced; None replaces nothing.

    Raises:
        ConfigError: A setting is unknown or does not fit.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    settings = {**config.decoding.model_dump(), **given}
    model = config.model.model_dump()
    return make_config({"decoding": settings, "model": model}, origin="decoding").decoding


class Predictor(ABC):
    """Answers texts by a search that a subclass has.

    Args:
        config: All settings.
        source_tokenizer: Splits sources.
        target_tokenizer: Splits and joins targets.
        facts: How the model was made.
    """

    def __init__(
        self, config: Config, *, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, facts: Facts
    ) -> None:
        self.config, self.facts = config, facts
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer

    @abstractmethod
    def _search(
        self,
        sources: Sequence[list[int]],
        *,
        settings: DecodingSettings,
        max_lens: Sequence[int],
        numbers: Sequence[int],
        watch: Watcher | None,
    ) -> list[list[Hypothesis]]:
        """Search for the outputs of sources of like length.

        Args:
            sources: Token ids without their ends.
            settings: How to search.
            max_lens: Longest output of each, its end counted.
            numbers: Of each source, for what is drawn at random and for ``watch``.
            watch: Told of each step, or None.
        """

    def _together(self, settings: DecodingSettings) -> int:
        """Sources that `_search` is given at once."""
        return settings.batch_size

    def decoding(self, **overrides: Any) -> DecodingSettings:
        """Return the model's decoding settings with some of them replaced.

        Raises:
            ConfigError: A setting is unknown or does not fit.
        """
        return decoding_settings(self.config, **overrides)

    def predict(
        self, sources: Iterable[str], *, watch: Watcher | None = None, **overrides: Any
    ) -> list[Prediction]:
        """Answer each source; one prediction each, in order.

        Args:
            sources: Texts; a blank one gets a blank prediction.
            watch: Called after each step of the search with the place of a source, counted from 0, and its
                leading unfinished hypothesis (see `regard.decode.watch`).
            overrides: Settings of `DecodingSettings`, such as ``beam=5, nbest=3``; with ``nbest`` above 1
                each prediction carries its ``alternatives``.

        Raises:
            ConfigError: A setting is unknown or does not fit.
            DataError: An input is too long and ``long_inputs`` is ``error``.
        """
        if isinstance(sources, str):
            raise ConfigError("predict takes a list of sources, not one string: put it in a list")
        settings = self.decoding(**overrides)
        numbered = list(enumerate(sources, 1))
        window = self._window(settings)
        made: list[Prediction] = []
        for start in range(0, len(numbered), window):
            group = answer_group(
                numbered[start : start + window],
                lambda lines: self._answer(lines, settings, "input", watch=watch),
                blank=_blank,
            )
            made.extend(prediction for _, _, prediction in group)
        return made

    def predict_lines(
        self, lines: Iterator[tuple[int, str]], *, settings: DecodingSettings, name: str = "input"
    ) -> Iterator[tuple[int, Prediction]]:
        """Answer numbered lines as they come, in order, in bounded memory.

        Args:
            lines: Numbers and texts.
            settings: How to search.
            name: What errors call the lines' origin.

        Yields:
            The line's number and its prediction.
        """

        def answer(numbered: list[tuple[int, str]]) -> list[Prediction]:
            return self._answer(numbered, settings, name)

        for number, _, prediction in stream(lines, answer, window=self._window(settings), blank=_blank):
            yield number, prediction

    @staticmethod
    def _window(settings: DecodingSettings) -> int:
        """Lines answered together: enough to fill some batches with like lengths."""
        return max(1024, 8 * settings.batch_size)

    def _answer(
        self,
        numbered: list[tuple[int, str]],
        settings: DecodingSettings,
        name: str,
        *,
        watch: Watcher | None = None,
    ) -> list[Prediction]:
        """Answer some lines together: by length in batches, returned in order."""
        numbers, texts = [number for number, _ in numbered], [text for _, text in numbered]
        limit = self.config.data.max_source_len
        encoded = self.source_tokenizer.encode_batch(texts)
        made: list[Prediction | None] = [None] * len(texts)
        notes: dict[int, str] = {}
        for row, ids in enumerate(encoded):
            if len(ids) > limit:
                notes[row] = self._handle_long(ids, numbers[row], settings.long_inputs, name)
                if settings.long_inputs == "skip":
                    made[row] = Prediction(texts[row], "", finished=False, note=notes[row])
        order = sorted(
            (row for row in range(len(texts)) if made[row] is None), key=lambda row: len(encoded[row])
        )
        together = self._together(settings)
        for start in range(0, len(order), together):
            rows = order[start : start + together]
            found = self._search(
                [encoded[row] for row in rows],
                settings=settings,
                max_lens=[
                    1 + (settings.max_len or self.facts.length_limit(len(encoded[row]) + 1)) for row in rows
                ],
                numbers=[numbers[row] for row in rows],
                watch=watch,
            )
            for row, hypotheses in zip(rows, found, strict=True):
                made[row] = self._best(texts[row], hypotheses, settings, notes.get(row, ""))
        return [prediction for prediction in made if prediction is not None]

    def _handle_long(self, ids: list[int], number: int, policy: str, name: str) -> str:
        """Cut, skip or refuse an input over the limit; returns what is to be said of it."""
        limit = self.config.data.max_source_len
        found = f"{len(ids):,} source tokens, the limit is {limit:,}"
        if policy == "error":
            raise DataError(
                f"{found}; shorten it, or pass --long-inputs truncate or skip", path=name, line=number
            )
        del ids[limit:]
        return f"{found}: {'the rest was cut off' if policy == 'truncate' else 'skipped'}"

    def _best(
        self, text: str, hypotheses: Sequence[Hypothesis], settings: DecodingSettings, note: str
    ) -> Prediction:
        if not hypotheses:
            raise ModelFolderError(
                "the model's probabilities are not numbers: its weights are damaged; train it again"
            )
        pieces = self.source_tokenizer.tokens(text) if settings.copy_unknown else []
        made = []
        for hypothesis in hypotheses:
            copies = copy_unknown(hypothesis, pieces) if settings.copy_unknown else {}
            made.append(self._prediction(text, hypothesis, copies, note=note))
        if settings.nbest == 1:
            return made[0]
        return replace(made[0], alternatives=tuple(made))

    def _prediction(
        self,
        source: str,
        hypothesis: Hypothesis,
        copies: dict[int, str],
        *,
        text: str | None = None,
        note: str = "",
    ) -> Prediction:
        target = self.target_tokenizer
        tokens = [copies.get(place, target.token(token)) for place, token in enumerate(hypothesis.tokens)]
        source_tokens, unknown = self.source_tokenizer.pieces(source)
        weights = hypothesis.weights
        if weights is not None and len(source_tokens) + 1 > weights.shape[2]:  # a truncated source
            source_tokens = source_tokens[: weights.shape[2] - 1]
        return Prediction(
            source=source,
            text=target.decode(hypothesis.tokens, replacements=copies) if text is None else text,
            score=hypothesis.score,
            normalised=hypothesis.normalised,
            source_tokens=(*source_tokens, EOS_LABEL),
            target_tokens=(*tokens, EOS_LABEL) if hypothesis.finished else tuple(tokens),
            token_log_probs=tuple(hypothesis.token_log_probs),
            attention_heads=weights,
            unknown=tuple(unknown),
            finished=hypothesis.finished,
            note=note,
            step_ids=(*hypothesis.tokens, EOS) if hypothesis.finished else tuple(hypothesis.tokens),
            source_kind=self.source_tokenizer.kind,
            target_kind=target.kind,
        )


def _blank(text: str) -> Prediction:
    return Prediction(text, "")
