# SPDX-License-Identifier: BSD-2-Clause
"""`parts`: what connections with a part of a request cost a tenant.

FEW and then MANY connections send a request that does not end, DRIPS bytes/s
in all: only their number differs.  Beside them a tenant is an open loop, at
LOAD of what it can have alone: half of its fair rate.  `times` is its p99 beside MANY over that
beside FEW.  `cost` is its CPU time per request beside MANY over that beside
none, as Sandpaper charges it; stock charges nobody.  Both windows without
such connections are the control.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from .estimate import bootstrap
from .lab import Lab, in_turns, progress
from .latency import offered
from .load import Group
from .pairs import control
from .scale import CONNECT_RATE
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


def obstacle() -> str | None:
    """Return what this machine lacks."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY or hard >= MANY + OTHERS:
        return None
    return f"{MANY + OTHERS} descriptors, and ulimit -Hn says {hard}"


def charged(varnish: Varnish, host: str) -> tuple[float, int]:
    """Return the tenant's CPU seconds and requests so far."""
    for t in json.loads(varnish.cli("sandpaper.list", "-j"))[-1]["list"]:
        if t["tenant"] == host:
            return t["cpu_s"], t["requests"]
    return 0.0, 0


def beside(
    lab: Lab, varnish: Varnish, group: Group, number: int, ours: bool
) -> Beside:
    """Measure one window."""
    others = [] if number == 0 else [Group(
        PARTS.name, PARTS.host, mode=PARTS.mode, conns=number,
        rate=DRIPS / number)]
    before = charged(varnish, group.host) if ours else (0.0, 0)
    m = lab.load.measure(varnish, [group, *others], lab.plan.seconds,
                         lab.plan.warmup + 2 * number / CONNECT_RATE)
    after = charged(varnish, group.host) if ours else (0.0, 0)
    seen, requests = m[group.name], after[1] - before[1]
    return Beside(seen.p50_s, seen.p99_s, seen.failures,
                  (after[0] - before[0]) / requests * 1e6 if requests
                  else None, m[PARTS.name].errors if others else 0)


def parts_turn(lab: Lab, variant: Variant, *, victim: str) -> PartsTurn:
    """Measure one turn."""
    group, ours = lab.tenant(victim), bool(variant.parameters)
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, [group])
        rps = lab.measure(varnish, [group], lab.plan.seconds / 2)[victim].rps
        windows = [
            beside(lab, varnish, offered(group, LOAD * rps), number, ours)
            for number in (0, FEW, 0, MANY)]
    return PartsTurn(rps, *windows)


def note_parts(turn: str, found: PartsTurn) -> None:
    """Print one turn's figures."""
    cost = "" if found.cost is None else f", cost {found.cost:.2f}"
    progress(f"  {turn} p99 {found.none.p99_s * 1e3:.1f}, "
             f"{found.few.p99_s * 1e3:.1f}, {found.many.p99_s * 1e3:.1f} ms, "
             f"times {found.times:.2f}{cost}, closed {found.many.closed}")


def parts_result(
    lab: Lab, victim: str, variant: str, turns: Sequence[PartsTurn]
) -> dict[str, Any]:
    """Return one variant's entry of `results`."""
    low, high = bootstrap(
        turns, lambda some: median(t.times for t in some), lab.plan.seed)
    costs = [t.cost for t in turns if t.cost is not None]
    result: dict[str, Any] = {
        "tenant": victim, "variant": variant, "turns": len(turns),
        "connections": MANY, "few": FEW, "bytes_per_s": DRIPS,
        "times": round(median(t.times for t in turns), 3),
        "times_ci": [round(low, 3), round(min(high, 1e9), 3)],
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
        low, high = bootstrap(costs, median, lab.plan.seed)
        result["cost"] = round(median(costs), 3)
        result["cost_ci"] = [round(low, 3), round(min(high, 1e9), 3)]
    return result


def parts(lab: Lab, victim: str) -> dict[str, Any]:
    """Measure every variant."""
    progress(f"{victim} beside {FEW} and {MANY} connections with a part of a "
             "request")
    found = in_turns(lab.variants, lab.plan,
                     partial(parts_turn, lab, victim=victim),
                     note=lab.counted(note_parts), keep=lab.keeper(victim))
    last = lab.variants[-1].name
    return lab.report("parts", {victim: control(
        f"p99 of {victim} alone against itself, {last}",
        [(t.again.p99_s, t.none.p99_s) for t in found[last]],
        lab.plan.seed)}, [parts_result(lab, victim, variant, turns)
                          for variant, turns in found.items()])
