# SPDX-License-Identifier: BSD-2-Clause
"""2DFQ, Figures 9 and 10: 250 generated tenants and t1 to t7 on 32 threads,
costs known. How does each one's service lag behind GPS, and how unequal is
what those get who always wait?

Service lag is in seconds of a tenant's fair rate, positive when it is behind.
The requests are generated (see crowd.py), since Azure's traces are not public:
the paper's figures can be compared in kind, not in size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table
from ..metrics import arrivals, every, gini, services, spells
from ..releaser import KNOWN
from ..server import MS, SECOND
from ..theory import Gps
from ..workload import generator
from . import crowd

POLICIES = ("wfq", "wf2q", "2dfq")
TENANTS, THREADS = 250, 32
# How medians are drawn, and the part of the tenants that always waits.
CASES = (("gap", 1.0), ("even", 1.0), ("gap", 0.6))
CONNECTIONS = THREADS + 4       # a tenant that always waits
DEMAND = 0.05                   # threads, of one that does not
WARM_S, SHOWN_S = 30, 30
STEP = 10 * MS
GINI_STEP = 100 * MS


def crowd_of(drawn: str, waiting: float, seed: int,
             ) -> tuple[list[crowd.Tenant], list[float]]:
    """The tenants, t1 to t7 first, and their median costs, units."""
    rng = generator(seed, "2dfq-fig9-10", drawn)
    tenants = crowd.fixed(CONNECTIONS)
    medians = [float(u) for u in crowd.FIXED]
    for i in range(TENANTS):
        costs, median = crowd.predictable(rng, drawn)
        waits = i < waiting * TENANTS
        tenants.append(crowd.Tenant(
            costs, CONNECTIONS if waits else 4,
            0 if waits else round(4 * median * crowd.UNIT / DEMAND)))
        medians.append(median)
    return tenants, medians


def simulate(drawn: str, waiting: float, policy: str, seed: int,
             warm_s: int, shown_s: int) -> dict[str, Any]:
    """The lag's deviation of each tenant, its quantiles for t1 to t7."""
    tenants, medians = crowd_of(drawn, waiting, seed)
    server = crowd.serve(policy, THREADS, tenants, seed, warm_s + shown_s,
                         estimator=KNOWN)
    rows = spells(server.releaser)
    at = every(warm_s * SECOND, (warm_s + shown_s) * SECOND, STEP)
    always = {i for i, t in enumerate(tenants) if not t.think}
    n = len(tenants)
    came = arrivals(server.releaser)
    fluid = Gps(THREADS, [1.0] * n, always)
    fair = fluid.served(came["arrival"], came["tenant"], came["cpu"], at)
    got = services(rows, n, at)
    # Threads, of a tenant that always waits: t1 is one.
    rate = (fair[-1, 0] - fair[0, 0]) / (at[-1] - at[0])
    lag = (fair - got) / rate / SECOND
    each = np.diff(got[::GINI_STEP // STEP, sorted(always)], axis=0)
    return {
        "medians": drawn, "waiting": waiting, "policy": policy,
        "seed": seed, "requests": len(rows),
        "median_units": medians, "lag_sd_s": lag.std(axis=0).tolist(),
        "fixed_lag_s": np.quantile(
            lag[:, :len(crowd.FIXED)], (0, .01, .5, .99, 1),
            axis=0).T.tolist(),
        "t1_lag_s": lag[::10, 0].round(6).tolist(),
        "gini": [gini(x) for x in each]}


def quarters(r: dict[str, Any]) -> list[float]:
    """The median deviation, s, of each quarter of the tenants by cost."""
    order = np.argsort(r["median_units"], kind="stable")
    return [float(np.median(q)) for q in
            np.array_split(np.array(r["lag_sd_s"])[order], 4)]


def lines(case: tuple[str, float], found: list[dict[str, Any]]) -> list[str]:
    """The tables of a case."""
    ours = quarters(found[-1])[0]
    return [
        f"medians {case[0]}, {case[1]:.0%} of the tenants always wait: sd of "
        "the service lag (s),", "median of each quarter of the tenants, least "
        "costs first; range of t1's to t7's lag (s), 1 % to 99 %",
        *table(("policy", "1st", "2nd", "3rd", "4th", "1st / 2dfq's", "Gini"),
               [(r["policy"], *(q := quarters(r)), q[0] / ours,
                 float(np.mean(r["gini"]))) for r in found]),
        *table(("policy", *crowd.NAMES),
               [(r["policy"], *(q[3] - q[1] for q in r["fixed_lag_s"]))
                for r in found])]


def run(c: Context) -> Result:
    """See Figure."""
    warm, shown = (5, 5) if c.quick else (WARM_S, SHOWN_S)
    found = c.map(simulate, [(*case, p, c.seed, warm, shown)
                             for case in CASES for p in POLICIES])
    n = len(POLICIES)
    text = [x for i, case in enumerate(CASES)
            for x in lines(case, found[i * n:i * n + n])]
    return Result(
        {"tenants": TENANTS, "threads": THREADS, "fixed_units": crowd.FIXED,
         "warm_s": warm, "shown_s": shown},
        [{**r, "quarter_sd_s": quarters(r)} for r in found],
        {"first_quarter_times_2dfq": {"wfq": 100, "wf2q": 50},
         "small_lag_range_s": {"wfq": 0.8, "wf2q": 0.5, "2dfq": 0.01}}, text)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure: of the first case."""
    figure.set_size_inches(8, 7)
    (lag, gi), (cdf, fixed) = figure.subplots(2, 2)
    for k, r in enumerate(data["results"][:len(POLICIES)]):
        x = np.arange(len(r["t1_lag_s"])) / 10
        lag.plot(x, r["t1_lag_s"], label=r["policy"])
        gi.plot(np.arange(len(r["gini"])) / 10, r["gini"], linewidth=0.5)
        sd = np.sort(r["lag_sd_s"])
        cdf.plot(sd, np.arange(1, len(sd) + 1) / len(sd))
        q = np.array(r["fixed_lag_s"])
        at = np.arange(len(q)) + (k - 1) * 0.25
        fixed.vlines(at, q[:, 1], q[:, 3], color=f"C{k}", linewidth=4)
    lag.set(xlabel="time (s)", ylabel="t1's service lag (s)")
    gi.set(xlabel="time (s)", ylabel="Gini index, 100 ms")
    cdf.set(xscale="log", xlabel="sd of the lag (s)", ylabel="tenants, part")
    fixed.set_xticks(range(7), crowd.NAMES)
    fixed.set_yscale("symlog", linthresh=0.01)
    fixed.set_ylabel("lag (s), 1 % to 99 %")
    lag.legend()


FIGURE = Figure("2dfq-fig9-10", "250 generated tenants with known costs", run,
                plot)
