# SPDX-License-Identifier: BSD-2-Clause
"""What each tenant got, from requests that are done: predicted or recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from .metrics import (
    Floats,
    Ints,
    arrivals,
    dominant_service,
    every,
    p99,
    services,
    spells,
)
from .releaser import CPU, NET, Records
from .server import MS, SECOND, Proxy, Server
from .theory import Gps

STEP = 10 * MS                  # of the lag
SHOWN = 20                      # tenants in a table, and in a plot
NAMES = ("cpu", "net")          # of a resource, in a record
SAID = ("cpu", "link")          # the same, to the user


def p50(x: Ints) -> float:
    """The median."""
    return float(np.median(x)) if len(x) else float("nan")


def ms(x: float) -> float | None:
    """In ms; None: there is none. x: ns."""
    return None if np.isnan(x) else x / MS


def dominant(rows: Records) -> int:
    """What a tenant's requests used more of, in all: CPU or NET."""
    return NET if rows["net"].sum() > rows["cpu"].sum() else CPU


def tenant(rows: Records, capacity: float, begin: int,
           end: int) -> dict[str, Any]:
    """Of a tenant's requests, those that ended in (begin, end], ns.

    capacity: ns of CPU a ns. Shares are parts of all CPU and of the link;
    `share` is that of the dominant resource."""
    rows = rows[(rows["end"] > begin) & (rows["end"] <= end)]
    past = end - begin
    shares = (float(rows["cpu"].sum()) / past / capacity,
              float(rows["net"].sum()) / past)
    waits = rows["start"] - rows["arrival"]
    takes = rows["end"] - rows["arrival"]
    most = int(shares[1] > shares[0])
    mean = float(waits.mean()) if len(waits) else float("nan")
    return {"requests": len(rows),
            "requests_per_s": len(rows) * SECOND / past,
            "cpu_share": shares[0], "link_share": shares[1],
            "dominant": SAID[most], "share": shares[most],
            "wait_mean_ms": ms(mean),
            "wait_p50_ms": ms(p50(waits)), "wait_p99_ms": ms(p99(waits)),
            "latency_p50_ms": ms(p50(takes)),
            "latency_p99_ms": ms(p99(takes))}


def lags(server: Server, weights: list[float], begin: int,
         end: int) -> list[float] | None:
    """The standard deviation of each tenant's service lag, ns of service.

    Behind GPS of the dominant resource (2DFQ, section 6), of what had
    arrived. None if it is not the same one for all: there is no such
    fluid."""
    came = arrivals(server.releaser)
    n = len(weights)
    found = {dominant(came[came["tenant"] == i]) for i in range(n)}
    if len(found) > 1 or end - begin < STEP:
        return None
    resource, at = found.pop(), every(begin, end, STEP)
    threads = 1 if isinstance(server, Proxy) else server.releaser.slots
    fair = Gps(threads, weights).served(
        came["arrival"], came["tenant"], came[NAMES[resource]], at)
    lag = fair - served(server, n, resource, at)
    return [float(np.std(lag[:, i])) for i in range(n)]


def served(server: Server, tenants: int, resource: int,
           at: Ints) -> Floats | Ints:
    """Service up to each time, ns: an array (times, tenants)."""
    if isinstance(server, Proxy):
        return np.column_stack([dominant_service(server, i, resource, at)
                                for i in range(tenants)])
    return services(spells(server.releaser), tenants, at)


# For a user's own files

def more(tenants: list[Any]) -> list[str]:
    """What follows a table that does not have all."""
    n = len(tenants) - SHOWN
    return [f"and {n} more: --json has all"] if n > 0 else []


def bars(axes: Any, names: list[str],  # noqa: ANN401
         series: list[tuple[str, list[float]]]) -> None:
    """A bar a tenant and series; of the first SHOWN."""
    wide, at = 0.8 / len(series), np.arange(min(len(names), SHOWN))
    for k, (label, values) in enumerate(series):
        axes.bar(at + k * wide, values[:SHOWN], wide, label=label)
    axes.set_xticks(at + 0.4, names[:SHOWN], rotation=30, ha="right")
    axes.legend()
