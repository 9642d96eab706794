"""The Python calls: `regard.train` and `regard.load`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.config import Config, load_settings_file, make_config, merge
from regard.folder import load_model
from regard.seq2seq import Seq2Seq
from regard.training.events import Listener
from regard.training.run import read_training_data, run_training
from regard.training.sources import PairSource

__all__ = ["load", "train"]


def train(
    pairs: PairSource,
    *,
    dev: PairSource | None = None,
    targets: str | Path | None = None,
    dev_targets: str | Path | None = None,
    output: str | Path | None = None,
    preset: str = "default",
    config: Config | str | Path | None = None,
    settings: dict[str, Any] | None = None,
    seed: int | None = None,
    minutes: float | None = None,
    resume: bool = False,
    force: bool = False,
    listeners: Sequence[Listener] = (),
) -> Seq2Seq:
    """Train a model on pairs of sequences.

    Args:
        pairs: A file (TSV, JSON lines, ``.gz``), a built-in corpus such as ``cldr:zh-en``, or (source, target)
            texts.
        dev: Pairs to validate on; some of ``pairs`` are held out if None.
        targets: The parallel file of targets, if ``pairs`` is a file of sources.
        dev_targets: Likewise for ``dev``.
        output: The model folder to make; None keeps the model in memory (see `Seq2Seq.save`).
        preset: Where the settings start from.
        config: A whole configuration, or a file of settings.
        settings: Nested settings that win over all others, such as ``{"model": {"cell": "gru"}}``.
        seed: Of everything random.
        minutes: Most minutes of training; 0 for no limit.
        resume: Go on with the training in ``output``.
        force: Replace the model in ``output``.
        listeners: Called with each event of the training (see `regard.training.events`).

    Raises:
        ConfigError: Settings that cannot work, or an ``output`` that is taken.
        DataError: Pairs that cannot be read.
        TrainingError: The loss is not finite.
    """
    chosen: dict[str, Any] = {"preset": preset}
    if isinstance(config, Config):
        chosen = config.model_dump()
    elif config is not None:
        chosen = merge(chosen, load_settings_file(config))
    shortcuts = {"seed": seed, "minutes": minutes}
    given = {name: value for name, value in shortcuts.items() if value is not None}
    made = make_config(merge(merge(chosen, {"training": given}), settings or {}))
    data = read_training_data(pairs, config=made, target_path=targets, dev=dev, dev_target_path=dev_targets)
    return run_training(data, config=made, folder=output, resume=resume, force=force, listeners=listeners)


def load(folder: str | Path, *, device: str = "auto") -> Seq2Seq:
    """Load a model folder.

    Raises:
        ModelFolderError: What is missing, damaged or of another version, and in which file.
    """
    return load_model(folder, device=device)
