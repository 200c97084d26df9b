# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper's customers C1 to C4 (Table 1) in the system of its section 6.3:
12 cores, a link, two customers that always wait, W workers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..metrics import (
    Floats,
    Ints,
    changes,
    dominant_service,
    empirical_bound,
    fairness_bound,
)
from ..releaser import CPU, NET, SANDPAPER, Estimator
from ..server import SECOND, US, Proxy, proxy
from ..workload import (
    Constant,
    Costs,
    Lognormal,
    Normal,
    closed,
    generator,
    stream,
)

CORES = 12
# Processing times on CPU and link, us, and the standard deviation.
TABLE1 = {"C1": (39.88, 1.96, 22.08, 0.001), "C2": (13.60, 0.88, 81.25, 0.01),
          "C3": (28.10, 1.19, 92.18, 0.001), "C4": (22.81, 0.99, 36.40, 0.001)}
Pair = list[str]
PAIRS: list[Pair] = [list(pair) for pair in combinations(TABLE1, 2)]
SIGMA = 1.0                     # of the logarithm, "lognormal"


def demands(customer: str, costs: str, seed: int,
            ) -> tuple[Iterator[int], Iterator[int]]:
    """Streams of CPU and link time, ns.

    costs: `constant`; `table1`, with Table 1's deviations; `lognormal`, a
    request's profile times one random factor of mean 1, so that its dominant
    resource stays the same."""
    cpu, cpu_sd, net, net_sd = (x * US for x in TABLE1[customer])

    def one(mean: float, sd: float) -> Costs:
        if costs == "constant":
            return Constant(round(mean))
        if costs == "table1":
            return Normal(mean, sd)
        return Lognormal(mean / 2.718281828459045 ** (SIGMA**2 / 2), SIGMA)

    name = ("customers", customer, costs)
    other = name if costs == "lognormal" else (*name, "link")
    return (stream(one(cpu, cpu_sd), generator(seed, *name)),
            stream(one(net, net_sd), generator(seed, *other)))


def dominant(customer: str) -> int:
    """CPU or NET."""
    cpu, _, net, _ = TABLE1[customer]
    return CPU if cpu > net else NET


def serve(pair: Pair, workers: int, *, policy: str = "mr3-rs",
          costs: str = "constant", estimator: Estimator = SANDPAPER,
          options: int, seed: int, until: int, flows: int = 0) -> Proxy:
    """More connections than workers, each customer. flows: mr3-vf's alpha."""
    server = proxy(policy, workers, CORES, estimator=estimator,
                   options=options, paper=True)
    if flows:
        server.releaser.set_flows(flows)
    for customer in pair:
        closed(server, server.tenant(), workers + 20,
               *demands(customer, costs, seed))
    server.run(until)
    return server


def both(server: Proxy, pair: Pair) -> tuple[Ints, Floats, Floats]:
    """Times, ns, and dominant service of both up to then, ns."""
    at = changes(server)
    a, b = (dominant_service(server, i, dominant(c), at)
            for i, c in enumerate(pair))
    return at, a, b


def bounds(server: Proxy, pair: Pair, until: int,
           ) -> dict[str, float]:
    """Empirical bound and relative fairness bound, us; requests a second.

    The largest cost, L, is that of this run."""
    _, a, b = both(server, pair)
    rows = server.releaser.records()
    largest = max(int(rows["cpu"].max()), int(rows["net"].max()))
    return {"bound_us": empirical_bound(a, b) / US,
            "rfb_us": fairness_bound(server.releaser.slots, largest) / US,
            "requests_per_s": len(rows) * SECOND / until}
