"""Other toolkits, each in an environment of its own, trained and run on the same words.

Every function that trains returns pairs a second after a warm-up, read off the toolkit's own log; every one that
decodes returns the seconds of the whole process. A toolkit that cannot be installed or run raises `PeerError`
with its own last words, which go into the report.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from machine import ROOT

PEERS = ROOT / "benchmarks" / ".peers"
ENVIRONMENT = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


class PeerError(Exception):
    """A peer that did not run, and why."""


@dataclass(frozen=True)
class Ran:
    """A finished process: seconds from start to end, and the most memory it held, in MiB."""

    seconds: float
    peak_mib: float


def environment(name: str, *packages: str, without: tuple[str, ...] = ()) -> Path:
    """Make a peer's environment; returns its folder of programs."""
    folder = PEERS / name
    done = folder / ".done"
    if not done.exists():
        commands = [
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin" / "pip"), "install", "--quiet", "torch==2.13.0", *packages],
        ]
        if without:
            commands.append([str(folder / "bin" / "pip"), "uninstall", "--quiet", "--yes", *without])
        for command in commands:
            finished = subprocess.run(command, capture_output=True, text=True)
            if finished.returncode:
                raise PeerError(
                    f"cannot be installed: {(finished.stderr.strip() or '?').splitlines()[-1][:160]}"
                )
        done.touch()
    return folder / "bin"


def run(command: list[object], *, log: Path | None = None, stdin: Path | None = None) -> Ran:
    """Run a program to its end.

    Raises:
        PeerError: It failed; with its last words.
    """
    log = log or PEERS / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with log.open("wb") as out, (stdin or Path(os.devnull)).open("rb") as given:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=ENVIRONMENT,
            cwd=log.parent,  # some write checkpoints wherever they are
            stdin=given,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise PeerError(_last_words(log))
    return Ran(time.perf_counter() - began, usage.ru_maxrss / (1024 if sys.platform != "darwin" else 1 << 20))


def run_for(command: list[object], seconds: float, *, log: Path) -> None:
    """Run a program that would go on, and end it when the time is over.

    Raises:
        PeerError: It ended by itself.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=ENVIRONMENT,
            cwd=log.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return
    raise PeerError(_last_words(log))


def _last_words(log: Path) -> str:
    lines = [
        line.strip()
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines()
        if line.strip()
    ]
    return lines[-1][:200] if lines else "no output"


@dataclass(frozen=True)
class Words:
    """The data: pairs to train on, and words to decode, each symbol apart."""

    train: list[tuple[str, str]]
    test: list[str]

    def write(self, folder: Path) -> None:
        """Write parallel files of blank-separated symbols."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in (
            ("train.src", [" ".join(source) for source, _ in self.train]),
            ("train.tgt", [target for _, target in self.train]),
            ("test.src", [" ".join(source) for source in self.test]),
            ("test.tgt", ["a" for _ in self.test]),
        ):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


class OpenNMT:
    """OpenNMT-py 3.0.4."""

    def __init__(self, words: Words, *, input_feed: int) -> None:
        self.name = f"OpenNMT-py 3.0.4, input_feed {input_feed}"
        self.input_feed = input_feed
        self.folder = PEERS / "speed" / f"opennmt-{input_feed}"
        self.programs = environment("opennmt", "OpenNMT-py==3.0.4")
        words.write(self.folder)
        base = (
            f"save_data: {self.folder}/data\nsrc_vocab: {self.folder}/src.vocab\ntgt_vocab: {self.folder}/tgt.vocab\n"
            "overwrite: true\ndata:\n  corpus:\n"
            f"    path_src: {self.folder}/train.src\n    path_tgt: {self.folder}/train.tgt\n"
        )
        self.base = base
        (self.folder / "vocab.yaml").write_text(base, encoding="utf-8")
        run([self.programs / "onmt_build_vocab", "-config", self.folder / "vocab.yaml", "-n_sample", "-1"])

    def train(self, batch_size: int, seconds: float) -> float:
        """Train for some seconds; returns pairs a second."""
        config = self.folder / f"train-{batch_size}.yaml"
        config.write_text(
            self.base
            + "encoder_type: brnn\ndecoder_type: rnn\nrnn_type: LSTM\nword_vec_size: 128\nhidden_size: 512\n"
            "layers: 1\ndropout: [0.3]\noptim: adam\nlearning_rate: 0.001\nmax_grad_norm: 1\n"
            f"batch_size: {batch_size}\nbatch_type: sents\nglobal_attention: general\n"
            f"input_feed: {self.input_feed}\nlabel_smoothing: 0.1\nworld_size: 1\nnum_workers: 0\n"
            f"save_model: {self.folder}/model\ntrain_steps: 100000\nvalid_steps: 100000\n"
            "save_checkpoint_steps: 100\nkeep_checkpoint: 2\nreport_every: 10\n",
            encoding="utf-8",
        )
        log = self.folder / "log"
        run_for([self.programs / "onmt_train", "-config", config], seconds, log=log)
        pattern = re.compile(r"\[(\S+ \S+) INFO\] Step (\d+)/")
        found = pattern.findall(log.read_text(encoding="utf-8", errors="replace"))
        marks = [(datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f"), int(step)) for stamp, step in found]
        return _rate([(mark.timestamp(), step * batch_size) for mark, step in marks], warm=20 * batch_size)

    def _checkpoint(self) -> Path:
        """The oldest checkpoint that is kept; the newest may have been cut by the kill."""
        saved = sorted(
            self.folder.glob("model_step_*.pt"), key=lambda path: int(path.stem.rpartition("_")[2])
        )
        if not saved:
            raise PeerError("it wrote no checkpoint in this time")
        return saved[0]

    def decode(self, beam: int, source: str = "test.src") -> Ran:
        """Decode the words of a file."""
        command: list[object] = [self.programs / "onmt_translate", "-model", self._checkpoint()]
        command += ["-src", self.folder / source, "-output", self.folder / "out"]
        return run([*command, "-beam_size", beam, "-batch_size", 64])

    def latency(self, n: int) -> list[float]:
        """Seconds of single sentences in process, beam 5."""
        arguments = ["-model", str(self._checkpoint()), "-src", str(self.folder / "one.src")]
        arguments += ["-output", str(self.folder / "one.out"), "-beam_size", "5", "-batch_size", "1"]
        # The calls of its own `translate`, with the model loaded once.
        script = f"""
import json, time
from onmt.bin.translate import _get_parser
from onmt.constants import CorpusTask
from onmt.inputters.dynamic_iterator import build_dynamic_dataset_iter
from onmt.inputters.inputter import IterOnDevice
from onmt.transforms import TransformPipe, get_transforms_cls
from onmt.translate.translator import build_translator
from onmt.utils.parse import ArgumentParser
opt = _get_parser().parse_args({arguments!r})
ArgumentParser.validate_translate_opts(opt)
ArgumentParser._get_all_transform_translate(opt)
ArgumentParser._validate_transforms_opts(opt)
ArgumentParser.validate_translate_opts_dynamic(opt)
translator = build_translator(opt, logger=None, report_score=False)
classes = get_transforms_cls(opt._all_transform)
times = []
for line in open({str(self.folder / "test.src")!r}, encoding="utf-8").read().splitlines()[:{n}]:
    with open(opt.src, "w", encoding="utf-8") as file:
        file.write(line + chr(10))
    began = time.perf_counter()
    data = build_dynamic_dataset_iter(opt, classes, translator.vocabs, task=CorpusTask.INFER, copy=False)
    translator._translate(IterOnDevice(data, opt.gpu), transform=TransformPipe.build_from([]))
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""
        log = self.folder / "latency.log"
        run([self.programs / "python", "-c", script], log=log)
        return _times(log)


class Fairseq:
    """fairseq's LSTM, from the package fairseq-fixed (fairseq 0.12.2 does not import on Python 3.11)."""

    name = "fairseq-fixed 0.12.3.1, lstm"

    def __init__(self, words: Words) -> None:
        self.folder = PEERS / "speed" / "fairseq"
        self.programs = environment("fairseq", "fairseq-fixed==0.12.3.1")
        self.folder.mkdir(parents=True, exist_ok=True)
        for language, side in (("g", 0), ("p", 1)):
            for part, pairs in (("train", words.train), ("test", [(word, "a") for word in words.test])):
                lines = [" ".join(pair[0]) if side == 0 else pair[1] for pair in pairs]
                (self.folder / f"{part}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        shutil.rmtree(self.folder / "bin", ignore_errors=True)  # it refuses to write over its own files
        run(
            [
                self.programs / "fairseq-preprocess",
                "-s",
                "g",
                "-t",
                "p",
                "--trainpref",
                self.folder / "train",
                "--testpref",
                self.folder / "test",
                "--destdir",
                self.folder / "bin",
                "--workers",
                1,
            ]
        )

    def train(self, batch_size: int, seconds: float) -> float:
        """Train for some seconds; returns pairs a second."""
        log = self.folder / "log"
        run_for(
            [
                self.programs / "fairseq-train",
                self.folder / "bin",
                "--arch",
                "lstm",
                "--cpu",
                *[
                    "--encoder-embed-dim",
                    "128",
                    "--encoder-hidden-size",
                    "256",
                    "--encoder-bidirectional",
                    "--encoder-layers",
                    "1",
                ],
                *[
                    "--decoder-embed-dim",
                    "128",
                    "--decoder-hidden-size",
                    "512",
                    "--decoder-layers",
                    "1",
                    "--dropout",
                    "0.3",
                ],
                *[
                    "--decoder-out-embed-dim",
                    "512",
                    "--optimizer",
                    "adam",
                    "--lr",
                    "0.001",
                    "--clip-norm",
                    "1",
                    "--log-format",
                    "json",
                ],
                *[
                    "--criterion",
                    "label_smoothed_cross_entropy",
                    "--label-smoothing",
                    "0.1",
                    "--log-interval",
                    "10",
                ],
                *["--disable-validation", "--save-interval-updates", "100", "--keep-interval-updates", "2"],
                "--batch-size",
                batch_size,
                "--save-dir",
                self.folder / "saved",
                "--no-epoch-checkpoints",
                "--max-epoch",
                1000,
                "--num-workers",
                0,
            ],
            seconds,
            log=log,
        )
        marks = []
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            stamp, _, rest = line.partition(" | INFO | train_inner | ")
            if rest:
                step = int(json.loads(rest)["num_updates"])
                marks.append((datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S").timestamp(), step * batch_size))
        return _rate(marks, warm=20 * batch_size)

    def decode(self, beam: int) -> Ran:
        """Decode the words."""
        saved = sorted((self.folder / "saved").glob("checkpoint_*_*.pt"), key=os.path.getmtime)
        if not saved:
            raise PeerError("it wrote no checkpoint in this time")
        return run(
            [
                self.programs / "fairseq-generate",
                self.folder / "bin",
                "--path",
                saved[0],
                "--cpu",
                "--beam",
                beam,
                "--batch-size",
                64,
                "--gen-subset",
                "test",
                "-s",
                "g",
                "-t",
                "p",
                "--num-workers",
                0,
            ]
        )


class Yoyodyne:
    """yoyodyne's attentional LSTM; its encoder has 2 x 512 units where the others have 2 x 256."""

    name = "yoyodyne 0.5.27, encoder 2 x 512"

    def __init__(self, words: Words) -> None:
        self.folder = PEERS / "speed" / "yoyodyne"
        self.programs = environment("yoyodyne", "yoyodyne==0.5.27", without=("torchvision", "torchaudio"))
        self.folder.mkdir(parents=True, exist_ok=True)
        for part, pairs in (("train", words.train), ("dev", words.train[:64])):
            text = "".join(f"{source}\t{target}\n" for source, target in pairs)
            (self.folder / f"{part}.tsv").write_text(text, encoding="utf-8")

    def train(self, batch_size: int, seconds: float) -> float:
        """Train 5 updates and 25 updates; returns pairs a second of the 20 between (its log tells no times)."""
        del seconds
        few, more = (self._process_seconds(batch_size, steps) for steps in (5, 25))
        return 20 * batch_size / (more - few)

    def _process_seconds(self, batch_size: int, steps: int) -> float:
        config = self.folder / f"steps-{steps}.yaml"
        config.write_text(
            "model:\n  class_path: yoyodyne.models.SoftAttentionLSTMModel\n  init_args:\n"
            "    label_smoothing: 0.1\n    decoder_dropout: 0.3\n    source_encoder:\n"
            "      class_path: yoyodyne.models.modules.LSTMEncoder\n      init_args:\n        dropout: 0.3\n"
            f"data:\n  model_dir: {self.folder}\n  train: {self.folder}/train.tsv\n  val: {self.folder}/dev.tsv\n"
            f"  target_sep: ' '\n  batch_size: {batch_size}\n"
            f"trainer:\n  accelerator: cpu\n  max_steps: {steps}\n  max_epochs: 10\n  limit_val_batches: 0\n"
            "  num_sanity_val_steps: 0\n  enable_progress_bar: false\n  logger: false\n",
            encoding="utf-8",
        )
        return run([self.programs / "yoyodyne", "fit", "--config", config], log=self.folder / "log").seconds


class JoeyNMT:
    """joeynmt's recurrent model, as it is published: its failure is reported as it is."""

    name = "joeynmt 2.3.0"

    def __init__(self, words: Words) -> None:
        self.folder = PEERS / "speed" / "joeynmt"
        self.programs = environment("joeynmt", "joeynmt==2.3.0", "importlib_metadata")
        words.write(self.folder)
        for part in ("train", "dev"):
            pairs = words.train if part == "train" else words.train[:64]
            (self.folder / f"{part}.g").write_text(
                "".join(f"{' '.join(s)}\n" for s, _ in pairs), encoding="utf-8"
            )
            (self.folder / f"{part}.p").write_text("".join(f"{t}\n" for _, t in pairs), encoding="utf-8")

    def train(self, batch_size: int, seconds: float) -> float:
        """Train for some seconds; returns pairs a second."""
        rnn = "type: recurrent, rnn_type: lstm, num_layers: 1, dropout: 0.3, embeddings: {embedding_dim: 128}"
        config = self.folder / "config.yaml"
        config.write_text(
            f"name: g2p\nmodel_dir: {self.folder}/model\nuse_cuda: false\n"
            f"data:\n  train: {self.folder}/train\n  dev: {self.folder}/dev\n  dataset_type: plain\n"
            "  src: {lang: g, level: word, voc_min_freq: 1}\n  trg: {lang: p, level: word, voc_min_freq: 1}\n"
            "testing: {beam_size: 5}\n"
            "training:\n  optimizer: adam\n  learning_rate: 0.001\n  clip_grad_norm: 1\n  label_smoothing: 0.1\n"
            f"  batch_size: {batch_size}\n  batch_type: sentence\n  epochs: 1000\n  logging_freq: 10\n"
            "  validation_freq: 100000\n  scheduling: plateau\n  loss: crossentropy\n  overwrite: true\n"
            f"model:\n  initializer: xavier_uniform\n  encoder: {{{rnn}, hidden_size: 256, bidirectional: true}}\n"
            f"  decoder: {{{rnn}, hidden_size: 512, attention: luong, input_feeding: false, "
            "init_hidden: bridge}\n",
            encoding="utf-8",
        )
        log = self.folder / "log"
        run_for([self.programs / "python", "-m", "joeynmt", "train", config], seconds, log=log)
        pattern = re.compile(r"(\S+ \S+) - INFO .* Step:\s+(\d+)")
        found = pattern.findall(log.read_text(encoding="utf-8", errors="replace"))
        marks = [(datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f"), int(step)) for stamp, step in found]
        return _rate([(mark.timestamp(), step * batch_size) for mark, step in marks], warm=20 * batch_size)


def _rate(marks: list[tuple[float, int]], *, warm: int) -> float:
    """Pairs a second between the first mark after the warm-up and the last."""
    kept = [mark for mark in marks if mark[1] >= warm]
    if len(kept) < 2 or kept[-1][0] == kept[0][0]:
        raise PeerError("too slow to be measured in this time")
    return (kept[-1][1] - kept[0][1]) / (kept[-1][0] - kept[0][0])


def _times(log: Path) -> list[float]:
    times: list[float] = json.loads(log.read_text(encoding="utf-8").strip().splitlines()[-1])
    return times
