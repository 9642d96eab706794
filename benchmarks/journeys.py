"""A bank's journeys (BPI Challenge 2012, W): what comes next and the rest, three seeds, beside baselines of the same run.

    python benchmarks/journeys.py [--seeds 1 2 3] [--minutes 5] [--dev] [--set training.prefixes=4]

Trains on the first two thirds of the cases in the order of the file and measures on the last third, prefixes from two
events on (Tax et al. 2017). Writes benchmarks/results/journeys.json after each seed, and journeys.md. With ``--dev``
the last part of the training cases is measured instead and nothing is written: settings are chosen so, not on the test.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from machine import RESULTS, describe, shared_data

DEV_SHARE = 0.15
"""Share of the training cases, the last ones, that ``--dev`` measures on."""
PUBLISHED = {"next_published": 0.760, "rest_published": 0.353}
NAMES = {
    "next_published": "next, as published",
    "next_honest": "next, honestly",
    "rest_published": "rest, as published",
    "rest_honest": "rest, honestly",
    "rest_goes_on": "rest, known to go on",
}


def run(log, seed: int, settings: dict, n_draws: int, *, dev: bool) -> dict:
    """Train and measure with one seed."""
    import numpy as np

    from regard.journeys.api import split_cases, train_journeys
    from regard.journeys.baselines import all_baselines
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.log import take_cases
    from regard.journeys.settings import make_journey_config

    train, test = split_cases(log, "file")
    if dev:
        train, test = np.split(train, [round(len(train) * (1 - DEV_SHARE))])
    config = make_journey_config({**settings, "training": {**settings["training"], "seed": seed}})
    began = time.perf_counter()
    model = train_journeys(take_cases(log, train), config=config)
    seconds = time.perf_counter() - began
    learnt = model.encode(take_cases(log, train))
    baselines = all_baselines([tuple(learnt.path(case).tolist()) for case in range(len(train))])
    began = time.perf_counter()
    made = evaluate_journeys(model, model.encode(take_cases(log, test)), baselines, n_draws=n_draws)
    return {
        "seed": seed,
        "seconds": round(seconds, 1),
        "evaluation_seconds": round(time.perf_counter() - began, 1),
        "training": model.facts.training,
        "parameters": model.network.n_parameters,
        **made.to_record(),
    }


def table(rows: list[dict], settings: dict, n_draws: int) -> str:
    """The results as Markdown."""
    from regard.journeys.evaluation import EXPLAINED

    first = rows[0]
    lines = [
        "# Journeys, BPI Challenge 2012 (W)",
        "",
        f"Made by `python benchmarks/journeys.py`: one configuration, {len(rows)} seeds, "
        f"{first['n_cases']:,} test cases; {first['n_next_published']:,} prefixes counted as published and",
        f"{first['n_next_honest']:,} honestly. The rest of a journey is the one, of {n_draws} drawn, with the highest "
        "expected similarity. Similarity is 1 - normalised Damerau-Levenshtein distance.",
        "",
        EXPLAINED,
        "",
        f"{describe()}. Settings besides the default: {json.dumps(settings)}.",
        "",
        f"| | {' | '.join(NAMES.values())} | training s |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        values = " | ".join(f"{row['measures']['model'][key]:.4f}" for key in NAMES)
        lines.append(f"| seed {row['seed']} | {values} | {row['seconds']:.0f} |")
    means = {key: sum(row["measures"]["model"][key] for row in rows) / len(rows) for key in NAMES}
    seconds = sum(row["seconds"] for row in rows) / len(rows)
    lines.append(f"| **mean** | {' | '.join(f'**{means[key]:.4f}**' for key in NAMES)} | {seconds:.0f} |")
    for name, measures in first["measures"].items():
        if name != "model":
            lines.append(f"| {name} | {' | '.join(f'{measures[key]:.4f}' for key in NAMES)} | |")
    shown = " | ".join(f"{PUBLISHED[key]:.3f}" if key in PUBLISHED else "" for key in NAMES)
    lines.append(f"| published, LSTM (Tax et al. 2017) | {shown} | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the seeds and write the table."""
    from regard.cli.common import nested
    from regard.journeys.reading import read_log

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--minutes", type=float, default=5.0, help="most minutes of training a seed")
    parser.add_argument("--draws", type=int, default=24, help="rests drawn for each prefix")
    parser.add_argument("--dev", action="store_true", help="measure on a part of the training cases")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    settings = nested(arguments.set)
    settings["training"] = {"minutes": arguments.minutes, **settings.get("training", {})}
    log = read_log(shared_data() / "bpi12w" / "bpi_12_w.csv")
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    for seed in arguments.seeds:
        rows.append(run(log, seed, settings, arguments.draws, dev=arguments.dev))
        print(json.dumps(rows[-1]["measures"]["model"]), flush=True)
        if arguments.dev:
            continue
        result = {"machine": describe(), "settings": settings, "rows": rows}
        (arguments.output / "journeys.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (arguments.output / "journeys.md").write_text(
            table(rows, settings, arguments.draws), encoding="utf-8"
        )
    print(table(rows, settings, arguments.draws))


if __name__ == "__main__":
    main()
