"""The model folder: JSON, safetensors and a model card, each file written atomically; nothing is unpickled.

Reading all but the weights needs no torch, so that `regard predict` can do without.

::

    model/
      config.json               all settings
      facts.json                how it was made, and how long outputs may get
      model.safetensors         the best weights
      source.tokenizer.json     how sources are split
      target.tokenizer.json     how targets are split and joined
      README.md                 the model card
      training.jsonl            what happened in the training, line by line
      checkpoint/               what `--resume` goes on from
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from safetensors import SafetensorError, safe_open

from regard.atomic import write_atomically, write_text
from regard.config import Config, load_config
from regard.data.tokenizers import Tokenizer
from regard.errors import ConfigError, ModelFolderError
from regard.facts import Facts

if TYPE_CHECKING:
    from torch import nn

    from regard.nn.model import EncoderDecoder
    from regard.seq2seq import Seq2Seq

__all__ = [
    "load_facts",
    "load_model",
    "load_tokenizers",
    "new_network",
    "save_frame",
    "save_model",
    "save_weights",
]

CONFIG, FACTS, WEIGHTS = "config.json", "facts.json", "model.safetensors"
SOURCE, TARGET = "source.tokenizer.json", "target.tokenizer.json"


def new_network(config: Config, *, source_size: int, target_size: int) -> EncoderDecoder:
    """Make a network with new weights for a configuration and sizes of vocabularies."""
    from regard.nn.model import EncoderDecoder

    return EncoderDecoder(
        config.model,
        source_size=source_size,
        target_size=target_size,
        max_positions=config.data.max_source_len + 1,
    )


def save_frame(
    folder: Path, *, config: Config, source_tokenizer: Tokenizer, target_tokenizer: Tokenizer, facts: Facts
) -> None:
    """Write all but the weights; the folder is made if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    source_tokenizer.save(folder / SOURCE)
    target_tokenizer.save(folder / TARGET)
    write_text(folder / FACTS, facts.model_dump_json(indent=2) + "\n")
    write_text(folder / CONFIG, config.to_json())


def save_weights(folder: Path, model: nn.Module) -> None:
    """Write the weights, float32, without the second name of tied ones."""
    from safetensors.torch import save_file

    tensors = {name: value.detach().cpu().float().contiguous() for name, value in model.named_parameters()}
    write_atomically(folder / WEIGHTS, lambda path: save_file(tensors, path, metadata={"format": "pt"}))


def save_model(model: Seq2Seq, folder: Path) -> None:
    """Write a whole model folder."""
    save_frame(
        folder,
        config=model.config,
        source_tokenizer=model.source_tokenizer,
        target_tokenizer=model.target_tokenizer,
        facts=model.facts,
    )
    save_weights(folder, model.model)
    from regard.card import model_card

    write_text(folder / "README.md", model_card(model))


def load_facts(folder: Path) -> Facts:
    """Read ``facts.json``.

    Raises:
        ModelFolderError: It is missing or damaged.
    """
    path = folder / FACTS
    try:
        return Facts.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ModelFolderError(f"{path}: missing; the model folder is not complete") from None
    except (OSError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise ModelFolderError(f"{path}: not the facts of a model ({reason})") from None


def load_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Read both tokenizers."""
    return Tokenizer.load(folder / SOURCE), Tokenizer.load(folder / TARGET)


def load_settings(folder: Path) -> Config:
    """Read ``config.json``.

    Raises:
        ModelFolderError: The folder is none of a model, or its settings do not fit.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise ModelFolderError(
            f"{folder}: expected a model folder, found {found}; make one with `regard train`"
        )
    if not (folder / CONFIG).is_file():
        raise ModelFolderError(
            f"{folder}: not a model folder, it has no {CONFIG}; make one with `regard train`"
        )
    try:
        return load_config(folder / CONFIG)
    except ConfigError as error:
        raise ModelFolderError(str(error)) from None


def load_weights(path: Path, model: nn.Module) -> None:
    """Read weights into a network.

    Raises:
        ModelFolderError: The file is missing, is not of safetensors, or holds other names or shapes.
    """
    if not path.is_file():
        raise ModelFolderError(f"{path}: missing; the training has not validated once, go on with --resume")
    parameters = dict(model.named_parameters())
    try:
        with safe_open(path, framework="pt") as file:
            names = set(file.keys())
            wrong = sorted(names.symmetric_difference(parameters))
            if wrong:
                raise ModelFolderError(f"{path}: does not fit {CONFIG}, for instance {wrong[0]}")
            for name, parameter in parameters.items():
                tensor = file.get_tensor(name)
                if tensor.shape != parameter.shape:
                    raise ModelFolderError(
                        f"{path}: {name} has shape {tuple(tensor.shape)}, {CONFIG} asks for {tuple(parameter.shape)}"
                    )
                parameter.data.copy_(tensor)
    except (SafetensorError, OSError) as error:
        raise ModelFolderError(f"{path}: not a safetensors file, or damaged ({error})") from None


def load_model(folder: str | Path, *, device: str = "auto") -> Seq2Seq:
    """Read a model folder.

    Raises:
        ModelFolderError: What is missing, damaged or of another version, and in which file.
    """
    from regard.device import choose_device
    from regard.seq2seq import Seq2Seq

    folder = Path(folder)
    config = load_settings(folder)
    source_tokenizer, target_tokenizer = load_tokenizers(folder)
    facts = load_facts(folder)
    network = new_network(config, source_size=len(source_tokenizer), target_size=len(target_tokenizer))
    load_weights(folder / WEIGHTS, network)
    network.to(choose_device(device))
    return Seq2Seq(
        config, network, source_tokenizer=source_tokenizer, target_tokenizer=target_tokenizer, facts=facts
    )


def read_history(folder: Path) -> list[dict[str, object]]:
    """The events of ``training.jsonl``; empty if there is none."""
    path = folder / "training.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
