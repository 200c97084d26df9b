# SPDX-License-Identifier: BSD-2-Clause
"""How many requests a second of CPU the simulator serves, with metrics:
2DFQ's Figure 8 at n = 50, from the first request to the lag's deviation."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table
from ..metrics import every, services, spells
from ..releaser import policies
from ..server import MS, SECOND
from . import twodfq_fig8 as fig8

CONTRACT = 50_000               # requests a second, on one core


def measure(policy: str, seed: int) -> dict[str, Any]:
    """One simulation, all tenants' lags and this process's CPU time."""
    began = time.process_time()
    server = fig8.simulate(policy, 50, seed)
    rows = spells(server.releaser)
    at = every(fig8.WARM, fig8.WARM + fig8.SHOWN, 10 * MS)
    lag = fig8.FAIR * at[:, None] - services(rows, fig8.TENANTS, at)
    sd = float(np.std(lag[:, 0])) / fig8.FAIR / SECOND
    spent = time.process_time() - began
    return {"policy": policy, "requests": len(rows), "cpu_s": spent,
            "requests_per_s": len(rows) / spent, "lag_sd_s": sd}


def run(c: Context) -> Result:
    """See Figure."""
    # By number of requests, nearly all of the time is large ones'.
    found = [measure(p, c.seed) for p in policies()
             if p not in ("fifo", "round-robin")]
    return Result(
        {"tenants": fig8.TENANTS, "threads": fig8.THREADS,
         "simulated_s": (fig8.WARM + fig8.SHOWN) / SECOND},
        found, {}, table(
            ("policy", "requests", "CPU (s)", "requests/s"),
            [(r["policy"], r["requests"], r["cpu_s"],
              round(r["requests_per_s"])) for r in found]))


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    axes.barh([r["policy"] for r in data["results"]],
              [r["requests_per_s"] for r in data["results"]])
    axes.axvline(CONTRACT, color="black")
    axes.set_xlabel("simulated requests per second of CPU")


FIGURE = Figure("speed", "simulated requests per second of CPU", run, plot)
