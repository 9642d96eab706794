"""What happens in a comparison; the display listens to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from regard.compare.perform import RunResult
from regard.compare.plan import Run
from regard.training.events import Event

__all__ = ["CompareListener", "RunBegan", "RunEnded", "RunFailed", "RunTold"]


@dataclass(frozen=True)
class RunBegan:
    """A run is being done."""

    run: Run


@dataclass(frozen=True)
class RunTold:
    """Something happened in the training of a run."""

    run: Run
    event: Event


@dataclass(frozen=True)
class RunEnded:
    """A run has a result; ``found`` says that it had one before."""

    run: Run
    result: RunResult
    found: bool = False


@dataclass(frozen=True)
class RunFailed:
    """A run has ended without a result, and why."""

    run: Run
    reason: str


class CompareListener(Protocol):
    """Whoever wants to know of a comparison's events."""

    def __call__(self, event: RunBegan | RunTold | RunEnded | RunFailed) -> None:
        """Take note of an event."""
        ...
