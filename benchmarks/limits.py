"""How far from the machine's limit training is, and how its cost grows.

    python benchmarks/limits.py

The limit is the rate of large matrix products measured in the same run. The work of an update is counted by hand
from the sizes (see `update_flops`): the products of layers, attention and output, forwards and twice that backwards.
Draws benchmarks/results/scaling.png: seconds of an update against one size at a time, with the exponent fitted.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from machine import RESULTS, describe
from regard.config import make_config
from regard.device import autocast
from regard.nn.model import EncoderDecoder
from regard.training.loop import smoothed_loss
from regard.training.optimiser import make_optimiser

BASE = {"source_len": 12, "target_len": 12, "hidden": 512, "batch": 64, "vocabulary": 60, "embedding": 128}
SCALES = {
    "source_len": (6, 12, 24, 48, 96),
    "target_len": (6, 12, 24, 48, 96),
    "hidden": (128, 256, 512, 1024),
    "batch": (16, 32, 64, 128, 256, 512),
    "vocabulary": (60, 500, 2000, 8000, 32000),
}


def gemm_rate(dtype: torch.dtype, size: int = 2048, seconds: float = 0.5, n_trials: int = 4) -> float:
    """Floating-point operations a second of a large matrix product: the best of some trials, as a limit is."""
    one, other = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    one @ other
    rates = []
    for _ in range(n_trials):
        began, n = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            one @ other
            n += 1
        rates.append(n * 2 * size**3 / (time.perf_counter() - began))
    return max(rates)


def update_flops(sizes: dict[str, int]) -> float:
    """Floating-point operations of the matrix products of one update: forwards, and twice that backwards."""
    hidden, embedding, batch = sizes["hidden"], sizes["embedding"], sizes["batch"]
    source, target = batch * sizes["source_len"], batch * sizes["target_len"]
    half = hidden // 2
    forwards = (
        2 * source * 4 * half * (embedding + half)  # the encoder's two directions
        + target * 4 * hidden * (embedding + hidden)  # the decoder
        + source * hidden * hidden  # keys
        + 2 * target * sizes["source_len"] * hidden  # scores and weighted sums
        + target * 2 * hidden * hidden  # [h; c]
        + target * hidden * sizes["vocabulary"]  # words
    )
    return 3 * 2.0 * forwards


def update_seconds(sizes: dict[str, int], dtype: torch.dtype, *, n: int = 5) -> float:
    """Median seconds of one update on random tokens."""
    torch.manual_seed(1)
    config = make_config({"model": {"hidden_size": sizes["hidden"], "embedding_size": sizes["embedding"]}})
    vocabulary = sizes["vocabulary"]
    model = EncoderDecoder(config.model, source_size=60, target_size=vocabulary)
    model.train()
    optimiser = make_optimiser(model, config.training)
    source = torch.randint(3, 60, (sizes["batch"], sizes["source_len"]))
    source[:, -1] = 1
    target = torch.randint(3, vocabulary, (sizes["batch"], sizes["target_len"]))
    lens = torch.full((sizes["batch"],), sizes["source_len"])
    chosen = torch.arange(target.numel())
    times = []
    for number in range(n + 2):
        began = time.perf_counter()
        with autocast(torch.device("cpu"), dtype):
            logits = model(source, lens, target, chosen=chosen).logits
            loss = smoothed_loss(logits, target.flatten(), smoothing=0.1) / target.numel()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if number >= 2:
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def fitted_exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of log seconds over log size, over the larger half, where fixed costs matter least."""
    start = max(0, len(sizes) // 2 - 1)
    return float(np.polyfit(np.log(sizes[start:]), np.log(seconds[start:]), 1)[0])


def measure_limits(output: Path) -> dict:
    """Measure rates and growth; draws the plot and returns values and lines of Markdown."""
    from regard.device import choose_precision

    values: dict = {"machine": describe(), "rates": [], "growth": {}}
    lines = [
        "| products in | sizes | large products, GFLOP/s | in training, GFLOP/s | share |",
        "|---|---|---:|---:|---:|",
    ]
    dtypes = dict.fromkeys([torch.float32, choose_precision("auto", torch.device("cpu"))])
    for dtype in dtypes:
        for change in ({}, {"hidden": 1024, "batch": 256, "embedding": 512}):
            sizes = {**BASE, **change}
            limit = gemm_rate(dtype)
            rate = update_flops(sizes) / update_seconds(sizes, dtype)
            name = str(dtype).removeprefix("torch.")
            values["rates"].append({"precision": name, "sizes": sizes, "limit": limit, "rate": rate})
            lines.append(
                f"| {name} | hidden {sizes['hidden']}, batch {sizes['batch']} | {limit / 1e9:.0f} | {rate / 1e9:.0f} | "
                f"{100 * rate / limit:.0f} % |"
            )
            print(lines[-1], flush=True)
    dtype = list(dtypes)[-1]
    for name, tried in SCALES.items():
        seconds = [update_seconds({**BASE, name: size}, dtype, n=3) for size in tried]
        values["growth"][name] = {
            "sizes": list(tried),
            "seconds": seconds,
            "exponent": fitted_exponent(list(tried), seconds),
        }
        print(name, values["growth"][name], flush=True)
    _draw(values["growth"], output / "scaling.png")
    lines += [
        "",
        "Seconds of an update against one size at a time (the others as in `BASE`), and the fitted exponent:",
        "",
    ]
    lines += ["![scaling](scaling.png)", ""]
    lines += [
        f"- {name.replace('_', ' ')}: {growth['exponent']:.2f}" for name, growth in values["growth"].items()
    ]
    values["lines"] = lines
    return values


def _draw(growth: dict, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.2), layout="constrained")
    axes = figure.subplots(1, len(growth), sharey=True)
    for axis, (name, found) in zip(axes, growth.items(), strict=True):
        axis.loglog(found["sizes"], [1e3 * value for value in found["seconds"]], "o-", base=2)
        axis.set_title(f"{name.replace('_', ' ')}: exponent {found['exponent']:.2f}", fontsize=10)
        axis.set_xticks(found["sizes"], [f"{size:,}" for size in found["sizes"]], fontsize=8)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("milliseconds an update")
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    measure_limits(parser.parse_args().output)
