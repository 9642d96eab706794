"""Remake the comparisons of from-seq2seq-to-attention.md and of its Chinese version.

    python docs/figures.py [--small] [--only NAME ...] [--work FOLDER]

Each figure is one command, printed before it runs; finished trainings are found again in the work folder. Tatoeba is
left out, with a word, where the data are not (``REGARD_DATA``). ``--small`` trains for seconds, to see that all commands
work: its figures go to the work folder and not into the document.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images" / "path"


@dataclass(frozen=True)
class Figure:
    """A comparison: its command, what of it goes into the document, and how it is made small."""

    name: str
    data: str
    options: str
    budget: str
    made: tuple[str, ...]
    small: dict[str, str] = field(default_factory=dict)

    def command(self, folder: Path, *, small: bool) -> list[str]:
        """The words of the command line."""
        data = self.data
        options = shlex.split(self.options)
        budget = self.budget
        if small:
            budget = "4s"
            data = self.small.get("data", data)
            for name, value in self.small.items():
                if name in options:
                    options[options.index(name) + 1] = value
        return ["regard", "compare", data, "-o", str(folder), "--budget", budget, *options]


FIGURES = (
    Figure(
        "lists",
        "cldr:zh-en?items=1-12",
        "--variants last,pooled-mean,attention-general --seeds 3 --metrics token,exact "
        "--buckets 6,20,40,60,80,100 --set training.batch_unit=tokens --set training.batch_size=1600 "
        "--set data.target.vocabulary_size=800 --set model.dropout=0.1 --set training.metric=loss "
        "--max-steps 2600 --parallel 2 --threads 1",
        "0",
        ("compare.md", "length-token.png", "curves.png", "costs.png"),
        {"data": "cldr:zh-en?items=1-3&size=400", "--seeds": "1", "--buckets": "20,40", "--parallel": "1"},
    ),
    Figure(
        "copy",
        "copy:5-100",
        "--variants last,projected,pooled-mean,attention-location,attention-general --seeds 1 --metrics token,exact "
        "--set model.dropout=0 --buckets 10,25,50,75,90,100 --max-steps 2000 --parallel 2 --threads 1",
        "0",
        ("compare.md", "length-token.png"),
        {"data": "copy:5-20?size=400", "--buckets": "10,20", "--parallel": "1"},
    ),
    Figure(
        "capacity",
        "copy:1-40",
        "--capacity --variants last --hidden 16,32,64,128,256 --seeds 1 --set model.dropout=0 "
        "--max-steps 2500 --parallel 2 --threads 1",
        "0",
        ("capacity.md", "capacity.png"),
        {"data": "copy:1-10?size=400", "--hidden": "8,16", "--parallel": "1"},
    ),
    Figure(
        "tatoeba",
        "{data}/tatoeba_zh_en/train.tsv",
        "--dev {data}/tatoeba_zh_en/dev.tsv --test {data}/tatoeba_zh_en/dev.tsv "
        "--variants last,attention-general --seeds 1 --metrics bleu,chrf --beam 5 --buckets 5,8,11,15,20 "
        "--max-steps 4500 --parallel 2 --threads 1",
        "0",
        ("compare.md", "length-bleu.png"),
    ),
)


def data_folder() -> Path | None:
    """Where the data that are not ours lie, if they are here."""
    folder = Path(os.environ.get("REGARD_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


def make(figure: Figure, work: Path, images: Path, *, small: bool) -> None:
    """Run a figure's command and keep what the document shows."""
    folder = work / figure.name
    command = figure.command(folder, small=small)
    if any("{data}" in word for word in command):
        data = data_folder()
        if data is None or small:
            print(f"{figure.name}: left out, it needs REGARD_DATA and minutes", flush=True)
            return
        command = [word.replace("{data}", str(data)) for word in command]
    print("$", shlex.join(command), flush=True)
    began = time.perf_counter()
    program = Path(sys.executable).with_name("regard")
    subprocess.run([str(program), *command[1:]], check=True)
    images.mkdir(parents=True, exist_ok=True)
    for name in figure.made:
        shutil.copyfile(folder / name, images / f"{figure.name}-{name}")
    print(f"{figure.name}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Make the figures asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="train for seconds only")
    parser.add_argument("--only", nargs="+", choices=[figure.name for figure in FIGURES])
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "figures")
    arguments = parser.parse_args()
    work = arguments.work / "small" if arguments.small else arguments.work
    images = work / "images" if arguments.small else IMAGES
    for figure in FIGURES:
        if arguments.only is None or figure.name in arguments.only:
            make(figure, work, images, small=arguments.small)


if __name__ == "__main__":
    main()
