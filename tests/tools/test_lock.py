# SPDX-License-Identifier: BSD-2-Clause
"""What debug.sandpaper.lock prints agrees with itself and with what was done."""

from __future__ import annotations

import re
import unittest
from dataclasses import dataclass

from preloaded import HELLO, ROOT, Preloaded

REQUESTS = 3000  # more than 10,000 holds, so that one is not 0.01 % of them
MAPPED = 1280
TRIES = 100
STEPS = 32  # of a loop in one hold
HIGH = 0.9999
FIRST = re.compile(r"(?P<clock>[\w ]+): (?P<holds>\d+) holds, the longest "
                   r"(?P<longest>[\d.]+) us by (?P<by>\w+), 99\.99 % up to "
                   r"(?P<high>[\d.]+) us")
BUCKET = re.compile(r" *(?P<bound>[\d.]+) us (?P<holds>\d+)")


@dataclass
class Clock:
    """What was printed of one clock; all times in us."""

    holds: int
    longest: float
    by: str
    high: float
    buckets: list[tuple[float, int]]

    def quantile(self, part: float) -> float:
        """Return the bound of the bucket that has it."""
        below = 0
        for bound, n in self.buckets:
            below += n
            if below > int(part * self.holds):
                return min(bound, self.longest)
        raise AssertionError(self)


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Lock(Preloaded):
    """Holds are measured while requests run."""

    def holds(self) -> dict[str, Clock]:
        """Return what is printed, by clock."""
        clocks: dict[str, Clock] = {}
        for line in self.cli("debug.sandpaper.lock").splitlines():
            if m := FIRST.fullmatch(line):
                last = clocks[m["clock"]] = Clock(
                    int(m["holds"]), float(m["longest"]), m["by"],
                    float(m["high"]), [])
            elif m := BUCKET.fullmatch(line):
                last.buckets.append((float(m["bound"]), int(m["holds"])))
            else:
                self.assertEqual(line, "")
        return clocks

    def test_agrees(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO))
        self.cli("debug.sandpaper.lock", "on")
        client = self.connect()
        for _ in range(REQUESTS):
            self.send(client, "a.example")
            self.assertEqual(self.status(client), 200)
        self.cli("debug.sandpaper.lock", "off")
        clocks = self.holds()
        self.assertEqual(list(clocks), ["CPU time", "wall clock"])
        for c in clocks.values():
            self.assertGreater(c.holds, 10000)
            self.assertEqual(c.holds, sum(n for _, n in c.buckets))
            self.assertEqual(c.buckets, sorted(c.buckets))
            # A bucket has the holds of 0.8 of its bound at most up to it
            bound = c.buckets[-1][0]
            self.assertLess(c.longest, bound)
            self.assertGreaterEqual(c.longest + 0.001, bound * 0.8)
            self.assertEqual(c.high, c.quantile(HIGH), c)
            self.assertRegex(c.by, r"^[a-zA-Z]\w+$")
        # Time in which a holder does not run is in the wall clock's only
        self.assertLessEqual(clocks["CPU time"].longest,
                             clocks["wall clock"].longest)

    def test_the_first_of_the_longest(self) -> None:
        # On this CPU clock all holds are equal. The command ends the last one.
        self.varnishd("cpu_clocks", "-f", self.vcl(HELLO), CPU_STEP_NS="1")
        self.cli("debug.sandpaper.lock", "on")
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.cli("debug.sandpaper.lock", "off")
        cpu = self.holds()["CPU time"]
        self.assertEqual((cpu.longest, cpu.high), (0.001, 0.001))
        self.assertEqual(cpu.buckets, [(0.002, cpu.holds)])
        self.assertNotEqual(cpu.by, "hold_time")

    def test_one_and_none(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO))
        self.assertEqual(self.cli("debug.sandpaper.lock").split("\n")[:2],
                         ["CPU time: 0 holds", "wall clock: 0 holds"])
        # Of the second command, and of whatever comes between
        for _ in range(TRIES):
            self.cli("debug.sandpaper.lock", "on")
            self.cli("debug.sandpaper.lock", "off")
            cpu = self.holds()["CPU time"]
            if cpu.holds == 1:
                self.assertEqual((cpu.by, cpu.high),
                                 ("hold_time", cpu.longest))
                return
        self.fail(f"there were {cpu.holds} holds in the last try")

    def test_pauses(self) -> None:
        # A loop over tenants gives the lock up every STEPS of them
        tenants = "".join(f'\tsandpaper.tenant("t{n}");\n'
                          for n in range(MAPPED))
        self.varnishd(
            "", "-f", self.vcl(HELLO.replace(
                "backend", "import sandpaper;\nbackend", 1) +
                f"sub vcl_init {{\n{tenants}}}\n"),
            "-p", f"sandpaper_tenants_max={2 * MAPPED}")
        self.cli("debug.sandpaper.lock", "on")
        self.cli("sandpaper.list", "-j")
        self.cli("debug.sandpaper.lock", "off")
        self.assertGreater(self.holds()["CPU time"].holds, MAPPED // STEPS)


if __name__ == "__main__":
    unittest.main()
