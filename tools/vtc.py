# SPDX-License-Identifier: BSD-2-Clause
"""Runs varnishtest and reads its verdicts."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import children

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
VERDICT = re.compile(r"#    top  TEST (\S+) (passed|FAILED|skipped) \(")
TEST_SECONDS = 300              # a case takes a few; a busy machine is slow
PROGRESS_SECONDS = 30


def program(tree: Path, name: str) -> Path:
    """The folder of a program in a source tree. From 9.0 on the program and its
    folder have `vinyl` in their name instead of `varnish`."""
    vinyl = tree / "bin" / name.replace("varnish", "vinyl")
    return vinyl if vinyl.exists() else tree / "bin" / name


def read_list(path: Path) -> dict[str, str]:
    """Lines of `name text`; # begins a comment line."""
    entries: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            name, _, text = line.strip().partition(" ")
            if not text.strip() or name in entries:
                raise SystemExit(f"{path}: the line '{line}' is not valid: use "
                                 "a name, a space and a text, once for each "
                                 "name")
            entries[name] = text.strip()
    return entries


def counts(results: dict[str, str]) -> str:
    c = Counter(results.values())
    return ", ".join(f"{c[r]} {r}" for r in (PASSED, FAILED, SKIPPED))


def run(argv: Sequence[str], tests: Sequence[Path], log: Path, *,
        jobs: int = 1, repeat: int = 1, cwd: Path | None = None,
        path: str = "", label: str = "", seconds: int = TEST_SECONDS,
        say: Callable[[str], None] = print,
        env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Runs argv (a varnishtest with its options) over tests, `repeat` times.

    Answers the verdict of each test by its file name without `.vtc`; a test
    has failed that failed once, lacks a verdict (varnishtest died), or takes
    longer than seconds. All output goes to log; with a label, say() tells of
    progress every 30 s. env adds to the environment.
    """
    env = {**os.environ, **(env or {})}
    if path:
        env["PATH"] = path + ":" + env["PATH"]
    results: dict[str, str] = {}
    seen: Counter[str] = Counter()
    # Sockets live in there and a socket's path is short: not under build/.
    with (tempfile.TemporaryDirectory(prefix="vtc.") as tmp,
          log.open("w") as out):
        env["TMPDIR"] = tmp
        told = time.monotonic()
        p = children.start(
            [*argv, "-k", "-j", str(jobs), "-t", str(seconds),
             "-n", str(repeat), *map(str, tests)],
            cwd=cwd, env=env, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            assert p.stdout is not None
            for line in p.stdout:
                out.write(line)
                m = VERDICT.match(line)
                if m:
                    name = Path(m[1]).stem
                    seen[name] += 1
                    if results.get(name) != FAILED:
                        results[name] = m[2].lower()
                if label and time.monotonic() - told > PROGRESS_SECONDS:
                    told = time.monotonic()
                    say(f"{label}: {seen.total()} of "
                        f"{len(tests) * repeat}")
            p.wait()
        finally:
            children.forget(p)
    for t in tests:
        if seen[t.stem] != repeat:
            results[t.stem] = FAILED
    return results
