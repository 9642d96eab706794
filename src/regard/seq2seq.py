"""A trained model with its tokenizers: text in, predictions out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import Config, DecodingSettings
from regard.data.tokenizers import Tokenizer
from regard.decode.align import copy_unknown
from regard.decode.forced import force
from regard.decode.hypothesis import Hypothesis
from regard.decode.search import search
from regard.decode.stream import answer_group, stream
from regard.decode.watch import Step, WatchedEngine
from regard.device import choose_precision
from regard.errors import ConfigError, DataError
from regard.facts import Facts
from regard.nn.engine import Precision, make_engine
from regard.nn.model import EncoderDecoder
from regard.nn.replay import Replay, replay
from regard.nn.types import EOS, PAD, StepEngine
from regard.prediction import EOS_LABEL, PartialOutput, Prediction

__all__ = ["Seq2Seq", "Watcher"]

Watcher = Callable[[int, PartialOutput], None]
"""Called with the place of a source and its leading unfinished hypothesis."""


class Seq2Seq:
    """A model that answers.

    Args:
        config: All settings.
        model: The network.
        source_tokenizer: Splits sources.
        target_tokenizer: Splits and joins targets.
        facts: How it was made.
    """

    def __init__(
        self,
        config: Config,
        model: EncoderDecoder,
        *,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        facts: Facts,
    ) -> None:
        self.config, self.model, self.facts = config, model.eval(), facts
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        self._engine: tuple[Any, StepEngine] | None = None

    def engine(self, precision: Precision = "float32") -> StepEngine:
        """The model made ready for decoding; made anew when its weights have changed.

        Raises:
            ConfigError: The model cannot decode in this precision.
        """
        parameters = list(self.model.parameters())
        key = (precision, self.device, tuple((p.data_ptr(), p._version) for p in parameters))
        if self._engine is None or self._engine[0] != key:
            if precision == "bfloat16":
                choose_precision(precision, self.device)
            try:
                self._engine = key, make_engine(self.model, precision=precision)
            except ValueError as error:
                raise ConfigError(f"decoding.precision: {error}") from None
        return self._engine[1]

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def eos(self) -> int:
        """The end token's number in both vocabularies."""
        return EOS

    def save(self, folder: str | Path) -> None:
        """Write a model folder (see `regard.folder`)."""
        from regard.folder import save_model

        save_model(self, Path(folder))

    def decoding(self, **overrides: Any) -> DecodingSettings:
        """Return the model's decoding settings with some of them replaced.

        Raises:
            ConfigError: A setting is unknown or does not fit.
        """
        from regard.config import make_config

        # Asking for fewer beams than the default n-best, or sampling, should not need a second option.
        settings = {
            **self.config.decoding.model_dump(),
            **{k: v for k, v in overrides.items() if v is not None},
        }
        model = self.config.model.model_dump()
        return make_config({"decoding": settings, "model": model}, origin="decoding").decoding

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

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        batch_size: int = 128,
        precision: Precision | None = None,
    ) -> list[Prediction]:
        """Score given targets: the probability that decoding would have given them.

        Args:
            pairs: Source and target texts.
            batch_size: Pairs scored together.
            precision: Of the products with weights; the model's ``decoding.precision`` if None.
        """
        pairs = list(pairs)
        sources = self.source_tokenizer.encode_batch([source for source, _ in pairs])
        targets = self.target_tokenizer.encode_batch([target for _, target in pairs])
        engine = self.engine(precision or self.config.decoding.precision)
        order = sorted(range(len(pairs)), key=lambda row: (len(targets[row]), len(sources[row])))
        made: list[Prediction | None] = [None] * len(pairs)
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            source, source_lens = self._tensors([sources[row] for row in rows])
            target, target_lens = _padded([targets[row] for row in rows])
            with torch.inference_mode():
                hypotheses = force(
                    engine, source, source_lens, target.to(self.device), target_lens.to(self.device)
                )
            for row, hypothesis in zip(rows, hypotheses, strict=True):
                made[row] = self._prediction(pairs[row][0], hypothesis, {}, text=pairs[row][1])
        return [prediction for prediction in made if prediction is not None]

    def replay(self, source: str, prediction: Prediction) -> Replay:
        """Decode a prediction again, in float32, with all that happens on the way; see `regard.explain.trace`.

        Args:
            source: The text that the prediction is of.
            prediction: An output, or a scored target.
        """
        ids = self.source_tokenizer.encode(source)[: len(prediction.source_tokens) - 1]
        tensor = torch.tensor([*ids, EOS], device=self.device)
        with torch.inference_mode():
            return replay(self.model, tensor, list(prediction.step_ids))

    def log_probs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        """Log-probability of each target given its source, both as token ids without their ends."""
        engine, made = self.engine(), []
        for start in range(0, len(sources), 128):
            source, source_lens = self._tensors([list(ids) for ids in sources[start : start + 128]])
            target, target_lens = _padded([list(ids) for ids in targets[start : start + 128]])
            with torch.inference_mode():
                hypotheses = force(
                    engine, source, source_lens, target.to(self.device), target_lens.to(self.device)
                )
            made += [hypothesis.score for hypothesis in hypotheses]
        return made

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
        engine = self.engine(settings.precision)
        for start in range(0, len(order), settings.batch_size):
            rows = order[start : start + settings.batch_size]
            source, source_lens = self._tensors([encoded[row] for row in rows])
            max_lens = [
                1 + (settings.max_len or self.facts.length_limit(len(encoded[row]) + 1)) for row in rows
            ]
            with torch.inference_mode():
                found = search(
                    engine if watch is None else self._watched(engine, [numbers[row] for row in rows], watch),
                    source,
                    source_lens,
                    settings=settings,
                    max_lens=max_lens,
                    keys=[numbers[row] for row in rows],
                )
            for row, hypotheses in zip(rows, found, strict=True):
                made[row] = self._best(texts[row], hypotheses, settings, notes.get(row, ""))
        return [prediction for prediction in made if prediction is not None]

    def _watched(self, engine: StepEngine, numbers: list[int], watch: Watcher) -> StepEngine:
        """The engine with its steps shown, of the sources of these numbers."""

        def report(step: Step) -> None:
            watch(
                numbers[step.source] - 1,
                PartialOutput(
                    text=self.target_tokenizer.decode(step.tokens, replacements={}),
                    token=self.target_tokenizer.token(step.tokens[-1]),
                    position=len(step.tokens) - 1,
                    log_prob=step.log_prob,
                    weights=None if step.weights is None else step.weights.mean(0),
                ),
            )

        return WatchedEngine(engine, report)

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
        pieces = self.source_tokenizer.tokens(text) if settings.copy_unknown else []
        made = []
        for hypothesis in hypotheses:
            copies = copy_unknown(hypothesis, pieces) if settings.copy_unknown else {}
            made.append(self._prediction(text, hypothesis, copies, note=note))
        if settings.nbest == 1:
            return made[0]
        from dataclasses import replace

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

    def _tensors(self, sources: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, lengths = _padded([[*ids, EOS] for ids in sources])
        return tokens.to(self.device), lengths.to(self.device)


def _blank(text: str) -> Prediction:
    return Prediction(text, "")


def _padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad rows of ids to int64 ``(batch, longest)``, and their lengths."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), max(1, int(lengths.max(initial=0)))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded), torch.from_numpy(lengths)
