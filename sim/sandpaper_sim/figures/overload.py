# SPDX-License-Identifier: BSD-2-Clause
"""A tournament of the controllers of overload.

A proxy of two cores serves 1000 requests/s. A request is good if its answer
comes within the target, 0.5 s. A refusal costs 2 % of a request. Goodput is
given over the best that is possible with this cost.

The windows are a few seconds long, so a controller that needs longer to settle
is judged before it has settled. SEDA's target is one of response times. Here
each controller gets it as a target of the wait.

"-newest" is a controller whose tenant serves its newest request first while its
oldest one is late. In "expensive requests" the costs stay in the order of
arrivals: a new request can have the cost of an old one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table, where
from ..overload import (
    LEAST,
    STANDING,
    Clients,
    Front,
    Gate,
    best,
    controllers,
    summary,
)
from ..releaser import Releaser
from ..server import MS, SECOND, Environment
from ..workload import Exponential, closed, generator, stream

CORES, WORKERS = 2, 20
COST = SECOND // 1000           # mean processing time
CAPACITY = 1000                 # requests/s
REFUSAL = 0.02                  # of a request's cost
TARGET = SECOND // 2
FACTOR = 4                      # of the cost of expensive requests
SLOW = SECOND                   # a fetch of the slow origin
NEIGHBOURS = 40                 # connections of a neighbour, in a closed loop
FAIR = 0.5                      # of the capacity, for each of two
NEWEST = "-newest"


@dataclass(frozen=True)
class Case:
    """A load over time, and when it is measured; s."""

    name: str
    load: Callable[[float], float]  # at a time, in parts of the capacity
    most: float                     # of `load`
    measured: tuple[float, float]
    expensive: tuple[float, float] = (0, 0)
    slow: tuple[float, float] = (0, 0)
    retry: tuple[int, int] | None = None    # ns, a range
    tries: int = 1
    neighbour: bool = False


def steady(load: float) -> Case:
    """The same load all the time."""
    return Case(f"{load:g} x", lambda _: load, load, (2, 8))


def burst(s: float) -> float:
    """0.5, ten times the capacity from 2 s to 4 s, 0.5."""
    return 10 if 2 <= s < 4 else 0.5


CASES = {c.name: c for c in (
    *(steady(load) for load in (0.8, 1, 1.5, 2, 3, 5, 10)),
    Case("step up", burst, 10, (2, 4)),
    Case("step down", burst, 10, (5, 7)),
    Case("square wave", lambda s: 0.5 if s % 1 < 0.5 else 3, 3, (2, 8)),
    Case("expensive requests", lambda _: 0.8, 0.8, (2, 5), expensive=(2, 5)),
    Case("slow origin", lambda _: 0.5, 0.5, (2, 8), slow=(2, 4)),
    Case("retries at once", lambda _: 2, 2, (2, 8), retry=(MS, 20 * MS),
         tries=10),
    Case("retries after 1 to 4 s", lambda _: 3, 3, (2, 8),
         retry=(SECOND, 4 * SECOND), tries=3),
    Case("5 x, neighbour", lambda _: 5, 5, (2, 8), neighbour=True),
)}


def within(period: tuple[float, float], now: int) -> bool:
    """Is it this time?"""
    return period[0] * SECOND <= now < period[1] * SECOND


def service(front: Front, tenant: int, begin: int, end: int) -> float:
    """Return the CPU time of a tenant's answers, in parts of all."""
    rows = front.releaser.records()
    rows = rows[(rows["tenant"] == tenant) & (rows["end"] >= begin)
                & (rows["end"] < end)]
    return float(rows["cpu"].sum()) / (end - begin)


def simulate(name: str, controller: str, seed: int) -> dict[str, Any]:
    """One case with one controller."""
    case = CASES[name]
    env = Environment(0)

    def fetch(_: int) -> int:
        return SLOW if within(case.slow, env.now) else 0

    front = Front(env, Releaser("mr3-rs", WORKERS), CORES,
                  refusal=round(REFUSAL * COST * CORES),
                  fetch=fetch if case.slow[1] else None)

    def random(what: str) -> np.random.Generator:
        return generator(seed, "overload", name, what)

    costs, retries = stream(Exponential(COST), random("costs")), case.retry
    again = random("retries")
    tenant = front.gated(Gate(
        controller.removesuffix(NEWEST), TARGET, STANDING, LEAST,
        newest=controller.endswith(NEWEST)))
    Clients(front, tenant, lambda now: CAPACITY * case.load(now / SECOND),
            CAPACITY * case.most, lambda now: next(costs) *
            (FACTOR if within(case.expensive, now) else 1),
            random("arrivals"),
            (lambda: int(again.integers(*retries))) if retries else None,
            case.tries)
    if case.neighbour:
        neighbour = front.gated(Gate(
            controller.removesuffix(NEWEST), 0, 0, 0))
        closed(front, neighbour, NEIGHBOURS, stream(
            Exponential(COST), random("neighbour")))
    begin, end = (round(s * SECOND) for s in case.measured)
    front.run(end + TARGET)
    rows = front.outcomes()
    found = summary(rows[rows["tenant"] == tenant], TARGET, begin, end)
    # Parts of the capacity while it is measured
    factor = FACTOR if within(case.expensive, begin) else 1
    each = factor * SECOND / (CAPACITY * (end - begin))
    load = found["requests"] * each
    found |= {"case": name, "controller": controller, "seed": seed,
              "load": load}
    if not case.neighbour:
        return found | {"of_best": found["good"] * each
                        / best(load, REFUSAL / factor)}
    # The refusals of a tenant are in its own share
    other = summary(rows[rows["tenant"] == neighbour], TARGET, begin, end)
    return found | {
        "of_best": found["good"] * each / FAIR
        / best(load / FAIR, REFUSAL),
        "neighbour_of_fair": service(front, neighbour, begin, end) / FAIR,
        "neighbour_p99_ms": other["p99_ms"]}


def run(c: Context) -> Result:
    """See Figure."""
    seeds = range(c.seed, c.seed + (1 if c.quick else 20))
    names = ["0.8 x", "3 x", "expensive requests"] if c.quick else list(CASES)
    known = [*controllers(), "limit" + NEWEST, "time" + NEWEST]
    found = c.map(simulate, [(name, controller, seed) for name in names
                             for controller in known for seed in seeds])

    def middle(name: str, controller: str, what: str) -> float:
        return median(f[what] for f in where(
            found, case=name, controller=controller))

    def rows(what: str, shape: str, cases: list[str]) -> list[list[str]]:
        return [[name, *(format(middle(name, k, what), shape)
                         for k in known)] for name in cases]

    shared = [n for n in names if CASES[n].neighbour]
    lines = [
        "good answers, over the best that is possible",
        *table(("load", *known), rows("of_best", ".2f", names)),
        "", "p99 of the response time of what is admitted, ms",
        *table(("load", *known), rows("p99_ms", ".0f", names)),
        "", "refused",
        *table(("load", *known), rows("refused", ".3f", names))]
    if shared:
        lines += ["", "CPU time of a neighbour, over its fair share",
                  *table(("load", *known),
                         rows("neighbour_of_fair", ".3f", shared))]
    return Result(
        {"capacity_per_s": CAPACITY, "refusal": REFUSAL,
         "target_s": TARGET / SECOND, "standing_s": STANDING / SECOND,
         "seeds": len(seeds)}, found, {}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for k in sorted({f["controller"] for f in data["results"]}):
        rows = [f for f in where(data["results"], controller=k)
                if f["case"].endswith(" x")]
        loads = sorted({float(f["case"].split()[0]) for f in rows})
        axes.plot(loads, [median(f["of_best"] for f in rows if
                                 float(f["case"].split()[0]) == load)
                          for load in loads], "o-", label=k)
    axes.set(xscale="log", xlabel="load, in parts of the capacity",
             ylabel="good answers, over the best possible")
    axes.legend(fontsize="x-small")


FIGURE = Figure("overload", "controllers of overload, from 0.8 to 10 times "
                "the capacity", run, plot)
