"""Listeners that write to files: ``training.jsonl`` and TensorBoard."""

from __future__ import annotations

import json
import math
from datetime import datetime, timezone
from pathlib import Path

from regard.errors import ConfigError
from regard.training.events import Event, Progress, Validated

__all__ = ["JsonLines", "TensorBoard"]


class JsonLines:
    """Appends each event as a line of JSON, flushed at once."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, event: Event) -> None:
        """Write an event; numbers that JSON lacks become null."""
        record = {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"), **event.to_record()}
        finite = {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in record.items()
        }
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(finite, ensure_ascii=False) + "\n")


class TensorBoard:
    """Writes scalars for TensorBoard.

    Raises:
        ConfigError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ConfigError(
                'training.tensorboard needs TensorBoard: pip install "regard[tensorboard]"'
            ) from None
        self._writer = SummaryWriter(str(folder))

    def __call__(self, event: Event) -> None:
        """Write the numbers of progress and validations."""
        if isinstance(event, Progress):
            for name in ("loss", "learning_rate", "gradient_norm", "pairs_per_second", "tokens_per_second"):
                self._writer.add_scalar(f"train/{name}", getattr(event, name), event.step)
        elif isinstance(event, Validated):
            for name, value in event.values.items():
                self._writer.add_scalar(f"dev/{name}", value, event.step)
            self._writer.flush()
