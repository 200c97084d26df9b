# SPDX-License-Identifier: BSD-2-Clause
"""Policies of others: those of libCacheSim, and webcachesim's AdaptSize.

A policy of libCacheSim runs in a process of its own, this file's main.  If it
crashes, it takes nothing else with it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

from .cacheprograms import Result
from .testbed import BENCH, TestbedError

PEERS = {  # the class in libcachesim, and how many seeds: two are slow
    "SIEVE": ("Sieve", 99), "S3-FIFO": ("S3FIFO", 99), "LHD": ("LHD", 99),
    "GDSF": ("GDSF", 99), "W-TinyLFU": ("WTinyLFU", 1),
    "AdaptSize, libCacheSim": ("LRU", 1),
}
WEBCACHESIM = "AdaptSize, webcachesim"


def version() -> str | None:
    """Return the version of libCacheSim's Python package, if it is there."""
    try:
        return importlib.metadata.version("libcachesim")
    except importlib.metadata.PackageNotFoundError:
        return None


def peer(name: str, window: int, trace: str, size: int) -> Result:
    """Return the hit ratios of a policy of libCacheSim.  AdaptSize chooses a
    new c after each window of requests."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, name, str(window),
         Path(trace).absolute(), str(size)], cwd=BENCH, text=True,
        # It warns of each object that is larger than the cache
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise TestbedError(
            f"{name} of libcachesim failed with a cache of {size} bytes, "
            f"status {done.returncode}: use --no-peers, or another size")
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found


def webcachesim_in(folder: Path) -> Path:
    """Return webcachesim's program."""
    program = folder.absolute() / "webcachesim"
    if not program.is_file() or not os.access(program, os.X_OK):
        raise TestbedError(
            f"--webcachesim {folder}: there is no program webcachesim: build "
            "it there, or use the folder where it is")
    return program


def webcachesim(program: Path, window: int, trace: Path, requests: int,
                size: int) -> Result:
    """Return the hit ratio of its AdaptSize.  It prints none of bytes."""
    done = subprocess.run(
        [program, trace, "AdaptSize", str(size), f"t={window}"], text=True,
        capture_output=True, check=False)
    words = (done.stdout.splitlines() or [""])[-1].split()
    if (done.returncode != 0 or len(words) < 3 or words[-3] != str(requests)
            or not words[-2].isdigit()):
        said = (done.stdout + done.stderr).strip().splitlines() or ["nothing"]
        raise TestbedError(
            f"webcachesim does not say the hits of {requests} requests with a "
            f"cache of {size} bytes. Status {done.returncode}, and it says: "
            f"{said[-1][:200]}")
    return {"objects": int(words[-2]) / requests}


def main(name: str, window: str, trace: str, size: str) -> None:
    """Run a policy of libCacheSim, and print its hit ratios."""
    import libcachesim

    more = {"admissioner": libcachesim.AdaptSizeAdmissioner(
        reconf_interval=int(window))} if "AdaptSize" in name else {}
    cache = getattr(libcachesim, PEERS[name][0])(
        cache_size=int(size), hashpower=20, **more)
    missed, missed_bytes = cache.process_trace(libcachesim.TraceReader(
        trace, trace_type=libcachesim.TraceType.ORACLE_GENERAL_TRACE))
    print(json.dumps({"objects": 1 - missed, "bytes": 1 - missed_bytes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
