# SPDX-License-Identifier: BSD-2-Clause
"""What debug.sandpaper.lock prints agrees with itself and with what is done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from varnishd import HELLO, Varnishd

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


def holds(varnishd: Varnishd) -> dict[str, Clock]:
    """Return what is printed, by clock."""
    clocks: dict[str, Clock] = {}
    for line in varnishd.cli("debug.sandpaper.lock").splitlines():
        if m := FIRST.fullmatch(line):
            last = clocks[m["clock"]] = Clock(
                int(m["holds"]), float(m["longest"]), m["by"],
                float(m["high"]), [])
        elif m := BUCKET.fullmatch(line):
            last.buckets.append((float(m["bound"]), int(m["holds"])))
        else:
            assert line == ""
    return clocks


def test_agrees(varnishd: Varnishd) -> None:
    """Holds are measured while requests run."""
    varnishd.start()
    varnishd.cli("debug.sandpaper.lock", "on")
    client = varnishd.connect()
    for _ in range(REQUESTS):
        assert varnishd.get("a.example", client=client) == 200
    varnishd.cli("debug.sandpaper.lock", "off")
    clocks = holds(varnishd)
    assert list(clocks) == ["CPU time", "wall clock"]
    for c in clocks.values():
        assert c.holds > 10000
        assert c.holds == sum(n for _, n in c.buckets)
        assert c.buckets == sorted(c.buckets)
        # A bucket has the holds of 0.8 of its bound at most up to it
        bound = c.buckets[-1][0]
        assert c.longest < bound
        assert c.longest + 0.001 >= bound * 0.8
        assert c.high == c.quantile(HIGH), c
        assert re.search(r"^[a-zA-Z]\w+$", c.by)
    # Time in which a holder does not run is in the wall clock's only
    assert clocks["CPU time"].longest <= clocks["wall clock"].longest


def test_the_first_of_the_longest(varnishd: Varnishd) -> None:
    # On this CPU clock all holds are equal. The command ends the last one.
    varnishd.start(preload="cpu_clocks", CPU_STEP_NS=1)
    varnishd.cli("debug.sandpaper.lock", "on")
    assert varnishd.get("a.example") == 200
    varnishd.cli("debug.sandpaper.lock", "off")
    cpu = holds(varnishd)["CPU time"]
    assert (cpu.longest, cpu.high) == (0.001, 0.001)
    assert cpu.buckets == [(0.002, cpu.holds)]
    assert cpu.by != "hold_time"


def test_one_and_none(varnishd: Varnishd) -> None:
    varnishd.start()
    assert varnishd.cli("debug.sandpaper.lock").split("\n")[:2] == [
        "CPU time: 0 holds", "wall clock: 0 holds"]
    # Of the second command, and of whatever comes between
    for _ in range(TRIES):
        varnishd.cli("debug.sandpaper.lock", "on")
        varnishd.cli("debug.sandpaper.lock", "off")
        cpu = holds(varnishd)["CPU time"]
        if cpu.holds == 1:
            break
    assert cpu.holds == 1
    assert (cpu.by, cpu.high) == ("hold_time", cpu.longest)


def test_pauses(varnishd: Varnishd) -> None:
    # A loop over tenants gives the lock up every STEPS of them
    tenants = "".join(f'\tsandpaper.tenant("t{n}");\n' for n in range(MAPPED))
    varnishd.start(
        f"sandpaper_tenants_max={2 * MAPPED}", vcl=HELLO.replace(
            "backend", "import sandpaper;\nbackend", 1)
        + f"sub vcl_init {{\n{tenants}}}\n")
    varnishd.cli("debug.sandpaper.lock", "on")
    varnishd.cli("sandpaper.list", "-j")
    varnishd.cli("debug.sandpaper.lock", "off")
    assert holds(varnishd)["CPU time"].holds > MAPPED // STEPS
