"""Requests that cannot be answered: 4xx, a body that says what to change, and the next one is answered."""

from __future__ import annotations

import pytest

from serve.servers import Server

GOOD = {"inputs": ["abc"]}
BAD = {
    "empty body": (b"", 422, "the body must be a JSON object"),
    "not JSON": (b"{'inputs': ['secret']}", 400, "not JSON"),
    "cut JSON": (b'{"inputs": ["secret"', 400, "not JSON"),
    "not UTF-8": (b'{"inputs": ["\xff\xfe"]}', 400, "body"),
    "nested too deeply": (b'{"inputs": ' + b"[" * 100_000, 400, "body"),
    "a list": (["secret"], 422, "the body must be a JSON object"),
    "one string": ({"inputs": "secret"}, 422, "inputs: Input should be a valid list"),
    "a number": ({"inputs": [7]}, 422, "inputs.0: Input should be a valid string"),
    "null": ({"inputs": [None]}, 422, "inputs.0: Input should be a valid string"),
    "half a surrogate": (
        b'{"inputs": ["a\\ud800"]}',
        422,
        "inputs.0: character 1 is half of a surrogate pair",
    ),
    "half a surrogate as a name": (b'{"inputs": ["a"], "\\ud800": 1}', 422, "unicode string"),
    "no inputs": ({"inputs": []}, 422, "inputs: List should have at least 1 item"),
    "nothing asked": ({}, 422, "inputs: Field required"),
    "beam as text": ({**GOOD, "beam": "5"}, 422, "beam: Input should be a valid integer"),
    "beam of 0": ({**GOOD, "beam": 0}, 422, "beam: Input should be greater than or equal to 1"),
    "wide beam": ({**GOOD, "beam": 1_000_000}, 422, "beam is 1,000,000, the limit is 20"),
    "huge number": (b'{"inputs": ["a"], "beam": 1' + b"0" * 5000 + b"}", 400, "body"),
    "not finite": (b'{"inputs": ["a"], "length_penalty": NaN}', 422, "length_penalty"),
    "10,000 inputs": ({"inputs": ["secret"] * 10_000}, 413, "inputs has 10,000 items, the limit is 256"),
    "long input": ({"inputs": ["a", "b" * 2_001]}, 422, "inputs.1 has 2,001 characters, the limit is 2,000"),
    "many tokens": ({"inputs": ["a b " * 400]}, 422, "inputs.0 has 1,600 tokens, the model upper takes 500"),
    "unknown field": ({**GOOD, "bem": 3}, 422, "did you mean 'beam'?"),
    "unknown model": ({**GOOD, "model": "uper"}, 404, "the models are upper; did you mean 'upper'?"),
    "more hypotheses than beams": ({**GOOD, "beam": 5, "nbest": 10}, 422, "nbest 10 is more than beam 5"),
    "10 MB": (b'{"inputs": ["' + b"s" * 10_000_000 + b'"]}', 413, "over 1,000,000 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_request_is_told_what_to_change_and_the_next_is_answered(server, name):
    body, status, message = BAD[name]
    answer = server.ask("/v1/predict", body)
    assert answer.status == status, answer.body
    assert message in answer.error
    assert server.predict("abc")[0]["text"] == "A B C"


def test_wrong_method_names_the_right_one(server):
    answer = server.ask("/v1/predict")
    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert answer.error == "this path does not take GET; use POST"


def test_wrong_path_names_the_nearest(server):
    assert "did you mean '/v1/predict'?" in server.ask("/v1/predit", GOOD).error


def test_other_content_type_is_refused(server):
    answer = server.ask("/v1/predict", b"inputs=a", headers={"Content-Type": "text/plain"})
    assert answer.status == 422
    assert "Content-Type: application/json" in answer.error


def test_body_without_a_length_is_limited_too(server):
    def parts():
        for _ in range(40):
            yield b"x" * 50_000

    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    connection.request("POST", "/v1/predict", parts(), headers, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_slow_body_is_refused(catalogue):
    import socket

    with (
        Server(catalogue, timeout=0.3) as server,
        socket.create_connection(("127.0.0.1", server.port)) as slow,
    ):
        slow.settimeout(20)
        slow.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n{")
        assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_fault_is_answered_and_logged_without_the_input(catalogue, caplog, monkeypatch):
    def fail(sources, **_):
        raise RuntimeError(f"cannot decode {sources}")

    with Server(catalogue) as server:
        monkeypatch.setattr(catalogue.default.model, "predict", fail)
        answer = server.ask("/v1/predict", {"inputs": ["secret"]})
        assert (answer.status, answer.json["code"]) == (500, "fault")
        monkeypatch.undo()
        assert server.predict("abc")[0]["text"] == "A B C"
    assert "RuntimeError while answering a request" in caplog.text
    assert "secret" not in caplog.text
