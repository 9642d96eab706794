"""What a person sees of a comparison: a bar for all runs and one for each that trains, or plain lines."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from regard.cli.progress import shown_time

if TYPE_CHECKING:
    from regard.compare.plan import Run

__all__ = ["CompareDisplay"]

_PLAIN_SECONDS = 30.0
"""Seconds between plain lines of one run."""


class CompareDisplay:
    """A listener that shows a comparison on standard error.

    Args:
        n_runs: Runs of the plan.
        parallel: How many are done at once.
        minutes: Budget of each, 0 if it is counted in updates.
    """

    def __init__(self, n_runs: int, *, parallel: int, minutes: float) -> None:
        self.n_runs, self.parallel, self.minutes = n_runs, parallel, minutes
        self.n_done = 0
        self._bar: Any = None
        self._all: Any = None
        self._tasks: dict[str, Any] = {}
        self._last_lines: dict[str, float] = {}
        self._dev: dict[str, str] = {}
        self._said: set[str] = set()

    def __enter__(self) -> CompareDisplay:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TextColumn("{task.fields[facts]}"),
                console=Console(stderr=True, highlight=False),
            )
            self._all = self._bar.add_task("runs", total=self.n_runs, facts=self._left())
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Any) -> None:
        """Show an event."""
        shows = {
            "RunBegan": self._began,
            "RunTold": self._told,
            "RunEnded": self._ended,
            "RunFailed": self._failed,
        }
        shows[type(event).__name__](event)

    def _left(self) -> str:
        """About how long it will take, from the budget."""
        rounds = -(-(self.n_runs - self.n_done) // self.parallel)
        return f"at most {shown_time(60 * self.minutes * rounds)} of training left" if self.minutes else ""

    def _began(self, event: Any) -> None:
        run = event.run
        if self._bar is not None:
            self._tasks[run.name] = self._bar.add_task(_title(run), total=None, facts="starting")
        else:
            place = self.n_done + len(self._last_lines) + 1
            self._last_lines[run.name] = time.monotonic()
            self._say(f"run {place} of {self.n_runs}: {_title(run)}")

    def _told(self, event: Any) -> None:
        from regard.training.events import Message, Progress, Validated

        run, told = event.run, event.event
        if isinstance(told, Progress):
            self._progress(run, told)
        elif isinstance(told, Validated):
            self._dev[run.name] = "  ".join(f"{name} {value:.3g}" for name, value in told.values.items())
        elif isinstance(told, Message) and told.text not in self._said:
            self._said.add(told.text)  # all runs read the same data, and say the same of them
            self._say(f"warning: {told.text}" if told.warning else told.text)

    def _progress(self, run: Run, told: Any) -> None:
        dev = self._dev.get(run.name, "")
        facts = (
            f"loss {told.loss:.3f}{'  dev ' + dev if dev else ''}  {told.tokens_per_second:,.0f} words/s  "
            f"{shown_time(told.remaining)} left"
        )
        if self._bar is not None:
            self._bar.update(
                self._tasks[run.name], completed=told.step, total=told.planned_steps, facts=facts
            )
        elif time.monotonic() - self._last_lines[run.name] >= _PLAIN_SECONDS:
            self._last_lines[run.name] = time.monotonic()
            self._say(f"{_title(run)}: update {told.step:,} of {told.planned_steps:,}  {facts}")

    def _ended(self, event: Any) -> None:
        result, overall = event.result, event.result.report["overall"]
        values = ", ".join(f"{name} {estimate['value']:.1f}" for name, estimate in overall.items())
        work = f"{result.training['steps']:,} updates in {shown_time(result.training['seconds'])}"
        found = "found: " if event.found else ""
        self._say(f"{found}{_title(event.run)}: {values}; {result.n_parameters:,} parameters, {work}")
        self._close(event.run)

    def _failed(self, event: Any) -> None:
        self._say(f"warning: {_title(event.run)} failed: {event.reason}")
        self._close(event.run)

    def _close(self, run: Run) -> None:
        self.n_done += 1
        self._last_lines.pop(run.name, None)
        if self._bar is not None:
            if run.name in self._tasks:
                self._bar.remove_task(self._tasks.pop(run.name))
            self._bar.update(self._all, completed=self.n_done, facts=self._left())

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(text, markup=False, soft_wrap=True)
        else:
            print(text, file=sys.stderr, flush=True)


def _title(run: Run) -> str:
    return f"{run.variant}, hidden {run.hidden_size}, seed {run.seed}"
