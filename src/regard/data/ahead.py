"""Making the next items of an iterator while the last one is in use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


@dataclass(frozen=True)
class _End:
    """The last thing in the queue: nothing more comes, or this error."""

    error: BaseException | None


def ahead(items: Iterable[T], *, n: int = 2) -> Generator[T, None, None]:
    """Yield the same items in the same order, with up to ``n`` of them made beforehand by a thread.

    An error while making an item is raised where that item would have come. Closed early, it stops the thread.

    Args:
        items: What to iterate over; only the thread touches it.
        n: Most items that wait.
    """
    made: queue.Queue[T | _End] = queue.Queue(maxsize=n)
    stop = threading.Event()

    def put(item: T | _End) -> bool:
        while not stop.is_set():
            try:
                made.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(_End(None))
        except BaseException as error:  # raised again in the thread that asks
            put(_End(error))

    thread = threading.Thread(target=make, daemon=True, name="ahead")
    thread.start()
    return _take(made, stop, thread)


def _take(
    made: queue.Queue[T | _End], stop: threading.Event, thread: threading.Thread
) -> Generator[T, None, None]:
    try:
        while not isinstance(item := made.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stop.set()
        thread.join()
