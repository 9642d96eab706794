"""What is foretold of a journey depends on its events alone: not on the log, nor on the way they came."""

from __future__ import annotations

import numpy as np
import pytest

from regard.errors import DataError
from regard.journeys.foretelling import GivenEvent, foretell, log_of_events
from regard.journeys.log import EventLog, take_cases
from regard.journeys.reading import ReadingOptions, read_log
from regard.journeys.synthetic import log_to_csv


def begun(log: EventLog, case: int, size: int) -> list[GivenEvent]:
    """The first events of a case, as a client would give them."""
    given = []
    for place in range(log.offsets[case], log.offsets[case] + size):
        shown = {a.name: a.shown(place) for a in log.attributes if a.shown(place)}
        given.append(
            GivenEvent(
                activity=log.activities[log.activity[place]],
                time=int(log.time[place]),
                categories={name: value for name, value in shown.items() if name != "amount"},
                numbers={"amount": float(shown["amount"])} if "amount" in shown else {},
            )
        )
    return given


def assert_same(found, other):
    assert found.rest == other.rest
    assert found.expected == pytest.approx(other.expected)
    assert [name for name, _ in found.next[:3]] == [name for name, _ in other.next[:3]]
    assert [p for _, p in found.outcomes] == pytest.approx([p for _, p in other.outcomes], abs=1e-5)


def test_what_is_foretold_depends_neither_on_the_place_in_the_log_nor_on_the_way_it_came(planted, tmp_path):
    model, test = planted
    cases = [5, 2, 11]
    given = [begun(test, case, 3) for case in cases]
    together = foretell(model, log_of_events(model.vocabulary, given), n_draws=7)
    for events, found in zip(given, together, strict=True):
        [alone] = foretell(model, log_of_events(model.vocabulary, [events]), n_draws=7)
        assert_same(alone, found)
    whole = foretell(model, take_cases(test, cases), n_draws=7)
    again = log_of_events(model.vocabulary, [begun(test, c, int(test.lengths[c])) for c in cases])
    for found, other in zip(whole, foretell(model, again, n_draws=7), strict=True):
        assert_same(found, other)


def test_a_log_of_few_cases_is_read_with_the_columns_that_the_model_knows(planted, tmp_path):
    model, test = planted
    path = tmp_path / "one.csv"
    path.write_text(log_to_csv(take_cases(test, [4])), encoding="utf-8")
    read = read_log(path, ReadingOptions(kinds=model.kinds))
    assert {a.name: a.is_number for a in read.attributes} == {
        "channel": False,
        "purpose": False,
        "amount": True,
    }
    [found], [expected] = foretell(model, read), foretell(model, take_cases(test, [4]))
    assert_same(found, expected)


def test_a_running_case_may_have_one_event_and_a_number_must_be_one(planted, tmp_path):
    model, _ = planted
    path = tmp_path / "one.csv"
    row = "a,application submitted,2024-03-01 10:00,web,{}\n"
    path.write_text("case,activity,time,channel,amount\n" + row.format("900"), encoding="utf-8")
    read = read_log(path, ReadingOptions(kinds=model.kinds))
    assert len(foretell(model, read)) == 1
    path.write_text("case,activity,time,channel,amount\n" + row.format("much"), encoding="utf-8")
    with pytest.raises(DataError, match="'much' is no number; the model knows numbers there"):
        read_log(path, ReadingOptions(kinds=model.kinds))


def test_weights_are_those_of_all_events_also_of_those_too_old_to_be_read(planted):
    model, test = planted
    events = begun(test, 3, 3)
    most = model.config.model.max_events
    many = [events[0]] + [
        GivenEvent(e.activity, e.time) for _ in range(most // 2 + 3) for e in (events[2],) * 2
    ]
    [short, long] = foretell(model, log_of_events(model.vocabulary, [events, many]), n_draws=0, weights=True)
    assert short.next_weights.shape == (3,)
    assert short.outcome_weights.shape == (3, 3)
    assert short.expected is None
    assert long.n_events == len(many) > most
    assert long.outcome_weights.shape == (3, len(many))
    assert not long.next_weights[: len(many) - most].any()
    assert np.allclose([long.next_weights.sum(), *long.outcome_weights.sum(-1)], 1, atol=1e-4)
