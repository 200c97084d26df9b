# SPDX-License-Identifier: BSD-2-Clause
"""2DFQ, Figure 8: 100 tenants that always wait, 16 threads of 1000 units a
second; the requests of n tenants cost 1000 units (sd 100), the others' 1 (sd
0.1). How does the service of a small one lag behind GPS?

Service lag is in seconds of the tenant's fair rate, 160 units a second, and
positive when it is behind."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table, where
from ..metrics import every, service, spells
from ..releaser import KNOWN
from ..server import MS, SECOND, ThreadPool, pool
from ..workload import Normal, closed, generator, stream

POLICIES = ("wfq", "wf2q", "2dfq")
TENANTS, THREADS = 100, 16
SMALL = Normal(1 * MS, 0.1 * MS)                # a unit is 1 ms of a thread
LARGE = Normal(1000 * MS, 100 * MS)
CONNECTIONS = THREADS + 4                       # a tenant: it always waits
WARM, SHOWN = 5 * SECOND, 15 * SECOND
STEP = 10 * MS                                  # of the lag
RATE_STEP = 100 * MS
FAIR = THREADS / TENANTS                        # threads a tenant
SEEDS = 8


def simulate(policy: str, expensive: int, seed: int) -> ThreadPool:
    """The last n tenants are the expensive ones."""
    server = pool(policy, THREADS, estimator=KNOWN)
    for i in range(TENANTS):
        costs = SMALL if i < TENANTS - expensive else LARGE
        closed(server, server.tenant(), CONNECTIONS,
               stream(costs, generator(seed, "2dfq-fig8", expensive, i)))
    server.run(WARM + SHOWN)
    return server


def lag_of_small(policy: str, expensive: int, seed: int,
                 series: bool = False) -> dict[str, Any]:
    """The first tenant's lag, s, and its rate in 100 ms, units a second."""
    rows = spells(simulate(policy, expensive, seed).releaser)
    at = every(WARM, WARM + SHOWN, STEP)
    lag = (FAIR * at - service(rows, 0, at)) / FAIR / SECOND
    found: dict[str, Any] = {
        "policy": policy, "expensive": expensive, "seed": seed,
        "lag_sd_s": float(np.std(lag)), "lag_min_s": float(lag.min()),
        "lag_max_s": float(lag.max())}
    if series:
        at = every(WARM, WARM + SHOWN, RATE_STEP)
        found["lag_s"] = lag[::10].round(6).tolist()
        found["rate_units_per_s"] = (np.diff(service(
            rows, 0, at)) / RATE_STEP * 1000).round(3).tolist()
    return found


def run(c: Context) -> Result:
    """See Figure."""
    grid = (0, 50, 99) if c.quick else (*range(0, 100, 10), 99)
    seeds = range(c.seed, c.seed + (2 if c.quick else SEEDS))
    # A large request costs as much as a thousand small ones: begin with those.
    tasks: list[tuple[Any, ...]] = [
        (p, 50, s, s == c.seed) for s in seeds for p in POLICIES]
    tasks += [(p, n, c.seed) for n in grid if n != 50 for p in POLICIES]
    found = c.map(lag_of_small, tasks)
    at_50 = {p: median(r["lag_sd_s"] for r in where(
        found, policy=p, expensive=50)) for p in POLICIES}
    rows = [(n, *(where(found, policy=p, expensive=n)[0]["lag_sd_s"]
                  for p in POLICIES)) for n in grid]
    ratios = {p: at_50[p] / at_50["2dfq"] for p in ("wfq", "wf2q")}
    return Result(
        {"tenants": TENANTS, "threads": THREADS, "seeds": len(seeds),
         "warm_s": WARM / SECOND, "shown_s": SHOWN / SECOND,
         "lag_sd_s_at_50": at_50, "times_2dfq_at_50": ratios},
        found,
        {"times_2dfq": "an order of magnitude", "wfq_lag_s": [-2, -1],
         "wf2q_lag_s_up_to": 1},
        ["standard deviation of a small tenant's service lag (s)",
         *table(("expensive tenants", *POLICIES), rows),
         f"median of {len(seeds)} seeds at 50: " + ", ".join(
             f"{p} {at_50[p]:.4f} s" for p in POLICIES),
         *(f"  {p} is {x:.1f} times 2dfq's" for p, x in ratios.items())])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    rate, lag, sd = figure.subplots(3)
    figure.set_size_inches(7, 8)
    found, seed = data["results"], data["seed"]
    for policy in POLICIES:
        mine = where(found, policy=policy, seed=seed)
        one = next(r for r in mine if "lag_s" in r)
        x = [i / 10 for i in range(len(one["lag_s"]))]
        rate.plot(x[1:], one["rate_units_per_s"], label=policy)
        lag.plot(x, one["lag_s"])
        mine.sort(key=lambda r: r["expensive"])
        sd.plot([r["expensive"] for r in mine],
                [r["lag_sd_s"] for r in mine], marker=".")
    rate.set(xlabel="time (s)", ylabel="service (units/s)")
    lag.set(xlabel="time (s)", ylabel="service lag (s)")
    sd.set(xlabel="expensive tenants of 100", ylabel="sd of the lag (s)",
           yscale="log")
    rate.legend()


FIGURE = Figure("2dfq-fig8", "small tenants next to n with large requests",
                run, plot)
