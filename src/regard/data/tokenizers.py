"""Tokenizers of one side of the pairs, through the library `tokenizers`; saved as JSON.

All are reversible. ``char``, ``grapheme`` and ``space`` are what they say; ``word``, ``bpe`` and ``unigram``
mark U+0020 by ``▁`` (as SentencePiece does) and set punctuation apart, so that joining the tokens and
turning the marks back gives the text. No reserved entry is registered with the library as a special token:
there it would match text of the same spelling.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Regex, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Backend

from regard.atomic import write_text
from regard.config import SideSettings
from regard.data.inspect import choose_kind, choose_normal_form
from regard.data.vocabulary import RESERVED, UNK, UNKNOWN_SIGN, make_vocabulary
from regard.errors import ModelFolderError

__all__ = ["Pieces", "Tokenizer"]

# The library warns when a process forks after threads have run; we never fork while encoding.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

_FORMAT = "regard-tokenizer"
_VERSION = 1
_MARK = "\u2581"
_MARKED = ("word", "bpe", "unigram")
_TRAIN_SAMPLE = 200_000


class Pieces(NamedTuple):
    """How a text was split: the tokens as they stand in it, and those that the vocabulary lacks."""

    tokens: list[str]
    unknown: list[str]


def _normalizer(form: str, lowercase: bool) -> normalizers.Normalizer | None:
    steps: list[normalizers.Normalizer] = []
    if lowercase:
        steps.append(normalizers.Lowercase())
    if form != "none":
        steps.append(getattr(normalizers, form)())
    return normalizers.Sequence(steps) if steps else None


def _pre_tokenizer(kind: str) -> pre_tokenizers.PreTokenizer:
    if kind == "char":
        return pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    if kind == "grapheme":
        return pre_tokenizers.Split(Regex(r"\X"), "isolated")
    if kind == "space":
        return pre_tokenizers.Split(" ", "removed")
    steps = [pre_tokenizers.Metaspace(_MARK, "always"), pre_tokenizers.Punctuation("isolated")]
    if kind != "word":
        # Digit by digit, so that a number that was never seen is made of symbols that were.
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    return pre_tokenizers.Sequence(steps)


def _trained_model(
    kind: str, texts: Sequence[str], backend: Backend, settings: SideSettings
) -> dict[str, Any]:
    """Train subwords; returns the library's own description of the whole tokenizer."""
    shared: dict[str, Any] = {
        "vocab_size": settings.vocabulary_size,
        "special_tokens": list(RESERVED),
        "show_progress": False,
    }
    if kind == "bpe":
        backend.model = models.BPE(unk_token=RESERVED[UNK])
        trainer: Any = trainers.BpeTrainer(min_frequency=max(2, settings.min_frequency), **shared)
    else:
        backend.model = models.Unigram()
        trainer = trainers.UnigramTrainer(unk_token=RESERVED[UNK], **shared)
    step = max(1, len(texts) // _TRAIN_SAMPLE)
    backend.train_from_iterator(texts[::step], trainer)
    described: dict[str, Any] = json.loads(backend.to_str())
    described["added_tokens"] = []
    if kind == "unigram":
        # Pieces of equal probability come in the order of a hash table. (On small data the library also lets
        # such a table decide what is pruned: two trainings may differ. The model folder keeps what was made.)
        pieces = described["model"]["vocab"]
        pieces[len(RESERVED) :] = sorted(pieces[len(RESERVED) :], key=lambda piece: (-piece[1], piece[0]))
    return described


class Tokenizer:
    """Splits text into token ids and joins them again.

    Args:
        backend: The library's tokenizer.
        kind: char, grapheme, space, word, bpe or unigram.
        normal_form: NFC, NFD, NFKC, NFKD or none; applied to whatever is encoded.
        why: What `auto` saw, for the user.
    """

    def __init__(self, backend: Backend, *, kind: str, normal_form: str, why: str = "") -> None:
        self._backend, self.kind, self.normal_form, self.why = backend, kind, normal_form, why
        self._names: list[str] = [""] * backend.get_vocab_size(with_added_tokens=False)
        for name, number in backend.get_vocab(with_added_tokens=False).items():
            self._names[number] = name

    @classmethod
    def train(cls, texts: Sequence[str], settings: SideSettings, *, side: str = "text") -> Tokenizer:
        """Make a tokenizer for texts.

        Args:
            texts: The training texts of one side.
            settings: Kind, sizes and normal form; ``auto`` is decided here.
            side: ``source`` or ``target``, for the explanation.
        """
        reasons = []
        kind, form = str(settings.tokenizer), str(settings.normal_form)
        if kind == "auto":
            kind, reason = choose_kind(texts)
            reasons.append(f"{kind}, {reason}")
        if form == "auto":
            form, reason = choose_normal_form(texts)
            if form != "NFC":
                reasons.append(f"{form}, {reason}")
        why = f"{side}: {'; '.join(reasons)}" if reasons else ""
        backend = Backend(models.WordLevel({}, RESERVED[UNK]))
        normalizer = _normalizer(form, settings.lowercase)
        if normalizer is not None:
            backend.normalizer = normalizer
        backend.pre_tokenizer = _pre_tokenizer(kind)
        if kind in ("bpe", "unigram"):
            described = _trained_model(kind, texts, backend, settings)
            return cls(Backend.from_str(json.dumps(described)), kind=kind, normal_form=form, why=why)
        split = backend.pre_tokenizer.pre_tokenize_str
        symbols = (
            (symbol for symbol, _ in split(normalizer.normalize_str(text) if normalizer else text))
            for text in texts
        )
        vocabulary = make_vocabulary(
            symbols, min_frequency=settings.min_frequency, size=settings.vocabulary_size
        )
        backend.model = models.WordLevel(vocabulary, RESERVED[UNK])
        return cls(backend, kind=kind, normal_form=form, why=why)

    def __len__(self) -> int:
        return len(self._names)

    def encode(self, text: str) -> list[int]:
        """Token ids, without the end."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without the end."""
        fast = getattr(self._backend, "encode_batch_fast", self._backend.encode_batch)
        return [encoding.ids for encoding in fast(list(texts), add_special_tokens=False)]

    def pieces(self, text: str) -> Pieces:
        """The tokens as they stand in the normalised text, unknown ones too, and the unknown ones apart."""
        normalizer = self._backend.normalizer
        # Offsets go by what is passed in; normalised first, they fit the tokens also where a form splits one.
        text = normalizer.normalize_str(text) if normalizer is not None else text
        encoding = self._backend.encode(text, add_special_tokens=False)
        tokens, unknown = [], []
        for number, name, (start, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            tokens.append(name if number != UNK else text[start:end])
            if number == UNK:
                unknown.append(text[start:end])
        return Pieces(tokens, unknown)

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text as shown to the user."""
        return self.pieces(text).tokens

    def token(self, number: int) -> str:
        """A token as shown to the user; the unknown one is ``⁇``."""
        return UNKNOWN_SIGN if number == UNK else self._names[number]

    def decode(self, ids: Sequence[int], *, replacements: Mapping[int, str] | None = None) -> str:
        """Join tokens to text, in NFC (unless the normal form is ``none``).

        Args:
            ids: Token ids; padding and end are left out.
            replacements: Text to put at some places of ``ids``, instead of an unknown token.
        """
        replacements = replacements or {}
        symbols = [
            replacements.get(place, self.token(number)) for place, number in enumerate(ids) if number >= UNK
        ]
        return self.join(symbols)

    def join(self, symbols: Sequence[str]) -> str:
        """Join symbols as this tokenizer splits them."""
        text = (" " if self.kind == "space" else "").join(symbols)
        if self.kind in _MARKED:
            text = text.replace(_MARK, " ").removeprefix(" ")
        return text if self.normal_form == "none" else unicodedata.normalize("NFC", text)

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON, atomically."""
        described = {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "normal_form": self.normal_form,
            "why": self.why,
            "tokenizer": json.loads(self._backend.to_str()),
        }
        write_text(path, json.dumps(described, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read what `save` wrote.

        Raises:
            ModelFolderError: The file is missing, damaged or of another version.
        """
        try:
            described = json.loads(path.read_bytes().decode("utf-8"))
            if described["format"] != _FORMAT or described["version"] != _VERSION:
                found = f"{described['format']} version {described['version']}"
                raise ModelFolderError(f"{path}: found {found}, expected {_FORMAT} version {_VERSION}")
            backend = Backend.from_str(json.dumps(described["tokenizer"]))
            return cls(
                backend, kind=described["kind"], normal_form=described["normal_form"], why=described["why"]
            )
        except ModelFolderError:
            raise
        except FileNotFoundError:
            raise ModelFolderError(f"{path}: missing; the model folder is not complete") from None
        except Exception as error:  # the library raises bare Exception for what it cannot read
            reason = str(error).splitlines()[0][:120]
            raise ModelFolderError(f"{path}: not a tokenizer of regard ({reason})") from None
