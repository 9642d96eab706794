"""What can be compared: ways to see the source, each as settings that replace those of the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.config import PRESETS, Config, load_settings_file, make_config, merge
from regard.errors import ConfigError, did_you_mean
from regard.registry import SCORES

__all__ = ["FIXED_DEFAULTS", "Variant", "choose_variants", "variant_names"]

Family = Literal["fixed", "attention"]

_FIXED: dict[str, tuple[str, dict[str, Any]]] = {
    "last": ("last state", {"context": "last"}),
    "projected": ("projected", {"context": "projected"}),
    "pooled-mean": ("pooled, mean", {"context": "pooled", "pool": "mean"}),
    "pooled-max": ("pooled, maximum", {"context": "pooled", "pool": "max"}),
    "pooled-query": ("pooled, learnt query", {"context": "pooled", "pool": "query"}),
    "last-reversed": ("last, source reversed", {"context": "last", "reverse_source": True}),
    "last-every-step": ("last, fed every step", {"context": "last", "context_every_step": True}),
}
FIXED_DEFAULTS = ("last", "projected", "pooled-mean", "pooled-query", "last-reversed", "last-every-step")
"""The fixed contexts that are compared unless others are named."""

_WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "attention-local-m": ("attention, local-m", {"window": "local_m"}),
    "attention-local-p": ("attention, local-p", {"window": "local_p"}),
    "attention-sparsemax": ("attention, sparsemax", {"normaliser": "sparsemax"}),
    "attention-entmax15": ("attention, entmax 1.5", {"normaliser": "entmax15"}),
}


@dataclass(frozen=True)
class Variant:
    """A configuration to compare.

    Attributes:
        name: How it is asked for, and what its runs' folders begin with.
        label: Its name in tables and plots.
        settings: Nested settings that win over the base; a ``preset`` among them is where they start.
    """

    name: str
    label: str
    settings: dict[str, Any] = field(default_factory=dict)

    def config(self, base: dict[str, Any]) -> Config:
        """All settings: those of the base, with the variant's own in their place.

        Raises:
            ConfigError: They cannot work together.
        """
        return make_config(merge(base, self.settings), origin=f"variant {self.name}")


def family_of(config: Config) -> Family:
    """Whether the decoder sees one fixed vector or a fresh one each step."""
    return "attention" if config.model.context == "attention" else "fixed"


def _attention(score: str) -> tuple[str, dict[str, Any]]:
    return f"attention, {score.replace('_', ' ')}", {"context": "attention", "attention": {"score": score}}


def _built_in() -> dict[str, Variant]:
    made = {name: Variant(name, label, {"model": model}) for name, (label, model) in _FIXED.items()}
    for score in SCORES.names():
        label, model = _attention(score)
        name = f"attention-{score.replace('_', '-')}"
        made[name] = Variant(name, label, {"model": model})
    for name, (label, attention) in _WINDOWS.items():
        settings = {"model": {"context": "attention", "attention": {"score": "general", **attention}}}
        made[name] = Variant(name, label, settings)
    for preset in PRESETS:
        made.setdefault(preset, Variant(preset, f"preset {preset}", {"preset": preset}))
    return made


def _groups() -> dict[str, list[str]]:
    scores = [f"attention-{score.replace('_', '-')}" for score in SCORES.names()]
    return {"fixed": list(FIXED_DEFAULTS), "attention": scores, "windows": list(_WINDOWS)}


def variant_names() -> list[str]:
    """All that can be asked for by name: groups first, then variants."""
    return [*_groups(), *_built_in()]


def _from_file(path: Path) -> Variant:
    settings = load_settings_file(path)
    return Variant(path.stem, path.stem, settings)


def choose_variants(names: Sequence[str] = ()) -> list[Variant]:
    """Return variants by name, in the order they are named.

    Args:
        names: Names of variants, of presets, of groups (``fixed``, ``attention``: each score, ``windows``), or
            files of settings; without any, ``fixed`` and ``attention``.

    Raises:
        ConfigError: A name is unknown, a file cannot be read, or two variants have one name.
    """
    groups, built_in = _groups(), _built_in()
    chosen: dict[str, Variant] = {}
    for name in names or ("fixed", "attention"):
        if Path(name).suffix in (".yaml", ".yml", ".json"):
            variant = _from_file(Path(name))
            if variant.name in built_in or variant.name in chosen:
                raise ConfigError(f"{name}: there is a variant {variant.name} already; rename the file")
            chosen[variant.name] = variant
            continue
        for member in groups.get(name, [name]):
            if member not in built_in:
                raise ConfigError(
                    f"{name!r} is none of the variants: {', '.join(variant_names())}, or a file of settings "
                    f"(.yaml, .json){did_you_mean(name, variant_names())}"
                )
            chosen[member] = built_in[member]
    return list(chosen.values())
