# SPDX-License-Identifier: BSD-2-Clause
"""The cases of two tiers, and how a rule is measured in them.

Each tenant offers the same CPU time, and its requests cost what COSTS says. So
its fair part is the same as that of all others. Work is the CPU time of parents
and children on requests that were refused, by either of them. It is in parts
of the parent's capacity, which is that of two cores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .server import MS, SECOND
from .tiers import (
    CORES,
    FORWARD,
    HERE,
    REFUSAL,
    SERVED,
    STALE,
    THERE,
    Parent,
    Tenant,
    Tiers,
    simulate,
)
from .windows import Rule
from .workload import generator

COSTS = (0.5, 0.5, 1, 1, 2, 4)  # ms of a parent's CPU, in turn
WARM, UNTIL = 2, 6              # s


@dataclass(frozen=True)
class Group:
    """Who asks. refusal: ns of one core."""

    name: str
    tenants: int
    children: int
    refusal: int = REFUSAL


FEW = Group("6 tenants, 2 children", 6, 2)
MANY = Group("48 tenants, 2 children", 48, 2)
GROUPS = (FEW, MANY, Group("48 tenants, 8 children", 48, 8),
          Group("48 tenants, 2 children, dear refusals", 48, 2, 10 * REFUSAL))


def offered(group: Group, most: float,
            load: Callable[[float], float] | None = None,
            stale: float = 0.0) -> list[Tenant]:
    """The tenants of a group. most: the largest load; load: of a time, s."""
    n = group.tenants
    return [Tenant(round(COSTS[i % len(COSTS)] * MS),
                   lambda s: (load(s) if load else most) / n, most / n, stale)
            for i in range(n)]


@dataclass(frozen=True)
class Case:
    """load(s): of all tenants, over the parent's capacity. rtt: ms."""

    name: str
    group: Group
    rtt: int
    load: Callable[[float], float]
    most: float

    def tiers(self, price: str) -> Tiers:
        """With one parent."""
        tenants = offered(self.group, self.most, self.load)
        return Tiers(tenants, [Parent(price=price)], self.group.children,
                     self.rtt * MS, self.group.refusal)


def steady(load: float, group: Group, rtt: int) -> Case:
    """The same load all the time."""
    return Case(f"load {load:g}", group, rtt, lambda _: load, load)


def step(group: Group, rtt: int) -> Case:
    """Half of the capacity, from 2 s to 4 s three times the capacity."""
    return Case("step", group, rtt, lambda s: 3 if 2 <= s < 4 else 0.5, 3)


LOADED = [*(steady(load, group, rtt) for group in GROUPS
            for load in (1.5, 3) for rtt in (1, 20, 100)),
          *(step(group, rtt) for group in GROUPS for rtt in (20, 100)),
          *(steady(10, group, 20) for group in (FEW, MANY))]
EASY = [steady(load, group, 20) for group in (FEW, MANY) for load in (0.5, 1)]
CASES = [*LOADED, *EASY]


def refused(rows: Any) -> Any:  # noqa: ANN401
    """Which of them a parent refused."""
    return (rows["what"] == THERE) | (
        (rows["what"] == STALE) & (rows["parent"] >= 0))


def work(rows: Any, refusal: int, here: bool = True) -> float:  # noqa: ANN401
    """CPU time on requests that were refused, ns of all cores.

    here: also on those that a child refused itself."""
    there = int(refused(rows).sum()) * (FORWARD + 2)
    itself = int((rows["what"] == HERE).sum()) if here else 0
    return (there + itself) * refusal / CORES


def goodput(rows: Any) -> float:  # noqa: ANN401
    """CPU time of requests that were answered, ns of all cores."""
    return float(rows["cpu"][rows["what"] == SERVED].sum())


def shares(rows: Any, tenants: int) -> list[float]:  # noqa: ANN401
    """Of each tenant, over the fair part of what was answered."""
    all_ = goodput(rows) / tenants
    return [goodput(rows[rows["tenant"] == t]) / all_
            for t in range(tenants)]


def perfect(case: Case) -> tuple[float, float]:
    """The goodput and the work if children refuse just what is too much.

    Each tenant's part of the refusals is the same. See measure()."""
    loads = [case.load(s) for s in np.arange(WARM, UNTIL, 0.01)]
    good = float(np.mean([min(1, load) for load in loads]))
    requests = float(np.mean([1 / t.cost for t in offered(case.group, 1)]))
    return good, (float(np.mean(loads)) - good) * requests \
        * case.group.refusal / CORES


def measure(case: int, rule: Rule, price: str, seed: int) -> dict[str, Any]:
    """One of CASES, from WARM to UNTIL.

    good, work, work_there: parts of the parent's capacity."""
    c = CASES[case]
    rows = simulate(c.tiers(price), rule, UNTIL * SECOND, seed)
    rows = rows[rows["end"] >= WARM * SECOND]
    span = (UNTIL - WARM) * SECOND
    fair = shares(rows, c.group.tenants)
    return {"case": c.name, "group": c.group.name, "rtt_ms": c.rtt,
            "rule": rule.name, "price": price, "seed": seed,
            "good": goodput(rows) / span,
            "work": work(rows, c.group.refusal) / span,
            "work_there": work(rows, c.group.refusal, False) / span,
            "jain": sum(fair)**2 / len(fair) / sum(x * x for x in fair)}


def geometric(x: list[float]) -> float:
    """The geometric mean; 0 if one of them is not above 0."""
    return math.exp(sum(map(math.log, x)) / len(x)) if min(x) > 0 else 0.0


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 95 % interval, by bootstrap: low, median, high."""
    x = np.asarray(values, float)
    drawn = generator(0, "tiers", "bootstrap").integers(
        len(x), size=(2000, len(x)))
    low, high = np.percentile(np.median(x[drawn], axis=1), (2.5, 97.5))
    return float(low), float(np.median(x)), float(high)
