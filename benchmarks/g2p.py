"""Pronunciation in 15 languages (SIGMORPHON 2020, task 1) with one preset, and the table of its error rates.

    python benchmarks/g2p.py [--languages ice kor] [--jobs 1] [--set training.epochs=20]

Trains on each language's train file, chooses the checkpoint by the dev file, as the shared task's baselines
did, and reports beam-5 error rates on it. Writes benchmarks/results/g2p.json after each language, and g2p.md.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from machine import RESULTS, describe, shared_data

LANGUAGES = [
    "ady",
    "arm",
    "bul",
    "dut",
    "fre",
    "geo",
    "gre",
    "hin",
    "hun",
    "ice",
    "jpn",
    "kor",
    "lit",
    "rum",
    "vie",
]
# Gorman et al. 2020, table 3: LSTM with attention, word error rate on the test set.
PUBLISHED = dict(
    zip(
        LANGUAGES,
        [28.00, 14.67, 31.11, 16.44, 6.22, 26.44, 18.89, 6.67, 5.33, 10.00, 7.56, 46.89, 19.11, 10.67, 4.67],
        strict=True,
    )
)


def run(language: str, data: Path, settings: dict, threads: int) -> dict:
    """Train and measure one language."""
    import regard
    from regard.data.readers import read_pairs
    from regard.evaluate.metrics import make_metrics

    files = [data / "g2p2020" / f"{language}_{part}.tsv" for part in ("train", "dev")]
    settings = {**settings, "training": {"threads": threads, **settings.get("training", {})}}
    model = regard.train(str(files[0]), dev=str(files[1]), settings=settings)
    dev = list(read_pairs(files[1]))
    began = time.perf_counter()
    outputs = [prediction.text for prediction in model.predict([pair.source for pair in dev], beam=5)]
    decoding = time.perf_counter() - began
    references = [pair.target for pair in dev]
    wer, per = (m.score(outputs, references) for m in make_metrics(["wer", "per"], symbol_target=True))
    training = model.facts.training
    return {
        "language": language,
        "wer": round(wer, 2),
        "per": round(per, 2),
        "n_dev": len(dev),
        "seconds": training["seconds"],
        "steps": training["steps"],
        "decoding_seconds": round(decoding, 2),
        "source_form": model.source_tokenizer.normal_form,
        "parameters": model.model.n_parameters,
        "threads": threads,
    }


def table(rows: list[dict], settings: dict, jobs: int) -> str:
    """The results as Markdown."""
    lines = [
        "# Pronunciation, SIGMORPHON 2020, dev",
        "",
        "Made by `python benchmarks/g2p.py`: the default preset for every language, beam 5, 3,600 training words each.",
        "The checkpoint is chosen on dev, which flatters a little; the published column is the shared task's own",
        "LSTM baseline on *test*, tuned over 36 settings for each language (Gorman et al. 2020), and stands here",
        "for orientation, not as a comparison on the same words.",
        "",
        f"{describe()}. {jobs} at a time, {rows[0]['threads']} threads each. Settings besides the preset: "
        f"{json.dumps(settings) if settings else 'none'}.",
        "",
        "| language | WER % | PER % | published LSTM, test WER % | training s | form |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['language']} | {row['wer']:.2f} | {row['per']:.2f} | {PUBLISHED[row['language']]:.2f} | "
            f"{row['seconds']:.0f} | {row['source_form']} |"
        )
    n = len(rows)
    means = [sum(row[key] for row in rows) / n for key in ("wer", "per", "seconds")]
    published = sum(PUBLISHED[row["language"]] for row in rows) / n
    lines.append(
        f"| **mean of {n}** | **{means[0]:.2f}** | **{means[1]:.2f}** | {published:.2f} | {means[2]:.0f} | |"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the languages and write the table."""
    from regard.cli.common import nested

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, choices=LANGUAGES)
    parser.add_argument("--jobs", type=int, default=1, help="languages trained at the same time")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of regard"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data, settings = shared_data(), nested(arguments.set)
    threads = 0 if arguments.jobs == 1 else 1
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        waiting = [pool.submit(run, language, data, settings, threads) for language in arguments.languages]
        for done in as_completed(waiting):
            rows.append(done.result())
            rows.sort(key=lambda row: row["language"])
            print(json.dumps(rows[-1] if len(rows) == 1 else done.result()), flush=True)
            result = {"machine": describe(), "settings": settings, "rows": rows}
            (arguments.output / "g2p.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            (arguments.output / "g2p.md").write_text(table(rows, settings, arguments.jobs), encoding="utf-8")
    print(table(rows, settings, arguments.jobs))


if __name__ == "__main__":
    main()
