"""What happens in a training, as events; the progress bar and the loggers listen to them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Protocol

__all__ = ["Event", "Finished", "Listener", "Message", "Progress", "Started", "Validated"]


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    def to_record(self) -> dict[str, object]:
        """The event as a JSON object, with its kind."""
        return {"event": type(self).__name__.lower(), **asdict(self)}


@dataclass(frozen=True)
class Started(Event):
    """Training begins or goes on: sizes, and the update it starts after."""

    step: int
    planned_steps: int
    n_train: int
    n_dev: int
    n_parameters: int
    device: str
    precision: str


@dataclass(frozen=True)
class Progress(Event):
    """Some updates later. ``pairs_per_second`` and ``tokens_per_second`` (target) leave validations out."""

    step: int
    planned_steps: int
    epoch: int
    loss: float
    learning_rate: float
    gradient_norm: float
    pairs_per_second: float
    tokens_per_second: float
    elapsed: float
    remaining: float


@dataclass(frozen=True)
class Validated(Event):
    """A validation: ``values`` by name, whether it is the best so far, and seconds of training so far."""

    step: int
    epoch: int
    values: dict[str, float] = field(default_factory=dict)
    best: bool = False
    elapsed: float = 0.0


@dataclass(frozen=True)
class Message(Event):
    """Something the user should know."""

    text: str
    warning: bool = False


@dataclass(frozen=True)
class Finished(Event):
    """The training has ended, and why."""

    step: int
    reason: str
    best_step: int
    best_values: dict[str, float] = field(default_factory=dict)
    elapsed: float = 0.0


class Listener(Protocol):
    """Whoever wants to know of events."""

    def __call__(self, event: Event) -> None:
        """Take note of an event."""
        ...
