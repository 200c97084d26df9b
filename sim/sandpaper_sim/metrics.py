# SPDX-License-Identifier: BSD-2-Clause
"""What the papers measure, after the fact, from what was recorded.

2DFQ, section 6: service, of which follows the lag behind GPS, 99th percentile
of latency, Gini index. Sandpaper, section 5.3 and 6.3: relative
fairness bound, empirical bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .releaser import CPU, NEVER, Records, Releaser
from .server import Cores, Proxy

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Numbers = TypeVar("Numbers", Ints, Floats)


def received(begins: Numbers, ends: Numbers, at: Numbers) -> Numbers:
    """The total length, up to each time of `at`, of the spells [begin, end).

    Any units, all the same; `begins` and `ends` in any order."""
    def past(edges: Numbers) -> Numbers:
        edges = np.sort(edges)
        sums = np.concatenate(([0], np.cumsum(edges)))
        n = np.searchsorted(edges, at, side="right")
        return n * at - sums[n]
    return past(begins) - past(ends)


def spells(releaser: Releaser) -> Records:
    """What is done or runs; the latter ends in the far future."""
    on = releaser.open()
    on = on[on["start"] >= 0]
    on["end"] = NEVER // 4
    return np.concatenate((releaser.records(), on))


def arrivals(releaser: Releaser) -> Records:
    """All requests so far, in order of their arrival."""
    rows = np.concatenate((releaser.records(), releaser.open()))
    return rows[np.argsort(rows["arrival"], kind="stable")]


def service(rows: Records, tenant: int, at: Ints) -> Ints:
    """What a tenant has got of a thread pool up to each time, ns."""
    mine = rows[rows["tenant"] == tenant]
    return received(mine["start"], mine["end"], at)


def services(rows: Records, tenants: int, at: Ints) -> Ints:
    """service() of all: an array (times, tenants)."""
    rows = rows[np.argsort(rows["tenant"], kind="stable")]
    cut = np.searchsorted(rows["tenant"], np.arange(tenants + 1))
    return np.column_stack([
        received(rows["start"][a:b], rows["end"][a:b], at)
        for a, b in zip(cut[:-1], cut[1:], strict=True)])


def every(begin: int, end: int, step: int) -> Ints:
    """Times from begin to end, both in it, ns."""
    return np.arange(begin, end + 1, step, dtype=np.int64)


def latency(rows: Records, tenant: int, after: int = 0) -> Ints:
    """From arrival to end, of a tenant's requests that arrived since, ns."""
    mine = rows[(rows["tenant"] == tenant) & (rows["arrival"] >= after)]
    return mine["end"] - mine["arrival"]


def p99(x: Ints) -> float:
    """The 99th percentile, the next sample above it; nan of nothing."""
    if len(x) == 0:
        return float("nan")
    return float(np.quantile(x, 0.99, method="higher"))


def gini(x: Floats) -> float:
    """Sum |x_i - x_j| / (2 n^2 mean): 0 if all are equal, to 1."""
    x = np.sort(np.asarray(x, np.float64))
    n, total = len(x), float(x.sum())
    if n == 0 or total == 0:
        return 0.0
    rank = np.arange(1, n + 1)
    return float(2 * (rank * x).sum() / (n * total) - (n + 1) / n)


def dominant_service(proxy: Proxy, tenant: int, resource: int,
                     at: Ints) -> Floats:
    """Processing time on a resource up to each time, ns: Sandpaper's T_i.

    The CPU's is a core's time over C."""
    rows = np.array([(b, e) for t, b, e, _, _ in proxy.spells(resource)
                     if t == tenant], np.int64).reshape(-1, 2)
    if resource != CPU:
        return received(rows[:, 0], np.minimum(rows[:, 1], at[-1]),
                        at).astype(np.float64)
    times, v = np.array(proxy.cores.clock, np.int64).T
    # Between two changes V is a line.
    v_at = np.interp(at, times, v).astype(np.int64)
    got = received(rows[:, 0], np.minimum(rows[:, 1], v_at[-1]), v_at)
    return got / (Cores.FINE * proxy.cores.cores)


def changes(proxy: Proxy, begin: int = 0) -> Ints:
    """Every time from `begin` at which a rate of service changed, ns."""
    times = {t for t, _ in proxy.cores.clock}
    for _, b, e, _, _ in proxy.link.spells:
        times.update((b, e))
    return np.array(sorted(t for t in times if t >= begin), np.int64)


def empirical_bound(a: Floats, b: Floats) -> float:
    """Sup |T_i(t1, t2) - T_j(t1, t2)|, of two cumulative services.

    Sandpaper, section 6.3. In their unit; all of the time counts, so both
    have to be backlogged during it."""
    d = a - b
    return float(d.max() - d.min())


def bounds_upto(at: Ints, a: Floats, b: Floats, times: Ints) -> Floats:
    """empirical_bound() of [0, t] for each of `times`. at: of a and b."""
    d = a - b
    bound = np.maximum.accumulate(d) - np.minimum.accumulate(d)
    return bound[np.searchsorted(at, times, side="right") - 1]


def fairness_bound(workers: int, largest: float) -> float:
    """The relative fairness bound of RS: 2WL + 2L (Sandpaper, A.9)."""
    return 2 * (workers + 1) * largest


def spread(x: Sequence[float]) -> dict[str, Any]:
    """Least, quartiles and largest."""
    q = np.quantile(np.asarray(x, np.float64), (0, .25, .5, .75, 1))
    return dict(zip(("min", "q1", "median", "q3", "max"),
                    map(float, q), strict=True))
