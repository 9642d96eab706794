"""Scoring functions, local windows and normalisers at equal budget, on pronunciation and on translation.

    python benchmarks/scores.py [--seeds 3] [--g2p-steps 300] [--translation-steps 300] [--work FOLDER]

In the manner of Luong et al. (2015) and Britz et al. (2017): one model, equal parameters and updates, only the
attention differs; what each costs is in the columns of speed. Runs `regard compare` on the Icelandic words of g2p2020 (``REGARD_DATA``; left out where they are
not) and on `cldr:zh-en`, the expressions that come with the package, and writes benchmarks/results/scores.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from machine import RESULTS, ROOT, describe

DATA = Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
VARIANTS = "attention,windows"
COMMON = "--budget 0 --parallel 2 --threads 1 --set training.batch_unit=tokens --set training.batch_size=1600"
TITLES = {
    "g2p": "Pronunciation of Icelandic words (g2p2020), beam 5: word and phone error rate, lower is better",
    "translation": "Chinese to English (cldr:zh-en), greedy: exact match and chrF, higher is better",
}


def words_of(task: str, steps: int, seeds: int) -> list[str] | None:
    """The command of a task's comparison without its folder, or None where its data are missing."""
    options = ["--variants", VARIANTS, "--seeds", str(seeds), "--max-steps", str(steps), *shlex.split(COMMON)]
    if task == "translation":
        small = ["--set", "data.target.vocabulary_size=800"]
        return ["regard", "compare", "cldr:zh-en", "--metrics", "exact,chrf", *small, *options]
    folder = DATA / "g2p2020"
    train, dev = folder / "ice_train.tsv", folder / "ice_dev.tsv"
    if not train.is_file():
        return None
    data = [str(train), "--test", str(dev), "--metrics", "wer,per", "--beam", "5"]
    return ["regard", "compare", *data, *options]


def shown(words: list[str]) -> str:
    """A command as anyone could give it."""
    return shlex.join(words).replace(str(DATA), "$REGARD_DATA")


def table_of(folder: Path) -> list[str]:
    """The first table of a comparison's report: one row a variant."""
    lines = (folder / "compare.md").read_text(encoding="utf-8").splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("| variant"))
    last = next(place for place in range(first, len(lines)) if not lines[place].startswith("|"))
    return lines[first:last]


def main() -> None:
    """Run both comparisons and write their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--g2p-steps", type=int, default=300, help="updates of each training")
    parser.add_argument("--translation-steps", type=int, default=300, help="updates of each training")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "scores")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = ["# Scoring functions", "", "Made by `python benchmarks/scores.py`. " + describe() + ".", ""]
    made = {}
    for task, steps in (("g2p", arguments.g2p_steps), ("translation", arguments.translation_steps)):
        words = words_of(task, steps, arguments.seeds)
        report += [f"## {TITLES[task]}", ""]
        if words is None:
            report += ["Left out: its data are not here (REGARD_DATA).", ""]
            continue
        folder = arguments.work / task
        print("$", shown(words), flush=True)
        program = Path(sys.executable).with_name("regard")
        subprocess.run([str(program), *words[1:], "-o", str(folder)], check=True)
        made[task] = json.loads((folder / "compare.json").read_text(encoding="utf-8"))
        report += [f"`{shown(words)}`", "", *table_of(folder), ""]
    report.append(
        "In brackets the lowest and the highest of the seeds (of one seed, its 95 % interval over the examples): where "
        "brackets overlap, no difference is shown. So few updates tell how soon each learns, not how good it gets."
    )
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "scores.md").write_text("\n".join(report) + "\n", encoding="utf-8")
    (arguments.output / "scores.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
