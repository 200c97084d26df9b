# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of the C libraries, judged by the unit tests and the fuzz corpora.

The tests are linked with one library that has all of src/{perfctr,...}. The
mutated file is compiled to a shared object that goes before it (LD_PRELOAD).
A function of a header may also be part of a test's own object: then this test
is built anew. A mutant whose object code is that of the original is no mutant.

A program that takes long is run case by case. A case of more than MOST_SECONDS
of CPU time is left out."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import mutants
from mutants import Mutant
from mutate_suite import (
    INVALID,
    KILLED,
    SAME,
    SURVIVED,
    UNREACHED,
    Suite,
    Test,
    Verdict,
    digest,
    must,
    run,
)

LIBRARIES = ("perfctr", "poolmgr", "releaser", "tenants")
# A variable that a mutant leaves without a value has a large one
FLAGS = ["-std=gnu11", "-O1", "-w", "-fPIC", "-DFEWER_RUNS",
         "-ftrivial-auto-var-init=pattern"]
LINK = ["-lcmocka", "-lpfm", "-lm", "-lpthread", "-lstdc++", "-ldl"]
WHOLE_SECONDS = 0.2     # CPU time; a program that takes more is split
MOST_SECONDS = 1.5      # CPU time of a case
# A test is ended after TIMES x its CPU time + 1 s of CPU time.  Other processes
# take the machine, so it gets more by the clock.
TIMES, WALL_SECONDS = 4, 20

# Goes into every test: picks the case, and ends a test that does not end.
PICK = r"""
#include <stdlib.h>
#include <sys/resource.h>
void cmocka_set_test_filter(const char *) __attribute__((weak));
static __attribute__((constructor)) void pick(void)
{
	const char *s = getenv("MUTATE_CASE"), *t = getenv("MUTATE_SECONDS");
	struct rlimit r = { 0, 0 }, m = { 4UL << 30, 4UL << 30 };

	(void)setrlimit(RLIMIT_CORE, &r);
	(void)setrlimit(RLIMIT_DATA, &m);
	if (t != NULL) {
		r.rlim_cur = r.rlim_max = (rlim_t)atoi(t);
		(void)setrlimit(RLIMIT_CPU, &r);
	}
	if (s != NULL && *s != '\0' && cmocka_set_test_filter != NULL)
		cmocka_set_test_filter(s);
}
"""


@dataclass
class Program:
    """A test program, how to build it and how to call it."""

    name: str
    parts: list[str]            # .c files
    corpus: str = ""            # its argument
    sources: list[Path] = field(default_factory=list)


@dataclass
class Units(Suite):
    programs: dict[str, Program] = field(default_factory=dict)
    # Which files have code of a line: .c files of the library, programs
    units_of: defaultdict[tuple[str, int], set[str]] = field(
        default_factory=lambda: defaultdict(set))
    workers: SimpleQueue[Path] = field(default_factory=SimpleQueue)
    same: dict[tuple[str, ...], bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        src = self.top / "src"
        self.units = sorted(str(p.relative_to(self.top)) for d in LIBRARIES
                            for p in (*(src / d).glob("*.c"),
                                      *(src / d).glob("*.cc")))
        self.args = ["-Isrc", "-Itests/unit", *(
            f"-Isrc/{d}" for d in LIBRARIES if (src / d).exists())]
        self.plain, self.cover = self.out / "plain", self.out / "cover"

    def files(self) -> list[str]:
        return [str(p.relative_to(self.top)) for d in LIBRARIES
                for p in sorted((self.top / "src" / d).glob("*.[ch]"))]

    # Build

    def compile(self, source: str, to: Path, flags: Sequence[str]) -> None:
        std = FLAGS if source.endswith(".c") else FLAGS[1:]
        must(["ccache", "gcc", *std, *flags, *self.args, "-c", source,
              "-o", to / (source.replace("/", "-") + ".o")], self.top)

    def list_programs(self) -> None:
        def names(folder: str, pattern: str) -> list[str]:
            return sorted(str(p.relative_to(self.top)) for p in
                          (self.top / "tests" / folder).glob(pattern))
        helpers = [p for p in names("unit", "*.c")
                   if not Path(p).name.startswith(("test_", "bench_"))]
        headers = [self.top / p for p in names("unit", "*.h")]
        for p in names("unit", "test_*.c"):
            self.programs[Path(p).stem] = Program(
                Path(p).stem, [p, *helpers])
        for p in names("fuzz", "fuzz_*.c"):
            name = Path(p).stem
            corpus = f"tests/fuzz/corpus/{name.removeprefix('fuzz_')}"
            if name != "fuzz_map" and (self.top / corpus).exists():
                self.programs[name] = Program(
                    name, [p, *helpers, "tests/fuzz/replay.c"], corpus)
        for g in self.programs.values():
            g.sources = [*(self.top / p for p in g.parts), *headers]
            if g.corpus:
                g.sources += sorted((self.top / g.corpus).glob("*"))
            self.hashes[g.name] = digest(g.sources)

    def build(self, to: Path, flags: Sequence[str], pool: ThreadPoolExecutor,
              ) -> None:
        """All programs and the library, linked."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        parts = {p for g in self.programs.values() for p in g.parts}
        list(pool.map(lambda p: self.compile(p, to, flags),
                      [*self.units, *parts]))
        must(["gcc", "-shared", *flags, *(
            to / (u.replace("/", "-") + ".o") for u in self.units),
            "-o", to / "libsut.so"], self.top)
        list(pool.map(lambda g: must(["gcc", *flags, *(
            to / (p.replace("/", "-") + ".o") for p in g.parts),
            to / "libsut.so", f"-Wl,-rpath,{to}", *LINK, "-o", to / g.name],
            self.top), self.programs.values()))

    def prepare(self) -> None:
        self.list_programs()
        (self.out / "pick.c").write_text(PICK)
        must(["gcc", "-shared", "-fPIC", "-O1", "pick.c", "-o", "pick.so"],
             self.out)
        with ThreadPoolExecutor(self.jobs) as pool:
            self.build(self.plain, [], pool)
            self.build(self.cover, ["-O0", "--coverage"], pool)
            library = digest([self.top / f for f in (
                *self.files(), *self.units)])
            for g, learned in zip(self.programs.values(), pool.map(
                    lambda g: self.learn(g, library),
                    self.programs.values()), strict=True):
                self.take(g.name, learned)
        for n in range(self.jobs):
            worker = self.out / f"worker{n}"
            shutil.rmtree(worker, ignore_errors=True)
            shutil.copytree(self.top / "src", worker / "src")
            for d in ("unit", "fuzz"):
                if (self.top / "tests" / d).exists():
                    shutil.copytree(self.top / "tests" / d,
                                    worker / "tests" / d,
                                    ignore=shutil.ignore_patterns("corpus"))
            self.workers.put(worker)

    # What a test reaches

    def learn(self, g: Program, library: str) -> dict[str, Any]:
        """Times of the program's cases, and what they reach. Kept until a
        source changes."""
        kept = self.out / f"reach-{g.name}.json"
        key = f"{library} {self.hashes[g.name]}"
        if kept.exists():
            learned = json.loads(kept.read_text())
            if learned["key"] == key:
                return dict(learned)
        whole = self.measure(g, Test(g.name))
        cases = {"": whole}
        if whole > WHOLE_SECONDS and not g.corpus:
            xml = must([self.plain / g.name], self.top,
                       {"CMOCKA_MESSAGE_OUTPUT": "xml"})
            cases = {c: self.measure(g, Test(g.name, c)) for c in re.findall(
                r'testcase name="([^"]*)"', xml)}
        lines: dict[str, list[list[Any]]] = {}
        for c, seconds in cases.items():
            if seconds > MOST_SECONDS:
                print(f"mutate: {Test(g.name, c).name} is left out: it takes "
                      f"{seconds:.1f} s", flush=True)
            else:
                lines[c] = self.covered(g, c)
        learned = {"key": key, "seconds": {c: cases[c] for c in lines},
                   "lines": lines}
        kept.write_text(json.dumps(learned))
        return learned

    def argv(self, g: Program, exe: Path) -> list[str | Path]:
        return [exe, *([g.corpus] if g.corpus else [])]

    def env(self, t: Test, seconds: int) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.out / "pick.so"),
                "CMOCKA_TEST_ABORT": "1", "MUTATE_CASE": t.case,
                "MUTATE_SECONDS": str(seconds)}

    def measure(self, g: Program, t: Test) -> float:
        """CPU time, s, without a mutant."""
        p = subprocess.Popen(
            self.argv(g, self.plain / g.name), cwd=self.top,
            env={**os.environ, **self.env(t, 600)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode:
            raise SystemExit(f"mutate: {t.name} fails without a mutant")
        return used.ru_utime + used.ru_stime

    def covered(self, g: Program, case: str) -> list[list[Any]]:
        """[file, line, reached, whose object has it] of lines under src/."""
        data = self.out / f"gcov-{g.name}"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        must(self.argv(g, self.cover / g.name), self.top, {
            **self.env(Test(g.name, case), 600),
            "GCOV_PREFIX": str(data), "GCOV_PREFIX_STRIP": "99"})
        lines: list[list[Any]] = []
        for p in sorted(data.glob("*.gcda")):
            (data / (p.stem + ".gcno")).symlink_to(
                self.cover / (p.stem + ".gcno"))
            unit = p.stem.removesuffix(".c").removesuffix(".cc")
            owner = unit if unit.startswith("src-") else g.name
            for text in must(["gcov", "-j", "-t", p], self.top).splitlines():
                for f in json.loads(text)["files"]:
                    if name := self.in_src(f["file"]):
                        lines += [[name, at["line_number"],
                                   at["count"] > 0, owner]
                                  for at in f["lines"]]
        shutil.rmtree(data)
        return lines

    def in_src(self, file: str) -> str:
        path = (self.top / file).resolve()
        return (str(path.relative_to(self.top)) if
                path.is_relative_to(self.top / "src") else "")

    def take(self, program: str, learned: Mapping[str, Any]) -> None:
        units = {u.replace("/", "-").rpartition(".")[0]: u
                 for u in self.units}
        for case, lines in learned["lines"].items():
            t = Test(program, case)
            self.seconds[t] = learned["seconds"][case]
            for file, line, count, owner in lines:
                self.units_of[file, line].add(units.get(owner, owner))
                if count:
                    self.reach[file, line].add(t)

    # One mutant

    def find(self, file: str) -> list[Mutant]:
        units = sorted({u for (f, _), us in self.units_of.items() if f == file
                        for u in us if u.endswith(".c")})
        if file.endswith(".c"):
            units = [file]
        if not units:               # only tests have code of it
            units = sorted({self.programs[u].parts[0]
                            for (f, _), us in self.units_of.items()
                            if f == file for u in us if u in self.programs})
        if not units:
            return []
        found = mutants.find(self.top / file, file, self.top / units[0], [
            FLAGS[0], *(a.replace("-I", f"-I{self.top}/") for a in self.args)])
        for m in found:
            self.attribute(m)
        return found

    def attribute(self, m: Mutant) -> None:
        """A line without code of its own, such as the second one of a call,
        has the tests of the nearest line above that has some."""
        at = m.line
        while (m.file, at) not in self.units_of and at > m.first:
            at -= 1
        for table in (self.units_of, self.reach):
            if at != m.line and (m.file, at) in table:
                table[m.file, m.line] = table[m.file, at]  # type: ignore

    def make(self, worker: Path, m: Mutant, source: bytes,
             ) -> tuple[Path, dict[str, Path]] | None:
        """With that source of m's file: the object that goes before the
        library, and the test programs that have code of the line."""
        owners = self.units_of[m.file, m.line]
        units = [m.file] if m.file.endswith(".c") else sorted(
            u for u in owners if u not in self.programs)
        to = worker / "mutant.so"
        to.unlink(missing_ok=True)
        path = worker / m.file
        before = path.read_bytes()
        path.write_bytes(source)
        gcc = ["gcc", "-s", "-Wl,--build-id=none", *FLAGS, *self.args]
        exes = {u: worker / u for u in sorted(owners) if u in self.programs}
        try:
            good = run([*gcc, "-shared", *units, "-o", to], worker, 120)
            for u, exe in exes.items():
                good = good and run(
                    [*gcc, *self.programs[u].parts, self.plain / "libsut.so",
                     f"-Wl,-rpath,{self.plain}", *LINK, "-o", exe],
                    worker, 120)
        finally:
            path.write_bytes(before)
        return (to, exes) if good else None

    def judge(self, m: Mutant, passed: Mapping[str, str]) -> Verdict:
        worker = self.workers.get()
        try:
            return self.judge_in(worker, m, passed)
        finally:
            self.workers.put(worker)

    def judge_in(self, worker: Path, m: Mutant, passed: Mapping[str, str],
                 ) -> Verdict:
        source = (self.top / m.file).read_bytes()
        key = (m.file, *sorted(self.units_of[m.file, m.line]))
        if key not in self.same:
            original = self.make(worker, m, source)
            assert original is not None, m.file
            self.same[key] = content(original)
        made = self.make(worker, m, m.apply(source))
        if made is None:
            return Verdict(INVALID)
        if content(made) == self.same[key]:
            return Verdict(SAME)
        mutant, exes = made
        tests = self.order(m)
        for t in tests:
            if passed.get(t.program) == self.hashes[t.program]:
                continue
            g, seconds = self.programs[t.program], self.seconds[t]
            env = self.env(t, math.ceil(TIMES * seconds) + 1)
            env["LD_PRELOAD"] += f" {mutant}"
            if not run(self.argv(g, exes.get(g.name, self.plain / g.name)),
                       self.top, TIMES * seconds + WALL_SECONDS, env):
                self.killed(m, t.name)
                return Verdict(KILLED, t.name)
        return Verdict(SURVIVED if tests else UNREACHED)


def content(made: tuple[Path, Mapping[str, Path]]) -> bytes:
    return b"".join(p.read_bytes() for p in (made[0], *made[1].values()))
