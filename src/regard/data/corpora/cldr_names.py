"""The closed kinds of CLDR expressions: names of countries and territories, of languages and of scripts.

A name cannot be worked out, only be remembered. So the names are few, and the same in all splits.
"""

from __future__ import annotations

from collections.abc import Mapping

from babel import Locale
from babel.core import get_global

from regard.data.corpora.cldr_kinds import tidy

__all__ = ["closed_names"]


def _official() -> tuple[list[str], list[str], list[str]]:
    """Codes of territories with an official language, of those languages (two letters), and their scripts."""
    spoken: Mapping[str, Mapping[str, Mapping[str, str | None]]] = get_global("territory_languages")
    official = {
        territory: [code for code, facts in languages.items() if facts["official_status"]]
        for territory, languages in spoken.items()
    }
    territories = sorted(territory for territory, codes in official.items() if codes)
    languages = sorted({code for codes in official.values() for code in codes if len(code) == 2})
    likely: Mapping[str, str] = get_global("likely_subtags")
    scripts = sorted({likely[code].split("_")[1] for code in languages if code in likely})
    return territories, languages, scripts


def closed_names(source: Locale, target: Locale) -> dict[str, list[tuple[str, str]]]:
    """Names that both locales have, by kind, in the order of their codes.

    Where one source text names two things (English "Arabic" is a language and a script) the earlier kind
    keeps it: countries, then languages, then scripts.
    """
    territories, languages, scripts = _official()
    wanted = {
        "countries": (territories, source.territories, target.territories),
        "languages": (languages, source.languages, target.languages),
        "scripts": (scripts, source.scripts, target.scripts),
    }
    taken: set[str] = set()
    names: dict[str, list[tuple[str, str]]] = {}
    for kind, (codes, in_source, in_target) in wanted.items():
        names[kind] = []
        for code in codes:
            if code not in in_source or code not in in_target or tidy(in_source[code]) in taken:
                continue
            taken.add(tidy(in_source[code]))
            names[kind].append((tidy(in_source[code]), tidy(in_target[code])))
    return {kind: pairs for kind, pairs in names.items() if pairs}
