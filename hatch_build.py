"""Compiles the library of `regard.native` when regard is installed; without a C compiler it is left out."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Fused multiply-add wherever a kernel's instruction set has it: products are twice as fast.
FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-ffp-contract=fast", "-fno-math-errno")


class CompileNative(BuildHookInterface):
    """Puts ``_regard.so`` beside the sources that it is made of."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a failure is told and otherwise passed over, since torch can do all that the library does."""
        if self.target_name != "wheel" or sys.platform == "win32":
            return
        folder = Path(self.root) / "src" / "regard" / "native"
        made = folder / "_regard.so"
        if not compile_library(folder / "csrc", made):
            made.unlink(missing_ok=True)
            self.app.display_warning("no C compiler that works: regard will decode with torch alone, slower")
            return
        build_data["artifacts"].append("src/regard/native/_regard.so")
        build_data["pure_python"] = False
        # Loaded by ctypes, it goes with any Python.
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_library(sources: Path, made: Path) -> bool:
    """Compile all C files of a folder into one library; whether it worked."""
    compiler = shlex.split(os.environ.get("CC", "")) or [shutil.which("cc") or shutil.which("gcc") or "clang"]
    command = [*compiler, *FLAGS, "-o", str(made), *map(str, sorted(sources.glob("*.c"))), "-lm"]
    try:
        return subprocess.run(command, check=False).returncode == 0
    except OSError:
        return False
