# SPDX-License-Identifier: BSD-2-Clause
"""The programs of bench/cache: how each is compiled, and how they are run."""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from . import pedigree, record
from .resume import published
from .testbed import BENCH, TestbedError

CACHE = BENCH / "cache"
SRC = BENCH.parent / "src"
SOURCES = {
    "generate": ["generate.cc"],
    "origin": ["origin.c"],
    "replay": ["replay.c", "trace.c"],
    "simulate": ["simulate.c", "trace.c"],
}

GB = 10**9
WINDOWS = 12  # of a trace
FIXED = [2**n for n in range(10, 31, 2)]  # bytes: values of c
ON = ["--admission", "on", "--sample", "16"]
ADAPTSIZE = ["--frequency", "off"]
Result = dict[str, Any]


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


def simulated(command: Sequence[str]) -> Result:
    """Return what our simulator says."""
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise TestbedError(done.stderr.strip())
    found: Result = json.loads(done.stdout)
    return found


def generated(generate: str, kind: str, requests: int, seed: int,
              trace: Path) -> str:
    """Make a trace, and return its path."""
    subprocess.run([generate, kind, str(requests), str(seed), trace],
                   check=True)
    return str(trace)


def over_seeds(values: Sequence[float]) -> Result:
    """Return the median, the least and the most."""
    return {"median": round(median(values), 4), "least": round(min(values), 4),
            "most": round(max(values), 4)}


def numbers(text: str) -> list[int]:
    """Read numbers with commas between."""
    return [int(n) for n in text.split(",")]


def hits(found: Result) -> list[float]:
    """Return the hit ratio of each window."""
    return [w["objects"] for w in found["windows"]]


def best_in_windows(runs: Sequence[Result]) -> list[float]:
    """Return the hit ratio of the best run in each window."""
    return [max(window) for window in zip(*map(hits, runs), strict=True)]


def recorded(
    name: str, options: argparse.Namespace, more: Result,
    measure: Callable[[argparse.Namespace, Path], list[Result]],
    words: Sequence[str] | None = None,
) -> int:
    """Measure, and write the result to a file; return the exit status.

    The record says these words for the command line, by default all.
    """
    code, program = pedigree.code(), Path(sys.argv[0]).name
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = measure(options, Path(folder))
        record.write({
            "experiment": name, "date": str(datetime.date.today()), **code,
            "command": published(
                f"bench/cache/{program}",
                sys.argv[1:] if words is None else words),
            **more, "results": results,
        }, options.result.stem, options.result.parent)
    except (TestbedError, subprocess.CalledProcessError) as e:
        print(f"{program}: {e}", file=sys.stderr)
        return 2
    return 0
