# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper, Figure 5: two cores, a link behind a queue, four requests each
of P (2 us of CPU processing time, 1 us on the link) and Q (1 and 2). MR3 with
end-to-end synchronisation leaves a core idle; without, none is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import gantt
from ..figure import Context, Figure, Result
from ..metrics import received
from ..releaser import CPU, KNOWN, NET
from ..server import US, Cores, Proxy, proxy

CORES, WORKERS, REQUESTS = 2, 20, 4
SHOWN = 12                      # us
DEMANDS = {"P": (2, 1), "Q": (1, 2)}    # us: CPU, link
# What the rules of section 4.3 give, by hand. A core runs a request of P for
# 4 us, of Q for 2.
MR3 = {"cores": ["P...P...P...", "Q.  Q.  Q.  "], "link": "  Q.P Q.P Q."}


def serve(policy: str) -> Proxy:
    """The first 12 us."""
    server = proxy(policy, WORKERS, CORES, queue=True, estimator=KNOWN,
                   paper=True)
    for _ in DEMANDS:
        server.tenant()

    def arrive() -> None:
        for _ in range(REQUESTS):
            for tenant, (cpu, net) in enumerate(DEMANDS.values()):
                server.submit(tenant, cpu * US, net * US)

    server.at(0, arrive)
    server.run(SHOWN * US)
    return server


def core_time(server: Proxy) -> float:
    """What the cores have done, us."""
    now = np.array([server.cores.advance()])
    rows = np.array([s[1:3] for s in server.spells(CPU)])
    ns = received(rows[:, 0], np.minimum(rows[:, 1], now), now)[0]
    return float(ns) / Cores.FINE / US


def schedule(server: Proxy) -> dict[str, Any]:
    """A line a core and one of the link; of what did not share a core."""
    names = list(DEMANDS)
    on = {r: [(b, min(e, SHOWN * US), names[t])
              for t, _, _, b, e in server.spells(r)] for r in (CPU, NET)}
    return {"cores": [gantt.line(lane, US, SHOWN)
                      for lane in gantt.lanes(on[CPU], CORES)],
            "link": gantt.line(on[NET], US, SHOWN)}


def run(_: Context) -> Result:
    """See Figure."""
    mr3, rs = serve("mr3"), serve("mr3-rs")
    lines = schedule(mr3)
    results = [
        {"policy": "mr3", "core_us": core_time(mr3), **lines,
         "same": lines == MR3},
        {"policy": "mr3-rs", "core_us": core_time(rs)}]
    table = [f"mr3: {'as by hand' if lines == MR3 else 'differs'}",
             *(f"  core{i} |{text}|" for i, text in
               enumerate(lines["cores"])), f"  link  |{lines['link']}|",
             *(f"{r['policy']}: {r['core_us']:g} of {SHOWN * CORES} core-us "
               f"used in the first {SHOWN} us" for r in results)]
    return Result(
        {"cores": CORES, "workers": WORKERS, "shown_us": SHOWN,
         "requests_per_tenant": REQUESTS, "cpu_and_link_us": DEMANDS},
        results,
        {"by_hand": MR3, "text": "one of the cores remains almost entirely "
         "idle despite requests being available for processing"}, table)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes, mr3 = figure.subplots(), data["results"][0]
    gantt.draw(axes, [(f"core {i}", text) for i, text in
                      enumerate(mr3["cores"])] + [("link", mr3["link"])])
    axes.set_title("mr3, a queue before the link")
    axes.set_xlabel("time (us)")
    figure.set_size_inches(7, 2.5)


FIGURE = Figure("sandpaper-fig5", "synchronised MR3 leaves a core idle",
                run, plot)
