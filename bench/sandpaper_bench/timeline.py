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

from .customers import CUSTOMERS, LARGE, TWIN
from .estimate import bootstrap, verdict
from .lab import Lab, in_turns, progress
from .load import Group
from .pairs import control
from .testbed import TestbedError
from .varnish import Variant

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


def predicted(
    lab: Lab, variant: Variant, static: Group, large: Group
) -> float:
    """Return what multi-resource fairness gives the static tenant.

    Of before: 2/(1+max(c'/N, n/c)), with CPU and link time a request c and n
    of the static tenant, c' and N of the dynamic one; both measured alone.
    """
    rate = lab.bed.rate_bps / 8
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, [static, large])
        cpu = [lab.measure(varnish, [g], lab.plan.seconds / 2)
               .cpu_us_per_request / 1e6 for g in (static, large)]
    link = [CUSTOMERS[STATIC].size / rate, LARGE / rate]
    if link[1] < cpu[1]:
        progress("  the large page is not net-bound here")
    return 2 / (1 + max(cpu[1] / link[1], link[0] / cpu[0]))


def line(
    lab: Lab, variant: Variant, *, always: Sequence[Group],
    phases: Sequence[Sequence[Group]], fair: float = 1.0,
) -> Line:
    """Run one time line; its phases take the planned seconds each."""
    groups = [*always, *(g for some in phases for g in some)]
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, groups)
        found = lab.load.in_phases(
            [(varnish, list(some)) for some in phases],
            lab.plan.seconds * len(phases), 0.0,
            [replace(g, to=varnish.proxy.listen) for g in always],
            lab.plan.seconds)
    count = round(lab.plan.seconds * SLICES) * len(phases)
    dynamic = [s.slices[:count] for some in found.phases
               for s in some.values()]
    dynamic += [found.always[g.name].slices[:count] for g in always[1:]]
    return Line(found.always[always[0].name].slices[:count], dynamic,
                len(phases), fair)


def result(
    lab: Lab, what: str, number: int, variant: str, turns: Sequence[Line]
) -> dict[str, Any]:
    """Return one phase's entry of `results`."""
    interval = bootstrap(
        turns, lambda some: median(t.kept(number) / t.fair for t in some),
        lab.plan.seed)
    return {
        "phase": what, "variant": variant, "turns": len(turns),
        "rps_before": round(median(t.phase(number - 1) for t in turns), 1),
        "rps": round(median(t.phase(number) for t in turns), 1),
        "kept": round(median(t.kept(number) for t in turns), 4),
        "fair": round(median(t.fair for t in turns), 4),
        "of_fair": round(median(t.kept(number) / t.fair for t in turns), 4),
        "of_fair_ci": [round(interval[0], 4),
                       round(min(interval[1], 1e9), 4)],
        "verdict": verdict(interval, CLAIM),
        "series": turns[-1].series(),
    }


def note(numbers: Sequence[int], turn: str, found: Line) -> None:
    """Print one turn's figures."""
    progress(f"  {turn} static " + ", ".join(
        f"{found.phase(n - 1):.0f} -> {found.phase(n):.0f}/s, "
        f"{found.kept(n) / found.fair:.3f} of the fair throughput"
        for n in numbers))


def unchanged(lab: Lab) -> dict[str, Any]:
    """Run the control under the last variant: fair is 1."""
    static, usual = lab.tenant(STATIC), lab.tenant(STATIC + TWIN)
    turns: list[Line] = []
    while len(turns) < lab.plan.turns:
        turns.append(lab.kept(
            f"control, turn {len(turns) + 1}", partial(
                line, lab, lab.variants[-1], always=[static],
                phases=[[usual]] * UNCHANGED)))
        lab.tick()
    return control(f"no change, {lab.variants[-1].name}",
                   [(t.phase(1), t.phase(0)) for t in turns], lab.plan.seed)


def content_change(lab: Lab) -> dict[str, Any]:
    """Run Figure 12: usual, larger page, usual."""
    static, usual = lab.tenant(STATIC), lab.tenant(STATIC + TWIN)
    large = replace(usual, path=f"/bytes/{LARGE}")

    def turn(variant: Variant) -> Line:
        fair = predicted(lab, variant, static, large)
        return line(lab, variant, always=[static],
                    phases=[[usual], [large], [usual]], fair=fair)

    found = in_turns(lab.variants, lab.plan, turn,
                     note=lab.counted(partial(note, [1])),
                     keep=lab.keeper("larger page"))
    return lab.report("content-change", unchanged(lab), [
        result(lab, "larger page", 1, variant, turns)
        for variant, turns in found.items()])


def flash_crowd(lab: Lab) -> dict[str, Any]:
    """Run Figure 13: the dynamic tenant's connections double, triple."""
    static, usual = lab.tenant(STATIC), lab.tenant(STATIC + TWIN)
    phases = [[replace(usual, name=f"crowd{times}",
                       conns=times * usual.conns)] if times else []
              for times in CROWDS]
    spikes = [n for n, times in enumerate(CROWDS) if times]
    found = in_turns(
        lab.variants, lab.plan,
        partial(line, lab, always=[static, usual], phases=phases),
        note=lab.counted(partial(note, spikes)), keep=lab.keeper("crowds"))
    return lab.report("flash-crowd", unchanged(lab), [
        result(lab, f"{CROWDS[n] + 1} x connections", n, variant, turns)
        for n in spikes for variant, turns in found.items()])
