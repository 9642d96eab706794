"""Training a model of journeys: each case is read once an epoch, and all of its prefixes are learnt from."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.errors import DataError, TrainingError
from regard.journeys.cases import EncodedLog, collate, cut_batches
from regard.journeys.encoder import batch_tensors
from regard.journeys.network import JourneyNetwork
from regard.journeys.outcomes import UNASKED
from regard.journeys.settings import JourneyTrainingSettings
from regard.nn.types import EOS, PAD
from regard.training.events import Event, Finished, Listener, Progress, Started, Validated
from regard.training.optimiser import WeightAverage, learning_rate, make_optimiser
from regard.training.signals import StopSignal

__all__ = ["Losses", "TrainedFacts", "prefix_losses", "train_network"]

_PLAN_EVERY = 20
_REPORT_SECONDS = 0.5
_LEAST_BATCHES, _LEAST_BATCH = 40, 64
"""Updates that an epoch of a small log should have, and the smallest batch in events."""


@dataclass(frozen=True)
class TrainedFacts:
    """How a training went."""

    steps: int
    epochs: float
    seconds: float
    reason: str
    best_step: int
    best_values: dict[str, float]


@dataclass(frozen=True)
class Losses:
    """Sums of losses over a batch and what they are sums over."""

    next_sum: Tensor
    n_next: int
    rest_sum: Tensor
    n_rest: int
    outcome_sum: Tensor
    n_outcome: int

    @property
    def total(self) -> Tensor:
        """What is minimised: the three means together."""
        means = (
            (self.next_sum, self.n_next),
            (self.rest_sum, self.n_rest),
            (self.outcome_sum, self.n_outcome),
        )
        return torch.stack([value / max(1, n) for value, n in means]).sum()


def _window(start: int, end: int, most: int, rng: np.random.Generator | None) -> np.ndarray:
    """Places of a case's events, or of ``most`` neighbours among them."""
    if end - start > most:
        start = end - most if rng is None else int(rng.integers(start, end - most + 1))
        end = start + most
    return np.arange(start, end)


def _without_some(places: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Leave out events at random from half of the journeys; one always stays."""
    if not share or len(places) < 2 or rng.random() < 0.5:
        return places
    kept = places[rng.random(len(places)) >= share]
    return kept if len(kept) else places


def _hide_some(log: EncodedLog, places: np.ndarray, share: float, rng: np.random.Generator) -> EncodedLog:
    """A log of the given events only (in their order) in which some lack an attribute."""
    categories, numbers = log.categories[places], log.numbers[places]
    categories = np.where(rng.random(categories.shape) < share, 0, categories)
    numbers = np.where(rng.random(numbers.shape) < share, np.nan, numbers).astype(np.float32)
    return replace(
        log,
        activity=log.activity[places],
        categories=categories,
        numbers=numbers,
        time=log.time[places],
        zone=log.zone[places],
    )


def prefix_losses(
    network: JourneyNetwork,
    log: EncodedLog,
    cases: np.ndarray,
    *,
    prefixes: int,
    rng: np.random.Generator,
    event_dropout: float = 0.0,
) -> Losses:
    """Losses of a batch of cases.

    Args:
        network: The network.
        log: The cases' log.
        cases: Numbers of the cases.
        prefixes: Prefixes of each case whose whole rest counts.
        rng: Draws them, and the events that are left out.
        event_dropout: Share of events left out.
    """
    device = next(network.parameters()).device
    most = network.settings.max_events
    spans = [(int(log.offsets[case]), int(log.offsets[case + 1])) for case in cases]
    windows = [_window(start, end, most, rng if network.training else None) for start, end in spans]
    seen = [_without_some(window, event_dropout, rng) for window in windows] if event_dropout else windows
    shown, rows_of = log, seen
    if event_dropout and (log.categories.shape[1] or log.numbers.shape[1]):
        flat = np.concatenate(seen)
        shown = _hide_some(log, flat, event_dropout, rng)
        ends = np.cumsum([len(places) for places in seen])
        rows_of = [np.arange(end - len(places), end) for end, places in zip(ends, seen, strict=True)]
    read = network.read(batch_tensors(collate(shown, rows_of), device))
    lengths = np.array([len(places) for places in seen])
    rows = np.repeat(np.arange(len(cases)), lengths)
    sizes = np.concatenate([np.arange(1, n + 1) for n in lengths])
    places = np.concatenate(seen)  # the event that each prefix ends with
    ends = np.repeat([end for _, end in spans], lengths)
    encoded, events = read.prefixes(torch.from_numpy(rows).to(device), torch.from_numpy(sizes).to(device))
    next_sum = _next_loss(network, log, encoded, places, ends)
    drawn = _draw(lengths, prefixes, rng)
    some, _ = read.prefixes(
        torch.from_numpy(rows[drawn]).to(device), torch.from_numpy(sizes[drawn]).to(device)
    )
    rest_sum, n_rest = _rest_loss(network, log, some, places[drawn], ends[drawn])
    outcome_sum, n_outcome = next_sum.new_zeros(()), 0
    if network.outcomes is not None:
        logits, _ = network.outcomes(encoded, events)
        labels = torch.from_numpy(log.labels[places].astype(np.float32)).to(device)
        asked = labels != UNASKED
        losses = functional.binary_cross_entropy_with_logits(logits, labels.clamp(min=0), reduction="none")
        outcome_sum, n_outcome = (losses * asked).sum(), int(asked.sum())
    return Losses(next_sum, len(places), rest_sum, n_rest, outcome_sum, n_outcome)


def _draw(lengths: np.ndarray, prefixes: int, rng: np.random.Generator) -> np.ndarray:
    """Places, among all prefixes of all cases, of at most ``prefixes`` of each case."""
    order = rng.random(int(lengths.sum()))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    drawn = [start + np.argsort(order[start:end])[:prefixes] for start, end in itertools.pairwise(starts)]
    return np.sort(np.concatenate(drawn))


def _next_loss(
    network: JourneyNetwork, log: EncodedLog, encoded: object, places: np.ndarray, ends: np.ndarray
) -> Tensor:
    following = np.minimum(places + 1, len(log.activity) - 1)
    target = np.where(places + 1 < ends, log.activity[following], EOS).astype(np.int64)
    log_probs, _ = network.next_log_probs(encoded)  # type: ignore[arg-type]
    return functional.nll_loss(log_probs, torch.from_numpy(target).to(log_probs.device), reduction="sum")


def _rest_loss(
    network: JourneyNetwork, log: EncodedLog, encoded: object, places: np.ndarray, ends: np.ndarray
) -> tuple[Tensor, int]:
    most = network.settings.max_events
    rests = [
        log.activity[place + 1 : min(end, place + 1 + most)] for place, end in zip(places, ends, strict=True)
    ]
    longest = max(len(rest) for rest in rests) + 1
    given = np.full((len(rests), longest), PAD, np.int64)
    wanted = np.full((len(rests), longest), PAD, np.int64)
    for row, rest in enumerate(rests):
        given[row, 0], given[row, 1 : len(rest) + 1] = EOS, rest
        wanted[row, : len(rest)] = rest
        if len(rest) < most:
            wanted[row, len(rest)] = EOS
    device = next(network.parameters()).device
    logits, _ = network.continuation(encoded, torch.from_numpy(given).to(device))  # type: ignore[arg-type]
    target = torch.from_numpy(wanted).to(device).flatten()
    loss = functional.cross_entropy(logits.flatten(0, 1).float(), target, ignore_index=PAD, reduction="sum")
    return loss, int((wanted != PAD).sum())


class _Run:
    """A training that goes on until its plan is done, patience runs out or a signal comes."""

    def __init__(
        self,
        network: JourneyNetwork,
        log: EncodedLog,
        settings: JourneyTrainingSettings,
        listeners: Sequence[Listener],
    ) -> None:
        self.network, self.log, self.settings, self.listeners = network, log, settings, listeners
        self.rng = np.random.default_rng(settings.seed)
        self.train, self.dev = _hold_out(len(log.lengths), settings.dev_fraction, self.rng)
        self.chosen = settings.optimiser_settings()
        self.optimiser = make_optimiser(network, self.chosen)
        self.average = WeightAverage(network, decay=settings.average_decay)
        # A small log is cut finer, so that an epoch has enough updates to learn from.
        few = int(log.lengths[self.train].sum()) // _LEAST_BATCHES
        self.batch_events = min(settings.batch_events, max(_LEAST_BATCH, few))
        self.n_batches = sum(
            1 for _ in cut_batches(self._lengths(self.train), batch_events=self.batch_events)
        )
        self.planned = settings.epochs * self.n_batches
        self.step = self.best_step = self.waited = 0
        self.best_values: dict[str, float] = {}
        self.best: dict[str, Tensor] = {}
        self.began = self.reported = time.perf_counter()

    def _lengths(self, cases: np.ndarray) -> np.ndarray:
        return np.minimum(self.log.lengths[cases], self.network.settings.max_events)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.began

    def _tell(self, event: Event) -> None:
        for listener in self.listeners:
            listener(event)

    def _batches(self) -> Iterator[tuple[int, np.ndarray]]:
        for epoch in range(self.settings.epochs):
            lengths = self._lengths(self.train)
            for rows in cut_batches(lengths, batch_events=self.batch_events, rng=self.rng):
                yield epoch, self.train[rows]
                if self.step >= self.planned:
                    return

    def run(self) -> TrainedFacts:
        """Train; the network ends with the best weights."""
        device = str(next(self.network.parameters()).device)
        self._tell(
            Started(
                0, self.planned, len(self.train), len(self.dev), self.network.n_parameters, device, "float32"
            )
        )
        reason, epoch = "all epochs done", 0
        with StopSignal.watch() as signal:
            for epoch, cases in self._batches():
                self._update(cases, epoch)
                if self.step % max(_PLAN_EVERY, min(self.n_batches, self.planned // 20)) == 0:
                    self._validate(epoch)
                    if self.settings.patience and self.waited >= self.settings.patience:
                        reason = f"no gain in {self.waited} validations"
                        break
                if signal.received:
                    reason = "stopped by a signal"
                    break
                if self.settings.minutes and self.elapsed >= self.settings.minutes * 60:
                    reason = f"{self.settings.minutes:g} minutes are over"
                    break
        if not self.best or self.waited or self.step % self.n_batches:
            self._validate(epoch)
        self.network.load_state_dict(self.best)
        self._tell(Finished(self.step, reason, self.best_step, self.best_values, self.elapsed))
        return TrainedFacts(
            self.step, self.step / self.n_batches, self.elapsed, reason, self.best_step, self.best_values
        )

    def _update(self, cases: np.ndarray, epoch: int) -> None:
        rate = learning_rate(self.chosen, step=self.step + 1, total=self.planned)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.network.train()
        settings = self.settings
        losses = prefix_losses(
            self.network,
            self.log,
            cases,
            prefixes=settings.prefixes,
            rng=self.rng,
            event_dropout=settings.event_dropout,
        )
        loss = losses.total
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), settings.clip_norm)
        if not math.isfinite(float(loss.detach() + norm)):
            raise TrainingError(
                f"the loss is not finite at update {self.step + 1} (learning rate {rate:.3g}): lower "
                "training.learning_rate"
            )
        self.optimiser.step()
        self.step += 1
        self.average.update(self.step)
        if settings.minutes and self.step % _PLAN_EVERY == 0:
            fits = int(settings.minutes * 60 / self.elapsed * self.step)
            self.planned = max(self.step, min(settings.epochs * self.n_batches, fits))
        self._report(float(loss.detach()), float(norm), rate, epoch)

    def _report(self, loss: float, norm: float, rate: float, epoch: int) -> None:
        now = time.perf_counter()
        if now - self.reported < _REPORT_SECONDS:
            return
        self.reported = now
        n_cases = self.step / self.n_batches * len(self.train)
        events = float(self.log.lengths.mean()) * n_cases
        remaining = self.elapsed / self.step * (self.planned - self.step)
        self._tell(
            Progress(
                self.step,
                self.planned,
                epoch,
                loss,
                rate,
                norm,
                n_cases / self.elapsed,
                events / self.elapsed,
                self.elapsed,
                remaining,
            )
        )

    def _validate(self, epoch: int) -> None:
        model: JourneyNetwork = self.average.model  # type: ignore[assignment]
        was_training = model.training
        model.eval()
        values = dev_losses(model, self.log, self.dev, self.settings)
        model.train(was_training)
        best = not self.best_values or values["loss"] < self.best_values["loss"]
        self.waited = 0 if best else self.waited + 1
        if best:
            self.best_step, self.best_values = self.step, values
            self.best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        self._tell(Validated(self.step, epoch, values, best, self.elapsed))


@torch.no_grad()
def dev_losses(
    network: JourneyNetwork, log: EncodedLog, cases: np.ndarray, settings: JourneyTrainingSettings
) -> dict[str, float]:
    """Mean losses of cases; the same prefixes are drawn each time."""
    rng = np.random.default_rng([settings.seed, 1])
    lengths = np.minimum(log.lengths[cases], network.settings.max_events)
    sums = np.zeros(6)
    for rows in cut_batches(lengths, batch_events=2 * settings.batch_events):
        losses = prefix_losses(network, log, cases[rows], prefixes=settings.prefixes, rng=rng)
        sums += [
            float(losses.next_sum), losses.n_next, float(losses.rest_sum), losses.n_rest,
            float(losses.outcome_sum), losses.n_outcome,
        ]  # fmt: skip
    named = {"next": sums[0] / sums[1], "rest": sums[2] / max(1, sums[3])}
    if sums[5]:
        named["outcome"] = sums[4] / sums[5]
    return {"loss": float(sum(named.values())), **{name: float(value) for name, value in named.items()}}


def _hold_out(n_cases: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    n_dev = min(5000, max(1, round(n_cases * share)))
    if n_cases < 4:
        raise DataError(f"a training needs at least 4 cases, found {n_cases}")
    order = rng.permutation(n_cases)
    return np.sort(order[n_dev:]), np.sort(order[:n_dev])


def train_network(
    network: JourneyNetwork,
    log: EncodedLog,
    settings: JourneyTrainingSettings,
    listeners: Sequence[Listener] = (),
) -> TrainedFacts:
    """Train a network on all cases of a log but those that are held out; it ends with the best weights.

    Raises:
        DataError: There are too few cases.
        TrainingError: The loss is not finite.
    """
    torch.manual_seed(settings.seed)
    return _Run(network, log, settings, list(listeners)).run()
