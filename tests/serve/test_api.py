"""The interface: its answers are those of the command line."""

from __future__ import annotations

import json

import pytest

from cli.commands import regard

WORDS = ["abc", "", "hgfedcb", "a", "zz?", "bad cab", "eeee", "  "]


def command_line(model, *options, words=WORDS):
    text = "".join(f"{word}\n" for word in words)
    done = regard("predict", model, "-", "--format", "jsonl", "--threads", 1, *options, stdin=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def same(one, other):
    """Equal but for the last digits of numbers, which depend on how sums were grouped."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, abs=1e-4)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, []),
        ({"beam": 1}, ["--beam", 1]),
        ({"beam": 4, "nbest": 3, "attention": True}, ["--beam", 4, "--nbest", 3, "--attention"]),
        ({"length_penalty": 0.0, "max_len": 3}, ["--length-penalty", 0, "--max-len", 3]),
    ],
)
def test_answers_are_those_of_the_command_line(server, upper_model, settings, options):
    assert same(server.predict(*WORDS, **settings), command_line(upper_model, *options))


def test_score_is_what_decoding_gave(server):
    found = server.predict("abc", "hg")
    pairs = [{"source": one["source"], "target": one["text"]} for one in found]
    scores = server.ask("/v1/score", {"pairs": pairs}).json["scores"]
    assert [one["score"] for one in scores] == pytest.approx([one["score"] for one in found], abs=1e-4)
    assert scores[0]["text"] == "A B C"


def test_score_has_attention_on_request(server):
    answer = server.ask("/v1/score", {"pairs": [{"source": "ab", "target": "A B"}], "attention": True})
    [found] = answer.json["scores"]
    assert [len(found["attention"]), len(found["attention"][0])] == [3, 3]
    assert sum(found["attention"][0]) == pytest.approx(1, abs=1e-3)


def test_explanation_is_the_players_record_of_every_hypothesis(server):
    record = server.ask("/v1/explain", {"input": "abc", "beam": 3}).json
    assert record["schema"] == "regard-decoding/1"
    assert record["source_tokens"] == ["a", "b", "c", "<eos>"]
    outputs = server.predict("abc", beam=3, nbest=3)[0]["alternatives"]
    assert [one["text"] for one in record["hypotheses"]] == [one["text"] for one in outputs]
    given = server.ask("/v1/explain", {"input": "abc", "target": "C B"}).json
    assert [(one["origin"], one["text"]) for one in given["hypotheses"]] == [("target", "C B")]


def events_of(answer):
    """The events of a stream as (name, data)."""
    found = []
    for part in answer.body.decode().strip().split("\n\n"):
        name, data = part.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("beam", [1, 4])
def test_stream_shows_each_step_then_the_same_predictions(server, beam):
    asked = {"inputs": ["abc", "hg"], "beam": beam, "attention": True}
    answer = server.ask("/v1/predict", {**asked, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer)
    assert events[-1] == ("done", {"predictions": 2})
    predictions = [data for name, data in events if name == "prediction"]
    plain = server.ask("/v1/predict", asked).json["predictions"]
    assert same(predictions, [{"input": place, **one} for place, one in enumerate(plain)])
    for place, final in enumerate(plain):
        steps = [data for name, data in events if name == "step" and data["input"] == place]
        assert [step["step"] for step in steps] == list(range(len(steps)))
        whole = [step for step in steps if step["text"] == final["text"]]
        assert whole, "the last step before the end has the whole output"
        assert len(whole[0]["attention"]) == len(final["source_tokens"])
        if beam == 1:
            assert [step["token"] for step in steps] == final["target_tokens"][:-1]
            for step, weights in zip(steps, final["attention"], strict=False):
                assert step["attention"] == pytest.approx(weights, abs=1e-3)


def test_models_are_listed_with_what_can_be_asked(server):
    answer = server.ask("/v1/models").json
    [model] = answer["models"]
    assert (model["name"], model["attention"], model["beam"]) == ("upper", True, 5)
    assert answer["limits"]["max_inputs"] == 256
    assert answer["key_needed"] is False


def test_health_and_metrics(server):
    assert server.ask("/healthz").json == {"status": "ok"}
    assert server.ask("/readyz").json == {"status": "ready"}
    before = server.metric("regard_inputs_total")
    server.predict("abc", "ab")
    assert server.metric("regard_inputs_total") == before + 2
    text = server.ask("/metrics").body.decode()
    assert 'regard_requests_total{route="/v1/predict",status="200"}' in text
    assert server.metric("regard_queue_inputs") == 0


def test_metrics_have_no_more_labels_than_routes(server):
    for number in range(5):
        server.ask(f"/nothing/{number}")
    assert "/nothing" not in server.ask("/metrics").body.decode()
