# SPDX-License-Identifier: BSD-2-Clause
"""The unit tests and the fuzz corpora, linked with one library that has all of
src/{perfctr,...}: how they are built, how long they take, and which lines they
reach.

A slow unit test is run case by case. A case of more than MOST_SECONDS of CPU
time is left out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutate_suite import Suite, Test, covered_lines, digest, must

LIBRARIES = ("admission", "memory", "overload", "perfctr", "poolmgr", "price",
             "releaser", "tenants")
# A variable that a mutant leaves unset has 0xfe in each byte
FLAGS = ["-std=gnu11", "-O1", "-w", "-fPIC", "-DFEWER_RUNS",
         "-ftrivial-auto-var-init=pattern"]
VARNISHD = re.compile(r'^#include "varnishd/', re.M)   # it needs Varnish
LINK = ["-lcmocka", "-lpfm", "-lm", "-lpthread", "-lstdc++", "-ldl"]
WHOLE_SECONDS = 0.2     # CPU time; a program that takes more is split
MOST_SECONDS = 1.0      # CPU time of a case

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
class Programs(Suite):
    """What Units runs."""

    programs: dict[str, Program] = field(default_factory=dict)
    # Which files have code of a line: .c files of the library, programs
    units_of: defaultdict[tuple[str, int], set[str]] = field(
        default_factory=lambda: defaultdict(set))
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
            if (self.top / corpus).exists() and not VARNISHD.search(
                    (self.top / p).read_text()):
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
                    lambda g: self.kept(
                        g.name, f"{library} {self.hashes[g.name]}",
                        lambda: self.learn(g)),
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

    def learn(self, g: Program) -> dict[str, Any]:
        """Times of the program's cases, and what they reach."""
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
        return {"seconds": {c: cases[c] for c in lines}, "lines": lines}

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
        for stem, file, line, reached in covered_lines(
                data, self.cover, self.top):
            unit = stem.removesuffix(".c").removesuffix(".cc")
            lines.append([file, line, reached,
                          unit if unit.startswith("src-") else g.name])
        shutil.rmtree(data)
        return lines

    def take(self, program: str, learned: Mapping[str, Any]) -> None:
        units = {u.replace("/", "-").rpartition(".")[0]: u
                 for u in self.units}
        for case, lines in learned["lines"].items():
            t = Test(program, case)
            if learned["seconds"][case] > MOST_SECONDS:
                continue
            self.seconds[t] = learned["seconds"][case]
            for file, line, count, owner in lines:
                self.units_of[file, line].add(units.get(owner, owner))
                if count:
                    self.reach[file, line].add(t)

