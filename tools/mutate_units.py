# SPDX-License-Identifier: BSD-2-Clause
"""Mutants of the C libraries, judged by the unit tests and the fuzz corpora.

The mutated file is compiled to a shared object that goes before the library
(LD_PRELOAD). A function of a header may also be part of a test's own object:
then this test is built anew. A mutant whose object code is that of the original
is no mutant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import mutants
from mutants import Mutant
from mutate_programs import FLAGS, LINK, Programs
from mutate_suite import (
    INVALID,
    KILLED,
    SAME,
    SURVIVED,
    UNREACHED,
    Verdict,
    nearest_code,
    run,
)

# A test is ended after TIMES x its CPU time, in whole seconds.  Other processes
# take the machine, so it gets more by the clock.
TIMES, WALL_SECONDS = 4, 20


class Units(Programs):
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
        """Gives the mutant the tests of the nearest line that has code."""
        at = nearest_code(m, self.units_of)
        for table in (self.units_of, self.reach):
            if at != m.line and (m.file, at) in table:
                table[m.file, m.line] = table[m.file, at]  # type: ignore

    def make(self, worker: Path, m: Mutant, source: bytes,
             ) -> tuple[Path, dict[str, Path]] | None:
        """Compile this source as m's file: the object to preload, and the
        test programs that contain the line."""
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

    def judge_in(self, worker: Path, m: Mutant, passed: Mapping[str, str],
                 ) -> Verdict:
        source = (self.top / m.file).read_bytes()
        key = (m.file, *sorted(self.units_of[m.file, m.line]))
        if key not in self.same:
            original = self.make(worker, m, source)
            if original is None or (by := self.killer(m, original, {})):
                raise SystemExit(f"mutate: {m.file} fails without a mutant "
                                 f"({by if original else 'gcc'})")
            self.same[key] = content(original)
        made = self.make(worker, m, m.apply(source))
        if made is None:
            return Verdict(INVALID)
        if content(made) == self.same[key]:
            return Verdict(SAME)
        if by := self.killer(m, made, passed):
            self.killed(m, by)
            return Verdict(KILLED, by)
        return Verdict(SURVIVED if self.reach[m.file, m.line] else UNREACHED)

    def killer(self, m: Mutant, made: tuple[Path, Mapping[str, Path]],
               passed: Mapping[str, str]) -> str:
        """The first test that fails, of those that reach the line, or ''."""
        mutant, exes = made
        for t in self.order(m):
            if passed.get(t.program) == self.hashes[t.program]:
                continue
            g, seconds = self.programs[t.program], self.seconds[t]
            env = self.env(t, math.ceil(TIMES * seconds + 0.1))
            env["LD_PRELOAD"] += f" {mutant}"
            if not run(self.argv(g, exes.get(g.name, self.plain / g.name)),
                       self.top, TIMES * seconds + WALL_SECONDS, env):
                return t.name
        return ""


def content(made: tuple[Path, Mapping[str, Path]]) -> bytes:
    return b"".join(p.read_bytes() for p in (made[0], *made[1].values()))
