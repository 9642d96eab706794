"""The models of a server, by name, and the languages they are between."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.errors import ConfigError, RegardError, did_you_mean
from regard.seq2seq import Seq2Seq
from regard.serve.journeys import ServedJourneys
from regard.serve.problems import Problem

__all__ = ["Catalogue", "ServedModel", "parse_languages", "parse_names"]

_CORPUS_PAIR = re.compile(r"^[a-z0-9]+:([a-z]{2,3})-([a-z]{2,3})(?![a-z-])")
_CODE = re.compile(r"^[A-Za-z][A-Za-z0-9]{1,7}(-[A-Za-z0-9]{1,8})*$")
_OF_TEXTS, _OF_JOURNEYS = "of texts (POST /v1/predict)", "of journeys (POST /v1/journeys)"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


@dataclass(frozen=True)
class ServedModel:
    """A model under a name.

    Attributes:
        name: What requests call it.
        model: The model.
        languages: Codes of source and target, if known.
    """

    name: str
    model: Seq2Seq
    languages: tuple[str, str] | None = None

    @property
    def has_attention(self) -> bool:
        """Whether there are weights to show."""
        return self.model.config.model.context == "attention"

    @property
    def source_limit(self) -> int:
        """Most source tokens."""
        return self.model.config.data.max_source_len

    def check_sources(self, texts: Sequence[str], item: str) -> None:
        """Refuse sources that the model would have to cut.

        Args:
            texts: The sources.
            item: What errors call one of them, such as ``inputs.{}`` with its place.

        Raises:
            Problem: Which, how long, and the limit.
        """
        for place, ids in enumerate(self.model.source_tokenizer.encode_batch(list(texts))):
            if len(ids) > self.source_limit:
                raise Problem(
                    422,
                    "input_too_long",
                    f"{item.format(place)} has {len(ids):,} tokens, the model {self.name} takes "
                    f"{self.source_limit:,}; shorten or divide it",
                    field=item.format(place),
                )

    def describe(self) -> dict[str, Any]:
        """What clients and the page need to know."""
        config, data = self.model.config, self.model.facts.data
        return {
            "name": self.name,
            "context": config.model.context,
            "attention": self.has_attention,
            "heads": config.model.attention.heads if self.has_attention else 0,
            "beam": config.decoding.beam,
            "max_source_tokens": self.source_limit,
            "source_tokens": self.model.source_tokenizer.kind,
            "target_tokens": self.model.target_tokenizer.kind,
            "parameters": sum(p.numel() for p in self.model.model.parameters()),
            "source_language": self.languages[0] if self.languages else None,
            "target_language": self.languages[1] if self.languages else None,
            "trained_on": data.get("name"),
            "version": self.model.facts.regard_version,
        }


class Catalogue:
    """Models by name; the first of its kind is the one that is used when none is named.

    Args:
        models: Models of texts.
        journeys: Models of journeys, under other names.
    """

    def __init__(self, models: Sequence[ServedModel], journeys: Sequence[ServedJourneys] = ()) -> None:
        self._models = {served.name: served for served in models}
        self._journeys = {served.name: served for served in journeys}
        # Settings are checked for each request, and most requests ask for the same.
        self._decoding = lru_cache(1024)(self._check_decoding)

    def __iter__(self) -> Any:
        return iter(self._models.values())

    @property
    def all_journeys(self) -> list[ServedJourneys]:
        """The models of journeys."""
        return list(self._journeys.values())

    @property
    def default(self) -> ServedModel:
        """The model of texts that is used when none is named."""
        return self.get(None)

    def get(self, name: str | None) -> ServedModel:
        """The model of texts of a name.

        Raises:
            Problem: There is none.
        """
        found: ServedModel = _choose(name, self._models, self._journeys, _OF_TEXTS, _OF_JOURNEYS)
        return found

    def journeys(self, name: str | None) -> ServedJourneys:
        """The model of journeys of a name.

        Raises:
            Problem: There is none.
        """
        found: ServedJourneys = _choose(name, self._journeys, self._models, _OF_JOURNEYS, _OF_TEXTS)
        return found

    def check_decoding(self, name: str, options: tuple[tuple[str, Any], ...]) -> None:
        """Refuse settings that do not fit a model.

        Raises:
            Problem: What does not fit.
        """
        message = self._decoding(name, options)
        if message is not None:
            raise Problem(422, "unfit", message)

    def _check_decoding(self, name: str, options: tuple[tuple[str, Any], ...]) -> str | None:
        try:
            self._models[name].model.decoding(**dict(options))
        except RegardError as error:
            return str(error).replace("decoding: ", "")
        return None


def _choose(
    name: str | None, own: Mapping[str, Any], others: Mapping[str, Any], kind: str, other_kind: str
) -> Any:
    """The model of a name among those of one kind, or the first if none is named.

    Raises:
        Problem: There is none; what to ask instead.
    """
    names = list(own)
    if name is not None and name in own:
        return own[name]
    if name is None and names:
        return own[names[0]]
    if name in others:
        raise Problem(
            422,
            "other_kind",
            f"this model is one {other_kind}, and this path needs one {kind}",
            field="model",
        )
    if not names:
        raise Problem(404, "no_such_model", f"this server has no model {kind}", field="model")
    assert name is not None
    raise Problem(
        404,
        "no_such_model",
        f"there is no model of this name; the models are {', '.join(names)}{did_you_mean(name, names)}",
        field="model",
    )


def parse_names(first: Path, others: Sequence[str]) -> dict[str, Path]:
    """Name the model folders of a command line.

    Args:
        first: A folder; its own name is its name.
        others: Each ``name=path``.

    Raises:
        ConfigError: A name is missing, cannot stand in a request, or is used twice.
    """
    own = re.sub(r"[^A-Za-z0-9._-]+", "-", first.resolve().name).strip("-._") or "model"
    found = {own[:64]: first}
    for text in others:
        name, equals, path = text.partition("=")
        if not equals or not path or not _NAME.match(name):
            raise ConfigError(
                f"--model {text!r}: expected NAME=PATH, such as names=models/names; a name has letters, "
                "digits, dots, dashes and underscores"
            )
        if name in found:
            raise ConfigError(f"--model {text!r}: the name {name} is taken by {found[name]}; choose another")
        found[name] = Path(path)
    return found


def parse_languages(texts: Sequence[str], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Read the languages of models from a command line.

    Args:
        texts: Each ``name=source:target``, or ``source:target`` for the first model.
        names: Names of the models, the first model's first.

    Raises:
        ConfigError: Something is not of this form, or there is no such model.
    """
    found = {}
    for text in texts:
        name, equals, pair = text.rpartition("=")
        name = name if equals else names[0]
        source, _, target = pair.partition(":")
        if not _CODE.match(source) or not _CODE.match(target):
            raise ConfigError(f"--languages {text!r}: expected NAME=SOURCE:TARGET, such as names=zh:en")
        if name not in names:
            raise ConfigError(
                f"--languages {text!r}: there is no model {name}; the models are {', '.join(names)}"
                f"{did_you_mean(name, names)}"
            )
        found[name] = (source, target)
    return found


def languages_of(facts: Mapping[str, Any]) -> tuple[str, str] | None:
    """The languages that the name of a built-in corpus tells, such as ``cldr:zh-en``."""
    found = _CORPUS_PAIR.match(str(facts.get("source") or ""))
    return (found[1], found[2]) if found else None
