"""Reserved entries of every vocabulary.

Their names contain a blank followed by text, which no tokenizer here produces from any text; so the strings
``<eos>`` or ``<pad>`` in a user's data are ordinary symbols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["EOS", "PAD", "RESERVED", "UNK", "UNKNOWN_SIGN", "make_vocabulary"]

PAD, EOS, UNK = 0, 1, 2
RESERVED = ("< pad >", "< eos >", "< unk >")
UNKNOWN_SIGN = "\u2047"
"""How an unknown token looks in an output: the double question mark."""


def make_vocabulary(symbols: Iterable[Iterable[str]], *, min_frequency: int, size: int) -> dict[str, int]:
    """Number the symbols: reserved entries first, then by frequency, then by symbol."""
    counts: Counter[str] = Counter()
    for sequence in symbols:
        counts.update(sequence)
    frequent = [symbol for symbol, count in counts.items() if count >= min_frequency]
    frequent.sort(key=lambda symbol: (-counts[symbol], symbol))
    return {symbol: number for number, symbol in enumerate([*RESERVED, *frequent[: size - len(RESERVED)]])}
