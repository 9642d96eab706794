"""What a person sees while a model trains: a progress bar, or plain lines where there is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from regard.training.events import Event, Finished, Message, Progress, Started, Validated

__all__ = ["TrainingDisplay", "shown_time"]

_PLAIN_SECONDS = 10.0
"""Seconds between plain lines."""


def shown_time(seconds: float) -> str:
    """Seconds as ``1:05`` or ``2:00:05``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _values(values: dict[str, float]) -> str:
    return "  ".join(
        f"{name} {value:.3f}" if name == "loss" else f"{name} {value:.1f}" for name, value in values.items()
    )


class TrainingDisplay:
    """A listener that shows a training on standard error."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._last_line = float("-inf")
        self._dev = ""

    def __enter__(self) -> TrainingDisplay:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[facts]}"),
                console=Console(stderr=True, highlight=False),
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Started):
            self._started(event)
        elif isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, Validated):
            self._dev = _values(event.values)
            mark = "  best" if event.best else ""
            self._say(f"update {event.step:>6,}  epoch {event.epoch + 1:>3}  dev {self._dev}{mark}")
        elif isinstance(event, Message):
            self._say(f"warning: {event.text}" if event.warning else event.text)
        elif isinstance(event, Finished):
            best = (
                f"; best at update {event.best_step:,}: {_values(event.best_values)}"
                if event.best_values
                else ""
            )
            self._say(f"done in {shown_time(event.elapsed)}, {event.reason}{best}")

    def _started(self, event: Started) -> None:
        self._say(
            f"{'going on after update ' + format(event.step, ',') + ': ' if event.step else ''}"
            f"{event.n_train:,} training pairs, {event.n_dev:,} dev pairs, {event.n_parameters:,} parameters, "
            f"{event.device}, {event.precision}"
        )
        if self._bar is not None:
            self._task = self._bar.add_task(
                "training", total=event.planned_steps, completed=event.step, facts=""
            )

    def _progress(self, event: Progress) -> None:
        facts = (
            f"loss {event.loss:.3f}{'  dev ' + self._dev if self._dev else ''}  {event.tokens_per_second:,.0f} words/s  "
            f"{shown_time(event.remaining)} left"
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=event.step, total=event.planned_steps, facts=facts)
        elif event.elapsed - self._last_line >= _PLAIN_SECONDS:
            self._last_line = event.elapsed
            self._say(f"update {event.step:>6,} of {event.planned_steps:,}  {facts}")

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)
