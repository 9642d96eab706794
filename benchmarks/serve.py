"""The server under load: answers are right, and requests decoded together are faster than one at a time.

    python benchmarks/serve.py MODEL [--requests 200] [--clients 20] [--batch-size 64]

Two servers of the same model run, one that decodes together and one with ``--batch-size 1``, and get the same load in turns: each
client sends its requests all at once. First a third of the clients hang up without reading, and every
answer to the others is compared with that of ``regard predict``; then nobody hangs up, and the time to answer all
requests is measured, the median of ``--rounds``. Written to ``benchmarks/results/serve.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from machine import describe

RESULTS = Path(__file__).parent / "results" / "serve.json"


def request(source: str, port: int) -> bytes:
    body = json.dumps({"inputs": [source]}).encode()
    head = (
        f"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def ask(source: str, port: int, *, hang_up: bool) -> dict | None:
    """Send one request; the prediction, or None after hanging up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(source, port))
    await writer.drain()
    answer = b"" if hang_up else await reader.read()
    writer.close()
    if hang_up:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise SystemExit(f"unexpected answer: {head.decode()} {body.decode()}")
    return json.loads(body)["predictions"][0]


async def load(sources: list[str], port: int, *, n_clients: int, hang_up: bool) -> list[dict | None]:
    """Each client sends its share of the sources at once; of three clients the third hangs up."""

    async def client(number: int) -> list[dict | None]:
        own = sources[number::n_clients]
        leaves = hang_up and number % 3 == 2
        return await asyncio.gather(*(ask(source, port, hang_up=leaves) for source in own))

    answers: list[dict | None] = [None] * len(sources)
    for number, own in enumerate(await asyncio.gather(*map(client, range(n_clients)))):
        answers[number::n_clients] = own
    return answers


class Server:
    """``regard serve`` in a process of its own, on a free port."""

    def __init__(self, model: Path, *options: object) -> None:
        command = [
            sys.executable,
            "-m",
            "regard",
            "serve",
            model,
            "--port",
            0,
            "--log-level",
            "warning",
            *options,
        ]
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = ""
        while not (found := re.search(r"http://[^/]*:(\d+)/", line)):
            line = self.process.stderr.readline()
            if not line:
                raise SystemExit("the server did not start")
        self.port = int(found[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60):
            raise SystemExit(f"the server ended with {self.process.returncode}")


def expected(model: Path, sources: list[str]) -> list[dict]:
    """What the command line answers."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", "predict", str(model), "-", "--format", "jsonl"],
        input="".join(f"{source}\n" for source in sources).encode(),
        capture_output=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def differences(answers: list[dict | None], right: list[dict]) -> int:
    """Answers that are not those of the command line; scores may differ in their last digits."""
    wrong = 0
    for answer, truth in zip(answers, right, strict=True):
        if answer is not None:
            same = answer["source"] == truth["source"] and answer["text"] == truth["text"]
            wrong += not (same and abs(answer["score"] - truth["score"]) < 1e-4)
    return wrong


def run(
    port: int, sources: list[str], n_clients: int, *, hang_up: bool = False
) -> tuple[float, list[dict | None]]:
    """Load a server once; seconds and answers."""
    started = time.perf_counter()
    answers = asyncio.run(load(sources, port, n_clients=n_clients, hang_up=hang_up))
    return time.perf_counter() - started, answers


def measure(sources: list[str], right: list[dict], options: argparse.Namespace) -> list[dict]:
    """Load both servers in turns, so that what else the machine does meets both alike."""
    together = Server(options.model, "--batch-size", options.batch_size, "--threads", options.threads)
    alone = Server(options.model, "--batch-size", 1, "--batch-wait", 0, "--threads", options.threads)
    results = [{"batch_size": size, "wrong_answers": 0, "seconds": []} for size in (options.batch_size, 1)]
    with together, alone:
        for server, result in zip((together, alone), results, strict=True):
            run(server.port, sources, options.clients)  # warms up
            _, answers = run(server.port, sources, options.clients, hang_up=True)
            result["hung_up"] = sum(answer is None for answer in answers)
            result["answered_meanwhile"] = len(answers) - result["hung_up"]
            result["wrong_answers"] += differences(answers, right)
        for _ in range(options.rounds):
            for server, result in zip((together, alone), results, strict=True):
                seconds, answers = run(server.port, sources, options.clients)
                result["seconds"].append(round(seconds, 3))
                result["wrong_answers"] += differences(answers, right)
    for result in results:
        result["requests_a_second"] = round(len(sources) / statistics.median(result["seconds"]), 1)
    return results


def read_sources(n: int) -> list[str]:
    """Different unseen expressions of the built-in corpus."""
    from regard.config import DataSettings
    from regard.training.sources import read_source

    test = read_source("cldr:zh-en", settings=DataSettings()).test
    return list(dict.fromkeys(source for source, _ in test))[:n]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sources = read_sources(options.requests)
    right = expected(options.model, sources)
    runs = measure(sources, right, options)
    ratio = runs[0]["requests_a_second"] / runs[1]["requests_a_second"]
    result = {
        "machine": describe(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "requests": len(sources),
        "clients": options.clients,
        "runs": runs,
        "ratio": round(ratio, 2),
    }
    options.output.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
