# SPDX-License-Identifier: BSD-2-Clause
"""`load-check`: do our load generator and vegeta see the same overload?

Both are an open loop at even times, at each of LOADS times the capacity, on the
same varnishd.  They take turns: ours, vegeta, vegeta, ours.  Vegeta sleeps when
it has nothing to do, so ours does, too: a core that spins can slow its
neighbour down.  Higher loads are left out: there vegeta needs more CPU time
than a core has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median
from typing import Any

from .ask import Ask
from .estimate import with_interval
from .load import Group, Measurement, tenant
from .overload import with_controllers
from .overloadcases import (
    DEAR,
    SETTLE_S,
    Drained,
    Offer,
    capacity,
    offer,
    open_loop,
)
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Turn, of_each
from .varnish import Variant, Varnish
from .vegeta import missing

LOADS = (0.8, 1.0, 2.0)  # times the capacity
OURS, OTHER = "loadgen", "vegeta"
ORDER = (OURS, OTHER, OTHER, OURS)
EVERY = 1 + len(ORDER)  # windows of a load, with its closed loop
# The limits of what agrees: of good answers, and of the part that is refused
AGREE = 0.05
AGREE_P99 = 0.2


@dataclass(frozen=True)
class Attacked(Drained):
    """A window of vegeta."""

    def loaded(
        self, rig: Rig, varnish: Varnish, groups: list[Group]
    ) -> Measurement:
        """Measure this group."""
        return rig.attack(varnish, groups[0], self._measured(rig.plan),
                          rig.plan.warmup + self.settle)


@dataclass(frozen=True)
class Both:
    """What the generators saw at one load: two windows of each."""

    ours: list[Offer]
    other: list[Offer]


@dataclass(frozen=True)
class CheckTurn:
    """One turn; `found` is by load."""

    capacity_rps: float
    again_rps: float  # at the end
    found: dict[str, Both]


def at_load(load: float, found: Sequence[Measurement]) -> list[Group]:
    """Return the tenant at this load, at even times.

    The capacity is that of the closed loop before the windows of this load.
    """
    at = (len(found) - 1) // EVERY * EVERY
    rps = round(load * capacity(found[at:at + 1]))
    return [replace(open_loop(rps), even=1)]


def windows() -> list[Drained]:
    """Return all windows of a turn; a closed loop is before each load."""
    closed = Drained([tenant(DEAR.name)], 1 / 2)
    found = []
    for load in LOADS:
        groups = partial(at_load, load)
        found += [closed, *(
            (Drained if who == OURS else Attacked)(groups, settle=SETTLE_S)
            for who in ORDER)]
    return [*found, closed]


def value(found: Sequence[Measurement]) -> CheckTurn:
    """Return a turn of its windows."""
    both: dict[str, Both] = {}
    for number, load in enumerate(LOADS):
        at = number * EVERY
        alone = [found[at], found[at + EVERY]]
        saw = [offer(load, m, alone) for m in found[at + 1:at + EVERY]]
        both[f"load {load:g}"] = Both(*(
            [s for s, name in zip(saw, ORDER, strict=True) if name == who]
            for who in (OURS, OTHER)))
    return CheckTurn(capacity(found[:1]), capacity(found[-1:]), both)


def turn(variant: Variant) -> Turn:
    """Return all loads under one varnishd."""
    return Turn([variant], windows(), [tenant(DEAR.name)], value)


def middle(offers: Sequence[Offer], field: str) -> float:
    """Return the mean of a field."""
    return float(mean(getattr(o, field) for o in offers))


def note(name: str, found: CheckTurn) -> None:
    """Print one turn's figures."""
    progress(f"  {name} capacity {found.capacity_rps:.0f}/s; " + "; ".join(
        f"{load}: good {middle(b.ours, 'goodput'):.2f} and "
        f"{middle(b.other, 'goodput'):.2f}" for load, b in found.found.items()))


def quotient(both: Both, field: str) -> float:
    """Return what our load generator saw over what vegeta saw."""
    other = middle(both.other, field)
    return middle(both.ours, field) / other if other else 0.0


def more_refused(both: Both) -> float:
    """Return by how much more our load generator was refused, as a part."""
    return middle(both.ours, "refused") - middle(both.other, "refused")


def result(
    seed: int, variant: str, load: str, turns: Sequence[CheckTurn]
) -> dict[str, Any]:
    """Return an entry of `results`: one load."""
    both = [t.found[load] for t in turns]
    row: dict[str, Any] = {
        "case": load, "variant": variant, "turns": len(turns)}
    for field, digits in (("goodput", 3), ("refused", 4), ("p50_s", 6),
                          ("p99_s", 6), ("behind_s", 6)):
        row[f"{field}_{OURS}"], row[f"{field}_{OTHER}"] = (
            round(median(middle(offers, field) for offers in of_all), digits)
            for of_all in ([b.ours for b in both], [b.other for b in both]))
    row |= with_interval(
        "goodput_quotient", both, lambda b: quotient(b, "goodput"), seed)
    row |= with_interval("more_refused", both, more_refused, seed, 4)
    row |= with_interval(
        "p99_quotient", both, lambda b: quotient(b, "p99_s"), seed)
    return row | {"differs": ", ".join(differs(row))}


def differs(row: Mapping[str, Any]) -> list[str]:
    """Return in what the generators do not agree."""
    apart = {"goodput": (row["goodput_quotient"] - 1, AGREE),
             "refused": (row["more_refused"], AGREE),
             "p99": (row["p99_quotient"] - 1, AGREE_P99)}
    return [name for name, (by, limit) in apart.items()
            if round(abs(by), 4) > limit]


def plan(ask: Ask) -> Job:
    """Plan one controller's varnishd."""
    ask = replace(ask, variants=with_controllers(ask)[-1:])
    name = ask.variants[0].name

    def results(rig: Rig, found: Mapping[str, Sequence[CheckTurn]]
                ) -> list[dict[str, Any]]:
        return [result(rig.plan.seed, name, load, found[name])
                for load in found[name][0].found]

    return Job(ask, [Part(
        "load-check", of_each(ask.variants, turn), note, results, [Control(
            f"capacity against itself, {name}", name,
            lambda turns: [(t.again_rps, t.capacity_rps) for t in turns])],
        own_arrivals=True)], [DEAR.name], sleeps=True)


def lacks(_: Ask) -> str | None:
    """Return what this machine lacks."""
    return missing()


EXPERIMENT = Experiment("load-check", plan, lacks, in_all=False, turns=5,
                        seconds=3.0)
