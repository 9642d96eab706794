"""SIGINT and SIGTERM ask a training to save and stop at the next update."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["StopSignal"]


class _Received:
    """Holds the signal that came, or 0."""

    def __init__(self) -> None:
        self.received = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.received:  # asked twice: stop at once
            raise KeyboardInterrupt
        self.received = number


class StopSignal(Exception):
    """A training was asked to stop and has saved its state.

    Args:
        number: The signal.
        step: Updates done.
    """

    def __init__(self, number: int, step: int) -> None:
        self.number, self.step = number, step
        super().__init__(f"stopped by {signal.Signals(number).name} after update {step:,}")

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects, 128 + the signal."""
        return 128 + self.number

    @staticmethod
    @contextmanager
    def watch() -> Iterator[_Received]:
        """Note signals instead of dying of them; outside the main thread nothing can be watched."""
        note = _Received()
        if threading.current_thread() is not threading.main_thread():
            yield note
            return
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield note
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
