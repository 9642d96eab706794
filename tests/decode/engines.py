"""Small random models for the search tests, and sources for them."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.config import make_config
from regard.nn.model import EncoderDecoder
from regard.nn.types import EOS, PAD

TARGET_SIZE = 7


def random_engine(
    seed: int, *, target_size: int = TARGET_SIZE, sharpness: float = 3.0, **model: object
) -> EncoderDecoder:
    """A random model in double precision whose outputs are not all alike."""
    torch.manual_seed(seed)
    settings = make_config({"model": {"hidden_size": 10, "embedding_size": 6, "dropout": 0.0, **model}})
    engine = EncoderDecoder(settings.model, source_size=11, target_size=target_size).double().eval()
    with torch.no_grad():
        for parameter in engine.parameters():
            parameter.mul_(sharpness)
    return engine


def random_sources(seed: int, lengths: list[int], *, padding: int = 0) -> tuple[Tensor, Tensor]:
    """Random sources of given lengths, each ending in EOS."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.full((len(lengths), max(lengths) + padding), PAD)
    for row, length in enumerate(lengths):
        source[row, : length - 1] = torch.randint(3, 11, (length - 1,), generator=generator)
        source[row, length - 1] = EOS
    return source, torch.tensor(lengths)
