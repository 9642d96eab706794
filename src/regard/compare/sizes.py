"""Hidden sizes at which different models have about the same number of parameters."""

from __future__ import annotations

import math

import torch

from regard.config import Config
from regard.errors import ConfigError
from regard.folder import new_network

__all__ = ["count_parameters", "fit_hidden_size", "with_hidden_size"]

_MOST_UNITS = 1 << 16


def with_hidden_size(config: Config, size: int) -> Config:
    """The same settings with so many units.

    Raises:
        ConfigError: The size does not fit the other settings.
    """
    from regard.config import make_config, merge

    return make_config(merge(config.model_dump(), {"model": {"hidden_size": size}}), origin="hidden size")


def count_parameters(config: Config, *, source_size: int, target_size: int) -> int:
    """Number of parameters of a model, without making its weights."""
    with torch.device("meta"):
        return new_network(config, source_size=source_size, target_size=target_size).n_parameters


def fit_hidden_size(config: Config, n_parameters: int, *, source_size: int, target_size: int) -> Config:
    """The settings with the hidden size whose number of parameters comes nearest to one.

    Args:
        config: All settings; the width of the embeddings and the number of layers stay.
        n_parameters: How many there should be.
        source_size: Entries of the source vocabulary.
        target_size: Entries of the target vocabulary.

    Raises:
        ConfigError: The hidden size cannot be chosen.
    """
    if config.model.tie_embeddings:
        raise ConfigError(
            "tie_embeddings ties the hidden size to the embeddings, so parameters cannot be matched: compare "
            "at equal hidden sizes (--match hidden)"
        )
    step = math.lcm(2 if config.model.bidirectional else 1, config.model.attention.heads)

    def count(units: int) -> int:
        sized = with_hidden_size(config, units * step)
        return count_parameters(sized, source_size=source_size, target_size=target_size)

    low, high = 1, 2
    while count(high) < n_parameters:
        low, high = high, 2 * high
        if high * step > _MOST_UNITS:
            raise ConfigError(f"no hidden size up to {_MOST_UNITS:,} gives {n_parameters:,} parameters")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) < n_parameters else (low, middle)
    best = min((low, high), key=lambda units: abs(count(units) - n_parameters))
    return with_hidden_size(config, best * step)
