"""Tokenizers of one side of the pairs, through the library `tokenizers`; saved as JSON.

``char`` and ``grapheme`` are what they say; ``space`` splits at U+0020 and forgets how many there were.
``word``, ``bpe`` and ``unigram`` mark U+0020 by ``▁`` (as SentencePiece does) and set punctuation apart, so
that joining the tokens and turning the marks back gives the text; only a text's own ``▁`` comes back as a
blank. No reserved entry is registered with the library as a special token: there it would match text of the
same spelling.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
_KINDS = ("char", "grapheme", "space", *_MARKED)
_FORMS = ("NFC", "NFD", "NFKC", "NFKD", "none")
_SURROGATE = re.compile("[\ud800-\udfff]")


def _prepare(text: str, kind: str) -> str:
    """Set the blank that marks the first word; half surrogates, which are no text, become U+FFFD."""
    text = _SURROGATE.sub("\ufffd", text)
    return " " + text if text and kind in _MARKED else text


def _holdable(texts: Sequence[str], size: int) -> Sequence[str]:
    """Leave the rarest characters out of prepared, normalised texts, if ``size`` entries cannot hold all."""
    counts = Counter(character for text in texts for character in text.replace(" ", _MARK))
    del counts[_MARK]
    # Beside the reserved entries, the mark, which stands for the blank, and one piece: without that one, the
    # library's unigram trainer runs past the size.
    room = size - len(RESERVED) - 2
    rare = sorted(counts, key=lambda character: (-counts[character], character))[room:]
    if not rare:
        return texts
    dropped = dict.fromkeys(map(ord, rare))
    return [text.translate(dropped) for text in texts]


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
    # Not "always", which marks no text that begins with a blank, and so loses that blank: see `_prepare`.
    steps = [pre_tokenizers.Metaspace(_MARK, "never"), pre_tokenizers.Punctuation("isolated")]
    if kind != "word":
        # Digit by digit, so that a number that was never seen is made of symbols that were.
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    return pre_tokenizers.Sequence(steps)


def _trained_model(
    kind: str, texts: Iterable[str], backend: Backend, settings: SideSettings
) -> dict[str, Any]:
    """Train subwords on prepared texts; returns the library's own description of the whole tokenizer."""
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
    normalise = backend.normalizer.normalize_str if backend.normalizer is not None else str
    sample = _holdable([normalise(text) for text in texts], settings.vocabulary_size)
    backend.train_from_iterator(sample, trainer)
    described: dict[str, Any] = json.loads(backend.to_str())
    described["added_tokens"] = []
    if kind == "unigram":
        # The library scores the rarest characters in the order of a hash table, so their scores differ from
        # run to run (by less than 0.001); numbered by spelling, the pieces do not depend on it. (On small data
        # such a table may also decide what is pruned. The model folder keeps what was made.)
        pieces = described["model"]["vocab"]
        pieces[len(RESERVED) :] = sorted(pieces[len(RESERVED) :], key=lambda piece: piece[0])
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
            step = max(1, len(texts) // _TRAIN_SAMPLE)
            prepared = (_prepare(text, kind) for text in texts[::step])
            described = _trained_model(kind, prepared, backend, settings)
            return cls(Backend.from_str(json.dumps(described)), kind=kind, normal_form=form, why=why)
        split = backend.pre_tokenizer.pre_tokenize_str
        prepared = (_prepare(text, kind) for text in texts)
        symbols = (
            (symbol for symbol, _ in split(normalizer.normalize_str(text) if normalizer else text))
            for text in prepared
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
        prepared = [_prepare(text, self.kind) for text in texts]
        return [encoding.ids for encoding in fast(prepared, add_special_tokens=False)]

    def pieces(self, text: str) -> Pieces:
        """The tokens as they stand in the normalised text, unknown ones too, and the unknown ones apart.

        Blanks are shown as their mark among the tokens, and left out of the unknown ones.
        """
        normalizer = self._backend.normalizer
        # Offsets go by what is passed in; normalised first, they fit the tokens also where a form splits one.
        text = _prepare(text, self.kind)
        text = normalizer.normalize_str(text) if normalizer is not None else text
        encoding = self._backend.encode(text, add_special_tokens=False)
        tokens, unknown = [], []
        for number, name, (start, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True):
            if number != UNK:
                tokens.append(name)
                continue
            raw = text[start:end]
            marked = self.kind in _MARKED
            tokens.append(raw.replace(" ", _MARK) if marked else raw)
            unknown.append(raw.removeprefix(" ") if marked else raw)
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
        symbols: list[str] = []
        for place, number in enumerate(ids):
            if number >= UNK:
                copied = replacements.get(place)
                symbols.append(
                    self.token(number) if copied is None else self._as_written(copied, not symbols)
                )
        return self.join(symbols)

    def _as_written(self, copied: str, first: bool) -> str:
        """A source token as this side writes it: here the mark of another kind of tokenizer means nothing."""
        if self.kind in _MARKED or len(copied) < 2 or not copied.startswith(_MARK):
            return copied
        return ("" if first or self.kind == "space" else " ") + copied[1:]

    def join(self, symbols: Sequence[str]) -> str:
        """Join symbols as this tokenizer splits them."""
        text = (" " if self.kind == "space" else "").join(symbols)
        if self.kind in _MARKED:
            text = text.replace(_MARK, " ").removeprefix(" ")
        return text if self.normal_form == "none" else unicodedata.normalize("NFC", text)

    def describe(self) -> dict[str, Any]:
        """All there is to it, as JSON values."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "normal_form": self.normal_form,
            "why": self.why,
            "tokenizer": json.loads(self._backend.to_str()),
        }

    def save(self, path: Path) -> None:
        """Write the tokenizer as JSON, atomically."""
        described = self.describe()
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
            kind, form = described["kind"], described["normal_form"]
            if kind not in _KINDS or form not in _FORMS:
                raise ValueError(f"kind {kind!r}, normal form {form!r}")
            backend = Backend.from_str(json.dumps(described["tokenizer"]))
            made = cls(backend, kind=kind, normal_form=form, why=described["why"])
            if tuple(made._names[: len(RESERVED)]) != RESERVED:
                raise ValueError("the reserved entries are not where they belong")
            return made
        except ModelFolderError:
            raise
        except FileNotFoundError:
            raise ModelFolderError(f"{path}: missing; the model folder is not complete") from None
        except Exception as error:  # the library raises bare Exception for what it cannot read
            reason = str(error).splitlines()[0][:120]
            raise ModelFolderError(f"{path}: not a tokenizer of regard ({reason})") from None
