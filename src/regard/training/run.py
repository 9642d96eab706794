"""A whole training: read, split, tokenize, train, keep; new or resumed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

import regard
from regard.atomic import write_text
from regard.config import Config
from regard.data.batches import Batches, PairShards
from regard.data.pairs import EncodedPairs, split_held_out
from regard.data.store import PairStore, store_key, write_store
from regard.data.tokenizers import Tokenizer
from regard.device import choose_device, choose_precision, keep_freed_memory, set_threads
from regard.errors import ConfigError, DataError
from regard.facts import Facts, LengthLimit
from regard.folder import load_facts, load_settings, load_tokenizers, new_network, save_frame, save_weights
from regard.seq2seq import Seq2Seq
from regard.training.checkpoint import Checkpoint, load_checkpoint
from regard.training.events import Event, Listener, Message
from regard.training.listeners import JsonLines, TensorBoard
from regard.training.loop import Trainer
from regard.training.sources import FilePairs, Pairs, PairSource, open_large, read_source
from regard.training.state import TrainingState
from regard.training.validation import make_validation

__all__ = ["TrainingData", "read_training_data", "run_training"]

STORES = "data"
"""Where in a model folder the encoded pairs of a large file are kept."""

_MAY_CHANGE = ("epochs", "max_steps", "minutes", "patience", "threads", "tensorboard", "save_every", "device")
"""Training settings that a resumed run may have otherwise than the run it goes on with."""


@dataclass
class TrainingData:
    """Texts to train on and to validate on, and what is to be said about them."""

    name: str
    train: Pairs | FilePairs
    dev: list[tuple[str, str]]
    messages: list[Message] = field(default_factory=list)
    source: str | None = None
    """What to read again to go on with a training: a path or a corpus; None if there is no one such thing."""


def read_training_data(
    source: PairSource,
    *,
    config: Config,
    target_path: str | Path | None = None,
    dev: PairSource | None = None,
    dev_target_path: str | Path | None = None,
    format: str | None = None,
) -> TrainingData:
    """Read all pairs, and hold some out if no dev data are given.

    Raises:
        DataError: A file cannot be read.
    """
    train: Pairs | FilePairs
    large = open_large(source, settings=config.data, target_path=target_path, format=format)
    if large is not None:
        name, train, held_out = large.path.name, large, []
        messages = [Message(f"{source}: {note}", warning=True) for note in large.notes]
    else:
        read = read_source(source, settings=config.data, target_path=target_path, format=format)
        name, train, held_out = read.name, read.pairs, read.dev
        messages = [Message(note, warning=True) for note in read.notes]
    if dev is not None:
        read = read_source(dev, settings=config.data, target_path=dev_target_path, format=format)
        name, held_out = f"{name} (dev: {read.name})", read.pairs
        messages += [Message(note, warning=True) for note in read.notes]
    again = isinstance(source, str | Path) and str(source) != "-" and target_path is None and dev is None
    origin = str(source) if again and format is None else None
    if held_out:
        return TrainingData(name, train, held_out, messages, origin)
    fraction, seed = config.data.dev_fraction, config.training.seed
    if isinstance(train, FilePairs):
        held_out = train.hold_out(fraction=fraction, seed=seed)
        text = f"no dev file given: {len(held_out):,} of {train.n_all:,} pairs are held out"
        return TrainingData(name, train, held_out, [*messages, Message(text)], origin)
    keys = [source_text for source_text, _ in train]
    rows, held_out_rows = split_held_out(keys, fraction=fraction, seed=seed)
    if held_out_rows:
        text = f"no dev file given: {len(held_out_rows):,} of {len(train):,} pairs are held out"
        messages.append(Message(text))
    else:
        messages.append(Message("only one source: there is nothing to validate on", warning=True))
    return TrainingData(
        name, [train[row] for row in rows], [train[row] for row in held_out_rows], messages, origin
    )


class _Run:
    """One training, from data to model."""

    def __init__(
        self, config: Config, data: TrainingData, folder: Path | None, listeners: Sequence[Listener]
    ) -> None:
        self.config, self.data, self.folder = config, data, folder
        self.listeners = list(listeners)
        self.device = choose_device(config.training.device)
        set_threads(config.training.threads)
        keep_freed_memory()

    def tell(self, event: Event) -> None:
        """Tell all listeners."""
        for listener in self.listeners:
            listener(event)

    def make_tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Train both tokenizers on the training texts and say what was chosen."""
        settings = self.config.data
        texts = self.data.train.sample if isinstance(self.data.train, FilePairs) else self.data.train
        made = (
            Tokenizer.train([source for source, _ in texts], settings.source, side="source"),
            Tokenizer.train([target for _, target in texts], settings.target, side="target"),
        )
        for tokenizer in made:
            if tokenizer.why:
                self.tell(Message(f"tokens of the {tokenizer.why}"))
        return made

    def encode(
        self, pairs: Pairs | FilePairs, what: str, tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> PairShards:
        """Encode pairs, and say how many were too long."""
        limits = self.config.data
        encoded: PairShards
        if isinstance(pairs, FilePairs) and self.folder is not None:
            encoded = self._store(self.folder, pairs, tokenizers)
            n_too_long = encoded.n_too_long
        else:
            encoded, n_too_long = EncodedPairs.from_pairs(
                pairs,
                *tokenizers,
                max_source_len=limits.max_source_len,
                max_target_len=limits.max_target_len,
            )
        if n_too_long:
            text = (
                f"{n_too_long:,} {what} pairs are longer than {limits.max_source_len} source or "
                f"{limits.max_target_len} target tokens and were left out"
            )
            self.tell(Message(text, warning=True))
        return encoded

    def _store(self, folder: Path, pairs: FilePairs, tokenizers: tuple[Tokenizer, Tokenizer]) -> PairStore:
        """Find the pairs encoded in the model folder, or encode them into it."""
        lengths = self.config.data.max_source_len, self.config.data.max_target_len
        described = [json.dumps(tokenizer.describe(), sort_keys=True) for tokenizer in tokenizers]
        place = folder / STORES / store_key(*pairs.key(), *described, *lengths)
        found = PairStore.find(place)
        if found is not None:
            self.tell(Message(f"{len(found):,} pairs found encoded in {place}"))
            return found
        self.tell(Message(f"encoding {pairs.n_all:,} pairs into {place}"))
        shutil.rmtree(folder / STORES, ignore_errors=True)  # those of other data
        return write_store(place, pairs, *tokenizers, max_source_len=lengths[0], max_target_len=lengths[1])

    def train(self, checkpoint: Checkpoint | None, command: str) -> Seq2Seq:
        """Train, or go on from a checkpoint; returns the best model."""
        for message in self.data.messages:
            self.tell(message)
        resumed = checkpoint is not None and self.folder is not None
        tokenizers = load_tokenizers(self.folder) if resumed and self.folder else self.make_tokenizers()
        train_pairs = self.encode(self.data.train, "training", tokenizers)
        if not len(train_pairs):
            raise DataError("no training pair is left: all are over max_source_len or max_target_len")
        dev_pairs = self.encode(self.data.dev, "dev", tokenizers)
        self._choose_metric(tokenizers[1].kind, has_dev=len(dev_pairs) > 0)
        facts = self._facts(train_pairs, dev_pairs, command)
        if checkpoint is not None and self.folder is not None:
            self._require_same_data(load_facts(self.folder), facts)
        torch.manual_seed(self.config.training.seed)
        network = new_network(self.config, source_size=len(tokenizers[0]), target_size=len(tokenizers[1]))
        network.to(self.device)

        def dress(model: nn.Module) -> Seq2Seq:
            assert isinstance(model, type(network))
            return Seq2Seq(
                self.config,
                model,
                source_tokenizer=tokenizers[0],
                target_tokenizer=tokenizers[1],
                facts=facts,
            )

        if self.folder is not None and not isinstance(self.data.train, FilePairs):
            shutil.rmtree(self.folder / STORES, ignore_errors=True)  # of a model that stood here before
        keeper = _BestKeeper(self.folder, network)
        trainer = self._trainer(network, train_pairs, dev_pairs, keeper, dress)
        if self.folder is not None and not resumed:
            save_frame(
                self.folder,
                config=self.config,
                source_tokenizer=tokenizers[0],
                target_tokenizer=tokenizers[1],
                facts=facts,
            )
        if checkpoint is not None:
            trainer.resume(checkpoint)
        state = trainer.run()
        keeper.restore(network)
        facts.training = self._training_facts(state, trainer)
        best = dress(network)
        if self.folder is not None:
            self._finish(best)
        return best

    def _trainer(
        self,
        network: Any,
        train_pairs: PairShards,
        dev_pairs: PairShards,
        keeper: _BestKeeper,
        dress: Any,
    ) -> Trainer:
        settings = self.config.training
        batches = Batches(
            train_pairs, batch_size=settings.batch_size, unit=settings.batch_unit, seed=settings.seed
        )
        validate = None
        if len(dev_pairs):
            validate = make_validation(
                Batches(dev_pairs, batch_size=128, shuffle=False),
                self.data.dev[: settings.max_dev_decoded],
                metric=settings.metric,
                dtype=choose_precision(settings.precision, self.device),
                as_seq2seq=dress,
            )
        elif settings.metric != "loss":
            raise ConfigError(
                f"training.metric {settings.metric} needs dev data: pass a dev file, or use loss"
            )
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.listeners.append(JsonLines(self.folder / "training.jsonl"))
            if settings.tensorboard:
                self.listeners.append(TensorBoard(self.folder / "tensorboard"))
        return Trainer(
            network,
            batches,
            settings,
            validate=validate,
            keep_best=keeper,
            folder=None if self.folder is None else self.folder / "checkpoint",
            listeners=self.listeners,
            n_dev=len(dev_pairs),
        )

    def _choose_metric(self, target_kind: str, *, has_dev: bool) -> None:
        """Settle what ``auto`` watches."""
        if self.config.training.metric != "auto":
            return
        metric = "exact" if target_kind in ("space", "char", "grapheme") else "chrf"
        training = self.config.training.model_copy(update={"metric": metric if has_dev else "loss"})
        self.config = self.config.model_copy(update={"training": training})

    def _facts(self, train_pairs: PairShards, dev_pairs: PairShards, command: str) -> Facts:
        return Facts(
            regard_version=regard.__version__,
            length_limit=_length_limit(train_pairs),
            data={
                "name": self.data.name,
                "source": self.data.source,
                "n_train": len(train_pairs),
                "n_dev": len(dev_pairs),
                "fingerprint": train_pairs.fingerprint() + dev_pairs.fingerprint(),
            },
            command=command,
        )

    def _require_same_data(self, before: Facts, now: Facts) -> None:
        if before.data.get("fingerprint") != now.data["fingerprint"]:
            raise DataError(
                f"--resume goes on with the data the training began with ({before.data.get('name')}, "
                f"{before.data.get('n_train', 0):,} pairs), but these are others ({now.data['name']}, "
                f"{now.data['n_train']:,} pairs); train a new model, or pass the first data"
            )

    def _training_facts(self, state: TrainingState, trainer: Trainer) -> dict[str, Any]:
        return {
            "steps": state.step,
            "epochs": state.epoch,
            "seconds": round(trainer.elapsed, 1),
            "best_step": state.best_step,
            "best_values": state.best_values,
            "reason": state.reason,
            "device": str(self.device),
            "precision": str(trainer.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
        }

    def _finish(self, best: Seq2Seq) -> None:
        from regard.card import model_card

        assert self.folder is not None
        write_text(self.folder / "facts.json", best.facts.model_dump_json(indent=2) + "\n")
        write_text(self.folder / "README.md", model_card(best))


def _length_limit(pairs: PairShards) -> LengthLimit:
    """The limit that lets each training pair through, shard by shard."""
    limits: list[LengthLimit] = []
    for number in range(len(pairs.shard_sizes)):
        shard = pairs.shard(number)
        lengths = shard.source.lengths, shard.target.lengths
        limits.append(LengthLimit.from_lengths(*lengths, ratio=limits[0].ratio if limits else None))
    return max(limits, key=lambda limit: limit.extra)


class _BestKeeper:
    """Keeps the best weights, in the folder or in memory."""

    def __init__(self, folder: Path | None, network: nn.Module) -> None:
        self.folder, self.network = folder, network
        self.kept: dict[str, torch.Tensor] = {}

    def __call__(self, model: nn.Module, state: TrainingState) -> None:
        """Keep the weights of a model."""
        if self.folder is not None:
            save_weights(self.folder, model)
        else:
            self.kept = {name: value.detach().clone() for name, value in model.named_parameters()}

    def restore(self, network: nn.Module) -> None:
        """Put the best weights into a network."""
        if self.folder is not None:
            from regard.folder import WEIGHTS, load_weights

            load_weights(self.folder / WEIGHTS, network)
            return
        with torch.no_grad():
            for name, value in network.named_parameters():
                value.copy_(self.kept[name])


def _check_folder(folder: Path, *, resume: bool, force: bool) -> Checkpoint | None:
    """Look at the output folder before anything is written; returns what to go on from."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: is a file, expected a folder for the model")
    if resume:
        checkpoint = load_checkpoint(folder / "checkpoint")
        if checkpoint is None:
            raise ConfigError(f"{folder}: there is no checkpoint to go on from; train without --resume")
        return checkpoint
    if folder.is_dir() and any(folder.iterdir()) and not force:
        if not (folder / "config.json").exists() and not (folder / "checkpoint").exists():
            raise ConfigError(f"{folder}: is not empty and is no model folder; choose another one")
        raise ConfigError(f"{folder}: holds a model already; go on with --resume, or replace it with --force")
    return None


def _clear(folder: Path) -> None:
    """Remove what an earlier training of ours left, and nothing else."""
    for name in ("config.json", "facts.json", "model.safetensors", "training.jsonl", "README.md"):
        (folder / name).unlink(missing_ok=True)
    for name in ("source.tokenizer.json", "target.tokenizer.json"):
        (folder / name).unlink(missing_ok=True)
    for name in ("checkpoint", "tensorboard"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _resumed_config(folder: Path, config: Config) -> Config:
    """The settings of the run that is resumed, with those that may change taken from the new ones."""
    before = load_settings(folder)
    changed = [name for name in ("data", "model") if getattr(before, name) != getattr(config, name)]
    if config.training.metric == "auto":
        training = config.training.model_copy(update={"metric": before.training.metric})
        config = config.model_copy(update={"training": training})
    old, new = before.training.model_dump(), config.training.model_dump()
    changed += [f"training.{name}" for name in old if old[name] != new[name] and name not in _MAY_CHANGE]
    if changed:
        raise ConfigError(
            f"--resume cannot change {', '.join(changed)}; leave them as they were, or train anew"
        )
    return config


def run_training(
    data: TrainingData,
    *,
    config: Config,
    folder: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    listeners: Sequence[Listener] = (),
    command: str = "",
) -> Seq2Seq:
    """Train a model.

    Args:
        data: Texts, already read: an error in a file leaves no half-made folder.
        config: All settings.
        folder: The model folder to make; None keeps the model in memory only.
        resume: Go on from the folder's checkpoint.
        force: Replace a model that is in the folder.
        listeners: Told of each event.
        command: For the model card.

    Raises:
        ConfigError: The folder is taken, or a resumed run would have other settings.
        DataError: Nothing is left to train on, or a resumed run would have other data.
        TrainingError: The loss is not finite.
        StopSignal: The training was asked to stop, and has saved its state.
    """
    checkpoint = None
    path = None if folder is None else Path(folder)
    if path is not None:
        checkpoint = _check_folder(path, resume=resume, force=force)
        if resume:
            config = _resumed_config(path, config)
            write_text(path / "config.json", config.to_json())
        elif force and path.is_dir():
            _clear(path)
    return _Run(config, data, path, listeners).train(checkpoint, command)


def stored_config(folder: Path) -> dict[str, Any]:
    """The settings of a model folder as nested values, to start a resumed run from."""
    settings: dict[str, Any] = json.loads(load_settings(folder).to_json())
    return settings


def stored_data_name(folder: Path) -> str | None:
    """Where a model's training data came from, if it can be read again: a path or a corpus."""
    source = load_facts(folder).data.get("source")
    return None if source is None else str(source)
