# SPDX-License-Identifier: BSD-2-Clause
"""`parts`: what connections with a part of a request cost a tenant.

FEW and then MANY connections send a request that does not end, DRIPS bytes/s
in all: only their number differs.  Beside them a tenant is an open loop, at
LOAD of what it can have alone: half of its fair rate.  `times` is its p99
beside MANY over that beside FEW.  `cost` is its CPU time per request beside
MANY over that beside none, as Sandpaper charges it; stock charges nobody.
Both windows without such connections are the control.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from .ask import Ask
from .costing import Costing
from .estimate import with_interval
from .latency import offered
from .load import Group, tenant
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Turn, Window, of_each
from .scale import CONNECT_RATE, descriptors
from .varnish import Variant, Varnish

FEW, MANY = 200, 15_000  # connections
DRIPS = 20_000.0  # bytes/s
LOAD = 0.25
TIMES, COST = 2.0, 1.1  # at most
PARTS = Group("parts", "parts.example", mode="drip")
OTHERS = 1000  # descriptors of a process, beside these connections


@dataclass(frozen=True)
class Beside:
    """What the tenant saw in a window, and what it was charged."""

    p50_s: float
    p99_s: float
    failures: int
    cpu_us: float | None  # per request
    closed: int  # connections with a part that varnishd has closed


@dataclass(frozen=True)
class PartsTurn:
    """One turn under one variant."""

    rps: float  # alone, closed loop
    none: Beside
    few: Beside
    again: Beside  # none
    many: Beside

    @property
    def times(self) -> float:
        """Return p99 beside many over p99 beside few."""
        return self.many.p99_s / self.few.p99_s if self.few.p99_s else 0.0

    @property
    def cost(self) -> float | None:
        """Return CPU time per request beside many over that beside none."""
        if self.many.cpu_us is None or not self.none.cpu_us:
            return None
        return self.many.cpu_us / self.none.cpu_us


def lacks(_: Ask) -> str | None:
    """Return what this machine lacks."""
    wanted = MANY + OTHERS
    hard = descriptors(wanted)
    return None if hard == wanted else (
        f"{wanted} descriptors, and ulimit -Hn says {hard}")


@dataclass(frozen=True)
class BesideParts(Costing):
    """A window of a tenant beside so many connections with a part."""

    number: int = 0

    def measure(
        self, rig: Rig, running: Sequence[Varnish], found: Sequence[Any]
    ) -> Beside:
        """Measure it, and what the tenant was charged."""
        varnish, = running
        group, = self.asked(rig, found)
        others = [replace(PARTS, conns=self.number, rate=DRIPS / self.number)
                  ] if self.number else []
        costed = self.costed(rig, varnish, [group], others)
        seen = costed.window[group.name]
        return Beside(seen.p50_s, seen.p99_s, seen.failures,
                      costed.cpu_us.get(group.name),
                      costed.window[PARTS.name].errors if others else 0)


def parts_turn(variant: Variant, *, victim: str, conns: int) -> Turn:
    """Return one turn."""
    group = tenant(victim, conns)

    def loop(found: Sequence[Any]) -> list[Group]:
        return [offered(group, LOAD * found[0][victim].rps)]

    return Turn([variant], [Window([group], 1 / 2), *(
        BesideParts(loop, settle=2 * number / CONNECT_RATE, number=number)
        for number in (0, FEW, 0, MANY))], [group],
        lambda found: PartsTurn(found[0][victim].rps, *found[1:]))


def note_parts(turn: str, found: PartsTurn) -> None:
    """Print one turn's figures."""
    cost = "" if found.cost is None else f", cost {found.cost:.2f}"
    progress(f"  {turn} p99 {found.none.p99_s * 1e3:.1f}, "
             f"{found.few.p99_s * 1e3:.1f}, {found.many.p99_s * 1e3:.1f} ms, "
             f"times {found.times:.2f}{cost}, closed {found.many.closed}")


def parts_result(
    rig: Rig, victim: str, variant: str, turns: Sequence[PartsTurn]
) -> dict[str, Any]:
    """Return one variant's entry of `results`."""
    costs = [t.cost for t in turns if t.cost is not None]
    result: dict[str, Any] = {
        "tenant": victim, "variant": variant, "turns": len(turns),
        "connections": MANY, "few": FEW, "bytes_per_s": DRIPS,
        **with_interval("times", turns, lambda t: t.times, rig.plan.seed),
        "cost": None, "cost_ci": None,
        "offered_rps": round(median(t.rps for t in turns) * LOAD, 1),
        "closed": round(median(t.many.closed for t in turns)),
        "errors": sum(w.failures for t in turns
                      for w in (t.none, t.few, t.many, t.again)),
    }
    for name in ("none", "few", "many"):
        seen = [getattr(t, name) for t in turns]
        result[f"p50_s_{name}"] = round(median(s.p50_s for s in seen), 6)
        result[f"p99_s_{name}"] = round(median(s.p99_s for s in seen), 6)
        cpu = [s.cpu_us for s in seen if s.cpu_us is not None]
        result[f"cpu_us_{name}"] = round(median(cpu), 2) if cpu else None
    if costs:
        result |= with_interval("cost", costs, float, rig.plan.seed)
    return result


def plan(ask: Ask) -> Job:
    """Plan every variant."""
    victim, last = ask.victim(), ask.variants[-1].name
    return Job(ask, [Part(
        victim, of_each(ask.variants, partial(
            parts_turn, victim=victim, conns=ask.plan.connections)),
        note_parts,
        lambda rig, found: [parts_result(rig, victim, variant, turns)
                            for variant, turns in found.items()],
        [Control(f"p99 of {victim} alone against itself, {last}", last,
                 lambda turns: [(t.again.p99_s, t.none.p99_s) for t in turns],
                 victim)],
        f"{victim} beside {FEW} and {MANY} connections with a part "
        "of a request", whole=True)], [victim])


# It is beside the abuses, so it is not in `all`
EXPERIMENT = Experiment("parts", plan, lacks, in_all=False)
