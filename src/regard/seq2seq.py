"""A trained model with its tokenizers: text in, predictions out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.answering import Predictor, Watcher
from regard.config import Config, DecodingSettings
from regard.data.tokenizers import Tokenizer
from regard.decode.forced import force
from regard.decode.hypothesis import Hypothesis
from regard.decode.search import search
from regard.decode.watch import Step, WatchedEngine
from regard.device import choose_precision
from regard.errors import ConfigError
from regard.facts import Facts
from regard.native.engine import NativeEngine, make_native_engine, uses_native
from regard.nn.engine import Precision, make_engine
from regard.nn.model import EncoderDecoder
from regard.nn.replay import Replay, replay
from regard.nn.types import EOS, PAD, StepEngine
from regard.prediction import PartialOutput, Prediction

__all__ = ["Seq2Seq", "Watcher"]


class Seq2Seq(Predictor):
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
        super().__init__(
            config, source_tokenizer=source_tokenizer, target_tokenizer=target_tokenizer, facts=facts
        )
        self.model = model.eval()
        self._engine: tuple[Any, StepEngine] | None = None
        self._native: tuple[Any, NativeEngine] | None = None

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

    def _search(
        self,
        sources: Sequence[list[int]],
        *,
        settings: DecodingSettings,
        max_lens: Sequence[int],
        numbers: Sequence[int],
        watch: Watcher | None,
    ) -> list[list[Hypothesis]]:
        native = None if watch is not None else self._native_engine(settings)
        if native is not None:
            found = native.search([[*ids, EOS] for ids in sources], settings=settings, max_lens=max_lens)
            if all(found):
                return found
            # Weights that are not finite rank nothing; torch still gives each source something.
        engine = self.engine(settings.precision)
        source, source_lens = self._tensors(list(sources))
        with torch.inference_mode():
            return search(
                engine if watch is None else self._watched(engine, numbers, watch),
                source,
                source_lens,
                settings=settings,
                max_lens=max_lens,
                keys=list(numbers),
            )

    def _native_engine(self, settings: DecodingSettings) -> NativeEngine | None:
        """The engine that decodes without torch, if the model, the settings and the machine allow it."""
        parameters = list(self.model.parameters())
        plain = all(p.device.type == "cpu" and p.dtype == torch.float32 for p in parameters)
        if type(self.model) is not EncoderDecoder or not plain:
            return None
        if not uses_native(self.config.model, settings):
            return None
        threads = torch.get_num_threads()
        key = (settings.precision, threads, tuple((p.data_ptr(), p._version) for p in parameters))
        if self._native is None or self._native[0] != key:
            weights = {name: value.detach().numpy() for name, value in self.model.named_parameters()}
            engine = make_native_engine(
                self.config.model, weights, precision=settings.precision, threads=threads
            )
            self._native = key, engine
        return self._native[1]

    def _watched(self, engine: StepEngine, numbers: Sequence[int], watch: Watcher) -> StepEngine:
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

    def _tensors(self, sources: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, lengths = _padded([[*ids, EOS] for ids in sources])
        return tokens.to(self.device), lengths.to(self.device)


def _padded(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Pad rows of ids to int64 ``(batch, longest)``, and their lengths."""
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padded = np.full((len(rows), max(1, int(lengths.max(initial=0)))), PAD, dtype=np.int64)
    for row, ids in enumerate(rows):
        padded[row, : len(ids)] = ids
    return torch.from_numpy(padded), torch.from_numpy(lengths)
