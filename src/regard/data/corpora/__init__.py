"""Corpora by name, made offline: CLDR expressions of any two locales, dictionaries, and copying tasks.

Another package adds one through an entry point of the group ``regard.corpora`` that names a
`CorpusSource`.
"""

from __future__ import annotations

from typing import Any

from regard.data.corpora.base import Corpus, CorpusSource
from regard.errors import ConfigError, DataError, did_you_mean
from regard.registry import Registry

__all__ = ["CORPORA", "Corpus", "CorpusSource", "corpus_source", "load_corpus"]

CORPORA = Registry(
    "corpora",
    {
        "cldr": "regard.data.corpora.cldr:SOURCE",
        "cmudict": "regard.data.corpora.cmudict:SOURCE",
        "cedict": "regard.data.corpora.cedict:SOURCE",
        "copy": "regard.data.corpora.symbols:COPY",
        "reverse": "regard.data.corpora.symbols:REVERSE",
        "sort": "regard.data.corpora.symbols:SORT",
    },
)


def corpus_source(name: str) -> CorpusSource:
    """Return the entry of a corpus, by its name with or without what follows the colon.

    Raises:
        DataError: There is no such corpus; the message lists those that are, and the nearest.
    """
    try:
        source: CorpusSource = CORPORA.get(name.partition("?")[0].partition(":")[0])
    except ConfigError as error:
        raise DataError(str(error)) from None
    return source


def load_corpus(name: str, *, size: int | None = None, seed: int | None = None, **options: Any) -> Corpus:
    """Make a built-in corpus; the same arguments give the same pairs in every process.

    Args:
        name: ``cldr:zh-en`` (any two locales), ``cmudict``, ``cedict``, ``copy``, ``reverse``, ``sort`` or one
            that a package has added; options may follow as in ``cldr:zh-en?items=1-12``, ``size`` and ``seed``
            among them for where only a name can be given: ``copy:5-100?size=50000``.
        size: Training pairs; by default what the corpus finds right, or all that it has.
        seed: Of the drawing and the split; 1 if neither this nor the name says another.
        **options: As after the question mark, and stronger: ``items`` (cldr), ``stress`` (cmudict),
            ``lengths`` and ``symbols`` (copy, reverse, sort; lengths also as in ``copy:5-100``).

    Raises:
        DataError: Unknown names, options, locales or values, more pairs asked for than there are, or a
            package that is not installed.
    """
    source = corpus_source(name)
    plain, _, query = name.partition("?")
    asked = _parse_query(query, name)
    in_name: dict[str, str] = {option: asked.pop(option) for option in ("size", "seed") if option in asked}
    size = _whole_number(in_name, "size", name) if size is None else size
    seed = _whole_number(in_name, "seed", name) if seed is None else seed
    merged = {**asked, **options}
    for option in merged:
        if option not in source.options:
            allowed = ", ".join(source.options) or "none"
            raise DataError(
                f"the corpus {source.usage} has no option {option!r}; its options: {allowed}"
                f"{did_you_mean(option, source.options)}"
            )
    return source.load(plain.partition(":")[2], size=size, seed=1 if seed is None else seed, **merged)


def _whole_number(options: dict[str, str], option: str, name: str) -> int | None:
    if option not in options:
        return None
    if not options[option].isdecimal():
        raise DataError(f"{name}: {option} is {options[option]!r}, but a whole number was expected")
    return int(options[option])


def _parse_query(query: str, name: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise DataError(f"{name}: {part!r} is no option; options are written as ?items=1-3&more=...")
        options[key] = value
    return options
