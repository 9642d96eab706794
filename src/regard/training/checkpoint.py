"""Checkpoints that no kill can tear: temporary name, fsync, rename, manifest.

A checkpoint is a folder of safetensors and JSON files beside a manifest that names the newest complete one
with the size and SHA-256 of each of its files. The manifest is replaced last, and only then the checkpoint
before it is removed. Nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.atomic import sync_folder, write_text
from regard.errors import ModelFolderError

__all__ = ["Checkpoint", "collect_tensors", "load_checkpoint", "restore_checkpoint", "save_checkpoint"]

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """Contents of a checkpoint: tensors by group (``weights``, ``average``, ``optimiser``), and the state."""

    tensors: dict[str, dict[str, Tensor]]
    state: dict[str, Any]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return (
            hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _sha(file)
        )


def _sha(file: Any) -> str:
    digest = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        digest.update(block)
    return digest.hexdigest()


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, name: str) -> None:
    """Write a checkpoint as ``folder/name-1`` (``-2``, … if that exists) and make it the newest.

    Raises:
        OSError: Writing failed; the checkpoint before it still stands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Never the name of one that stands: until the manifest is replaced, that one is the newest.
    name = next(
        chosen for number in itertools.count(1) if not (folder / (chosen := f"{name}-{number}")).exists()
    )
    temporary = folder / f".{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        for group, tensors in checkpoint.tensors.items():
            save_file(
                {key: value.contiguous() for key, value in tensors.items()},
                temporary / f"{group}.safetensors",
            )
        (temporary / "state.json").write_text(json.dumps(checkpoint.state, indent=1), encoding="utf-8")
        files = {}
        for path in sorted(temporary.iterdir()):
            _sync_file(path)
            files[path.name] = {"size": path.stat().st_size, "sha256": _digest(path)}
        sync_folder(temporary)
        temporary.replace(folder / name)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(folder)
    write_text(folder / MANIFEST, json.dumps({"newest": name, "files": files}, indent=1) + "\n")
    _remove_others(folder, keep=name)


def _remove_others(folder: Path, *, keep: str) -> None:
    for path in folder.iterdir():
        if path.is_dir() and path.name != keep:
            shutil.rmtree(path, ignore_errors=True)
        elif path.name.startswith(".") and path.name.endswith(".tmp"):
            with contextlib.suppress(OSError):  # left by a kill
                path.unlink()


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """Read the newest complete checkpoint, or None if there is none.

    Raises:
        ModelFolderError: What the manifest names is missing or damaged.
    """
    manifest_path = folder / MANIFEST
    if not manifest_path.exists():
        return None
    try:
        manifest = json.loads(manifest_path.read_text(encoding="utf-8"))
        newest, files = folder / str(manifest["newest"]), dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFolderError(f"{manifest_path}: not a manifest of regard ({error})") from None
    for name, facts in files.items():
        path = newest / name
        if not path.is_file() or path.stat().st_size != facts["size"] or _digest(path) != facts["sha256"]:
            raise ModelFolderError(
                f"{path}: missing or changed since it was written; start anew with --force"
            )
    try:
        tensors = {
            Path(name).stem: load_file(newest / name) for name in files if name.endswith(".safetensors")
        }
        state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelFolderError(f"{newest}: cannot be read as a checkpoint ({error})") from None
    return Checkpoint(tensors, state)


def collect_tensors(
    model: nn.Module, average: nn.Module, optimiser: torch.optim.Optimizer
) -> dict[str, dict[str, Tensor]]:
    """Collect all tensors that a resumed training needs, random states included."""
    moments = {
        f"{number}.{key}": torch.as_tensor(value)
        for number, values in optimiser.state_dict()["state"].items()
        for key, value in values.items()
    }
    groups = {
        # Tied parameters are one tensor under two names, which the format does not take twice.
        "weights": _untied(model),
        "optimiser": moments,
        "random": {"cpu": torch.get_rng_state()},
    }
    if average is not model:
        groups["average"] = _untied(average)
    if torch.cuda.is_available():
        groups["random"]["cuda"] = torch.cuda.get_rng_state()
    return groups


def _untied(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def restore_checkpoint(
    checkpoint: Checkpoint, model: nn.Module, average: nn.Module, optimiser: torch.optim.Optimizer
) -> None:
    """Put a checkpoint's tensors back where `collect_tensors` took them from.

    Raises:
        ModelFolderError: They do not fit the model.
    """
    modules = {"weights": model, **({} if average is model else {"average": average})}
    for group, module in modules.items():
        tensors = checkpoint.tensors.get(group, {})
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                if name not in tensors or tensors[name].shape != parameter.shape:
                    raise ModelFolderError(f"the checkpoint's {group} do not fit the model: {name}")
                parameter.copy_(tensors[name])
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in checkpoint.tensors["optimiser"].items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    random = checkpoint.tensors["random"]
    torch.set_rng_state(random["cpu"])
    if "cuda" in random and torch.cuda.is_available():
        torch.cuda.set_rng_state(random["cuda"])
