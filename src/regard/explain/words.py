"""From pieces to words: an alignment of characters or subwords as one of words.

A word is a run of letters, digits and marks; a Chinese character is a word of its own, and so is a sign. Blanks
(and the mark ``▁`` of subwords) divide words and belong to the one after them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from regard.explain.record import AlignmentRecord, is_marked

__all__ = ["by_words", "word_numbers"]

_MARK = "\u2581"
_HAN = re.compile("[\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_JOINERS = "\u200c\u200d"


def _kind(character: str) -> str:
    """One of blank, han, mark, letter, digit, sign."""
    if character.isspace():
        return "blank"
    if _HAN.match(character):
        return "han"
    category = unicodedata.category(character)
    if category[0] == "M" or character in _JOINERS:
        return "mark"
    return {"L": "letter", "N": "digit"}.get(category[0], "sign")


def _goes_on(text: str, place: int) -> bool:
    """Whether the character at ``place`` belongs to the word of the one before it."""
    if not place:
        return False
    before, here = _kind(text[place - 1]), _kind(text[place])
    inside = ("letter", "digit", "mark")
    if here == "mark" or before == "blank":
        return True
    if here in inside and before in inside:
        return True
    # An apostrophe between letters, a point or comma between digits: they divide no word.
    for middle in (place, place - 1):
        around = text[middle - 1 : middle] + text[middle + 1 : middle + 2]
        if middle and len(around) == 2:
            kinds = {_kind(character) for character in around}
            if (text[middle] in "'\u2019" and kinds == {"letter"}) or (
                text[middle] in ".," and kinds == {"digit"}
            ):
                return True
    return False


def word_numbers(tokens: Sequence[str], kind: str, *, eos: bool) -> list[int]:
    """The word, counted from 0, that each token belongs to.

    Args:
        tokens: As shown to the user.
        kind: Of the tokenizer; with ``space`` each token is a word.
        eos: Whether the last token is the end, which is a word of its own.
    """
    pieces = list(tokens[:-1] if eos else tokens)
    if kind == "space":
        numbers = list(range(len(pieces)))
    else:
        pieces = [piece.replace(_MARK, " ") if is_marked(kind) else piece for piece in pieces]
        text, starts = "".join(pieces), np.cumsum([0, *map(len, pieces)]).tolist()
        numbers, number = [], -1
        for place, piece in enumerate(pieces):
            # A piece that ends one word and begins another keeps them together.
            if not piece or number < 0 or not _goes_on(text, starts[place]):
                number += 1
            numbers.append(number)
    return [*numbers, (numbers[-1] + 1 if numbers else 0)] if eos else numbers


def _texts(tokens: Sequence[str], numbers: Sequence[int], kind: str) -> list[str]:
    words = [""] * (max(numbers, default=-1) + 1)
    for token, number in zip(tokens, numbers, strict=True):
        words[number] += token.replace(_MARK, " ") if is_marked(kind) else token
    return [word.strip() or word for word in words]


def by_words(record: AlignmentRecord, *, source_kind: str, target_kind: str) -> AlignmentRecord:
    """The alignment between words: weights summed over a word's source pieces, averaged over its target pieces."""
    source = word_numbers(record.source_tokens, source_kind, eos=record.source_eos)
    target = word_numbers(record.target_tokens, target_kind, eos=record.target_eos)
    gather = np.zeros((len(source), max(source, default=-1) + 1), np.float32)
    gather[np.arange(len(source)), source] = 1
    share = np.zeros((max(target, default=-1) + 1, len(target)), np.float32)
    share[target, np.arange(len(target))] = 1
    share /= share.sum(1, keepdims=True)
    return AlignmentRecord(
        source_tokens=_texts(record.source_tokens, source, source_kind),
        target_tokens=_texts(record.target_tokens, target, target_kind),
        weights=share @ record.weights @ gather,
        text=record.text,
        score=record.score,
        source_eos=record.source_eos,
        target_eos=record.target_eos,
    )
