"""Where a training stands: all that a resumed one must know besides tensors."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from regard.config import TrainingSettings
from regard.registry import METRICS

__all__ = ["TrainingState", "higher_is_better"]


def higher_is_better(metric: str) -> bool:
    """Whether a larger value of a watched quantity is better."""
    return False if metric == "loss" else bool(METRICS.get(metric).higher_is_better)


@dataclass
class TrainingState:
    """Counters of a training.

    Attributes:
        step: Updates done.
        epoch: Current epoch, counted from 0.
        batch: Batches of that epoch done.
        planned_steps: Updates planned in all.
        elapsed: Seconds of training before this process.
        best: Best value of the watched quantity, and the update and all values it came with.
        waited: Validations since the best.
        halvings: Times that ``plateau`` halved the learning rate.
        plateau_waited: Validations without gain since the last halving.
        validated: The update of the last validation.
        reason: Why the training ended, once it has.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    planned_steps: int = 0
    elapsed: float = 0.0
    best: float | None = None
    best_step: int = 0
    best_values: dict[str, float] = field(default_factory=dict)
    waited: int = 0
    halvings: int = 0
    plateau_waited: int = 0
    validated: int = 0
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The state as a JSON object."""
        return asdict(self)

    def take_validation(self, values: dict[str, float], settings: TrainingSettings) -> bool:
        """Take in a validation; returns whether it is the best so far."""
        value = values[settings.metric]
        sign = 1 if higher_is_better(settings.metric) else -1
        self.validated = self.step
        better = self.best is None or sign * value > sign * self.best
        # Of equal metrics (exact match may stand still at 100) the lower loss is better.
        if self.best is not None and value == self.best and settings.metric != "loss":
            better = values["loss"] < self.best_values["loss"]
        if better:
            self.best, self.best_step, self.best_values = value, self.step, dict(values)
            self.waited = self.plateau_waited = 0
            return True
        self.waited += 1
        self.plateau_waited += 1
        if settings.schedule == "plateau" and self.plateau_waited > settings.plateau_patience:
            self.halvings += 1
            self.plateau_waited = 0
        return False
