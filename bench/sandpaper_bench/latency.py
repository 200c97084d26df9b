# SPDX-License-Identifier: BSD-2-Clause
"""`latency`: what a neighbour does to an open loop's p99 (paper, section 6.2).

Open loop: requests are due at random times (Poisson), whatever the answers
do, and a latency counts from when the request was due, so that a slow server
does not slow its own measurement down (coordinated omission).  A tenant alone
is offered LOAD of its capacity, two together are offered LOAD of their SHARE
of it each.  `times` is p99 together over p99 alone / SHARE: what is left of
the neighbour when the smaller share is taken into account.  Requests that
still wait at the end count with their age.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

from .estimate import bootstrap
from .lab import Lab, in_turns, progress
from .load import Group, Seen
from .pairs import control
from .varnish import Variant

LOAD = 0.8  # of what a tenant can have
SHARE = 0.5
LIMIT = 2.0  # of `times`


@dataclass(frozen=True)
class LatencyTurn:
    """One turn under one variant, by tenant."""

    capacity: dict[str, float]
    alone: dict[str, Seen]
    again: Seen  # a, alone, a second time
    both: dict[str, Seen]

    def times(self, name: str) -> float:
        """Return p99 together over p99 alone / SHARE."""
        alone = self.alone[name].p99_s
        return self.both[name].p99_s * SHARE / alone if alone else 0.0


def offered(group: Group, rps: float) -> Group:
    """Return the group as an open loop of so many requests/s."""
    return replace(group, mode="open", rate=max(rps, 1.0))


def latency_turn(lab: Lab, variant: Variant, *, a: str, b: str) -> LatencyTurn:
    """Measure what each can do alone, its p99 alone, and both together."""
    groups = {name: lab.tenant(name) for name in (a, b)}
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, list(groups.values()))
        capacity = {
            name: lab.measure(varnish, [group], lab.plan.seconds / 2)[name].rps
            for name, group in groups.items()}
        alone = {
            name: lab.measure(
                varnish, [offered(group, LOAD * capacity[name])])[name]
            for name, group in groups.items()}
        both = lab.measure(varnish, [
            offered(group, LOAD * SHARE * capacity[name])
            for name, group in groups.items()]).groups
        again = lab.measure(
            varnish, [offered(groups[a], LOAD * capacity[a])])[a]
    return LatencyTurn(capacity, alone, again, both)


def note_latency(turn: str, found: LatencyTurn) -> None:
    """Print one turn's figures."""
    progress(f"  {turn}" + "".join(
        f" {name} p99 {found.alone[name].p99_s * 1e3:.1f} -> "
        f"{found.both[name].p99_s * 1e3:.1f} ms, times "
        f"{found.times(name):.2f} " for name in found.both))


def latency_result(
    lab: Lab, name: str, other: str, variant: str,
    turns: Sequence[LatencyTurn],
) -> dict[str, Any]:
    """Return one tenant's entry of `results`, beside one other."""
    low, high = bootstrap(
        turns, lambda some: median(t.times(name) for t in some),
        lab.plan.seed)
    both = [t.both[name] for t in turns]
    return {
        "tenant": name, "beside": other, "variant": variant,
        "turns": len(turns),
        "times": round(median(t.times(name) for t in turns), 3),
        "times_ci": [round(low, 3), round(min(high, 1e9), 3)],
        "verdict": "met" if high <= LIMIT else
                   "missed" if low > LIMIT else "unresolved",
        "capacity_rps": round(median(t.capacity[name] for t in turns), 1),
        "offered_rps": round(
            median(t.capacity[name] for t in turns) * LOAD * SHARE, 1),
        "rps": round(median(s.rps for s in both), 1),
        "p99_s_alone": round(
            median(t.alone[name].p99_s for t in turns), 6),
        "p50_s": round(median(s.p50_s for s in both), 6),
        "p99_s": round(median(s.p99_s for s in both), 6),
        "max_s": round(max(s.max_s for s in both), 6),
        "waiting": max(s.waiting for s in both),
        "errors": sum(s.failures for s in both),
    }


def latency(lab: Lab, chosen: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Run every chosen pair as open loops under every variant."""
    results, controls = [], {}
    for number, (a, b) in enumerate(chosen, 1):
        progress(f"pair {number} of {len(chosen)}: {a} {b}")
        found = in_turns(lab.variants, lab.plan,
                         partial(latency_turn, lab, a=a, b=b),
                         note=lab.counted(note_latency),
                         keep=lab.keeper(f"{a}-{b}"))
        results += [
            latency_result(lab, name, other, variant, turns)
            for variant, turns in found.items()
            for name, other in ((a, b), (b, a))]
        ours = lab.variants[-1].name
        controls[f"{a}-{b}"] = control(
            f"p99 of {a} alone against itself, {ours}",
            [(t.again.p99_s, t.alone[a].p99_s) for t in found[ours]],
            lab.plan.seed)
    return lab.report("latency", controls, results)
