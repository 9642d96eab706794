"""``POST /v1/journeys``: the answers of `regard journeys predict`, within limits, and errors that say what to change."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone

import pytest

from regard.journeys.api import train_journeys
from regard.journeys.log import take_cases
from regard.journeys.settings import make_journey_config
from regard.journeys.synthetic import PLANTED, loan_log
from regard.journeys.tables import predictions_csv
from regard.serve.journeys import read_time
from regard.serve.problems import Problem
from regard.serve.server import open_catalogue
from serve.servers import Server

SETTINGS = {
    "model": {"hidden_size": 16, "embedding_size": 8},
    "training": {"epochs": 4, "minutes": 0, "threads": 1, "prefixes": 2, "patience": 0},
}


@pytest.fixture(scope="module")
def log():
    return loan_log(400, seed=5)


@pytest.fixture(scope="module")
def folder(log, tmp_path_factory):
    made = tmp_path_factory.mktemp("journeys") / "loans"
    train_journeys(log, config=make_journey_config(SETTINGS), outcomes=list(PLANTED)).save(made)
    return made


@pytest.fixture(scope="module")
def server(folder, upper_model):
    catalogue = open_catalogue({"loans": folder, "upper": upper_model}, languages={}, device="cpu")
    with Server(catalogue) as running:
        yield running


def events_of(log, case, size=None):
    """The first events of a case of a log as a client sends them."""
    made = []
    for place in range(log.offsets[case], log.offsets[case + 1])[:size]:
        shown = {a.name: a.shown(place) for a in log.attributes if a.shown(place)}
        numbers = {a.name for a in log.attributes if a.is_number}
        time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=int(log.time[place]))
        made.append(
            {
                "activity": log.activities[log.activity[place]],
                "time": time.isoformat(),
                "attributes": {n: float(v) if n in numbers else v for n, v in shown.items()},
            }
        )
    return made


def test_answers_are_those_of_the_command(server, folder, log):
    from regard.journeys.model import load_journey_model

    model = load_journey_model(folder, device="cpu")
    rows = list(csv.DictReader(io.StringIO(predictions_csv(model, take_cases(log, range(12))))))
    cases = [{"id": f"case {number}", "events": events_of(log, number)} for number in range(12)]
    answer = server.ask("/v1/journeys", {"cases": cases})
    assert answer.status == 200, answer.body
    assert answer.json["model"] == "loans"
    for number, (row, found) in enumerate(zip(rows, answer.json["journeys"], strict=True)):
        assert found["id"] == f"case {number}"
        assert found["next"][0]["activity"] == row["next"]
        assert found["next"][0]["probability"] == pytest.approx(float(row["probability"]), abs=2e-4)
        assert sum(one["probability"] for one in found["next"]) == pytest.approx(1, abs=1e-3)
        assert " > ".join(found["rest"]) == row["rest"]
        assert found["expected_similarity"] == pytest.approx(float(row["expected_similarity"]), abs=1e-3)
        for outcome in found["outcomes"]:
            given = float(row[f"probability of {outcome['outcome']}"])
            assert outcome["probability"] == pytest.approx(given, abs=2e-4)
        assert "next_weights" not in found


def test_requests_at_once_get_their_own_answers(server, log):
    def ask(number):
        body = {"cases": [{"id": str(number), "events": events_of(log, number, 3)}], "draws": 5}
        return server.ask("/v1/journeys", body).json["journeys"][0]

    alone = [ask(number) for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(ask, range(16)))
    for found, expected in zip(together, alone, strict=True):
        assert (found["id"], found["rest"]) == (expected["id"], expected["rest"])
        probs, wanted = ([one["probability"] for one in answer["outcomes"]] for answer in (found, expected))
        assert probs == pytest.approx(wanted, abs=1e-5)


def test_explanation_weighs_each_event(server, log):
    body = {"cases": [{"events": events_of(log, 3, 4)}], "explain": True, "draws": 0}
    [found] = server.ask("/v1/journeys", body).json["journeys"]
    assert (found["id"], found["expected_similarity"]) == (None, None)
    for weights in (found["next_weights"], *(outcome["weights"] for outcome in found["outcomes"])):
        assert len(weights) == 4
        assert sum(weights) == pytest.approx(1, abs=1e-3)


def test_models_are_listed_by_kind_and_asked_by_kind(server, log):
    listed = server.ask("/v1/models").json
    assert [model["name"] for model in listed["models"]] == ["upper"]
    [known] = listed["journeys"]
    assert known["name"] == "loans"
    assert known["activities"]
    assert known["numbers"] == ["amount"]
    assert len(known["outcomes"]) == 3
    assert server.predict("abc")[0]["text"]  # the first model of texts, though another kind comes first
    wrong = server.ask("/v1/predict", {"inputs": ["abc"], "model": "loans"})
    assert (wrong.status, wrong.json["code"]) == (422, "other_kind")
    assert "POST /v1/journeys" in wrong.error
    wrong = server.ask("/v1/journeys", {"cases": [{"events": events_of(log, 0)}], "model": "upper"})
    assert (wrong.status, wrong.json["code"]) == (422, "other_kind")
    wrong = server.ask("/v1/journeys", {"cases": [{"events": events_of(log, 0)}], "model": "loan"})
    assert wrong.status == 404
    assert "loans" in wrong.error


def change(log, **changes):
    events = events_of(log, 0, 3)
    events[1] = {**events[1], **changes}
    return {"cases": [{"events": events_of(log, 1)}, {"events": events}]}


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"activity": "ofer sent"}, "activity", "did you mean"),
        ({"time": "yesterday"}, "time", "ISO 8601"),
        ({"time": -1}, "time", "milliseconds since 1970"),
        ({"time": "1999-01-01"}, "time", "in the order of time"),
        ({"time": 1.5}, "time", "valid"),
        ({"attributes": {"chanel": "web"}}, "attributes", "did you mean"),
        ({"attributes": {"amount": "much"}}, "attributes.amount", "a number"),
        ({"attributes": {"channel": 3}}, "attributes.channel", "a text"),
        ({"when": "now"}, "when", "unknown field"),
    ],
)
def test_what_is_wrong_with_an_event_is_said_with_its_place(server, log, changes, field, says):
    answer = server.ask("/v1/journeys", change(log, **changes))
    assert answer.status == 422, answer.body
    assert answer.json["field"].startswith(f"cases.1.events.1.{field}")
    assert says in answer.error
    if field == "when":
        assert "activity, attributes, time" in answer.error


def test_limits_have_their_own_errors(folder, log):
    catalogue = open_catalogue({"loans": folder}, languages={}, device="cpu")
    case = {"events": events_of(log, 0, 3)}
    with Server(catalogue, max_inputs=2, max_events=2, max_draws=8) as small:
        assert small.ask("/v1/journeys", {"cases": [case] * 3}).json["code"] == "too_many_inputs"
        found = small.ask("/v1/journeys", {"cases": [case]})
        assert (found.status, found.json["field"]) == (422, "cases.0.events")
        two = {"events": case["events"][:2]}
        assert "limit is 8" in small.ask("/v1/journeys", {"cases": [two], "draws": 9}).error
        assert small.ask("/v1/journeys", {"cases": []}).status == 422
        assert small.ask("/v1/journeys", {"cases": [{"events": []}]}).status == 422
        # A server without a model of texts answers all the same.
        assert small.ask("/").status == 200
        assert small.ask("/readyz").status == 200
        assert "no model of texts" in small.ask("/v1/predict", {"inputs": ["a"]}).error
        assert small.ask("/languages").json == []
        schemas = small.ask("/openapi.json").json["components"]["schemas"]
        assert "At most 2." in schemas["JourneyCase"]["properties"]["events"]["description"]


def test_a_server_of_texts_says_that_it_knows_no_journeys(catalogue, log):
    with Server(catalogue) as server:
        answer = server.ask("/v1/journeys", {"cases": [{"events": events_of(log, 0, 2)}]})
    assert (answer.status, answer.json["code"]) == (404, "no_such_model")


def test_a_server_of_texts_loads_nothing_of_journeys(upper_model):
    code = (
        "import sys\nfrom pathlib import Path\nfrom regard.serve.server import open_catalogue\n"
        "import regard.serve.app\n"
        f"open_catalogue({{'upper': Path({str(upper_model)!r})}}, languages={{}}, device='cpu')\n"
        "sys.exit('regard.journeys.model' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "milliseconds", "zone"),
    [
        ("1970-01-02", 86_400_000, 0),
        ("1970-01-01T01:00:00Z", 3_600_000, 0),
        ("1970-01-01 01:00+01:00", 0, 60),
        ("1969-12-31T23:59:59.500000", -500, 0),
        (1234, 1234, 0),
    ],
)
def test_times_are_read(text, milliseconds, zone):
    assert read_time(text, "t") == (milliseconds, zone)


@pytest.mark.parametrize("text", ["", "12", "2026-13-01", "0001-01-01T00:00+14:00x", 10**18])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(Problem, match="is no time"):
        read_time(text, "t")
