# SPDX-License-Identifier: BSD-2-Clause
"""What every kind of tests has in common when mutants are judged: which test
reaches which line, how long it takes, and in which order tests are run."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

from mutants import Mutant

KILLED, SURVIVED, UNREACHED = "killed", "survived", "not reached"
INVALID, SAME = "invalid", "same"


def digest(paths: Iterable[Path]) -> str:
    h = hashlib.sha256()
    for p in sorted(paths):
        h.update(p.read_bytes())
    return h.hexdigest()[:16]


def run(argv: Sequence[str | Path], cwd: Path, seconds: float,
        env: Mapping[str, str] | None = None) -> bool:
    """Does it exit with 0, in time? Its children are ended with it."""
    p = subprocess.Popen(
        [str(a) for a in argv], cwd=cwd, env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return p.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()


def must(argv: Sequence[str | Path], cwd: Path,
         env: Mapping[str, str] | None = None) -> str:
    p = subprocess.run([str(a) for a in argv], cwd=cwd, text=True,
                       env={**os.environ, **(env or {})},
                       capture_output=True, check=False)
    if p.returncode:
        raise SystemExit(f"mutate: {' '.join(map(str, argv))}: "
                         f"{p.stderr or p.stdout}")
    return p.stdout


def covered_lines(data: Path, notes: Path, top: Path,
                  ) -> Iterator[tuple[str, str, int, bool]]:
    """Object, file, line and whether it is reached, for files under src/.
    data has gcov's counts, notes has what the compiler wrote of them."""
    src = top / "src"
    for p in sorted(data.glob("*.gcda")):
        (data / f"{p.stem}.gcno").symlink_to(notes / f"{p.stem}.gcno")
        for text in must(["gcov", "-j", "-t", p], top).splitlines():
            for f in json.loads(text)["files"]:
                path = (top / f["file"]).resolve()
                if path.is_relative_to(src):
                    for at in f["lines"]:
                        yield (p.stem, str(path.relative_to(top)),
                               at["line_number"], at["count"] > 0)


def nearest_code(m: Mutant, code: Container[tuple[str, int]]) -> int:
    """A line without code of its own, such as the second one of a call,
    counts as the nearest line above that has code."""
    for line in range(m.line, m.first - 1, -1):
        if (m.file, line) in code:
            return line
    return m.line


@dataclass(frozen=True)
class Test:
    """What is run at a time: a program, or one case of it."""

    program: str
    case: str = ""              # "": all of them

    @property
    def name(self) -> str:
        return f"{self.program}:{self.case}" if self.case else self.program


@dataclass
class Verdict:
    """What became of a mutant. by: the test that killed it."""

    result: str
    by: str = ""


@dataclass
class Suite(ABC):
    """The tests of one part of the sources.  A class of its own for each way
    to put a mutant under test: Units has the libraries, Varnishd has
    src/varnishd.  A further one goes into the list in tools/mutate."""

    # The score that is enough. None: each mutant that no test sees has to be
    # in tests/mutants.txt
    required: ClassVar[float | None] = None

    top: Path
    out: Path
    jobs: int
    # Folders in which a mutant is built, one for each job
    workers: SimpleQueue[Path] = field(default_factory=SimpleQueue)
    seconds: dict[Test, float] = field(default_factory=dict)
    # Hash of a program's sources: a result holds while that is the same
    hashes: dict[str, str] = field(default_factory=dict)
    reach: defaultdict[tuple[str, int], set[Test]] = field(
        default_factory=lambda: defaultdict(set))
    kills: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Which sample its mutants are, for the record; empty: they are all
    about: dict[str, Any] = field(default_factory=dict)

    @abstractmethod
    def files(self) -> list[str]:
        """All files that it can mutate."""

    @abstractmethod
    def prepare(self) -> None:
        """Builds, and fills seconds, hashes and reach."""

    @abstractmethod
    def find(self, file: str) -> list[Mutant]:
        """The mutants of a file."""

    def find_all(self, files: Sequence[str]) -> list[Mutant]:
        """Those of several files, in the order in which they are judged."""
        return [m for f in files for m in self.find(f)]

    def judge(self, m: Mutant, passed: Mapping[str, str]) -> Verdict:
        """Runs the tests that reach the mutant.  passed: programs that it
        has survived, with their hash."""
        worker = self.workers.get()
        try:
            return self.judge_in(worker, m, passed)
        finally:
            self.workers.put(worker)

    @abstractmethod
    def judge_in(self, worker: Path, m: Mutant, passed: Mapping[str, str],
                 ) -> Verdict:
        """The same, in this folder."""

    def kept(self, name: str, key: str, learn: Callable[[], dict[str, Any]],
             ) -> dict[str, Any]:
        """What is learned of a test, or what was when its key was the same."""
        file = self.out / f"reach-{name}.json"
        known: dict[str, Any] = (
            json.loads(file.read_text()) if file.exists() else {})
        if known.get("key") != key:
            known = {"key": key, **learn()}
            file.write_text(json.dumps(known))
        return known

    def order(self, m: Mutant) -> list[Test]:
        """Tests that reach the line: first who kills much in little time."""
        def rate(t: Test) -> float:
            kills = (4 * self.kills[m.file + m.function, t.name] +
                     self.kills[m.file, t.name] + 0.5)
            return kills / (self.seconds[t] + 0.01)
        return sorted(self.reach[m.file, m.line],
                      key=lambda t: (-rate(t), t.name))

    def killed(self, m: Mutant, by: str) -> None:
        self.kills[m.file, by] += 1
        self.kills[m.file + m.function, by] += 1

    def seen(self, m: Mutant, by: str) -> dict[str, str]:
        """The hashes on which a verdict rests: of the test that killed, or of
        all that the mutant survived."""
        programs = ({by.partition(":")[0]} if by else
                    {t.program for t in self.reach[m.file, m.line]})
        return {p: self.hashes[p] for p in sorted(programs)
                if p in self.hashes}
