"""Items made beforehand are the same items."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.ahead import ahead


@given(items=st.lists(st.integers(), max_size=20), n=st.integers(1, 5))
def test_same_items_in_the_same_order(items, n):
    assert list(ahead(iter(items), n=n)) == items


def test_an_error_comes_after_the_items_before_it():
    def failing():
        yield 1
        yield 2
        raise ValueError("the third")

    taken = ahead(failing())
    assert [next(taken), next(taken)] == [1, 2]
    with pytest.raises(ValueError, match="the third"):
        next(taken)


def test_items_are_made_while_the_last_one_is_in_use():
    made = [threading.Event() for _ in range(4)]

    def items():
        for number, event in enumerate(made):
            event.set()
            yield number

    taken = ahead(items(), n=2)
    assert next(taken) == 0
    assert made[2].wait(timeout=30)  # nobody asked for it yet
    assert list(taken) == [1, 2, 3]


def test_closed_early_it_stops_its_thread():
    def forever():
        number = 0
        while True:
            yield number
            number += 1

    before = threading.active_count()
    taken = ahead(forever())
    assert [next(taken), next(taken)] == [0, 1]
    assert threading.active_count() == before + 1
    taken.close()
    assert threading.active_count() == before
