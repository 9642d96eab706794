"""Names to implementations: the one place where scores, cells, normalisers, metrics and readers register.

A built-in is listed as ``"module:attribute"`` and imported on first use, so that a name can be checked
without loading torch. Another package adds one through an entry point of the group ``regard.<kind>``,
for instance in its pyproject.toml::

    [project.entry-points."regard.scores"]
    gaussian = "my_package:GaussianScore"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from regard.errors import ConfigError, did_you_mean

__all__ = ["CELLS", "METRICS", "NORMALISERS", "READERS", "SCORES", "Registry"]

T = TypeVar("T")


class Registry:
    """A mapping of names to objects of one kind, loaded when first asked for.

    Args:
        kind: What is registered, in the plural (``scores``); the entry-point group is ``regard.<kind>``.
        builtin: Names of what the package brings, each as ``"module:attribute"``.
    """

    def __init__(self, kind: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self._paths = dict(builtin)
        self._loaded: dict[str, Any] = {}
        self._scanned = False

    def _scan(self) -> None:
        if not self._scanned:
            self._scanned = True
            for point in entry_points(group=f"regard.{self.kind}"):
                self._paths.setdefault(point.name, point.value)

    def names(self) -> list[str]:
        """All names that can be asked for, sorted."""
        self._scan()
        return sorted({*self._paths, *self._loaded})

    def check(self, name: str) -> str:
        """Return ``name`` if it is registered.

        Raises:
            ConfigError: It is not; the message lists what is, and the nearest.
        """
        if name not in self._paths and name not in self._loaded:
            self._scan()
        if name not in self._paths and name not in self._loaded:
            raise ConfigError(
                f"{name!r} is none of the {self.kind}: {', '.join(self.names())}{did_you_mean(name, self.names())}"
            )
        return name

    def get(self, name: str) -> Any:
        """Return the object registered as ``name``, importing it if need be."""
        self.check(name)
        if name not in self._loaded:
            module, _, attribute = self._paths[name].partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)
        return self._loaded[name]

    def register(self, name: str) -> Callable[[T], T]:
        """Decorate a class or function to register it as ``name``.

        Raises:
            ConfigError: The name is taken.
        """

        def add(item: T) -> T:
            if name in self._paths or name in self._loaded:
                raise ConfigError(f"{name!r} is already one of the {self.kind}")
            self._loaded[name] = item
            return item

        return add


SCORES = Registry(
    "scores",
    {
        "dot": "regard.nn.scores:DotScore",
        "scaled_dot": "regard.nn.scores:ScaledDotScore",
        "general": "regard.nn.scores:GeneralScore",
        "additive": "regard.nn.scores:AdditiveScore",
        "location": "regard.nn.scores:LocationScore",
        "cosine": "regard.nn.scores:CosineScore",
    },
)
NORMALISERS = Registry(
    "normalisers",
    {
        "softmax": "regard.nn.normalisers:masked_softmax",
        "sparsemax": "regard.nn.normalisers:masked_sparsemax",
        "entmax15": "regard.nn.normalisers:masked_entmax15",
    },
)
CELLS = Registry(
    "cells",
    {
        "rnn": "regard.nn.recurrent:TanhLayer",
        "gru": "regard.nn.recurrent:GRULayer",
        "lstm": "regard.nn.recurrent:LSTMLayer",
    },
)
METRICS = Registry(
    "metrics",
    {
        "bleu": "regard.evaluate.metrics:bleu",
        "chrf": "regard.evaluate.metrics:chrf",
        "ter": "regard.evaluate.metrics:ter",
        "exact": "regard.evaluate.metrics:exact",
        "wer": "regard.evaluate.metrics:wer",
        "cer": "regard.evaluate.metrics:cer",
        "per": "regard.evaluate.metrics:per",
        "token": "regard.evaluate.metrics:token",
    },
)
READERS = Registry(
    "readers",
    {
        "tsv": "regard.data.readers:read_tsv",
        "parallel": "regard.data.readers:read_parallel",
        "jsonl": "regard.data.readers:read_jsonl",
    },
)
