"""What each result table says of where it was measured, and where the real data are."""

from __future__ import annotations

import os
import platform
import sys
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def shared_data() -> Path:
    """The real data; ends the benchmark with a reason where there are none."""
    named = os.environ.get("REGARD_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        sys.exit(f"skipped: needs the real data, and {folder} does not exist (set REGARD_DATA)")
    return folder


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe() -> str:
    """Machine, versions and day in one line."""
    import torch

    import regard

    return (
        f"{processor()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}; regard "
        f"{regard.__version__}, torch {torch.__version__}, Python {platform.python_version()}; {date.today()}"
    )
