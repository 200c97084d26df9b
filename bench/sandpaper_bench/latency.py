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

from .ask import Ask, named
from .estimate import with_interval
from .load import Group, GroupResult, Measurement, tenant
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Turn, Window, of_each
from .varnish import Variant

LOAD = 0.8  # of what a tenant can have
SHARE = 0.5
LIMIT = 2.0  # of `times`


@dataclass(frozen=True)
class LatencyTurn:
    """One turn under one variant, by tenant."""

    capacity: dict[str, float]
    alone: dict[str, GroupResult]
    again: GroupResult  # a, alone, a second time
    both: dict[str, GroupResult]

    def times(self, name: str) -> float:
        """Return p99 together over p99 alone / SHARE."""
        alone = self.alone[name].p99_s
        return self.both[name].p99_s * SHARE / alone if alone else 0.0


def offered(group: Group, rps: float) -> Group:
    """Return the group as an open loop of so many requests/s."""
    return replace(group, mode="open", rate=max(rps, 1.0))


def latency_turn(
    variant: Variant, *, a: str, b: str, conns: int
) -> Turn:
    """Return what each can do alone, its p99 alone, and both together."""
    first, second = tenant(a, conns), tenant(b, conns)

    def loop(
        group: Group, load: float, found: Sequence[Measurement]
    ) -> Group:
        capacity = found[0][a] if group is first else found[1][b]
        return offered(group, load * capacity.rps)

    def both(found: Sequence[Measurement]) -> list[Group]:
        return [loop(g, LOAD * SHARE, found) for g in (first, second)]

    def value(found: list[Measurement]) -> LatencyTurn:
        return LatencyTurn(
            {a: found[0][a].rps, b: found[1][b].rps},
            {a: found[2][a], b: found[3][b]}, found[5][a], found[4].groups)

    alone_a = Window(lambda found: [loop(first, LOAD, found)])
    alone_b = Window(lambda found: [loop(second, LOAD, found)])
    return Turn([variant], [
        Window([first], 1 / 2), Window([second], 1 / 2), alone_a, alone_b,
        Window(both), alone_a], [first, second], value)


def note_latency(turn: str, found: LatencyTurn) -> None:
    """Print one turn's figures."""
    progress(f"  {turn}" + "".join(
        f" {name} p99 {found.alone[name].p99_s * 1e3:.1f} -> "
        f"{found.both[name].p99_s * 1e3:.1f} ms, times "
        f"{found.times(name):.2f} " for name in found.both))


def latency_result(
    rig: Rig, name: str, other: str, variant: str,
    turns: Sequence[LatencyTurn],
) -> dict[str, Any]:
    """Return one tenant's entry of `results`, beside one other."""
    times = with_interval("times", turns, lambda t: t.times(name),
                          rig.plan.seed)
    low, high = times["times_ci"]
    both = [t.both[name] for t in turns]
    return {
        "tenant": name, "beside": other, "variant": variant,
        "turns": len(turns),
        **times,
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


def part(ask: Ask, a: str, b: str, title: str) -> Part:
    """Return a pair as open loops under every variant."""
    ours = ask.variants[-1].name
    return Part(
        f"{a}-{b}", of_each(ask.variants, partial(
            latency_turn, a=a, b=b, conns=ask.plan.connections)),
        note_latency,
        lambda rig, found: [latency_result(rig, *names, variant, turns)
                            for variant, turns in found.items()
                            for names in ((a, b), (b, a))],
        [Control(f"p99 of {a} alone against itself, {ours}", ours,
                 lambda turns: [(t.again.p99_s, t.alone[a].p99_s)
                                for t in turns], f"{a}-{b}")], title)


def plan(ask: Ask) -> Job:
    """Plan every chosen pair."""
    chosen = ask.pairs(1)
    return Job(ask, [part(ask, a, b, f"pair {n} of {len(chosen)}: {a} {b}")
                     for n, (a, b) in enumerate(chosen, 1)], named(chosen))


EXPERIMENT = Experiment("latency", plan)
