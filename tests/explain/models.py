"""Small random models with tokenizers, and records of them, for the tests of explanations."""

from __future__ import annotations

import torch

from regard.config import SideSettings, make_config
from regard.data.tokenizers import Tokenizer
from regard.facts import Facts
from regard.nn.model import EncoderDecoder
from regard.seq2seq import Seq2Seq

SOURCES = ["2026年12月1日", "a </script> b", "uno dos tres", "<b>&amp;"]
TARGETS = ["December 1, 2026", "one two", "ein zwei drei"]


def random_model(
    *,
    seed: int = 1,
    source_kind: str = "char",
    target_kind: str = "char",
    sharpness: float = 2.0,
    **model: object,
) -> Seq2Seq:
    """A model that was never trained, whose outputs are not all alike."""
    torch.manual_seed(seed)
    config = make_config({"model": {"hidden_size": 20, "embedding_size": 6, "dropout": 0.0, **model}})
    source = Tokenizer.train(SOURCES * 3, SideSettings(tokenizer=source_kind))
    target = Tokenizer.train(TARGETS * 3, SideSettings(tokenizer=target_kind))
    network = EncoderDecoder(config.model, source_size=len(source), target_size=len(target))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(sharpness)
    facts = Facts(regard_version="0")
    return Seq2Seq(config, network, source_tokenizer=source, target_tokenizer=target, facts=facts)
