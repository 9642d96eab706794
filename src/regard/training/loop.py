"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.config import TrainingSettings
from regard.data.ahead import ahead
from regard.data.batches import Batch, Batches
from regard.device import autocast, choose_precision
from regard.errors import TrainingError
from regard.nn.model import EncoderDecoder
from regard.nn.types import PAD
from regard.training.checkpoint import Checkpoint, collect_tensors, restore_checkpoint, save_checkpoint
from regard.training.events import Event, Finished, Listener, Progress, Started, Validated
from regard.training.optimiser import WeightAverage, learning_rate, make_optimiser
from regard.training.signals import StopSignal
from regard.training.state import TrainingState

__all__ = ["Trainer", "batch_tensors", "smoothed_loss"]

_PLAN_EVERY = 40
"""Updates after which the speed is known well enough to plan by time, and is looked at again."""
_REPORT_SECONDS = 0.5
"""Seconds between progress events; reading the loss more often would wait for the device."""


def smoothed_loss(logits: Tensor, target: Tensor, *, smoothing: float) -> Tensor:
    """Cross-entropy with label smoothing (Szegedy 2016), summed over target tokens.

    Args:
        logits: ``(n, vocabulary_size)``.
        target: int64 ``(n,)``, without padding.
        smoothing: Share of the probability spread over the vocabulary.
    """
    return functional.cross_entropy(logits.float(), target, label_smoothing=smoothing, reduction="sum")


BatchTensors = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def batch_tensors(batch: Batch, device: torch.device) -> BatchTensors:
    """Move a batch: source, source_lens, target_in, positions of real target tokens, and those tokens."""
    target_out = torch.from_numpy(batch.target_out)
    chosen = (target_out.flatten() != PAD).nonzero()[:, 0]
    tensors = (
        torch.from_numpy(batch.source),
        torch.from_numpy(batch.source_lens),
        torch.from_numpy(batch.target_in),
        chosen,
        target_out.flatten()[chosen],
    )
    source, source_lens, target_in, chosen, target = (tensor.to(device) for tensor in tensors)
    return source, source_lens, target_in, chosen, target


class Trainer:
    """Trains a model on batches until the plan is done, patience runs out or a signal comes.

    Args:
        model: The model, on its device.
        batches: The training data.
        settings: How to train.
        validate: Called with the averaged model; returns values by name, ``loss`` and the watched metric
            among them. None when there is nothing to validate on.
        keep_best: Called with the averaged model when it is the best so far, and its state.
        folder: Where checkpoints go; None keeps none.
        listeners: Told of each event.
        n_dev: Number of dev pairs, to be told.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        batches: Batches,
        settings: TrainingSettings,
        *,
        validate: Callable[[nn.Module], dict[str, float]] | None,
        keep_best: Callable[[nn.Module, TrainingState], None],
        folder: Path | None,
        listeners: list[Listener],
        n_dev: int = 0,
    ) -> None:
        self.model, self.batches, self.settings = model, batches, settings
        self.validate, self.keep_best = validate, keep_best
        self.folder, self.listeners, self.n_dev = folder, listeners, n_dev
        self.device = next(model.parameters()).device
        self.dtype = choose_precision(settings.precision, self.device)
        self.optimiser = make_optimiser(model, settings)
        self.average = WeightAverage(model, decay=settings.average_decay)
        self.state = TrainingState(planned_steps=self._limit())
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint: weights, average, optimiser, schedule, data order, patience, random states."""
        restore_checkpoint(checkpoint, self.model, self.average.model, self.optimiser)
        self.state = TrainingState(**checkpoint.state)
        self.state.reason = None
        if not self.settings.minutes:
            self.state.planned_steps = self._limit()

    def run(self) -> TrainingState:
        """Train; returns the final state, whose ``reason`` says why it ended.

        Raises:
            TrainingError: The loss is not finite.
            StopSignal: SIGTERM or SIGINT came; a checkpoint has been saved.
        """
        state = self.state
        self._started, self._last_report = time.perf_counter(), 0.0
        self._validation_seconds = 0.0
        self._meter = _Meter()
        self._tell(
            Started(
                step=state.step,
                planned_steps=state.planned_steps,
                n_train=len(self.batches.pairs),
                n_dev=self.n_dev,
                n_parameters=self.model.n_parameters,
                device=str(self.device),
                precision=str(self.dtype).removeprefix("torch."),
            )
        )
        with StopSignal.watch() as signal:
            for batch, tensors in self._remaining_batches():
                self._update(batch, tensors)
                if self._after_update():
                    break
                if signal.received:
                    self._stop(signal.received)
            else:
                state.reason = f"all {state.step:,} updates done"
        if state.validated != state.step:
            self._validate()
        self._save()
        self._report(force=True)
        self._tell(Finished(state.step, state.reason or "", state.best_step, state.best_values, self.elapsed))
        return state

    def _stop(self, number: int) -> None:
        """Save what there is, so that it can be used and gone on with, and stop."""
        if not self.state.best_step:
            self.keep_best(self.average.model, self.state)
        self._save()
        raise StopSignal(number, self.state.step)

    def _limit(self) -> int:
        """Updates that epochs and max_steps allow.

        By tokens the number of batches differs a little between epochs. Cutting all of them beforehand only to
        count would take longer than many a training, so the first stands for all.
        """
        steps = self.settings.epochs * self.batches.n_batches
        return min(steps, self.settings.max_steps or steps)

    def _remaining_batches(self) -> Iterator[tuple[Batch, BatchTensors]]:
        state = self.state

        def prepared(epoch: int, start: int) -> Iterator[tuple[Batch, BatchTensors]]:
            return (
                (batch, batch_tensors(batch, self.device)) for batch in self.batches.epoch(epoch, start=start)
            )

        while state.step < state.planned_steps and state.epoch < self.settings.epochs:
            with closing(ahead(prepared(state.epoch, state.batch))) as coming:
                for batch, tensors in coming:
                    if state.step >= state.planned_steps:
                        return
                    yield batch, tensors
            state.epoch, state.batch = state.epoch + 1, 0

    def _update(self, batch: Batch, tensors: BatchTensors) -> None:
        """One update of the weights."""
        state, settings = self.state, self.settings
        rate = learning_rate(
            settings, step=state.step + 1, total=state.planned_steps, halvings=state.halvings
        )
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        source, source_lens, target_in, chosen, target = tensors
        self.model.train()
        with autocast(self.device, self.dtype):
            logits = self.model(source, source_lens, target_in, chosen=chosen).logits
            loss = smoothed_loss(logits, target, smoothing=settings.label_smoothing) / batch.n_tokens
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self._parameters, settings.clip_norm or math.inf, foreach=True)
        self._check_finite(loss, norm)
        self.optimiser.step()
        state.step += 1
        state.batch += 1
        self.average.update(state.step)
        self._meter.add(loss.detach(), norm, batch)

    def _check_finite(self, loss: Tensor, norm: Tensor) -> None:
        if not bool(torch.isfinite(loss + norm)):
            raise TrainingError(
                f"the loss is not finite at update {self.state.step + 1} (learning rate "
                f"{self.optimiser.param_groups[0]['lr']:.3g}): lower training.learning_rate"
                f"{'' if self.settings.clip_norm else ' or set training.clip_norm'}; the last good checkpoint is kept"
            )

    def _after_update(self) -> bool:
        """Plan, validate, save and report as due; returns whether the training is over."""
        state, settings = self.state, self.settings
        if settings.minutes and state.step % _PLAN_EVERY == 0:
            self._plan_by_time()
        interval = settings.validate_every or max(self.batches.n_batches, state.planned_steps // 20)
        if state.step % interval == 0:
            self._validate()
            if settings.patience and state.waited >= settings.patience:
                state.reason = f"no gain in {state.waited} validations"
                return True
            if not settings.save_every and state.step < state.planned_steps:
                self._save()
        if settings.save_every and state.step % settings.save_every == 0:
            self._save()
        self._report()
        if settings.minutes and self.elapsed >= settings.minutes * 60:
            state.reason = f"{settings.minutes:g} minutes are over"
            return True
        return False

    def _plan_by_time(self) -> None:
        """Plan the updates that fit the minutes that are left, at the speed seen so far."""
        state, seconds = self.state, self.settings.minutes * 60
        fits = int(state.step + (seconds - self.elapsed) * state.step / self.elapsed)
        state.planned_steps = max(state.step, min(self._limit(), fits))

    def _validate(self) -> None:
        began, state = time.perf_counter(), self.state
        if self.validate is None:
            # With nothing to validate on, the newest average is the best there is.
            state.best_step = state.validated = state.step
            self.keep_best(self.average.model, state)
            return
        values = self.validate(self.average.model)
        best = state.take_validation(values, self.settings)
        if best:
            self.keep_best(self.average.model, state)
        self._validation_seconds += time.perf_counter() - began
        self._tell(Validated(state.step, state.epoch, values, best, self.elapsed))

    def _save(self) -> None:
        if self.folder is None:
            return
        tensors = collect_tensors(self.model, self.average.model, self.optimiser)
        state = {**self.state.to_json(), "elapsed": self.elapsed}
        save_checkpoint(self.folder, Checkpoint(tensors, state), name=f"step-{self.state.step:08d}")

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resume included."""
        return self.state.elapsed + time.perf_counter() - self._started

    def _report(self, *, force: bool = False) -> None:
        now = time.perf_counter()
        if not self._meter.n_updates or (not force and now - self._last_report < _REPORT_SECONDS):
            return
        self._last_report = now
        state, elapsed = self.state, self.elapsed
        training_seconds = now - self._started - self._validation_seconds
        remaining = elapsed / max(1, state.step) * (state.planned_steps - state.step)
        loss, norm = self._meter.take()
        self._tell(
            Progress(
                step=state.step,
                planned_steps=state.planned_steps,
                epoch=state.epoch,
                loss=loss,
                learning_rate=self.optimiser.param_groups[0]["lr"],
                gradient_norm=norm,
                pairs_per_second=self._meter.n_pairs / training_seconds,
                tokens_per_second=self._meter.n_tokens / training_seconds,
                elapsed=elapsed,
                remaining=remaining,
            )
        )

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)


class _Meter:
    """Sums over updates: the loss since the last report, pairs and tokens since the start."""

    def __init__(self) -> None:
        self.n_pairs = self.n_tokens = self.n_updates = 0
        self._loss: Tensor | float = 0.0
        self._norm: Tensor | float = 0.0

    def add(self, loss: Tensor, norm: Tensor, batch: Batch) -> None:
        """Count an update."""
        self.n_updates += 1
        self.n_pairs += len(batch.source_lens)
        self.n_tokens += batch.n_tokens
        self._loss, self._norm = self._loss + loss, norm

    def take(self) -> tuple[float, float]:
        """Mean loss since the last call, and the last gradient norm."""
        mean, norm = float(self._loss) / self.n_updates, float(self._norm)
        self.n_updates, self._loss = 0, 0.0
        return mean, norm
