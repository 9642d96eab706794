"""Lists of CLDR expressions in three splits, of which no test expression occurs in training.

The held-out splits are drawn first. Their open items (dates, numbers, ...) are then refused for training, in
whatever form they are written, and so are their lists, also as a part of a longer list.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from babel import Locale
from babel.lists import format_list

from regard.data.corpora.base import held_out_size
from regard.data.corpora.cldr_kinds import Kind, tidy
from regard.errors import DataError

__all__ = ["Example", "Item", "ListMaker"]

_MAX_TRIES = 500
# Share of the closed kinds among the items of lists, and of lists whose items are all of one kind.
_CLOSED_SHARE = 0.3
_SAME_KIND_SHARE = 0.5
# How often each name is to be seen in training, with a little to spare.
_NAME_COUNT = 12


@dataclass(frozen=True)
class Item:
    """One expression.

    Attributes:
        source: In the source's locale.
        target: In the target's locale.
        kind: Such as ``dates``.
        key: The value, whatever the form; None for names, which are not held out.
    """

    source: str
    target: str
    kind: str
    key: Hashable | None


@dataclass(frozen=True)
class Example:
    """A list of items, and how both locales write it."""

    items: tuple[Item, ...]
    source: str
    target: str


class _Deck:
    """Deals names in a random order, each once before any again."""

    def __init__(self, names: Sequence[Item], rng: random.Random) -> None:
        self._names, self._rng = list(names), rng
        self._left: list[Item] = []

    def deal(self) -> Item:
        if not self._left:
            self._left = list(self._names)
            self._rng.shuffle(self._left)
        return self._left.pop()


@dataclass
class _HeldOut:
    """What training may not contain."""

    keys: set[Hashable] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    lists: list[str] = field(default_factory=list)

    def add(self, example: Example) -> None:
        for item in example.items:
            if item.key is not None:
                self.keys.add(item.key)
                self.sources.add(item.source)
        if all(item.key is None for item in example.items):
            self.lists.append(example.source)

    def has(self, item: Item) -> bool:
        return item.key is not None and (item.key in self.keys or item.source in self.sources)


@dataclass
class ListMaker:
    """Makes the three splits of a pair of locales.

    Attributes:
        locales: Of the source and of the target.
        kinds: The open kinds.
        names: (source, target) of the closed kinds, by kind.
        items: Fewest and most items a list.
        seed: Text that all random draws start from.
        reserved: Items that go to the test split first.
    """

    locales: tuple[Locale, Locale]
    kinds: Sequence[Kind]
    names: dict[str, list[tuple[str, str]]]
    items: tuple[int, int]
    seed: str
    reserved: Sequence[Item] = ()
    _by_name: dict[str, Kind] = field(init=False)
    _meaning: dict[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _held: _HeldOut = field(default_factory=_HeldOut)

    def __post_init__(self) -> None:
        self._by_name = {kind.name: kind for kind in self.kinds}

    def make(self, size: int) -> dict[str, list[Example]]:
        """Return the examples of train, dev and test, of which train has ``size``.

        Raises:
            DataError: The locales have too few expressions for so many.
        """
        train_rng = self._rng("train")
        plans = [self._plan(train_rng) for _ in range(size)]
        names = self._keep_names(plans)
        n_held = held_out_size(size)
        splits: dict[str, list[Example]] = {}
        for split, reserved in (("test", self.reserved), ("dev", ())):
            rng = self._rng(split)
            held_plans = [self._plan(rng) for _ in range(n_held)]
            if reserved:  # the first list is as short as lists are, so that a single item stays one
                held_plans[0] = held_plans[0][: self.items[0]]
            splits[split] = list(self._fill(held_plans, names, rng=rng, first=reserved))
            for example in splits[split]:
                self._held.add(example)
        self._add_single_names(plans, names)
        splits["train"] = list(self._fill(plans, names, rng=train_rng))
        train_rng.shuffle(splits["train"])
        return {split: splits[split] for split in ("train", "dev", "test")}

    def _rng(self, use: str) -> random.Random:
        # A text seed is hashed by SHA-512, so that it does not depend on the process.
        return random.Random(f"{self.seed}:{use}")

    def _plan(self, rng: random.Random) -> list[str]:
        """Draw the kinds of a list's items; a list of one is of an open kind."""
        n_items = rng.randint(*self.items)
        if n_items == 1:
            return [self._open_kind(rng)]
        n_kinds = 1 if rng.random() < _SAME_KIND_SHARE else n_items
        closed = [rng.random() < _CLOSED_SHARE and bool(self.names) for _ in range(n_kinds)]
        kinds = [self._closed_kind(rng) if is_closed else self._open_kind(rng) for is_closed in closed]
        return kinds * n_items if n_kinds == 1 else kinds

    def _open_kind(self, rng: random.Random) -> str:
        return rng.choices([kind.name for kind in self.kinds], [kind.weight for kind in self.kinds])[0]

    def _closed_kind(self, rng: random.Random) -> str:
        return rng.choices(list(self.names), [len(pairs) for pairs in self.names.values()])[0]

    def _keep_names(self, plans: Sequence[Sequence[str]]) -> dict[str, list[Item]]:
        """The names that training has room to show often enough: all, unless it is small."""
        kept = {}
        for kind, pairs in self.names.items():
            n_slots = sum(plan.count(kind) for plan in plans)
            n_singles = sum(len(plan) == 1 for plan in plans) if self.items[1] == 1 else 0
            shuffled = [Item(source, target, kind, None) for source, target in pairs]
            self._rng(kind).shuffle(shuffled)
            # A list of up to n names of one kind needs n different ones.
            kept[kind] = shuffled[: max(self.items[1], n_slots // _NAME_COUNT, n_singles // _NAME_COUNT)]
        return kept

    def _add_single_names(self, plans: list[list[str]], names: dict[str, list[Item]]) -> None:
        """Let each name stand alone once in training, in place of a single open item."""
        singles = [place for place, plan in enumerate(plans) if len(plan) == 1]
        closed = [kind for kind, items in names.items() for _ in items]
        for place, kind in zip(singles, closed, strict=False):
            plans[place] = [kind]

    def _fill(
        self,
        plans: Sequence[list[str]],
        names: dict[str, list[Item]],
        *,
        rng: random.Random,
        first: Sequence[Item] = (),
    ) -> Iterator[Example]:
        """Make an example of each plan, beginning with given items."""
        decks = {kind: _Deck(items, rng) for kind, items in names.items()}
        queue = list(first)
        for plan in plans:
            given = [queue.pop(0)] if queue else []
            for _ in range(_MAX_TRIES):
                example = self._example(plan, decks, rng=rng, given=given)
                if example is not None:
                    break
                if len(plan) == 1 and plan[0] not in self.names:  # this kind may be used up
                    plan = [self._open_kind(rng)]
            else:
                raise DataError(
                    f"{self.locales[0]} to {self.locales[1]} has no more than {len(self._used):,} different lists of "
                    f"{self.items[0]} to {self.items[1]} items: ask for a smaller size or more items"
                )
            yield example

    def _example(
        self, plan: Sequence[str], decks: dict[str, _Deck], *, rng: random.Random, given: Sequence[Item]
    ) -> Example | None:
        """Draw the items of a plan; None when the list is taken, held out or has two meanings."""
        items = list(given)
        for kind in plan[len(given) :]:
            item = self._item(kind, decks, rng=rng, beside=items)
            if item is None:
                return None
            items.append(item)
        example = self._write(items)
        if example.source in self._used or any(text in example.source for text in self._held.lists):
            return None
        meanings = [(part.source, part.target) for part in items] + [(example.source, example.target)]
        if any(self._meaning.get(source, target) != target for source, target in meanings):
            return None
        self._meaning.update(meanings)
        self._used.add(example.source)
        return example

    def _item(
        self, kind: str, decks: dict[str, _Deck], *, rng: random.Random, beside: Sequence[Item]
    ) -> Item | None:
        sources = {item.source for item in beside}
        for _ in range(_MAX_TRIES):
            if kind in decks:
                item = decks[kind].deal()
            else:
                source, target, key = self._by_name[kind].sample(rng)
                item = Item(source, target, kind, key)
            if item.source not in sources and not self._held.has(item):
                return item
        return None

    def _write(self, items: Sequence[Item]) -> Example:
        texts = [item.source for item in items], [item.target for item in items]
        source, target = (
            # Babel writes a list of one as it is, in any locale.
            tidy(format_list(side, locale=locale))
            for side, locale in zip(texts, self.locales, strict=True)
        )
        return Example(tuple(items), source, target)
