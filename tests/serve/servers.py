"""A server in a thread of the test, and a plain client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from regard.serve.app import create_app
from regard.serve.catalogue import Catalogue
from regard.serve.server import open_catalogue
from regard.serve.settings import make_settings


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of a refusal, whose body has the form that all have."""
        body = self.json
        assert set(body) <= {"error", "code", "field"}, body
        assert body["error"], body
        assert body["code"], body
        return body["error"]


class Server:
    """An application on a free port, for the length of a ``with`` block."""

    def __init__(self, catalogue: Catalogue, **settings: Any) -> None:
        self.app = create_app(catalogue, make_settings(**settings))
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(self.app, access_log=False, log_config=None, ws="none")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self.socket]})

    def __enter__(self) -> Server:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive()

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """GET, or POST if there is a body: bytes as they are, everything else as JSON."""
        sent = {"Content-Type": "application/json"} if body is not None else {}
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(
            method or ("GET" if body is None else "POST"), path, raw, {**sent, **(headers or {})}
        )
        response = connection.getresponse()
        answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        connection.close()
        return answer

    def predict(self, *inputs: str, **settings: Any) -> Any:
        """Predictions of inputs."""
        answer = self.ask("/v1/predict", {"inputs": list(inputs), **settings})
        assert answer.status == 200, answer.body
        return answer.json["predictions"]

    def send_and_leave(self, body: Any) -> None:
        """Send a request to predict and close the connection at once."""
        raw = json.dumps(body).encode()
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            head = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}"
            connection.sendall(f"{head}\r\n\r\n".encode() + raw)

    def metric(self, name: str) -> float:
        """The value of a counter without labels."""
        for line in self.ask("/metrics").body.decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise AssertionError(f"no metric {name}")


def catalogue_of(folder: Path, **languages: tuple[str, str]) -> Catalogue:
    """A catalogue of one model under the name ``upper``."""
    return open_catalogue({"upper": folder}, languages=languages, device="cpu")
