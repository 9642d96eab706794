"""A model folder that predicts without torch, which takes longer to start than most predictions take."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from regard.answering import Predictor, Watcher, decoding_settings
from regard.config import Config, DecodingSettings
from regard.decode.hypothesis import Hypothesis
from regard.errors import ModelFolderError
from regard.folder import WEIGHTS, load_facts, load_settings, load_tokenizers
from regard.native.engine import NativeEngine, make_native_engine, uses_native
from regard.nn.ids import EOS

__all__ = ["NativePredictor", "open_native"]

_ACCELERATORS = ("/dev/nvidiactl", "/dev/kfd", "/dev/accel")


class NativePredictor(Predictor):
    """A model that the compiled library searches with; see `Predictor`.

    Args:
        config: All settings.
        engine: The engine, made for one precision.
        parts: The other arguments of `Predictor`.
    """

    def __init__(self, config: Config, engine: NativeEngine, **parts: Any) -> None:
        super().__init__(config, **parts)
        self._engine = engine

    def _search(
        self,
        sources: Sequence[list[int]],
        *,
        settings: DecodingSettings,
        max_lens: Sequence[int],
        numbers: Sequence[int],
        watch: Watcher | None,
    ) -> list[list[Hypothesis]]:
        assert watch is None
        return self._engine.search([[*ids, EOS] for ids in sources], settings=settings, max_lens=max_lens)

    def _together(self, settings: DecodingSettings) -> int:
        """All that wait: the library divides them by itself."""
        return self._window(settings)


def _may_have_accelerator() -> bool:
    """Whether ``auto`` might choose another device than the processor."""
    return sys.platform == "darwin" or any(Path(path).exists() for path in _ACCELERATORS)


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; the training has not validated once, go on with --resume")
    try:
        with safe_open(path, framework="np") as file:
            return {name: file.get_tensor(name).astype(np.float32, copy=False) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ModelFolderError(f"{path}: not a safetensors file, or damaged ({error})") from None


def open_native(
    folder: Path, *, device: str, threads: int, overrides: dict[str, Any]
) -> NativePredictor | None:
    """Open a model for predictions with some settings; None where torch must do it.

    Args:
        folder: The model folder.
        device: As it was asked for; ``auto`` is the processor where there is nothing else.
        threads: 0 for all cores.
        overrides: Settings of the decoding.

    Raises:
        ModelFolderError: The folder is damaged.
        ConfigError: A setting is unknown or does not fit.
    """
    if not (device == "cpu" or (device == "auto" and not _may_have_accelerator())):
        return None
    config = load_settings(folder)
    settings = decoding_settings(config, **overrides)
    if not uses_native(config.model, settings):
        return None
    source_tokenizer, target_tokenizer = load_tokenizers(folder)
    facts = load_facts(folder)
    weights = _read_weights(folder / WEIGHTS)
    sizes = {"encoder": len(source_tokenizer), "decoder": len(target_tokenizer)}
    if any(len(weights.get(f"{side}.embedding.weight", ())) != size for side, size in sizes.items()):
        return None
    try:
        engine = make_native_engine(
            config.model, weights, precision=settings.precision, threads=threads or _processors()
        )
    except ValueError:
        return None  # names or shapes do not fit; the path with torch says which
    return NativePredictor(
        config, engine, source_tokenizer=source_tokenizer, target_tokenizer=target_tokenizer, facts=facts
    )
