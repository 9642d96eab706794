"""Looking at texts to choose a tokenizer and a normal form, and to say why."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["choose_kind", "choose_normal_form"]

_SAMPLE = 5000


def _sample(texts: Sequence[str]) -> Sequence[str]:
    return texts[:: max(1, len(texts) // _SAMPLE)]


def _is_unspaced_script(character: str) -> bool:
    """Whether a character belongs to a script that is written without blanks between words."""
    code = ord(character)
    return 0x0E00 <= code <= 0x0EFF or 0x1780 <= code <= 0x17FF or 0x3040 <= code <= 0x9FFF or code >= 0x20000


def choose_kind(texts: Sequence[str]) -> tuple[str, str]:
    """Return ``space``, ``char`` or ``bpe`` for texts, and the reason.

    Blank-separated symbols of a small inventory (phones) are symbols; scripts without blanks and single
    words are characters; longer text is subwords.
    """
    sample = _sample(texts)
    split = [text.split(" ") for text in sample]
    words = [word for text in split for word in text if word]
    if not words:
        return "char", "there is no text to judge by"
    mean_words = len(words) / len(sample)
    mean_len = sum(map(len, words)) / len(words)
    n_types = len(set(words))
    spaced = sum(1 for text in split if len(text) > 1) / len(sample)
    if (
        mean_len <= 2.5
        and spaced >= 0.5
        and mean_words >= 1.5
        and n_types <= max(20, min(500, len(words) // 5))
    ):
        return "space", f"{n_types} short symbols with blanks between them"
    letters = [character for word in words for character in word if character.isalpha()]
    unspaced = sum(map(_is_unspaced_script, letters)) / max(1, len(letters))
    if unspaced > 0.3:
        return "char", "a script without blanks between words"
    if mean_words >= 2.5:
        return "bpe", f"{mean_words:.1f} words a line on average"
    return "char", f"short texts of {mean_words:.1f} words on average"


def choose_normal_form(texts: Sequence[str]) -> tuple[str, str]:
    """Return NFC, or NFD where it at least halves a large inventory (hangul syllables to letters)."""
    inventory: set[str] = set()
    for text in _sample(texts):
        inventory.update(unicodedata.normalize("NFC", text))
    parts = {part for character in inventory for part in unicodedata.normalize("NFD", character)}
    if len(inventory) > 150 and len(inventory) >= 2 * len(parts):
        return "NFD", f"it makes {len(parts)} symbols of {len(inventory)}"
    return "NFC", ""
