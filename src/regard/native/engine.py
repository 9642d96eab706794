"""Search by the library: ids in, hypotheses out, as `regard.decode.search` gives them."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from regard.config import DecodingSettings, ModelSettings
from regard.decode.hypothesis import Hypothesis
from regard.errors import ConfigError
from regard.native.library import Job, Library, Result, Settings, load_library
from regard.native.weights import PreparedModel, unsupported

__all__ = ["ENGINES", "ENGINE_VARIABLE", "NativeEngine", "make_native_engine", "uses_native", "why_not"]

ENGINES = ("auto", "native", "torch")

_ROWS = 320
"""Hypotheses advanced together: enough to use the processor's units, few enough to stay in its caches."""
_LOGITS = 1 << 22
"""Most logits of a step (16 MiB)."""
_ROWS_FOR_A_THREAD = 64
"""With fewer hypotheses than this for each, more threads would only wait."""


ENGINE_VARIABLE = "REGARD_ENGINE"
"""The environment variable that chooses: auto (this library where it can), native (only it) or torch."""


def why_not(model: ModelSettings, settings: DecodingSettings) -> str:
    """Why the library cannot decode so here, or an empty string."""
    library = load_library()
    if isinstance(library, str):
        return library
    if settings.precision == "bfloat16" and library.name != "AMX":
        return "bfloat16 without AMX"
    return unsupported(model) or _cannot_search(settings)


def uses_native(model: ModelSettings, settings: DecodingSettings) -> bool:
    """Whether the library is to decode: where it can, and the environment does not say otherwise.

    Raises:
        ConfigError: `ENGINE_VARIABLE` names no engine, or asks for this one where it cannot decode so.
    """
    chosen = os.environ.get(ENGINE_VARIABLE) or "auto"
    if chosen not in ENGINES:
        raise ConfigError(f"{ENGINE_VARIABLE} or --engine: {chosen!r} is none of {', '.join(ENGINES)}")
    if chosen == "torch":
        return False
    reason = why_not(model, settings)
    if reason and chosen == "native":
        raise ConfigError(f"engine native cannot decode so here ({reason}); take auto")
    return not reason


def make_native_engine(
    model: ModelSettings, weights: Mapping[str, np.ndarray], *, precision: str, threads: int
) -> NativeEngine:
    """Make an engine where `uses_native` says so; the arguments are those of `NativeEngine`."""
    library = load_library()
    assert not isinstance(library, str)
    return NativeEngine(library, model, weights, precision=precision, threads=threads)


def _cannot_search(settings: DecodingSettings) -> str:
    """What of the decoding the library lacks, or an empty string."""
    if settings.sample:
        return "sampling"
    if settings.coverage_penalty:
        return "a coverage penalty"
    if settings.precision not in ("float32", "bfloat16"):
        return f"precision {settings.precision}"
    return ""


class NativeEngine:
    """A model that searches.

    Args:
        library: The library.
        settings: The model's settings, which `regard.native.weights.unsupported` has nothing against.
        weights: float32 arrays by the names that `EncoderDecoder` gives them.
        precision: Of the products with weights: float32 or bfloat16.
        threads: Most threads.
    """

    def __init__(
        self,
        library: Library,
        settings: ModelSettings,
        weights: Mapping[str, np.ndarray],
        *,
        precision: str = "float32",
        threads: int = 1,
    ) -> None:
        self._library, self._threads = library, threads
        self._model = PreparedModel(library, settings, weights, precision=precision)

    def search(
        self, sources: Sequence[Sequence[int]], *, settings: DecodingSettings, max_lens: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """Search for outputs; what is found for a source does not depend on the others.

        Args:
            sources: Token ids, each ending in the end token.
            settings: Beam, n-best and length penalty; nothing that `why_not` names.
            max_lens: Longest output of each source in tokens, the end counted.

        Returns:
            For each source at most ``settings.nbest`` hypotheses, best first; none where the model's probabilities
            are no numbers.
        """
        lens = np.array([len(source) for source in sources], dtype=np.int64)
        order = np.argsort(-lens, kind="stable")
        tokens = np.array([token for row in order.tolist() for token in sources[row]], dtype=np.int32)
        offsets = np.zeros(len(lens) + 1, dtype=np.int64)
        np.cumsum(lens[order], out=offsets[1:])
        limits = np.asarray(max_lens, dtype=np.int32)[order]
        job = Job(len(lens), 0, tokens.ctypes.data, offsets.ctypes.data, limits.ctypes.data)
        threads = min(self._threads, max(1, len(lens) * settings.beam // _ROWS_FOR_A_THREAD))
        rows = min(_ROWS, _LOGITS // self._model.struct.vocabulary_size)
        slots = max(1, min(len(lens) // threads, rows // settings.beam))
        how = Settings(settings.beam, settings.nbest, slots, 1, settings.length_penalty)
        made: list[list[Hypothesis]] = [[] for _ in sources]
        for result in self._decode(how, job, threads):
            _read(result, order, lens, made)
            self._library.free(ctypes.byref(result))
        return made

    def _decode(self, settings: Settings, job: Job, threads: int) -> list[Result]:
        """Let some threads share a job; the library runs without the interpreter's lock."""
        results, refused = [Result() for _ in range(threads)], [0] * threads

        def run(number: int) -> None:
            refused[number] = self._library.decode(
                ctypes.byref(self._model.struct),
                ctypes.byref(settings),
                ctypes.byref(job),
                ctypes.byref(results[number]),
            )

        others = [threading.Thread(target=run, args=(number,)) for number in range(1, threads)]
        for thread in others:
            thread.start()
        run(0)
        for thread in others:
            thread.join()
        if any(refused):
            for result in results:
                self._library.free(ctypes.byref(result))
            raise MemoryError("not enough memory to decode; take a smaller beam or shorter inputs")
        return results


def _read(result: Result, order: np.ndarray, lens: np.ndarray, made: list[list[Hypothesis]]) -> None:
    """Copy hypotheses out of a thread's result to the places of their sources."""
    if not result.n_found:
        return
    tokens = result.tokens[: result.n_tokens]
    log_probs = result.log_probs[: result.n_tokens]
    weights = None
    if result.n_weights:
        weights = np.ctypeslib.as_array(result.weights, (result.n_weights,)).copy()
    rows = order.tolist()
    for found in result.found[: result.n_found]:
        row, n, first = rows[found.source], found.n_tokens, found.tokens_at
        attended = None
        if weights is not None:
            size = n * int(lens[row])
            attended = weights[found.weights_at : found.weights_at + size].reshape(1, n, -1)
        made[row].append(
            Hypothesis(
                tokens=tuple(tokens[first : first + n - found.finished]),
                score=found.score,
                normalised=found.normalised,
                token_log_probs=tuple(log_probs[first : first + n]),
                weights=attended,
                finished=bool(found.finished),
            )
        )
