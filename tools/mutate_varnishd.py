# SPDX-License-Identifier: BSD-2-Clause
"""A sample of the mutants of src/varnishd, judged by what tests a varnishd: the
varnishtest cases, the programs of tests/tools that start one, and the fuzz
targets that are linked with one.

A mutant is one object of a varnishd: only this object is compiled, and a
varnishd is linked from it and the objects of `make varnish`. The cases that
execute the mutated line run on this varnishd, several at a time, until one
fails. A case judges only if it passes without a mutant. Cases depend on the
machine's load, so a failure counts if the case fails twice in a row, and then
passes without the mutant."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import children
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
    covered_lines,
    digest,
    must,
    nearest_code,
    run,
)

import vtc

SEED = 1
CASES_AT_A_TIME = 4             # of a mutant: they mostly wait
CASE_SECONDS = 20               # a case that takes longer has failed,
TIMES = 4                       # unless it takes long without a mutant
COVER_SECONDS = 90
COMPILE_SECONDS = 120
SKIPPED = 77                    # varnishtest's exit status
FOLDER = "src/varnishd"
# A variable that a mutant leaves unset has 0xfe in each byte
FLAGS = ("-w", "-g0", "-ftrivial-auto-var-init=pattern")
COVER = ("-w", "-g0", "-O0", "--coverage", "-fprofile-update=atomic")
# Programs of tests/tools that start a varnishd have one of these modules.
STARTS = re.compile(r"^from (varnishd|live) import", re.M)
# They load the machine and measure, and so fail while mutants are judged
LOADS = {"test_h2load", "test_h2spec"}
# Of this program only this class does not
CLASS = {"test_live": "Link"}
# They take long, so they judge only the files that they are about
ABOUT = {
    "test_burn": {"spd_leader.c", "spd_run.c", "spd_watch.c"},
    "test_live": {"spd_link.c"},
    "test_lock": {"spd_lock.c"},
    "test_nobody": {"hook_conn.c", "spd_cost.c", "spd_part.c", "spd_ready.c"},
    "test_params": {"mgt_sandpaper.c"},
    "test_sockets": {"hook_request.c", "hook_wait.c", "hook_write.c"},
}
# A quarter of what gcc takes, which is most of a case
FAST_VCL = "cc_command=exec tcc -shared -o %o %s"

# A mutant may send a signal to -1, use any memory, and leave processes. The
# shell is process 1 of a name space: with it, all ends.
INSIDE = """ulimit -c 0; ulimit -d 4194304
[ "$1" = alone ] && ip link set lo up
shift; "$@"; exit $?"""
ALONE = ("unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child",
         "sh", "-c", INSIDE, "sh", "alone")
TOGETHER = ("sh", "-c", INSIDE, "sh", "together")

# Goes into the varnishd that counts lines. gcov writes its counts at exit().
# A process may also end by abort() or _exit(), and a case may kill it: a
# short-lived copy of the process writes them from time to time. Counts are
# added more than once, but we only ask whether they are 0.
FLUSH = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
void __gcov_dump(void);
void __real__exit(int) __attribute__((noreturn));
void __real_abort(void) __attribute__((noreturn));
pid_t __real_fork(void);
void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}
void __wrap_abort(void)
{
	__gcov_dump();
	__real_abort();
}
static void *flush(void *arg)
{
	pid_t pid;

	for (;;) {
		(void)usleep(300000);
		pid = __real_fork();
		if (pid == 0)
			__wrap__exit(0);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
	}
	return (arg);
}
pid_t __wrap_fork(void)
{
	pthread_t thread;
	pid_t pid = __real_fork();

	if (pid == 0)
		(void)pthread_create(&thread, NULL, flush, NULL);
	return (pid);
}
"""
WRAP = "-Wl,--wrap=_exit,--wrap=abort,--wrap=fork"


@dataclass(frozen=True)
class Case:
    """One test of a varnishd: a file of vtc/, a program of tests/tools, or the
    files of a fuzz target's corpus."""

    path: Path                  # of the .vtc, the .py or the target's .c
    files: tuple[Path, ...]     # if they are the same, so is the case

    @property
    def replays(self) -> bool:
        return self.path.suffix == ".c"

    def argv(self, tree: Tree, folder: Path, seconds: int) -> list[str]:
        """With the varnishd in this folder."""
        if self.path.suffix == ".vtc":
            return [f"{tree.build}/root/bin/varnishtest", "-p", f"'{FAST_VCL}'",
                    "-t", str(seconds), str(self.path)]
        if self.replays:
            return [str(folder / self.path.stem)]
        name = self.path.stem
        return [sys.executable, "-m", "pytest", "-qx", "-p",
                "no:cacheprovider", f"{name}.py",
                *(["-k", CLASS[name]] if name in CLASS else [])]

    def judges(self, file: str) -> bool:
        """Is it run on mutants of this file, if it reaches them?"""
        about = ABOUT.get(self.path.stem)
        return about is None or Path(file).name in about


@dataclass
class Tree:
    """A built Varnish: how its varnishd is compiled and linked."""

    build: Path                 # of build-varnish: src/ and root/ are in it
    compile: list[str] = field(default_factory=list)
    link: str = ""              # shell words; the objects' names are in it

    @property
    def cwd(self) -> Path:
        return vtc.program(self.build / "src", "varnishd")

    @property
    def daemon(self) -> str:
        return self.cwd.name

    @property
    def path(self) -> str:
        return f"{self.build}/root/sbin:{self.build}/root/bin"

    def ask(self, file: str) -> None:
        """Takes both commands from its Makefile, for a file of FOLDER."""
        if not (self.build / "installed").exists():
            raise SystemExit(f"mutate: there is no Varnish in {self.build}: "
                             "run make varnish")
        said = must(["make", "-n", "V=1", "-W", f"sandpaper/varnishd/{file}",
                     self.daemon], self.cwd, {"MAKEFLAGS": "", "MFLAGS": ""})
        unit = re.search(r"^.* -c -o .*$", said, re.M)
        link = re.search(r"^.*libtool .* --mode=link .*$", said, re.M)
        if unit is None or link is None:
            raise SystemExit(f"mutate: make -n in {self.cwd} has no compile "
                             "and link command of varnishd")
        words = shlex.split(unit[0].partition("`")[0])
        skip = {"-MT", "-MF", "-o"}
        self.compile = ["gcc", *(self.absolute(w) for w, before in zip(
            words, ["", *words], strict=False) if w.startswith("-") and
            before not in skip and w not in {*skip, "-MD", "-MP", "-c"})]
        dry = must(["sh", "-c", link[0].replace(
            "libtool ", "libtool --dry-run ", 1)], self.cwd)
        self.link = dry.splitlines()[-1].removeprefix("libtool: link: ")

    def absolute(self, word: str) -> str:
        return (f"-I{(self.cwd / word[2:]).resolve()}"
                if word.startswith("-I") else word)

    def linked(self, to: Path, objects: Mapping[str, Path],
               extra: Sequence[str] = ()) -> str:
        """The link command of a varnishd that has these objects, by the name
        of their source, instead of its own."""
        link = self.link.replace(f" -o {self.daemon} ", " -o " + shlex.quote(
            str(to)) + " ", 1)
        for name, path in objects.items():
            own = f" sandpaper/varnishd/{self.daemon}-{name}.o "
            if own not in link:
                raise SystemExit(f"mutate: {FOLDER}/{name}.c is not linked "
                                 "with varnishd: run make varnish")
            link = link.replace(own, f" {path} ", 1)
        return " ".join([link, *extra])


@dataclass
class Varnishd(Suite):
    """What runs on a mutated varnishd."""

    required = 0.85

    varnish: Path = Path()      # a build folder of build-varnish
    series: str = "7.7"
    sample: int = 400
    cases: dict[str, Case] = field(default_factory=dict)
    width: Counter[Test] = field(default_factory=Counter)   # lines it reaches
    code: set[tuple[str, int]] = field(default_factory=set)
    chosen: dict[str, list[Mutant]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = Tree(self.varnish)
        self.plain = self.out / "varnishd-plain"
        self.cover = self.out / "varnishd-cover"
        self.alone: Sequence[str] = TOGETHER
        self.includes = [
            "-iquote", str(self.top / FOLDER),
            "-iquote", str(self.tree.cwd / "sandpaper" / "varnishd")]

    def files(self) -> list[str]:
        return [str(p.relative_to(self.top))
                for p in sorted((self.top / FOLDER).glob("*.c"))]

    # Build

    def compile(self, source: Path, to: Path, flags: Sequence[str]) -> bool:
        """Paths in the object are those of top, wherever the source is."""
        return run(["ccache", *self.tree.compile, *self.includes, *flags,
                    f"-fmacro-prefix-map={self.top}=",
                    f"-fmacro-prefix-map={source.parents[2]}=",
                    "-c", source, "-o", to], self.tree.cwd, COMPILE_SECONDS)

    def build(self, folder: Path, flags: Sequence[str],
              extra: Sequence[str] = ()) -> None:
        """A varnishd whose objects of ours are compiled with these flags."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        objects = {Path(f).stem: folder / f"{Path(f).stem}.o"
                   for f in self.files()}
        with ThreadPoolExecutor(self.jobs) as pool:
            good = pool.map(lambda f: self.compile(
                self.top / f, objects[Path(f).stem], flags), self.files())
        if not all(good):
            raise SystemExit(f"mutate: {FOLDER} does not compile: "
                             f"{shlex.join([*self.tree.compile, *flags])}")
        must(["sh", "-c", self.tree.linked(
            folder / "varnishd", objects, extra)], self.tree.cwd)
        self.installed(folder)
        for case in self.cases.values():
            if case.replays and not self.replay(case, folder, flags):
                raise SystemExit(f"mutate: {case.path} does not compile")

    def installed(self, folder: Path) -> None:
        """As if the folder's varnishd were installed in its root."""
        sbin = folder / "root" / "sbin"
        sbin.mkdir(parents=True)
        varnishd = sbin / "varnishd"
        varnishd.write_text(f'#!/bin/sh\nexec {folder}/varnishd -p '
                            f'{shlex.quote(FAST_VCL)} "$@"\n')
        varnishd.chmod(0o755)
        for p in (self.varnish / "root").iterdir():
            if p.name != "sbin":
                (folder / "root" / p.name).symlink_to(p)

    def replay(self, case: Case, folder: Path, flags: Sequence[str],
               faulty: Path | None = None) -> bool:
        """Builds the program that replays a fuzz target's corpus."""
        to = folder / case.path.stem
        to.unlink(missing_ok=True)
        return run(
            [self.top / "tools/build-fuzz-varnishd", self.varnish / "src",
             self.top / "build/obj/.libs/libsandpaper.a", to,
             self.top / "tests/fuzz/replay.c"], self.top, COMPILE_SECONDS,
            {"CC": "ccache gcc", "CFLAGS": shlex.join(flags),
             "LIBS": "-lcmocka", "FAULTY": str(faulty or "")})

    def find_cases(self) -> dict[str, Case]:
        not_run = vtc.read_list(self.top / "patches" / self.series /
                                "vtc-not-run.txt")
        cases = {p.stem: Case(p, (p,)) for p in sorted(
            (self.top / "vtc").glob("*.vtc")) if p.stem not in not_run}
        tools = self.top / "tests" / "tools"
        shared = [q for q in (*tools.glob("*.py"), *tools.glob("*.[ch]"))
                  if not q.name.startswith("test_")]
        shared += [*(self.top / "tests" / "clients").glob("*.py"),
                   *tools.glob("pytest.ini")]
        for p in sorted(tools.glob("test_*.py")):
            if STARTS.search(p.read_text()) and p.stem not in LOADS:
                cases[p.stem] = Case(p, (p, *shared))
        fuzz = self.top / "tests" / "fuzz"
        for name in ("map", "wait"):
            p = fuzz / f"fuzz_{name}.c"
            if p.exists():
                cases[p.stem] = Case(p, (
                    p, fuzz / "fuzz.h", *(fuzz / "corpus" / name).iterdir()))
        return cases

    def prepare(self) -> None:
        self.tree.ask(Path(self.files()[0]).name)
        if run([*ALONE, "true"], self.top, CASE_SECONDS):
            self.alone = ALONE
        self.cases = self.find_cases()
        self.build(self.plain, FLAGS)
        (self.out / "flush.c").write_text(FLUSH)
        must(["gcc", "-O1", "-c", "flush.c", "-o", "flush.o"], self.out)
        self.build(self.cover, COVER, [
            "--coverage", WRAP, str(self.out / "flush.o")])
        self.hashes = {n: digest(c.files) for n, c in self.cases.items()}
        self.learn_all()
        for f in self.files():
            self.chosen[f] = []
        for m in self.draw():
            self.chosen[m.file].append(m)
        for n in range(self.jobs):
            worker = self.out / f"varnishd-worker{n}"
            shutil.rmtree(worker, ignore_errors=True)
            (worker / FOLDER).mkdir(parents=True)
            self.installed(worker)
            self.workers.put(worker)

    # The sample

    def draw(self) -> list[Mutant]:
        """The first ones in an order that depends on the mutants only."""
        args = ["-std=gnu11", *self.includes, *(
            w for w in self.tree.compile if w[:2] in ("-I", "-D"))]
        every = [m for f in self.files() for m in mutants.find(
            self.top / f, f, self.top / f, args)]
        self.about = {"sample": min(self.sample, len(every)),
                      "of": len(every), "seed": SEED}
        return sorted(every, key=place)[:self.sample]

    def find(self, file: str) -> list[Mutant]:
        for m in self.chosen[file]:
            self.reach[m.file, m.line] = self.reach[
                m.file, nearest_code(m, self.code)]
        return self.chosen[file]

    def find_all(self, files: Sequence[str]) -> list[Mutant]:
        return sorted(super().find_all(files), key=place)

    # What a case reaches

    def learn_all(self) -> None:
        library = digest(p for p in (self.top / "src").rglob("*")
                         if p.is_file())
        failing = []
        began = time.monotonic()
        with ThreadPoolExecutor(self.jobs * CASES_AT_A_TIME) as pool:
            for n, (case, learned) in enumerate(zip(self.cases, pool.map(
                    lambda c: self.kept(
                        f"vtc-{c}", f"{library} {self.hashes[c]}",
                        lambda: self.learn(c)), self.cases),
                    strict=True)):
                if not learned["passes"]:
                    failing.append(case)
                for file, line, reached in learned["lines"]:
                    self.code.add((file, line))
                    if (reached and learned["passes"] and
                            self.cases[case].judges(file)):
                        self.reach[file, line].add(Test(case))
                        self.width[Test(case)] += 1
                self.seconds[Test(case)] = learned["seconds"]
                if time.monotonic() - began > 30:
                    began = time.monotonic()
                    print(f"{n + 1} of {len(self.cases)} cases: which lines "
                          "they reach", flush=True)
        if failing:
            print("mutate: these cases do not judge, they are skipped or "
                  f"fail without a mutant: {' '.join(failing)}", flush=True)

    def learn(self, case: str) -> dict[str, Any]:
        """Does it pass twice, in which time, and which lines does it reach?"""
        lines = self.lines_of(case)
        began = time.monotonic()
        passes = all(self.status(case, self.plain, COVER_SECONDS) == 0
                     for _ in range(2))
        return {"passes": passes, "lines": lines,
                "seconds": round((time.monotonic() - began) / 2, 2)}

    def lines_of(self, case: str) -> list[tuple[str, int, bool]]:
        """File, line and whether it is reached, of FOLDER."""
        data = self.out / f"gcov-{case}"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir()
        data.chmod(0o777)       # varnishd changes its user
        self.status(case, self.cover, COVER_SECONDS, {
            "GCOV_PREFIX": str(data), "GCOV_PREFIX_STRIP": "99"})
        notes = (self.cover / f"{case}.d" if self.cases[case].replays else
                 self.cover)
        lines = [(file, line, reached) for _, file, line, reached in
                 covered_lines(data, notes, self.top)
                 if file.startswith(FOLDER + "/")]
        shutil.rmtree(data)
        return lines

    # Run

    def status(self, case: str, folder: Path, seconds: int,
               env: Mapping[str, str] | None = None,
               over: Callable[[], bool] = lambda: False) -> int:
        """The exit status of the case; -1 if it was ended before."""
        # A socket's path is short, so the folder is not under build/
        with tempfile.TemporaryDirectory(
                prefix="vtc.", ignore_cleanup_errors=True) as tmp:
            p = children.start(
                [*self.alone,
                 *self.cases[case].argv(self.tree, folder, seconds)],
                cwd=(self.top if self.cases[case].replays else
                     self.cases[case].path.parent),
                env={**os.environ, **(env or {}), "TMPDIR": tmp,
                     "VARNISH_ROOT": str(folder / "root"),
                     "PATH": f"{folder}:{self.tree.path}:"
                             f"{os.environ['PATH']}"},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                deadline = time.monotonic() + seconds + 10
                while p.poll() is None and not over():
                    if time.monotonic() > deadline:
                        return -1
                    time.sleep(0.05)
                return -1 if p.returncode is None else p.returncode
            finally:
                if p.poll() is None or self.alone == TOGETHER:
                    children.end([p], 0)
                children.forget(p)

    def order(self, m: Mutant) -> list[Test]:
        """First the corpora, which take a second, then the cases that killed
        mutants of the function, then of the file, then those that are short
        and reach few lines."""
        def rank(t: Test) -> tuple[bool, float, float, str]:
            kills = (4 * self.kills[m.file + m.function, t.name] +
                     self.kills[m.file, t.name])
            return (not self.cases[t.program].replays,
                    -kills / (self.seconds[t] + 1),
                    self.width[t] * self.seconds[t], t.name)
        return sorted(self.reach[m.file, m.line], key=rank)

    def judge_in(self, worker: Path, m: Mutant, passed: Mapping[str, str],
                 ) -> Verdict:
        source, name = worker / m.file, Path(m.file).stem
        mutant = worker / f"{name}.o"
        for last in source.parent.iterdir():
            last.unlink()
        source.write_bytes(m.apply((self.top / m.file).read_bytes()))
        if not self.compile(source, mutant, FLAGS):
            return Verdict(INVALID)
        if mutant.read_bytes() == (self.plain / f"{name}.o").read_bytes():
            return Verdict(SAME)
        objects = {Path(f).stem: self.plain / f"{Path(f).stem}.o"
                   for f in self.files()}
        if not run(["sh", "-c", self.tree.linked(
                worker / "varnishd", {**objects, name: mutant})],
                self.tree.cwd, COMPILE_SECONDS):
            return Verdict(INVALID)
        for case in self.cases.values():
            if case.replays and Test(case.path.stem) in self.reach[
                    m.file, m.line] and not self.replay(
                        case, worker, FLAGS, source.parent):
                return Verdict(INVALID)
        if by := self.killer(m, worker, passed):
            self.killed(m, by)
            return Verdict(KILLED, by)
        return Verdict(SURVIVED if self.reach[m.file, m.line] else UNREACHED)

    def killer(self, m: Mutant, folder: Path, passed: Mapping[str, str],
               ) -> str:
        """The first case that fails, or ''."""
        found: list[str] = []

        def over() -> bool:
            return bool(found)

        def fails(t: Test, folder: Path) -> bool:
            seconds = round(max(CASE_SECONDS, TIMES * self.seconds[t]))
            return not over() and self.status(
                t.program, folder, seconds, over=over) not in (0, SKIPPED)

        def one(t: Test) -> None:
            if not fails(t, folder):
                return
            sure = fails(t, folder) and not fails(t, self.plain)
            if sure and not over():
                found.append(t.name)
            elif not over():
                print(f"{m.file}:{m.line}: {t.name} failed, but not again, or "
                      f"also without the mutant\t{m.id}", flush=True)

        tests = [t for t in self.order(m)
                 if passed.get(t.program) != self.hashes[t.program]]
        with ThreadPoolExecutor(CASES_AT_A_TIME) as pool:
            list(pool.map(one, tests))
        return found[0] if found else ""


def place(m: Mutant) -> str:
    """Where the mutant is in the order of the sample."""
    return hashlib.sha256(f"{SEED}\t{m.id}".encode()).hexdigest()
