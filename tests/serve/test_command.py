"""``regard serve`` itself: starting, its log, stopping, and what it refuses."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import threading
import time

import pytest

from cli.commands import ENV, error_line, regard, start
from serve.test_bad_requests import BAD


class Started:
    """The command on a free port; its log is read as it comes."""

    def __init__(self, *arguments, env=None):
        self.process = start("serve", *arguments, "--port", 0, "--threads", 1, env=env)
        self.log, self.port = [], 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 60
        while not self.port:
            assert time.monotonic() < deadline, self.log
            assert self.process.poll() is None, self.log
            time.sleep(0.05)

    def _read(self):
        for raw in self.process.stderr:
            line = raw.decode()
            self.log.append(line)
            if found := re.search(r"http://[^/]*:(\d+)/ ", line):
                self.port = int(found[1])

    def ask(self, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(
            "POST" if raw else "GET", path, raw, {"Content-Type": "application/json", **headers}
        )
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.stop()


def test_server_answers_logs_no_input_and_stops_with_0(upper_model):
    with Started(upper_model, "--model", f"other={upper_model}", "--languages", "other=en:de") as server:
        status, body = server.ask("/v1/predict", {"inputs": ["secret"], "model": "other"})
        assert (status, body["model"]) == (200, "other")
        for raw, _, _ in BAD.values():
            server.ask("/v1/predict", raw)
        server.ask("/translate?q=secret", {"q": "secret", "source": "secret", "target": "secret"})
        server.ask("/secret")
        assert [one["name"] for one in server.ask("/v1/models")[1]["models"]] == [upper_model.name, "other"]
        assert server.stop() == 0
    text = "".join(server.log)
    assert "POST /v1/predict 200" in text
    assert "secret" not in text
    assert "Traceback" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_taken_is_finished_before_the_end(upper_model, number):
    with Started(upper_model, "--batch-wait", 1500) as server:
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(server.ask("/v1/predict", {"inputs": ["abc"]}))
        )
        asking.start()
        time.sleep(0.5)
        assert server.stop(number) == 0
        asking.join(10)
    [(status, body)] = answers
    assert (status, body["predictions"][0]["text"]) == (200, "A B C")


def test_key_comes_from_the_environment(upper_model):
    with Started(upper_model, env={**ENV, "REGARD_API_KEY": "correct-horse"}) as server:
        assert server.ask("/v1/models")[0] == 401
        assert server.ask("/v1/models", Authorization="Bearer correct-horse")[0] == 200
        assert server.stop() == 0


def test_port_that_is_taken_is_one_line(upper_model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = regard("serve", upper_model, "--port", port)
    assert done.returncode == 2
    assert f"--port {port}: cannot listen there" in error_line(done)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nothing"], "--model 'nothing': expected NAME=PATH"),
        (["--model", "a b=c"], "expected NAME=PATH"),
        (["--model", "x=/nowhere"], "/nowhere: expected a model folder, found nothing"),
        (["--model", "x=a", "--model", "x=b"], "the name x is taken by a"),
        (["--languages", "english"], "expected NAME=SOURCE:TARGET, such as names=zh:en"),
        (
            ["--languages", "modl=zh:en"],
            "there is no model modl; the models are model; did you mean 'model'?",
        ),
        (["--queue", 3, "--max-inputs", 4], "max_inputs 4 is more than queue 3"),
        (["--timeout", 0], "--timeout: Input should be greater than 0"),
        (["--log-level", "loud"], "--log-level 'loud' is none of debug, info, warning, error"),
    ],
)
def test_bad_option_is_one_line(upper_model, arguments, message):
    done = regard("serve", upper_model, *arguments, "--port", 0)
    assert done.returncode == 2
    assert message in error_line(done)


def test_short_key_is_refused_without_showing_it(upper_model):
    done = regard("serve", upper_model, env={**ENV, "REGARD_API_KEY": "hunter2"})
    assert done.returncode == 2
    assert "REGARD_API_KEY needs at least 8 characters" in error_line(done)
    assert b"hunter2" not in done.stderr


def test_folder_that_is_no_model_is_one_line(tmp_path):
    done = regard("serve", tmp_path)
    assert done.returncode == 2
    assert "not a model folder" in error_line(done)
