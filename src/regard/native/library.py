"""The compiled library: finding it, and its structures as ctypes sees them.

`Layer`, `Model` and the others mirror `csrc/model.h`, field by field; loading compares their sizes.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

__all__ = ["Found", "Job", "Layer", "Library", "Model", "Product", "Result", "Settings", "load_library"]

FILE = Path(__file__).with_name("_regard.so")
"""Where `hatch_build.py` puts it."""


class Product(ctypes.Structure):
    """Packed weights."""

    _fields_ = (("n", c_int32), ("k", c_int32), ("precision", c_int32), ("packed", c_void_p))


class Layer(ctypes.Structure):
    """A recurrent layer in one direction."""

    _fields_ = (
        ("cell", c_int32),
        ("size", c_int32),
        ("table", c_void_p),
        ("input", POINTER(Product)),
        ("base", c_void_p),
        ("recurrent_bias", c_void_p),
        ("recurrent", POINTER(Product)),
    )


class Model(ctypes.Structure):
    """A whole model."""

    _fields_ = (
        ("kernels", c_void_p),
        *((name, c_int32) for name in ("size", "embedding_size", "vocabulary_size")),
        *((name, c_int32) for name in ("encoder_layers", "directions", "decoder_layers")),
        *((name, c_int32) for name in ("residual", "reverse", "context", "additive")),
        ("source_embedding", c_void_p),
        ("target_embedding", c_void_p),
        ("encoder", POINTER(Layer)),
        ("decoder", POINTER(Layer)),
        ("bridge", POINTER(Product)),
        ("bridge_bias", c_void_p),
        ("projection", POINTER(Product)),
        ("projection_bias", c_void_p),
        ("pool_query", c_void_p),
        ("keys", POINTER(Product)),
        ("key_bias", c_void_p),
        ("key_scale", c_float),
        ("key_size", c_int32),
        ("query", POINTER(Product)),
        ("score_vector", c_void_p),
        ("values", POINTER(Product)),
        ("feed_context", POINTER(Product)),
        ("feed_output", POINTER(Product)),
        ("read_state", POINTER(Product)),
        ("read_context", POINTER(Product)),
        ("read_bias", c_void_p),
        ("output", POINTER(Product)),
        ("output_bias", c_void_p),
        ("zeros", c_void_p),
    )


class Settings(ctypes.Structure):
    """How to search."""

    _fields_ = (
        *((name, c_int32) for name in ("beam", "nbest", "slots", "keep_weights")),
        ("length_penalty", c_double),
    )


class Job(ctypes.Structure):
    """Sources to decode, the longest first."""

    _fields_ = (
        ("n_sources", c_int32),
        ("next", c_int32),
        ("tokens", c_void_p),
        ("offsets", c_void_p),
        ("limits", c_void_p),
    )


class Found(ctypes.Structure):
    """One hypothesis."""

    _fields_ = (
        *((name, c_int32) for name in ("source", "n_tokens", "finished", "place")),
        ("score", c_double),
        ("normalised", c_double),
        ("tokens_at", c_int64),
        ("weights_at", c_int64),
    )


class Result(ctypes.Structure):
    """All hypotheses that one thread found."""

    _fields_ = (
        ("found", POINTER(Found)),
        ("tokens", POINTER(c_int32)),
        ("log_probs", POINTER(c_float)),
        ("weights", POINTER(c_float)),
        *((name, c_int64) for name in ("n_found", "n_tokens", "n_weights")),
        *((name, c_int64) for name in ("room_found", "room_tokens", "room_weights")),
    )


def _layout() -> int:
    sizes = [ctypes.sizeof(kind) for kind in (Model, Layer, Settings, Job)]
    last = sum(ctypes.sizeof(kind) for kind in (Found, Result, Product))
    return sizes[0] * 10**9 + sizes[1] * 10**6 + sizes[2] * 10**4 + sizes[3] * 100 + last


class Library:
    """The loaded library.

    Args:
        path: The file.
        limit: Take no faster kernels than these: portable, AVX2 or AVX-512; for tests.

    Raises:
        OSError: It cannot be loaded, or was compiled from other sources.
    """

    def __init__(self, path: Path, *, limit: str | None = None) -> None:
        loaded = ctypes.CDLL(str(path))
        loaded.regard_layout.restype = c_int64
        if loaded.regard_layout() != _layout():
            raise OSError(f"{path.name} was compiled from other sources; install regard again")
        loaded.regard_kernels.argtypes, loaded.regard_kernels.restype = [c_char_p], c_void_p
        loaded.regard_name.argtypes, loaded.regard_name.restype = [c_void_p], c_char_p
        loaded.regard_pack.argtypes = [c_void_p, c_void_p, POINTER(Product)]
        loaded.regard_unpack.argtypes = [POINTER(Product)]
        pointers = [POINTER(kind) for kind in (Model, Settings, Job, Result)]
        loaded.regard_decode.argtypes = pointers
        loaded.regard_free.argtypes = [POINTER(Result)]
        self.pack, self.unpack = loaded.regard_pack, loaded.regard_unpack
        self.decode, self.free = loaded.regard_decode, loaded.regard_free
        self.kernels = loaded.regard_kernels(None if limit is None else limit.encode())
        self.name: str = loaded.regard_name(self.kernels).decode()


@cache
def load_library() -> Library | str:
    """Return the library, or why there is none."""
    if not FILE.is_file():
        return "not compiled: there was no C compiler when regard was installed"
    try:
        return Library(FILE, limit=os.environ.get("REGARD_KERNELS"))
    except (OSError, AttributeError) as error:
        return f"cannot be loaded ({error})"
