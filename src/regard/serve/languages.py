"""Languages of the models: their names, the model between two, and which one a text is in."""

from __future__ import annotations

from typing import Any

from regard.serve.catalogue import Catalogue, ServedModel
from regard.serve.problems import Problem

__all__ = ["detect_language", "language_name", "model_between"]


def language_name(code: str) -> str:
    """The English name of a code, or the code itself."""
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(code, sep="-").get_display_name("en") or code
    except (UnknownLocaleError, ValueError, TypeError):
        return code


def _pairs(catalogue: Catalogue) -> list[tuple[ServedModel, tuple[str, str]]]:
    found = [(served, served.languages) for served in catalogue if served.languages]
    if not found:
        raise Problem(
            400,
            "no_languages",
            "no model of this server is known to be between two languages; start it with --languages "
            "NAME=SOURCE:TARGET",
        )
    return found


def model_between(catalogue: Catalogue, source: str, target: str) -> ServedModel:
    """The first model from one language to another.

    Raises:
        Problem: There is none; which there are.
    """
    pairs = _pairs(catalogue)
    for served, languages in pairs:
        if languages == (source, target):
            return served
    known = ", ".join(dict.fromkeys(f"{one} to {other}" for _, (one, other) in pairs))
    raise Problem(
        400, "no_such_pair", f"no model is between these languages; there is {known}", field="target"
    )


def detect_language(catalogue: Catalogue, text: str) -> list[dict[str, Any]]:
    """Source languages, the likeliest first.

    The confidence is the share of the text's tokens (blanks apart) that a model's vocabulary has, which tells
    scripts apart but not languages of one script.

    Raises:
        Problem: No model has languages.
    """
    shares: dict[str, float] = {}
    for served, (source, _) in _pairs(catalogue):
        tokens, unknown = served.model.source_tokenizer.pieces(text)
        n_tokens = sum(1 for token in tokens if token.strip())
        n_unknown = sum(1 for token in unknown if token.strip())
        share = 0.0 if not n_tokens else 1 - n_unknown / n_tokens
        shares[source] = max(shares.get(source, 0.0), share)
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return [{"confidence": round(100 * max(0.0, share), 1), "language": code} for code, share in ranked]
