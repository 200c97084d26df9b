# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper, section 4.3: without end-to-end synchronisation, and with a queue
between CPU and link, no fairness bound exists. P's dominant resource is the
CPU, Q's the link; a round needs more of the link than of the CPU, so responses
pile up before the link, P gets its share of the CPU at once and Q not of the
link. It is bounded with synchronisation, or when workers block on the link.

Serving a round takes CPU 2.5 and link 3.5; so of t, P has got 2/2.5 and Q
2/3.5: the difference is 0.2286 t."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table
from ..metrics import bounds_upto, changes, dominant_service, fairness_bound
from ..releaser import CPU, KNOWN, NET, PAPER
from ..server import MS, SECOND, US, proxy
from ..workload import closed

CORES, WORKERS = 12, 24
DEMANDS = {"P": (200, 150), "Q": (50, 200)}     # us: CPU, link
# Policy, and whether there is a queue before the link.
CASES = (("mr3-rs", True), ("drfq", True), ("mr3", True), ("mr3-rs", False))
STEPS = 8
SLOPE = 2 / 2.5 - 2 / 3.5


def simulate(policy: str, queue: bool, until: int) -> dict[str, Any]:
    """The empirical bound of [0, t], for some t."""
    # mr3 needs more than W requests under way: synchronisation alone bounds.
    server = proxy(policy, WORKERS, CORES, queue=queue, estimator=KNOWN,
                   options=PAPER, paper=True)
    for cpu, net in DEMANDS.values():
        closed(server, server.tenant(), until // (100 * US),
               repeat(cpu * US), repeat(net * US))
    server.run(until)
    at = changes(server)
    step = until // STEPS
    times = np.arange(step, until + 1, step)
    bound = bounds_upto(at, dominant_service(server, 0, CPU, at),
                        dominant_service(server, 1, NET, at), times)
    return {"policy": policy, "queue": queue,
            "t_s": (times / SECOND).tolist(),
            "bound_us": (bound / US).round(1).tolist()}


def run(c: Context) -> Result:
    """See Figure."""
    until = 400 * MS if c.quick else 4 * SECOND
    found = c.map(simulate, [(*case, until) for case in CASES])
    rfb = fairness_bound(WORKERS, max(max(d) for d in DEMANDS.values()))
    lines = ["empirical bound (us) up to t (s)", *table(
        ("policy", "link", *map(str, found[0]["t_s"])),
        [(r["policy"], "behind a queue" if r["queue"] else "blocks",
          *map(round, r["bound_us"])) for r in found]),
        f"0.2286 t: {SLOPE * until / US:.0f} us; RFB of mr3-rs where workers "
        f"block: {rfb:.0f} us"]
    return Result(
        {"cores": CORES, "workers": WORKERS, "cpu_and_link_us": DEMANDS,
         "rfb_us": rfb, "slope": SLOPE}, found,
        {"text": "removing this mechanism causes unbounded worst-case "
         "unfairness"}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for r in data["results"]:
        axes.plot(r["t_s"], r["bound_us"], marker=".", label=r["policy"] + (
            ", a queue before the link" if r["queue"] else ", workers block"))
    axes.set(xlabel="time (s)", ylabel="empirical bound (us)", yscale="log")
    axes.legend()


FIGURE = Figure("unbounded", "no bound if unsynchronised, with a queue", run,
                plot)
