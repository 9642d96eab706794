"""Answering lines as they come: in order, together where they wait together, at once where one comes alone."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["answer_group", "stream"]

T = TypeVar("T")

_Item = tuple[int, str] | BaseException | None
"""A numbered line, the error that ended the reading, or None at the end."""


def _read(lines: Iterator[tuple[int, str]], waiting: queue.Queue[_Item], stop: threading.Event) -> None:
    """Put lines in the queue until they end or nobody wants them any more."""
    last: _Item = None
    try:
        for line in lines:
            if not _put(line, waiting, stop):
                return
    except BaseException as error:  # handed to the thread that asked for the lines
        last = error
    _put(last, waiting, stop)


def _put(item: _Item, waiting: queue.Queue[_Item], stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            waiting.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def stream(
    lines: Iterator[tuple[int, str]],
    answer: Callable[[list[tuple[int, str]]], Sequence[T]],
    *,
    window: int,
    blank: Callable[[str], T],
) -> Iterator[tuple[int, str, T]]:
    """Answer numbered lines in order, in bounded memory.

    The first line is waited for, then whatever else is there already is answered with it: so a file goes
    through in large groups, and a program that writes one line and waits gets its answer.

    Args:
        lines: Numbers and texts.
        answer: Answers lines that are not blank, together.
        window: Most lines answered together.
        blank: Makes the answer to a blank line, which is not sent to ``answer``.

    Yields:
        Number, text and answer of each line. An error in ``lines`` is raised after the lines before it.
    """
    waiting: queue.Queue[_Item] = queue.Queue(maxsize=2 * window)
    stop = threading.Event()
    reader = threading.Thread(target=_read, args=(lines, waiting, stop), daemon=True)
    reader.start()
    try:
        end: _Item = (0, "")
        while isinstance(end, tuple):
            group, end = _next_group(waiting, window)
            yield from answer_group(group, answer, blank)
        if end is not None:
            raise end
    finally:
        stop.set()


def _next_group(waiting: queue.Queue[_Item], window: int) -> tuple[list[tuple[int, str]], _Item]:
    """Wait for one item and take what else is there; the second value is not a line once the lines end."""
    group: list[tuple[int, str]] = []
    item = waiting.get()
    while isinstance(item, tuple):
        group.append(item)
        if len(group) == window:
            return group, item
        try:
            item = waiting.get_nowait()
        except queue.Empty:
            return group, group[-1]
    return group, item


def answer_group(
    group: list[tuple[int, str]],
    answer: Callable[[list[tuple[int, str]]], Sequence[T]],
    blank: Callable[[str], T],
) -> Iterator[tuple[int, str, T]]:
    """Answer lines that are all there; see `stream`."""
    asked = [line for line in group if line[1].strip()]
    answers = iter(answer(asked) if asked else [])
    for number, text in group:
        yield number, text, next(answers) if text.strip() else blank(text)
