# SPDX-License-Identifier: BSD-2-Clause
"""`content-change` and `flash-crowd`: time lines (paper, section 6.5).

A static tenant loads all the time, a dynamic one, its twin, has phases: it
puts up a larger page and takes it down again (Figure 12), or its connections
double and triple for a while (Figure 13).  `kept` is the static tenant's
throughput in a phase over that in the phase before, of the turns' own the
median; the first SKIP seconds of each do not count, since what was asked
before is served in them.  `series` is one turn in slices of 0.1 s.  The
control is a time line of the same length in which nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median
from typing import Any

from .ask import Ask
from .customers import CUSTOMERS, LARGE, TWIN
from .estimate import bootstrap, rounded, verdict
from .load import Group, Measurement, tenant
from .rig import Plan, Rig, progress
from .runner import (
    RUN,
    Control,
    Experiment,
    Job,
    Part,
    Phases,
    Turn,
    Window,
    of_each,
)
from .testbed import TestbedError
from .varnish import Variant, Varnish

STATIC = "c1"  # CPU-bound
SLICES = 10  # a second
SKIP = 1.0  # seconds
CLAIM = 0.95
UNCHANGED = 3  # phases of the control
CROWDS = (0, 1, 0, 2)  # dynamic connections beyond the usual, in multiples


@dataclass(frozen=True)
class Line:
    """One turn: requests in each slice, and what is fair."""

    static: list[int]
    dynamic: list[list[int]]  # one for each of its groups
    phases: int
    fair: float  # of the static tenant's throughput, in the second phase

    def phase(self, number: int) -> float:
        """Return the static tenant's throughput, requests/s."""
        length = len(self.static) // self.phases
        first = number * length + round(SKIP * SLICES)
        return mean(self.static[first:(number + 1) * length]) * SLICES

    def kept(self, number: int) -> float:
        """Return its throughput over that in the phase before."""
        before = self.phase(number - 1)
        return self.phase(number) / before if before else 0.0

    def series(self) -> dict[str, list[int]]:
        """Return both tenants' requests a slice."""
        return {"static": self.static,
                "dynamic": [sum(s) for s in zip(*self.dynamic, strict=True)]}


def check_phase(seconds: float) -> None:
    """A phase has to have slices that count."""
    if seconds < 2 * SKIP or round(seconds * SLICES, 6) % 1:
        raise TestbedError(
            f"--seconds {seconds:g} is not allowed: use {2 * SKIP:g} s or "
            f"more, in steps of {1 / SLICES:g} s")


def predicted(rate_bps: float, found: Sequence[Measurement]) -> float:
    """Return what multi-resource fairness gives the static tenant.

    Of before: 2/(1+max(c'/N, n/c)), with CPU and link time a request c and n
    of the static tenant, c' and N of the dynamic one; both measured alone.
    """
    cpu = [m.cpu_us_per_request / 1e6 for m in found]
    link = [size * 8 / rate_bps for size in (CUSTOMERS[STATIC].size, LARGE)]
    if link[1] < cpu[1]:
        progress("  the large page is not net-bound here")
    return 2 / (1 + max(cpu[1] / link[1], link[0] / cpu[0]))


@dataclass(frozen=True)
class Timeline(Phases):
    """Phases of the planned length, each of which comes once."""

    always: Sequence[Group] = ()  # that load all the time, the static first

    def seconds(self, plan: Plan) -> float:
        """Return how long they take."""
        return RUN + len(self.phases) * plan.seconds

    def measure(
        self, rig: Rig, running: Sequence[Varnish], _found: Sequence[Any]
    ) -> Line:
        """Return requests in each slice; what is fair is not known yet."""
        length, number = rig.plan.seconds, len(self.phases)
        found = rig.in_phases(
            self.asked(rig, running),
            [replace(g, to=running[0].proxy.listen) for g in self.always],
            0.0, length, length * number)
        count = round(length * SLICES) * number
        static, *others = [found.always[g.name].slices[:count]
                           for g in self.always]
        dynamic = [s.slices[:count] for some in found.phases
                   for s in some.values()]
        return Line(static, dynamic + others, number, 1.0)


def line(
    variant: Variant, always: Sequence[Group],
    phases: Sequence[Sequence[Group]],
) -> Turn:
    """Return one time line."""
    return Turn(
        [variant], [Timeline([(0, some) for some in phases], always=always)],
        [*always, *(g for some in phases for g in some)])


def tenants(ask: Ask) -> tuple[Group, Group]:
    """Return the static and the dynamic tenant, as usual."""
    check_phase(ask.plan.seconds)
    return (tenant(STATIC, ask.plan.connections),
            tenant(STATIC + TWIN, ask.plan.connections))


def result(
    rig: Rig, what: str, number: int, variant: str, turns: Sequence[Line]
) -> dict[str, Any]:
    """Return one phase's entry of `results`."""
    interval = bootstrap(
        turns, lambda some: median(t.kept(number) / t.fair for t in some),
        rig.plan.seed)
    return {
        "phase": what, "variant": variant, "turns": len(turns),
        "rps_before": round(median(t.phase(number - 1) for t in turns), 1),
        "rps": round(median(t.phase(number) for t in turns), 1),
        "kept": round(median(t.kept(number) for t in turns), 4),
        "fair": round(median(t.fair for t in turns), 4),
        "of_fair": round(median(t.kept(number) / t.fair for t in turns), 4),
        "of_fair_ci": rounded(interval, 4),
        "verdict": verdict(interval, CLAIM),
        "series": turns[-1].series(),
    }


def note(numbers: Sequence[int], turn: str, found: Line) -> None:
    """Print one turn's figures."""
    progress(f"  {turn} static " + ", ".join(
        f"{found.phase(n - 1):.0f} -> {found.phase(n):.0f}/s, "
        f"{found.kept(n) / found.fair:.3f} of the fair throughput"
        for n in numbers))


def unchanged(ask: Ask) -> Part:
    """Return the control under the last variant: fair is 1."""
    (static, usual), last = tenants(ask), ask.variants[-1]

    return Part(
        "control", {"": line(last, [static], [[usual]] * UNCHANGED)},
        controls=[Control(f"no change, {last.name}", "", lambda turns: [
            (t.phase(1), t.phase(0)) for t in turns])])


def lacks(ask: Ask) -> str | None:
    """Return what `content-change` lacks on this machine."""
    if ask.bed.shaped:
        return None
    return "a shaped link, and loopback has none: run it as root"


def content_change(ask: Ask) -> Job:
    """Plan Figure 12: usual, larger page, usual."""
    static, usual = tenants(ask)
    large = replace(usual, path=f"/bytes/{LARGE}")

    def turn(variant: Variant) -> Turn:
        alone = Turn([variant], [Window([static], 1 / 2),
                                 Window([large], 1 / 2)], [static, large])
        return replace(
            line(variant, [static], [[usual], [large], [usual]]),
            before=alone, value=lambda found: replace(
                found[2], fair=predicted(ask.bed.rate_bps, found[:2])))

    return Job(ask, [Part(
        "larger page", of_each(ask.variants, turn), partial(note, [1]),
        lambda rig, found: [result(rig, "larger page", 1, variant, turns)
                            for variant, turns in found.items()]),
        unchanged(ask)])


def flash_crowd(ask: Ask) -> Job:
    """Plan Figure 13: the dynamic tenant's connections double, triple."""
    static, usual = tenants(ask)
    phases = [[replace(usual, name=f"crowd{times}",
                       conns=times * usual.conns)] if times else []
              for times in CROWDS]
    spikes = [n for n, times in enumerate(CROWDS) if times]
    return Job(ask, [Part(
        "crowds", of_each(ask.variants, partial(
            line, always=[static, usual], phases=phases)),
        partial(note, spikes), lambda rig, found: [
            result(rig, f"{CROWDS[n] + 1} x connections", n, variant, turns)
            for n in spikes for variant, turns in found.items()]),
        unchanged(ask)])


CONTENT_CHANGE = Experiment("content-change", content_change, lacks)
# More turns: five say too little
FLASH_CROWD = Experiment("flash-crowd", flash_crowd, in_quick=False, turns=10)
