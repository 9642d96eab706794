"""Random strings of symbols to copy, reverse or sort: tasks whose length can be dialled.

They show what a fixed context cannot hold (copying, after Sutskever 2014's reversed sources) and are learnt
to 100 % by attention. What follows the colon is how many symbols a line has: ``copy:5-100``, ``sort:7``.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

from regard.data.corpora.base import (
    Corpus,
    CorpusSource,
    check_size,
    held_out_size,
    parse_range,
)
from regard.errors import DataError

__all__ = ["COPY", "REVERSE", "SORT"]

_LICENCE = "CC0-1.0 (random symbols)"
_OPTIONS = {
    "lengths": "symbols a line, from-to (default 5-20); also written after a colon, as copy:5-100",
    "symbols": "how many different symbols there are, 2 to 26 (default 20)",
}
_MAX_TRIES = 100
_DEFAULT_LENGTHS = (5, 20)


def _bounds(name: str, argument: str, lengths: Any) -> tuple[int, int]:
    """Read the lengths, which stand after the colon or in the option.

    Raises:
        DataError: They are no range, or stand in both places.
    """
    if not argument:
        return parse_range(_DEFAULT_LENGTHS if lengths is None else lengths, option="lengths")
    if lengths is not None:
        raise DataError(
            f"{name}:{argument} says how long lines are, and so does lengths={lengths}: leave one of them out"
        )
    return parse_range(argument, option=f"what follows {name}:")


def _n_symbols(value: Any) -> int:
    low, high = parse_range(value, option="symbols", lowest=2)
    if low != high or high > len(string.ascii_lowercase):
        raise DataError(
            f"symbols is {value!r}, but a number from 2 to {len(string.ascii_lowercase)} was expected"
        )
    return high


def _draw_lines(n: int, *, lengths: tuple[int, int], n_symbols: int, rng: random.Random) -> list[list[str]]:
    alphabet = string.ascii_lowercase[:n_symbols]
    lines: dict[str, list[str]] = {}
    tries_left = _MAX_TRIES * n
    while len(lines) < n and tries_left:
        tries_left -= 1
        symbols = rng.choices(alphabet, k=rng.randint(*lengths))
        lines.setdefault(" ".join(symbols), symbols)
    if len(lines) < n:
        raise DataError(
            f"there are not enough different lines of {lengths[0]} to {lengths[1]} symbols out of {n_symbols} for "
            f"{n:,} pairs: ask for a smaller size, longer lengths or more symbols"
        )
    return list(lines.values())


def _loader(name: str, change: Callable[[list[str]], list[str]], what: str) -> Callable[..., Corpus]:
    def load(
        argument: str,
        *,
        size: int | None = None,
        seed: int = 1,
        lengths: Any = None,
        symbols: Any = 20,
    ) -> Corpus:
        size = check_size(size, default=10_000)
        bounds, n_symbols = _bounds(name, argument, lengths), _n_symbols(symbols)
        n_held = held_out_size(size)
        rng = random.Random(f"{name}:{seed}")
        lines = _draw_lines(size + 2 * n_held, lengths=bounds, n_symbols=n_symbols, rng=rng)
        pairs = [(" ".join(line), " ".join(change(line))) for line in lines]
        description = (
            f"{what}: {bounds[0]} to {bounds[1]} symbols out of {n_symbols} with blanks between them, drawn with "
            f"seed {seed}; all lines are different, so no test line occurs in training."
        )
        return Corpus(
            name=f"{name}:{bounds[0]}-{bounds[1]}?symbols={n_symbols}",
            description=description,
            licence=_LICENCE,
            train=pairs[2 * n_held :],
            dev=pairs[n_held : 2 * n_held],
            test=pairs[:n_held],
        )

    return load


def _source(name: str, change: Callable[[list[str]], list[str]], what: str) -> CorpusSource:
    return CorpusSource(
        usage=f"{name}:FROM-TO",
        what=what,
        licence=_LICENCE,
        load=_loader(name, change, what),
        options=_OPTIONS,
    )


COPY = _source("copy", lambda line: line, "Random symbols and the same again")
REVERSE = _source("reverse", lambda line: line[::-1], "Random symbols and the same backwards")
SORT = _source("sort", sorted, "Random symbols and the same in alphabetical order")
