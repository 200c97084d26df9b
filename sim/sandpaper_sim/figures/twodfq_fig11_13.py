# SPDX-License-Identifier: BSD-2-Clause
"""2DFQ, Figures 11 to 13: costs are not known, and some tenants cannot be
predicted. What does 2DFQ^E (pessimistic estimates) do for the 99th percentile
of t1's to t7's latency, beside WFQ^E and WF2Q^E (moving averages)? All are
charged for what they cost so far every 10 ms, and in the end.

First 300 tenants on 32 threads, of which 0, 33 and 66 % are unpredictable
(section 6.2.1), then random experiments (6.2.2). Tenants are generated, see
crowd.py. Each of t1 to t7 sends one request at a time; the others always wait,
but for those of the random experiments that pause.

WFQ with pessimistic estimates is there, too: is it the estimates, or where
requests run?"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table, where
from ..metrics import latency, p99, spread
from ..releaser import MOVING, PESSIMISTIC, Estimator
from ..server import MS, REFRESH, SECOND
from ..workload import generator
from . import crowd

VARIANTS: dict[str, tuple[str, Estimator]] = {
    "wfqe": ("wfq", MOVING), "wf2qe": ("wf2q", MOVING),
    "2dfqe": ("2dfqe", PESSIMISTIC), "wfq, pessimistic": ("wfq", PESSIMISTIC)}
PARTS = (0.0, 0.33, 0.66)       # of the tenants, unpredictable
TENANTS, THREADS = 300, 32
CONNECTIONS = 8                 # of a tenant that always waits
WARM_S, SHOWN_S = 100, 200
SEEDS = 8
EXPERIMENTS = 150
RANDOM_VARIANTS = ("wfqe", "wf2qe", "2dfqe")
RANDOM_WARM_S, RANDOM_SHOWN_S = 40, 40
FIXED = len(crowd.FIXED)


def p99_of_fixed(variant: str, threads: int, tenants: list[crowd.Tenant],
                 seed: int, warm_s: int, shown_s: int) -> list[float | None]:
    """ms, of t1 to t7, which are the first; None if nothing was answered."""
    policy, estimator = VARIANTS[variant]
    server = crowd.serve(policy, threads, tenants, seed, warm_s + shown_s,
                         estimator=estimator, refresh=REFRESH)
    rows = server.releaser.records()
    found = [p99(latency(rows, i, warm_s * SECOND)) / MS
             for i in range(FIXED)]
    return [None if np.isnan(x) else x for x in found]


def workload(part: float, variant: str, seed: int, warm_s: int,
             shown_s: int) -> dict[str, Any]:
    """Section 6.2.1's, by the part that is unpredictable."""
    rng = generator(seed, "2dfq-fig11")
    tenants = crowd.fixed(1)
    for i in range(TENANTS):
        costs, _ = crowd.predictable(rng, "lognormal")
        if i < part * TENANTS:
            costs = crowd.UNPREDICTABLE
        tenants.append(crowd.Tenant(costs, CONNECTIONS))
    return {"unpredictable": part, "variant": variant, "seed": seed,
            "p99_ms": p99_of_fixed(variant, THREADS, tenants, seed, warm_s,
                                   shown_s)}


def parameters(number: int, seed: int) -> dict[str, Any]:
    """A random experiment's: the ranges of section 6.2.2."""
    rng = generator(seed, "2dfq-fig13", number)
    return {"threads": int(rng.integers(2, 65)),
            "replayed": int(rng.integers(0, 401)),
            "speed": float(2 ** rng.uniform(-1, 2)),
            "backlogged": int(rng.integers(0, 101)),
            "expensive": int(rng.integers(0, 101)),
            "unpredictable": int(rng.integers(0, 101))}


def random_crowd(p: dict[str, Any], rng: np.random.Generator,
                 ) -> list[crowd.Tenant]:
    """Its tenants. At speed 1 a replayed one wants 0.02 threads."""
    tenants = crowd.fixed(1)
    for i in range(p["replayed"] + p["backlogged"]):
        costs, median = crowd.predictable(rng, "lognormal")
        think = round(median * crowd.UNIT / 0.02 / p["speed"])
        tenants.append(crowd.Tenant(costs, 2, 2 * think)
                       if i < p["replayed"] else
                       crowd.Tenant(costs, CONNECTIONS))
    tenants += [crowd.Tenant(crowd.lognormal(2**20, 0.5), CONNECTIONS)
                ] * p["expensive"]
    return tenants + [crowd.Tenant(crowd.UNPREDICTABLE, CONNECTIONS)
                      ] * p["unpredictable"]


def experiment(number: int, variant: str, seed: int, warm_s: int,
               shown_s: int) -> dict[str, Any]:
    """Section 6.2.2's."""
    p = parameters(number, seed)
    rng = generator(seed, "2dfq-fig13", number, "tenants")
    tenants = random_crowd(p, rng)
    return {"experiment": number, "variant": variant, **p,
            "p99_ms": p99_of_fixed(variant, p["threads"], tenants, seed,
                                   warm_s, shown_s)}


def speedups(found: list[dict[str, Any]], of: str, key: str,
             ) -> list[list[float]]:
    """p99 of a variant over 2dfqe's, of each of t1 to t7."""
    ours = {r[key]: r["p99_ms"] for r in where(found, variant="2dfqe")}
    out: list[list[float]] = [[] for _ in range(FIXED)]
    for r in where(found, variant=of):
        for i, (a, b) in enumerate(zip(r["p99_ms"], ours[r[key]],
                                       strict=True)):
            if a is not None and b is not None:
                out[i].append(a / b)
    return out


def tables(mine: list[dict[str, Any]], key: str,
           ) -> tuple[list[str], dict[str, Any]]:
    """How many times 2dfqe is better than each: lines, and the spread."""
    lines, data = [], {}
    for of in dict.fromkeys(r["variant"] for r in mine):
        if of == "2dfqe":
            continue
        by = [spread(x) if x else None for x in speedups(mine, of, key)]
        data[of] = by
        lines += table(
            (f"{of} / 2dfqe", *crowd.NAMES),
            [(k, *(round(x[k], 2) if x else None for x in by))
             for k in ("min", "q1", "median", "q3", "max")])
    return lines, data


def run(c: Context) -> Result:
    """See Figure."""
    seeds = 1 if c.quick else SEEDS
    warm, shown = (20, 20) if c.quick else (WARM_S, SHOWN_S)
    part_seeds = {p: range(c.seed, c.seed + (seeds if p == PARTS[-1] else 1))
                  for p in PARTS}
    found = c.map(workload, [(p, v, s, warm, shown) for p in PARTS
                             for v in VARIANTS for s in part_seeds[p]])
    count = 6 if c.quick else EXPERIMENTS
    warm2, shown2 = (5, 10) if c.quick else (RANDOM_WARM_S, RANDOM_SHOWN_S)
    random = c.map(experiment, [(n, v, c.seed, warm2, shown2)
                                for n in range(count)
                                for v in RANDOM_VARIANTS])
    lines = ["p99 latency (ms), one request at a time, the first seed", *table(
        ("unpredictable", "", *crowd.NAMES),
        [(f"{r['unpredictable']:.0%}", r["variant"],
          *(x and round(x, 1) for x in r["p99_ms"]))
         for r in where(found, seed=c.seed)])]
    text, at_66 = tables(where(found, unpredictable=PARTS[-1]), "seed")
    lines += [f"66 % unpredictable, {seeds} seeds: p99 is so many times "
              "2dfqe's", *text]
    text, at_random = tables(random, "experiment")
    lines += [f"{count} random experiments", *text]
    return Result(
        {"tenants": TENANTS, "threads": THREADS, "fixed_units": crowd.FIXED,
         "warm_s": warm, "shown_s": shown, "seeds": seeds,
         "experiments": count, "experiments_warm_s": warm2,
         "experiments_shown_s": shown2,
         "times_2dfqe_at_66": at_66, "times_2dfqe_random": at_random},
        [*found, *random],
        {"t1_at_66": "up to 100 times", "random_t1_median": {
            "wfqe": 3.8, "wf2qe": 142}, "random_most": 198}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    figure.set_size_inches(8, 7)
    (by_part, at_66), (wfq, wf2q) = figure.subplots(2, 2)
    x = np.arange(FIXED)
    random = [r for r in data["results"] if "experiment" in r]
    found = [r for r in data["results"] if "seed" in r]
    most = where(found, unpredictable=PARTS[-1])
    for k, v in enumerate(VARIANTS):
        for part, style in zip(PARTS, (":", "--", "-"), strict=True):
            r = where(found, variant=v, unpredictable=part)[0]
            by_part.plot(x, [y or np.nan for y in r["p99_ms"]], f"C{k}{style}",
                         label=v if part == PARTS[-1] else None)
    by_part.set(yscale="log", ylabel="p99 (ms): 0, 33, 66 %")
    by_part.legend(fontsize="small")
    for ax, mine, of, key in ((at_66, most, "wfqe", "seed"),
                               (wfq, random, "wfqe", "experiment"),
                               (wf2q, random, "wf2qe", "experiment")):
        ax.boxplot(speedups(mine, of, key), positions=x, whis=(0, 100))
        ax.axhline(1, color="black", linewidth=0.5)
        ax.set(yscale="log", ylabel=f"{of} / 2dfqe" + (
            ", 66 %" if key == "seed" else ", random"))
    for ax in figure.axes:
        ax.set_xticks(x, crowd.NAMES)


FIGURE = Figure("2dfq-fig11-13", "tenants that cannot be predicted", run,
                plot)
