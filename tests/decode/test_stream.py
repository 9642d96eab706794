from __future__ import annotations

import queue
import threading

import pytest

from regard.decode.stream import stream


def upper(group: list[tuple[int, str]]) -> list[str]:
    return [text.upper() for _, text in group]


def numbered(texts):
    return iter(list(enumerate(texts, 1)))


def answers(lines, window=4, answer=upper):
    return list(stream(lines, answer, window=window, blank=lambda text: ""))


def test_each_line_gets_its_answer_in_order_and_blank_ones_are_not_asked():
    asked: list[str] = []

    def note(group):
        asked.extend(text for _, text in group)
        return upper(group)

    texts = ["a", "", " b", "   ", "", "c"] * 7
    found = answers(numbered(texts), answer=note)
    assert [(number, text) for number, text, _ in found] == list(enumerate(texts, 1))
    assert [answer for _, _, answer in found] == [text.upper() if text.strip() else "" for text in texts]
    assert asked == [text for text in texts if text.strip()]


def test_no_line_gives_no_answer():
    assert answers(numbered([])) == []


def test_lines_wait_for_no_other_line():
    lines: queue.Queue[str | None] = queue.Queue()
    made = stream(enumerate(iter(lines.get, None), 1), upper, window=100, blank=lambda text: "")
    for text in ("one", "two", ""):
        lines.put(text)
        assert next(made)[2] == text.upper()
    lines.put(None)
    assert list(made) == []


def test_lines_that_wait_are_answered_together_but_never_more_than_the_window():
    sizes: list[int] = []

    def note(group):
        sizes.append(len(group))
        return upper(group)

    answers(numbered(["x"] * 50), window=8, answer=note)
    assert sum(sizes) == 50
    assert max(sizes) <= 8


def test_error_while_reading_comes_after_the_answers_before_it():
    def broken():
        yield 1, "a"
        yield 2, "b"
        raise ValueError("line 3 is broken")

    made = stream(broken(), upper, window=10, blank=lambda text: "")
    found = []
    with pytest.raises(ValueError, match="line 3"):
        found.extend(iter(made))
    assert [answer for _, _, answer in found] == ["A", "B"]


def test_reader_stops_when_nobody_wants_more():
    before = threading.active_count()

    def endless():
        number = 0
        while True:
            number += 1
            yield number, "x"

    made = stream(endless(), upper, window=3, blank=lambda text: "")
    assert next(made)[2] == "X"
    made.close()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(timeout=5)
    assert threading.active_count() <= before
