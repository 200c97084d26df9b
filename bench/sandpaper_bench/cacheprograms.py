# SPDX-License-Identifier: BSD-2-Clause
"""The programs of bench/cache: what each is compiled from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from .testbed import BENCH, TestbedError

CACHE = BENCH / "cache"
SRC = BENCH.parent / "src"
SOURCES = {
    "generate": ["generate.cc"],
    "origin": ["origin.c"],
    "replay": ["replay.c", "trace.c"],
    "simulate": ["simulate.c", "trace.c"],
}


def compiled(name: str, folder: Path) -> Path:
    """Compile a program into a folder, and return its path."""
    library = sorted(path for part in ("admission", "memory")
                     for path in (SRC / part).glob("*.c"))
    sources = [CACHE / source for source in SOURCES[name]]
    done = subprocess.run(
        ["g++" if name == "generate" else "gcc", "-O2", "-I", SRC, "-o",
         folder / name, *sources, *(library if name == "simulate" else ()),
         "-lm"], text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"{name} cannot be compiled: {done.stderr}")
    return folder / name
