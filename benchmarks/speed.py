"""Speed beside the peers, on the same words, architecture and batch size, in one run.

    python benchmarks/speed.py [--rounds 3] [--seconds 30]

Data: the 3,600 Icelandic words of g2p2020 to train on; to decode, 4,500 words (those, the dev words, and again the
first). Model: LSTM encoder 2 x 256, decoder 512, embeddings 128, general attention, dropout 0.3, label smoothing 0.1.
Rounds are interleaved: each system once, then again. Writes benchmarks/results/speed.md and speed.json.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import peers
from machine import RESULTS, ROOT, describe, shared_data
from peers import Fairseq, JoeyNMT, OpenNMT, PeerError, Ran, Words, Yoyodyne

WORK = peers.PEERS / "speed"
PROGRAMS = Path(sys.executable).parent
MODEL = {
    "model.hidden_size": 512,
    "model.embedding_size": 128,
    "model.dropout": 0.3,
    "training.label_smoothing": 0.1,
    "training.metric": "loss",
    "training.validate_every": 100_000,
    "training.patience": 0,
    "training.epochs": 100_000,
    "data.target.tokenizer": "space",
    "data.source.tokenizer": "char",
}


class Regard:
    """Ours, through the command line, in one precision."""

    def __init__(self, words: Words, *, precision: str, decoding: str) -> None:
        self.name = f"regard, {precision}"
        self.precision, self.decoding = precision, decoding
        self.folder = WORK / f"regard-{precision}"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "train.tsv").write_text(
            "".join(f"{source}\t{target}\n" for source, target in words.train), encoding="utf-8"
        )
        (self.folder / "test.txt").write_text("".join(f"{word}\n" for word in words.test), encoding="utf-8")
        (self.folder / "one.txt").write_text(f"{words.test[0]}\n", encoding="utf-8")

    def train(self, batch_size: int, seconds: float, **changes: object) -> float:
        """Train for some seconds; returns pairs a second."""
        settings = {
            **MODEL,
            "training.precision": self.precision,
            "training.batch_size": batch_size,
            **changes,
        }
        model = self.folder / "model"
        options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        peers.run(
            [
                PROGRAMS / "regard",
                "train",
                self.folder / "train.tsv",
                "--dev",
                self.folder / "train.tsv",
                "-o",
                model,
                "--force",
                "--minutes",
                seconds / 60,
                *options,
            ],
            log=self.folder / "log",
        )
        events = map(json.loads, (model / "training.jsonl").read_text(encoding="utf-8").splitlines())
        marks = [
            (datetime.fromisoformat(event["time"]).timestamp(), event["step"] * batch_size)
            for event in events
            if event["event"] == "progress"
        ]
        return peers._rate(marks[:-1], warm=20 * batch_size)

    def decode(self, beam: int, source: str = "test.txt") -> Ran:
        """Decode the words of a file; standard output is thrown away."""
        return peers.run(
            [
                PROGRAMS / "regard",
                "predict",
                self.folder / "model",
                self.folder / source,
                "--beam",
                beam,
                "--precision",
                self.decoding,
                "-o",
                self.folder / "out",
            ],
            log=self.folder / "decode.log",
        )

    def latency(self, n: int) -> list[float]:
        """Seconds of single sentences in process, beam 5."""
        script = f"""
import json, time, regard
model = regard.load({str(self.folder / "model")!r})
lines = open({str(self.folder / "test.txt")!r}, encoding="utf-8").read().splitlines()[:{n}]
times = []
for line in lines:
    began = time.perf_counter()
    model.predict([line], beam=5, precision={self.decoding!r})
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""
        log = self.folder / "latency.log"
        peers.run([PROGRAMS / "python", "-c", script], log=log)
        return peers._times(log)


def words() -> Words:
    """The data."""
    from regard.data.readers import read_pairs

    folder = shared_data() / "g2p2020"
    train = [(pair.source, pair.target) for pair in read_pairs(folder / "ice_train.tsv")]
    dev = [pair.source for pair in read_pairs(folder / "ice_dev.tsv")]
    sources = [source for source, _ in train] + dev
    return Words(train, (sources + sources)[:4500])


class Measurements:
    """Values by table and system; what failed, and why."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.failed: dict[str, str] = {}
        self.kept = ""
        """Where the training figures are from, if not from this run."""

    def keep_training(self, path: Path) -> dict:
        """Take over what a run before has measured of training; returns its limits."""
        before = json.loads(path.read_text(encoding="utf-8"))
        self.kept = before.get("training") or before["machine"]
        for table, found in before["measured"].items():
            if table.startswith("train"):
                self.values[table] = defaultdict(list, found)
        self.failed = {name: why for name, why in before["failed"].items() if name.startswith("train")}
        return dict(before["limits"])

    def take(self, table: str, name: str, measure: Callable[[], float | list[float]]) -> None:
        """Measure once, or note why it could not be."""
        try:
            made = measure()
        except PeerError as error:
            self.failed[f"{table}, {name}"] = str(error)
            print(f"{table:28} {name:36} failed: {error}", flush=True)
            return
        self.values[table][name] += made if isinstance(made, list) else [made]
        last = self.values[table][name][-1]
        print(f"{table:28} {name:36} {last:.4g}", flush=True)

    def median(self, table: str, name: str) -> float | None:
        """The median of all rounds."""
        found = self.values.get(table, {}).get(name)
        return statistics.median(found) if found else None


def systems(data: Words, measured: Measurements) -> tuple[list[Regard], list[object]]:
    """Ours and the peers that can be installed."""
    ours = [
        Regard(data, precision="auto", decoding="bfloat16"),
        Regard(data, precision="float32", decoding="float32"),
    ]
    makers: list[tuple[str, Callable[[], object]]] = [
        ("OpenNMT-py", lambda: OpenNMT(data, input_feed=0)),
        ("OpenNMT-py with input feeding", lambda: OpenNMT(data, input_feed=1)),
        ("fairseq", lambda: Fairseq(data)),
        ("yoyodyne", lambda: Yoyodyne(data)),
        ("joeynmt", lambda: JoeyNMT(data)),
    ]
    others = []
    for name, make in makers:
        try:
            others.append(make())
        except PeerError as error:
            measured.failed[name] = str(error)
            print(f"{name}: {error}", flush=True)
    return ours, others


def training_round(ours: list[Regard], others: list, measured: Measurements, seconds: float) -> None:
    """Train each system once: at batch 64, then the fastest of both sides at larger ones."""
    for system in (*ours, *others):
        measured.take("train, batch 64", system.name, lambda system=system: system.train(64, seconds))
    for batch_size in (256, 512):
        for system in (ours[0], *others[:1]):
            table = f"train, batch {batch_size}"
            # Larger batches take longer until the same number of updates is over.
            longer = seconds * (1 + batch_size / 256)
            measured.take(table, system.name, lambda s=system, b=batch_size, t=longer: s.train(b, t))
    # yoyodyne's encoder has 2 x 512 units; ours gets a decoder of 1,024 with it, where theirs has 512.
    larger = {"model.hidden_size": 1024}
    name = f"{ours[0].name}, encoder 2 x 512"
    measured.take("train, batch 64", name, lambda: ours[0].train(64, seconds, **larger))


def make_models(ours: list[Regard], others: list, measured: Measurements, seconds: float) -> list:
    """Train each system that decodes for the same time; returns them. Hardly trained models write too much."""
    made = []
    for system in (*ours, *others):
        if not hasattr(system, "decode"):
            continue
        try:
            system.train(64, seconds)
        except PeerError as error:
            measured.failed[f"decode, {system.name}"] = str(error)
        else:
            made.append(system)
    return made


def decoding_round(systems: list, measured: Measurements, wide: Regard, *, first: bool) -> None:
    """Decode once with each system."""
    for system in systems:
        for beam in (5, 1):
            name = f"decode, beam {beam}"
            ran: list[Ran] = []

            def seconds(system: Any = system, beam: int = beam, ran: list[Ran] = ran) -> float:
                ran.append(system.decode(beam))
                return ran[-1].seconds

            measured.take(name, system.name, seconds)
            if ran:
                measured.take(f"memory, beam {beam}", system.name, lambda ran=ran: ran[-1].peak_mib)
        if first and hasattr(system, "latency"):
            measured.take("latency", system.name, lambda system=system: system.latency(200)[20:])
    measured.take("start-up, help", "regard", lambda: peers.run([PROGRAMS / "regard", "--help"]).seconds)
    measured.take("start-up, one word", wide.name, lambda: wide.decode(5, "one.txt").seconds)


def table(
    measured: Measurements, names: list[str], *, unit: str, against: str, more_is_better: bool
) -> list[str]:
    """Some tables as one of Markdown: medians, lowest and highest, and the ratio to a system."""
    rows = [
        f"| measured | system | median, {unit} | lowest – highest | times {against} |",
        "|---|---|---:|---:|---:|",
    ]
    for name in names:
        base = measured.median(name, against)
        for system, found in measured.values.get(name, {}).items():
            middle = statistics.median(found)
            ratio = ""
            if base is not None:
                ratio = f"{middle / base if more_is_better else base / middle:.2f}"
            rows.append(
                f"| {name} | {system} | {middle:.4g} | {min(found):.4g} – {max(found):.4g} | {ratio} |"
            )
    return rows


def command() -> str:
    """The command line of this run."""
    return shlex.join(["python", "benchmarks/speed.py", *sys.argv[1:]])


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def report(measured: Measurements, limits: dict, rounds: int) -> str:
    """The results as Markdown."""
    base = "OpenNMT-py 3.0.4, input_feed 0"
    lines = [
        "# Speed",
        "",
        f"Made by `{command()}`, all in one run, {rounds} rounds, interleaved. ",
    ]
    lines += [f"{describe()}.", "", (__doc__ or "").split("\n\n")[2].replace("\n", " "), ""]
    lines += ["## Training, pairs a second", ""]
    if measured.kept:
        lines += [f"Of the run before, as is the limit below: {measured.kept}.", ""]
    trains = [name for name in measured.values if name.startswith("train")]
    lines += table(measured, trains, unit="pairs/s", against=base, more_is_better=True)
    best = {
        system: max((measured.median(name, system) or 0.0, name) for name in trains)
        for system in ("regard, auto", base)
    }
    if all(value for value, _ in best.values()):
        ours, theirs = best["regard, auto"], best[base]
        lines += [
            "",
            f"Each at its own best batch size: {ours[0]:.0f} ({ours[1]}) against {theirs[0]:.0f} ({theirs[1]}), "
            f"{ours[0] / theirs[0]:.2f} times.",
        ]
    same = [
        measured.median("train, batch 64", name) for name in ("regard, auto, encoder 2 x 512", Yoyodyne.name)
    ]
    if same[0] and same[1]:
        lines += ["", f"At yoyodyne's encoder size: {same[0] / same[1]:.1f} times."]
    lines += ["", "## Decoding 4,500 words, whole process", ""]
    decodes = [name for name in measured.values if name.startswith("decode")]
    lines += table(measured, decodes, unit="s", against=base, more_is_better=False)
    memories = [name for name in measured.values if name.startswith("memory")]
    lines += ["", "Peak memory of these processes:", ""]
    lines += table(measured, memories, unit="MiB", against=base, more_is_better=False)
    lines += ["", "`regard, auto` decodes with `--precision bfloat16`, `regard, float32` in float32.", ""]
    lines += ["## One sentence in process, beam 5", "", "| system | p50, ms | p99, ms |", "|---|---:|---:|"]
    for system, found in measured.values.get("latency", {}).items():
        lines.append(
            f"| {system} | {1e3 * statistics.median(found):.2f} | {1e3 * percentile(found, 0.99):.2f} |"
        )
    lines += ["", "## Start-up", ""]
    starts = [name for name in measured.values if name.startswith("start")]
    lines += table(measured, starts, unit="s", against="-", more_is_better=False)
    if limits:
        lines += ["", "## The limit", "", *limits["lines"]]
    if measured.failed:
        lines += ["", "## Not measured", ""]
        lines += [f"- {name}: {why}" for name, why in measured.failed.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run all rounds and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30.0, help="training time of each system and round")
    parser.add_argument(
        "--model-seconds", type=float, default=60.0, help="training time of the models that decode"
    )
    parser.add_argument("--no-limits", action="store_true")
    parser.add_argument(
        "--decoding-only",
        action="store_true",
        help="keep the training figures and limits of the last run; its date is written with them",
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    measured = Measurements()
    ours, others = systems(words(), measured)
    limits: dict = {}
    if arguments.decoding_only:
        limits.update(measured.keep_training(arguments.output / "speed.json"))

    def write() -> None:
        values = {
            "machine": describe(),
            "training": measured.kept,
            "measured": measured.values,
            "failed": measured.failed,
            "limits": limits,
        }
        (arguments.output / "speed.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        text = report(measured, limits, arguments.rounds)
        (arguments.output / "speed.md").write_text(text, encoding="utf-8")

    for number in range(0 if arguments.decoding_only else arguments.rounds):
        print(f"round {number + 1}", flush=True)
        training_round(ours, others, measured, arguments.seconds)
        write()
    decoders = make_models(ours, others, measured, arguments.model_seconds)
    for number in range(arguments.rounds):
        decoding_round(decoders, measured, ours[1], first=number == 0)
        write()
    if not (arguments.no_limits or arguments.decoding_only):
        from limits import measure_limits

        limits.update(measure_limits(arguments.output))
        write()
    print(report(measured, limits, arguments.rounds))
    print(f"{(time.perf_counter() - began) / 60:.0f} minutes; {ROOT}", file=sys.stderr)


if __name__ == "__main__":
    main()
