"""Text in, batches out: lines, readers, tokenizers, encoded pairs, bucketed batches, built-in corpora.

Nothing here imports torch, so that looking at data is quick; and each name is imported when it is first
asked for, so that reading lines does not wait for the tokenizers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.data.batches import Batch as Batch
    from regard.data.batches import Batches as Batches
    from regard.data.lines import iter_lines as iter_lines
    from regard.data.pairs import EncodedPairs as EncodedPairs
    from regard.data.pairs import split_held_out as split_held_out
    from regard.data.readers import Pair as Pair
    from regard.data.readers import ReadReport as ReadReport
    from regard.data.readers import read_pairs as read_pairs
    from regard.data.tokenizers import Tokenizer as Tokenizer

_MODULES = {
    "Batch": "batches",
    "Batches": "batches",
    "EncodedPairs": "pairs",
    "Pair": "readers",
    "ReadReport": "readers",
    "Tokenizer": "tokenizers",
    "iter_lines": "lines",
    "read_pairs": "readers",
    "split_held_out": "pairs",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
