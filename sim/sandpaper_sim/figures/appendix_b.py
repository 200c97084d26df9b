# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper, Appendix B: a request that misses waits for an origin, and lends
its worker meanwhile. With Poisson arrivals at rate lambda, misses with
probability p and latencies of mean 1/mu, lambda p / mu extra workers are
expected, and their number is Poisson distributed: its variance is its mean.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table
from ..server import MS, SECOND, proxy
from ..workload import Exponential, generator, poisson, stream

CORES, WORKERS = 8, 80          # W = 10 C
CPU = 2_500                     # ns of processing time: half of the CPU
# lambda (1/s), 1/mu (ms), p; the last is the paper's own example (5.2).
CASES = ((5_000, 100, 0.15), (20_000, 100, 0.15), (20_000, 400, 0.15),
         (50_000, 100, 0.5), (200_000, 100, 0.15))


def occupancy(steps: np.ndarray, begin: int, end: int) -> tuple[float, float]:
    """Mean and variance over time of a number that changes at (ns, number)."""
    inside = (steps[:, 0] >= begin) & (steps[:, 0] < end)
    before = steps[steps[:, 0] < begin][-1, 1]
    n = np.concatenate(([before], steps[inside, 1]))
    edges = np.concatenate(([begin], steps[inside, 0], [end]))
    share = np.diff(edges) / (end - begin)
    mean = float((n * share).sum())
    return mean, float(((n - mean) ** 2 * share).sum())


def simulate(rate: int, latency: int, miss: float, seed: int,
             lasts: int) -> dict[str, Any]:
    """After ten latencies, for `lasts` latencies."""
    name = ("appendix-b", rate, latency, miss)
    draw = generator(seed, *name, "miss")
    delays = stream(Exponential(latency * MS), generator(seed, *name, "fetch"))

    def fetch(_: int) -> int:
        return next(delays) if draw.random() < miss else 0

    server = proxy("mr3-rs", WORKERS, CORES, fetch=fetch, keep=False,
                   paper=True)
    poisson(server, server.tenant(), rate,
            repeat(CPU),
            generator(seed, *name, "arrivals"))
    begin, end = 10 * latency * MS, (10 + lasts) * latency * MS
    server.run(end)
    mean, variance = occupancy(np.array(server.fetches), begin, end)
    expected = rate * miss * latency / 1000
    return {"lambda_per_s": rate, "latency_ms": latency, "p_miss": miss,
            "simulated_s": (end - begin) / SECOND,
            "expected": expected, "mean": mean, "variance": variance,
            # Of the mean over T of an M/M/inf queue: 2 m (1/mu) / T.
            "standard_error": float(np.sqrt(2 * expected / lasts)),
            "most": max(n for _, n in server.fetches)}


def run(c: Context) -> Result:
    """See Figure."""
    cases = CASES[:2] if c.quick else CASES
    # About as many requests in each.
    found = c.map(simulate, [
        (*case, c.seed, max(20, 40_000_000 // (case[0] * case[1])) //
         (5 if c.quick else 1)) for case in cases])
    return Result(
        {"cores": CORES, "workers": WORKERS, "cpu_us": CPU / 1000},
        found, {"expected": "lambda p / mu", "example": 3000},
        table(("lambda (1/s)", "1/mu (ms)", "p", "lambda p/mu", "simulated",
               "+-", "variance", "most"),
              [(r["lambda_per_s"], r["latency_ms"], r["p_miss"],
                round(r["expected"]), f"{r['mean']:.1f}",
                f"{r['standard_error']:.1f}", round(r["variance"]),
                r["most"]) for r in found]))


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes, r = figure.subplots(), data["results"]
    axes.errorbar([x["expected"] for x in r], [x["mean"] for x in r],
                  [x["standard_error"] for x in r], fmt="o")
    ends = [min(x["expected"] for x in r), max(x["expected"] for x in r)]
    axes.plot(ends, ends)
    axes.set(xscale="log", yscale="log", xlabel="lambda p / mu",
             ylabel="extra workers, mean")


FIGURE = Figure("appendix-b", "extra workers while requests fetch", run, plot)
