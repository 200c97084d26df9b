# SPDX-License-Identifier: BSD-2-Clause
"""Tenants generated to what 2DFQ states of Azure Storage's, whose traces are
not public: costs over four orders of magnitude, 250 to 5,000,000 units (a unit
is 1 us of a thread), tenants that are predictable and others that are not.

A predictable tenant's requests are lognormal around its median, with a sigma
of 0.05 to 0.5. Medians are drawn in one of three ways, as how well a scheduler
does depends on it: `lognormal`, with sigma 2 around 2^14 units; `even`, all
magnitudes as likely; `gap`, seven of ten are cheap (250 to 4000 units), the
others dear (100,000 to 2,000,000). An unpredictable tenant's requests are as if
each came from another tenant, lognormal with sigma 2 (section 6.2.1). t1 to t7
have requests of 2^8, 2^10, .. 2^20 units, all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..releaser import Estimator
from ..server import SECOND, ThreadPool, pool
from ..workload import (
    Constant,
    Costs,
    Exponential,
    Lognormal,
    closed,
    generator,
    stream,
)

UNIT = 1000                     # ns of a thread
LEAST, MEDIAN, MOST = 250, 2**14, 5_000_000     # units
SIGMA = 2.0
FIXED = tuple(2**e for e in range(8, 21, 2))    # units, t1 to t7
NAMES = [f"t{i}" for i in range(1, len(FIXED) + 1)]


@dataclass(frozen=True)
class Between:
    """Costs that are not below LEAST units."""

    of: Costs

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """See Costs."""
        return np.maximum(self.of.draw(rng, n), LEAST * UNIT)


def lognormal(median: float, sigma: float) -> Costs:
    """median: units; between LEAST and MOST."""
    return Between(Lognormal(median * UNIT, sigma, MOST * UNIT))


UNPREDICTABLE = lognormal(MEDIAN, SIGMA)


@dataclass(frozen=True)
class Tenant:
    """A closed loop. think: mean ns between answer and request, 0: none."""

    costs: Costs
    connections: int
    think: int = 0


def even(rng: np.random.Generator, least: float, most: float) -> float:
    """Between the two, each magnitude as likely."""
    return least * (most / least) ** rng.random()


# Median costs of tenants, units.
MEDIANS: dict[str, Callable[[np.random.Generator], float]] = {
    "lognormal": lambda rng: float(np.clip(
        MEDIAN * np.exp(rng.normal(0, SIGMA)), LEAST, MOST)),
    "even": lambda rng: even(rng, LEAST, MOST),
    "gap": lambda rng: even(rng, LEAST, 4000) if rng.random() < 0.7
    else even(rng, 100_000, 2_000_000)}


def predictable(rng: np.random.Generator, medians: str,
                ) -> tuple[Costs, float]:
    """A random tenant's costs, and their median, units."""
    median = MEDIANS[medians](rng)
    return lognormal(median, rng.uniform(0.05, 0.5)), median


def fixed(connections: int) -> list[Tenant]:
    """t1 to t7."""
    return [Tenant(Constant(units * UNIT), connections) for units in FIXED]


def serve(policy: str, threads: int, tenants: list[Tenant], seed: int,
          until_s: float, *, estimator: Estimator | None,
          refresh: int = 0) -> ThreadPool:
    """All of them on a thread pool; the same requests for every policy."""
    server = pool(policy, threads, estimator=estimator, refresh=refresh)
    for i, t in enumerate(tenants):
        closed(server, server.tenant(), t.connections,
               stream(t.costs, generator(seed, "crowd", i)),
               think=stream(Exponential(t.think), generator(
                   seed, "think", i)) if t.think else None)
    server.run(int(until_s * SECOND))
    return server
