"""The queue: what goes together, what never mixes, what is dropped."""

from __future__ import annotations

import threading
import time

import pytest

from regard.serve.batching import Abandoned, Batch, MicroBatcher, QueueClosed, QueueFull


class Observer:
    def __init__(self):
        self.sizes, self.n_dropped = [], 0

    def batch(self, size, seconds):
        self.sizes.append(size)

    def dropped(self, n_inputs):
        self.n_dropped += n_inputs


class Worker:
    """Answers with (key, input) and notes the batches; stops before each while the gate is shut."""

    def __init__(self):
        self.batches: list[Batch] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, batch):
        self.batches.append(batch)
        assert self.gate.wait(10)
        if "bad" in batch.inputs:
            raise ValueError("a bad input")
        return [(batch.key, given) for given in batch.inputs]


@pytest.fixture
def worker():
    return Worker()


@pytest.fixture
def make(worker):
    made = []

    def build(**options):
        settings = {"batch_size": 4, "max_wait": 0.0, "capacity": 100, "observer": Observer(), **options}
        made.append(MicroBatcher(worker, **settings))
        return made[-1]

    yield build
    worker.gate.set()
    for batcher in made:
        batcher.close()


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_tickets_of_one_key_are_answered_together_and_apart_from_others(make, worker):
    batcher = make(max_wait=0.2)
    tickets = [batcher.submit("ab"[n % 2], [n]) for n in range(6)]
    assert [ticket.future.result(10) for ticket in tickets] == [[("ab"[n % 2], n)] for n in range(6)]
    assert sorted(tuple(batch.inputs) for batch in worker.batches) == [(0, 2, 4), (1, 3, 5)]


def test_full_batch_does_not_wait(make):
    batcher = make(max_wait=60.0)
    started = time.monotonic()
    assert len(batcher.submit("a", list(range(8))).future.result(10)) == 8
    assert time.monotonic() - started < 10


def test_lone_input_waits_no_longer_than_the_bound(make):
    batcher = make(max_wait=0.15)
    started = time.monotonic()
    batcher.submit("a", [1]).future.result(10)
    assert 0.14 <= time.monotonic() - started < 5


def test_ticket_larger_than_a_batch_is_answered_in_order(make, worker):
    batcher = make()
    assert batcher.submit("a", list(range(11))).future.result(10) == [("a", n) for n in range(11)]
    assert [len(batch.rows) for batch in worker.batches] == [4, 4, 3]


def test_other_settings_have_their_turn_before_the_rest_of_a_large_ticket(make, worker):
    worker.gate.clear()
    batcher = make()
    large = batcher.submit("a", list(range(12)))
    small = batcher.submit("b", ["x"])
    worker.gate.set()
    assert small.future.result(10) == [("b", "x")]
    assert large.future.result(10)[-1] == ("a", 11)
    assert [batch.key for batch in worker.batches][:3].count("b") == 1


def test_full_queue_refuses_and_says_when_to_try_again(make, worker):
    worker.gate.clear()
    batcher = make(capacity=5, batch_size=1)
    first = batcher.submit("a", [0])
    wait_for(lambda: batcher.n_waiting == 0)
    kept = batcher.submit("a", [1, 2, 3, 4])
    with pytest.raises(QueueFull) as caught:
        batcher.submit("a", [5, 6])
    assert caught.value.retry_after >= 1
    last = batcher.submit("a", [7])
    worker.gate.set()
    assert [len(ticket.future.result(10)) for ticket in (first, kept, last)] == [1, 4, 1]


def test_cancelled_ticket_leaves_the_queue_and_makes_room(make, worker):
    worker.gate.clear()
    observer = Observer()
    batcher = make(capacity=3, batch_size=1, observer=observer)
    running = batcher.submit("a", [0])
    wait_for(lambda: batcher.n_waiting == 0)
    gone = batcher.submit("a", [1, 2, 3])
    batcher.cancel(gone)
    batcher.cancel(gone)
    assert (batcher.n_waiting, observer.n_dropped) == (0, 3)
    kept = batcher.submit("a", [4, 5, 6])
    worker.gate.set()
    assert kept.future.result(10) == [("a", 4), ("a", 5), ("a", 6)]
    assert running.future.result(10) == [("a", 0)]
    with pytest.raises(Abandoned):
        gone.future.result(10)
    assert [batch.inputs for batch in worker.batches] == [[0], [4], [5], [6]]


def test_ticket_cancelled_while_it_is_answered_spoils_nothing(make, worker):
    worker.gate.clear()
    batcher = make()
    gone, kept = batcher.submit("a", [1, 2]), batcher.submit("a", [3])
    wait_for(lambda: worker.batches)
    batcher.cancel(gone)
    worker.gate.set()
    assert kept.future.result(10) == [("a", 3)]
    assert batcher.submit("a", [4]).future.result(10) == [("a", 4)]


def test_fault_of_one_request_is_not_another_ones(make):
    batcher = make(max_wait=0.2)
    tickets = [batcher.submit("a", [given]) for given in ("good", "bad", "fine")]
    assert tickets[0].future.result(10) == [("a", "good")]
    assert tickets[2].future.result(10) == [("a", "fine")]
    with pytest.raises(ValueError, match="a bad input"):
        tickets[1].future.result(10)


def test_closing_finishes_what_was_taken_and_takes_nothing_new(make, worker):
    worker.gate.clear()
    batcher = make(batch_size=1, max_wait=60.0)
    tickets = [batcher.submit("a", [n]) for n in range(5)]
    closing = threading.Thread(target=batcher.close)
    closing.start()
    wait_for(lambda: not batcher.is_open)
    with pytest.raises(QueueClosed):
        batcher.submit("a", [9])
    worker.gate.set()
    assert [ticket.future.result(10) for ticket in tickets] == [[("a", n)] for n in range(5)]
    closing.join(10)
    assert not closing.is_alive()


def test_steps_go_to_the_ticket_and_place_they_belong_to(make, worker):
    batcher = make(max_wait=0.2)
    seen = []
    one = batcher.submit("a", ["x", "y"], watch=lambda place, step: seen.append((place, step)))
    other = batcher.submit("a", ["z"])
    worker.gate.clear()
    wait_for(lambda: worker.batches)
    for row, step in enumerate(("first", "second", "third")):
        worker.batches[0].show_step(row, step)
    worker.gate.set()
    assert (len(one.future.result(10)), len(other.future.result(10))) == (2, 1)
    assert seen == [(0, "first"), (1, "second")]


def test_wrong_number_of_answers_is_an_error_and_not_a_mix():
    batcher = MicroBatcher(lambda batch: [1, 2, 3], batch_size=4, max_wait=0, capacity=9, observer=Observer())
    with pytest.raises(RuntimeError, match="3 answers to 2 inputs"):
        batcher.submit("a", [1, 2]).future.result(10)
    batcher.close()
