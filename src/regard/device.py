"""Which device, how many threads and what precision; chosen by capability and said aloud."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from regard.errors import ConfigError

__all__ = [
    "autocast",
    "choose_device",
    "choose_precision",
    "has_bfloat16_units",
    "keep_freed_memory",
    "set_threads",
]


def choose_device(name: str) -> torch.device:
    """Return the device of a setting; ``auto`` takes CUDA where there is one, else the processor.

    Raises:
        ConfigError: There is no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used here ({reason}); take auto or cpu") from None
    return device


def has_bfloat16_units(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 matrices faster than float32 ones (AMX, AVX-512 BF16, GPU)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported()
    if device.type != "cpu":
        return False
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(bool(getattr(torch.cpu, check, bool)()) for check in checks)


def choose_precision(setting: str, device: torch.device) -> torch.dtype:
    """Return the precision of matrix products; the weights stay float32 in any case.

    Raises:
        ConfigError: bfloat16 is asked for where the kernels have none.
    """
    if setting == "auto":
        return torch.bfloat16 if has_bfloat16_units(device) else torch.float32
    if setting == "bfloat16" and device.type == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        raise ConfigError("precision bfloat16: this processor cannot do it (it lacks AVX-512); take auto")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[setting]


def autocast(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[object]:
    """A context in which matrix products run in ``dtype``."""
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def set_threads(threads: int) -> None:
    """Use so many threads; 0 is as many as the process may run on."""
    if threads == 0:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads != torch.get_num_threads():
        torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Let the C library keep what is freed, for the next batch, instead of giving it back to the system.

    A batch's tensors are freed at its end and asked for again at once; given back each time, the system has to
    make fresh pages of zeros again. What the process holds stays at its peak. Linux with glibc only.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        trim_threshold, mmap_threshold, largest = -1, -3, 2**31 - 1  # of <malloc.h>
        mallopt(trim_threshold, largest)
        mallopt(mmap_threshold, largest)
