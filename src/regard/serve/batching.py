"""Micro-batching: what arrives together and has the same settings is decoded together.

One worker thread answers everything, because the decoding uses all cores anyway. A ticket is one request: its
inputs enter a queue, are taken out in batches (perhaps with those of other tickets, perhaps in several
batches), and each result goes back to the ticket and the place that it belongs to.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Abandoned", "Batch", "BatchObserver", "MicroBatcher", "QueueClosed", "QueueFull", "Ticket"]


class QueueFull(Exception):
    """No more inputs may wait.

    Args:
        retry_after: Seconds after which there should be room again.
    """

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"the queue is full, try again in {retry_after:.0f} s")
        self.retry_after = retry_after


class Abandoned(Exception):
    """Nobody waits for the answer any more."""


class QueueClosed(Exception):
    """The server is shutting down and takes nothing new."""


@dataclass(eq=False)
class Ticket:
    """One request's inputs.

    Attributes:
        key: Inputs of equal keys may be answered together.
        inputs: What is to be answered.
        watch: Called in the worker thread as ``watch(place, step)`` while the input at ``place`` is being
            answered, or None.
        future: The answers, in order, or the error.
        arrived: When, by `time.monotonic`.
    """

    key: Hashable
    inputs: Sequence[Any]
    watch: Callable[[int, Any], None] | None = None
    future: Future[list[Any]] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)
    cancelled: bool = False
    _n_taken: int = 0
    _answers: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # From here on only the queue decides how the future ends, whoever waits for it gives up or not.
        self.future.set_running_or_notify_cancel()

    @property
    def n_waiting(self) -> int:
        """Inputs still in the queue."""
        return 0 if self.cancelled else len(self.inputs) - self._n_taken

    def _take(self, most: int) -> list[int]:
        places = list(range(self._n_taken, min(len(self.inputs), self._n_taken + most)))
        self._n_taken += len(places)
        return places

    def _answer(self, place: int, answer: Any) -> None:
        self._answers[place] = answer
        if len(self._answers) == len(self.inputs) and not self.cancelled:
            self.future.set_result([self._answers[number] for number in range(len(self.inputs))])

    def _fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


@dataclass(frozen=True)
class Batch:
    """Inputs that are answered together.

    Attributes:
        key: Their common key.
        rows: Ticket and place of each.
    """

    key: Hashable
    rows: Sequence[tuple[Ticket, int]]

    @property
    def inputs(self) -> list[Any]:
        """The inputs, in order."""
        return [ticket.inputs[place] for ticket, place in self.rows]

    @property
    def is_watched(self) -> bool:
        """Whether someone wants to see the steps."""
        return any(ticket.watch is not None for ticket, _ in self.rows)

    def show_step(self, row: int, step: Any) -> None:
        """Pass a step of the input in ``row`` to its ticket."""
        ticket, place = self.rows[row]
        if ticket.watch is not None and not ticket.cancelled:
            ticket.watch(place, step)


class BatchObserver(Protocol):
    """What wants to know about batches and the queue."""

    def batch(self, size: int, seconds: float) -> None:
        """A batch was answered."""
        ...

    def dropped(self, n_inputs: int) -> None:
        """Inputs left the queue unanswered, because nobody waits for them."""
        ...


class MicroBatcher:
    """A bounded queue and the thread that empties it.

    Args:
        answer: Answers a batch, one answer for each row in order; runs in the worker thread.
        batch_size: Most inputs answered together.
        max_wait: Most seconds that an input waits for others while the worker is idle.
        capacity: Most inputs that wait.
        observer: Told about batches.
    """

    def __init__(
        self,
        answer: Callable[[Batch], Sequence[Any]],
        *,
        batch_size: int,
        max_wait: float,
        capacity: int,
        observer: BatchObserver,
    ) -> None:
        self._answer, self._observer = answer, observer
        self._batch_size, self._max_wait, self._capacity = batch_size, max_wait, capacity
        # Tickets by key; the keys in the order of their turns.
        self._waiting: OrderedDict[Hashable, deque[Ticket]] = OrderedDict()
        self._n_waiting = 0
        self._seconds_per_input = 0.02
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="regard-decoding", daemon=True)
        self._thread.start()

    @property
    def n_waiting(self) -> int:
        """Inputs in the queue."""
        return self._n_waiting

    @property
    def is_open(self) -> bool:
        """Whether inputs are taken."""
        return self._thread.is_alive() and not self._closed

    def submit(
        self, key: Hashable, inputs: Sequence[Any], *, watch: Callable[[int, Any], None] | None = None
    ) -> Ticket:
        """Queue inputs.

        Raises:
            QueueFull: They do not fit.
            QueueClosed: The server is shutting down.
        """
        ticket = Ticket(key, inputs, watch)
        if not inputs:
            ticket.future.set_result([])
            return ticket
        with self._changed:
            if self._closed:
                raise QueueClosed("the server is shutting down")
            if self._n_waiting + len(inputs) > self._capacity:
                raise QueueFull(max(1.0, self._n_waiting * self._seconds_per_input))
            self._waiting.setdefault(key, deque()).append(ticket)
            self._n_waiting += len(inputs)
            self._changed.notify()
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Drop what of a ticket is still queued; nothing if it is answered."""
        with self._changed:
            if ticket.cancelled or ticket.future.done():
                return
            dropped = ticket.n_waiting
            ticket.cancelled = True
            self._n_waiting -= dropped
            queue = self._waiting.get(ticket.key)
            if dropped and queue is not None:
                queue.remove(ticket)
                self._forget_if_empty(ticket.key)
            ticket._fail(Abandoned("nobody waits for the answer any more"))
        self._observer.dropped(dropped)

    def close(self) -> None:
        """Take nothing new, finish what is queued, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _forget_if_empty(self, key: Hashable) -> None:
        if not self._waiting[key]:
            del self._waiting[key]

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            started = time.monotonic()
            self._run(batch)
            seconds = time.monotonic() - started
            self._observer.batch(len(batch.rows), seconds)
            # A running average, so that Retry-After follows what the inputs cost at present.
            self._seconds_per_input += 0.2 * (seconds / len(batch.rows) - self._seconds_per_input)

    def _next_batch(self) -> Batch | None:
        """Wait for the next ticket and those that may go with it; None once closed and empty."""
        with self._changed:
            while True:
                while not self._waiting:
                    if self._closed:
                        return None
                    self._changed.wait()
                key, queue = next(iter(self._waiting.items()))
                left = queue[0].arrived + self._max_wait - time.monotonic()
                ready = sum(ticket.n_waiting for ticket in queue) >= self._batch_size
                if ready or left <= 0 or self._closed:
                    return Batch(key, self._take(key, queue))
                self._changed.wait(left)

    def _take(self, key: Hashable, queue: deque[Ticket]) -> list[tuple[Ticket, int]]:
        rows: list[tuple[Ticket, int]] = []
        while queue and len(rows) < self._batch_size:
            ticket = queue[0]
            rows += [(ticket, place) for place in ticket._take(self._batch_size - len(rows))]
            if not ticket.n_waiting:
                queue.popleft()
        self._n_waiting -= len(rows)
        # To the end of the line: other settings have their turn before the rest of these.
        self._waiting.move_to_end(key)
        self._forget_if_empty(key)
        return rows

    def _run(self, batch: Batch) -> None:
        try:
            answers = self._answer(batch)
            self._hand_out(batch, answers)
        except Exception as error:
            tickets = list(dict.fromkeys(ticket for ticket, _ in batch.rows))
            if len(tickets) == 1:
                with self._changed:
                    tickets[0]._fail(error)
                return
            # One request's fault must not be another's: each has its own try.
            for ticket in tickets:
                self._run(Batch(batch.key, [row for row in batch.rows if row[0] is ticket]))

    def _hand_out(self, batch: Batch, answers: Sequence[Any]) -> None:
        if len(answers) != len(batch.rows):
            raise RuntimeError(f"{len(answers)} answers to {len(batch.rows)} inputs")
        with self._changed:  # a ticket must not be cancelled between the look at it and its answer
            for (ticket, place), answer in zip(batch.rows, answers, strict=True):
                if not ticket.cancelled and not ticket.future.done():
                    ticket._answer(place, answer)
