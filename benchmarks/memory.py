"""Memory while a million lines stream through, and while ever larger files are trained on.

    python benchmarks/memory.py [--lines 1000000] [--pairs 2500000 5000000]

A small model is trained on the built-in corpus `copy`, then

1. `--lines` short lines go through `regard predict` from a pipe; its resident memory is looked at as it answers.
   Reported: memory when the first line came out, the most later, and how long the first line took from the start of
   decoding (the moment the first line was written to a process that had loaded its model).
2. files of `--pairs` generated pairs are trained on for 300 updates; reported is the most memory of the process.

Writes benchmarks/results/memory.md.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import peers
from machine import RESULTS, describe

REGARD = Path(sys.executable).parent / "regard"
SMALL = ["--hidden", "64", "--set", "model.embedding_size=32", "--metric", "loss"]


def resident_mib(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def stream(model: Path, n_lines: int) -> dict[str, float]:
    """Send lines through `predict` and watch it."""
    process = subprocess.Popen(
        [REGARD, "predict", model, "--beam", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # One line first, so that what is timed afterwards is decoding and not loading.
    process.stdin.write(b"a b c\n")
    process.stdin.flush()
    process.stdout.readline()
    began = time.perf_counter()

    def feed() -> None:
        draw = random.Random(1)
        assert process.stdin is not None
        for _ in range(n_lines):
            process.stdin.write((" ".join(draw.choices("abcdefgh", k=draw.randint(2, 6))) + "\n").encode())
        process.stdin.close()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    process.stdout.readline()
    first_seconds = time.perf_counter() - began
    start = most = resident_mib(process.pid)
    n = 1
    for _ in process.stdout:
        n += 1
        if n % 2000 == 0:
            most = max(most, resident_mib(process.pid))
    process.wait()
    if n != n_lines:
        raise SystemExit(f"{n_lines:,} lines in, {n:,} out")
    return {"first": first_seconds, "start": start, "most": most, "seconds": time.perf_counter() - began}


def write_pairs(path: Path, n_pairs: int) -> None:
    """Write generated pairs: up to ten symbols, and their reverse."""
    draw = random.Random(n_pairs)
    with path.open("w", encoding="utf-8") as file:
        for _ in range(n_pairs):
            symbols = draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(4, 10))
            file.write(f"{' '.join(symbols)}\t{' '.join(reversed(symbols))}\n")


def main() -> None:
    """Measure both and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, nargs="*", default=[2_500_000, 5_000_000])
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    lines = ["# Memory", "", "Made by `python benchmarks/memory.py`.", "", f"{describe()}.", ""]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers.run([REGARD, "train", "copy?lengths=2-6", "-o", folder / "model", "--max-steps", "300", *SMALL])
        found = stream(folder / "model", arguments.lines)
        lines += [
            f"`regard predict` of {arguments.lines:,} short lines from a pipe, greedy, in {found['seconds']:.0f} s: the first "
            f"line came {found['first']:.2f} s after the start of decoding; {found['start']:.0f} MiB resident then, at most "
            f"{found['most']:.0f} MiB later ({found['most'] - found['start']:+.0f} MiB).",
            "",
            "| pairs | file, MiB | reading, encoding and 300 updates, s | most memory, MiB |",
            "|---:|---:|---:|---:|",
        ]
        print("\n".join(lines), flush=True)
        for n_pairs in arguments.pairs:
            path = folder / "pairs.tsv"
            write_pairs(path, n_pairs)
            ran = peers.run(
                [
                    REGARD,
                    "train",
                    path,
                    "-o",
                    folder / f"model-{n_pairs}",
                    "--max-steps",
                    "300",
                    "--minutes",
                    "0",
                    *SMALL,
                ]
            )
            size = path.stat().st_size / (1 << 20)
            lines.append(f"| {n_pairs:,} | {size:.0f} | {ran.seconds:.0f} | {ran.peak_mib:.0f} |")
            print(lines[-1], flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "memory.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
