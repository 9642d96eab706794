"""Under load: each answer is its own request's, what nobody waits for is dropped, a full queue says so."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from serve.servers import Server


def wait_for(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def resident() -> int:
    """Memory of this process in bytes, which is the server's too."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def test_answers_never_mix_while_a_third_of_the_clients_hang_up(server, catalogue, upper_pairs):
    words = [source for source, _ in upper_pairs[:200]]
    right = {one.source: one.text for one in catalogue.default.model.predict(words)}

    def client(number):
        """Ten requests, each of its own settings; every third client leaves at once."""
        for place, word in enumerate(words[number::20]):
            body = {"inputs": [word], "beam": 5, "nbest": 1 + place % 2}
            if number % 3 == 2:
                server.send_and_leave(body)
                continue
            [found] = server.predict(word, beam=5, nbest=1 + place % 2)
            assert found["source"] == word
            assert found["text"] == right[word]
        return number

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(client, range(20))) == list(range(20))
    wait_for(lambda: server.metric("regard_queue_inputs") == 0)
    assert server.ask("/readyz").status == 200


def test_requests_that_arrive_together_are_decoded_together(catalogue):
    with Server(catalogue, batch_wait=300) as server, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(server.predict, ["abc", "hg", "b", "ef", "ah", "cc", "d", "fa"]))
        assert [answer[0]["text"] for answer in answers][:2] == ["A B C", "H G"]
        assert server.metric("regard_batch_size_count") < 8


def test_queued_work_of_a_client_that_hung_up_is_dropped(catalogue):
    with Server(catalogue, batch_wait=5_000) as server:
        server.send_and_leave({"inputs": ["abc", "ab"]})
        wait_for(lambda: server.metric("regard_inputs_dropped_total") == 2, 4)
        assert server.metric("regard_queue_inputs") == 0
        assert server.metric("regard_inputs_total") == 0


def test_stream_of_a_client_that_hung_up_is_dropped(catalogue):
    with Server(catalogue, batch_wait=5_000) as server:
        server.send_and_leave({"inputs": ["abc", "ab", "b"], "stream": True})
        wait_for(lambda: server.metric("regard_inputs_dropped_total") == 3, 4)


def test_full_queue_gives_503_and_says_when_to_come_back(catalogue):
    with Server(catalogue, queue=4, max_inputs=4, batch_wait=1_500) as server:
        waiting = threading.Thread(target=server.predict, args=("a", "b", "c", "d"))
        waiting.start()
        wait_for(lambda: server.metric("regard_queue_inputs") == 4)
        for stream in (False, True):
            answer = server.ask("/v1/predict", {"inputs": ["e"], "stream": stream})
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert "try again in" in answer.error
        assert server.ask("/readyz").status == 503
        waiting.join()
        assert server.predict("ab")[0]["text"] == "A B"


def test_answer_that_takes_too_long_gives_504_and_leaves_the_queue(catalogue):
    with Server(catalogue, timeout=0.2, batch_wait=3_000) as server:
        answer = server.ask("/v1/predict", {"inputs": ["abc"]})
        assert answer.status == 504
        assert "no answer within 0.2 s" in answer.error
        assert server.metric("regard_queue_inputs") == 0
        stream = server.ask("/v1/predict", {"inputs": ["abc"], "stream": True})
        assert stream.body.startswith(b"event: error\n")
        assert server.metric("regard_queue_inputs") == 0


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the memory of a process from /proc")
def test_memory_returns_to_where_it_was(server, upper_pairs):
    words = [source for source, _ in upper_pairs]

    def load():
        with ThreadPoolExecutor(8) as pool:
            list(
                pool.map(lambda start: server.predict(*words[start : start + 100]), range(0, len(words), 100))
            )
            list(pool.map(lambda word: server.send_and_leave({"inputs": [word]}), words[:60]))
        wait_for(lambda: server.metric("regard_queue_inputs") == 0)

    for _ in range(3):
        load()
    before = resident()
    for _ in range(6):
        load()
    assert resident() - before < 30_000_000


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/score", "/v1/explain", "/v1/models", "/metrics"])
def test_key_is_asked_for(catalogue, path):
    with Server(catalogue, api_key="correct-horse") as server:
        body = None if path in ("/v1/models", "/metrics") else {}
        for headers in ({}, {"Authorization": "Bearer wrong-horse"}, {"X-API-Key": "é"}):
            answer = server.ask(path, body, headers=headers)
            assert answer.status == 401
            assert "REGARD_API_KEY" in answer.error
        for headers in ({"Authorization": "Bearer correct-horse"}, {"X-API-Key": "correct-horse"}):
            assert server.ask(path, body, headers=headers).status in (200, 422)
        assert server.ask("/healthz").status == 200
