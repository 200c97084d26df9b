# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper, Figure 11: throughput of MR3 without synchronisation (RS,
`mr3-rs`) and with virtual flows (VF, `mr3-vf`), by the empirical fairness
bound. RS is swept by the number of workers W, below the cores and above; VF by
alpha, with workers enough. The system is that of Figure 10, costs are known."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, table, where
from ..releaser import KNOWN, PAPER
from ..server import MS
from .customers import CORES, PAIRS, Pair, bounds, serve

WORKERS = (2, 4, 6, 8, 10, 12, 16, 20, 30)
FLOWS = (1, 2, 3, 4, 6, 8, 12, 16)
ENOUGH = 120                    # workers, of VF
SATURATED = 0.995               # of the largest throughput
UNTIL = 500 * MS


def point(pair: Pair, policy: str, workers: int, flows: int, seed: int,
          until: int) -> dict[str, Any]:
    """One simulation."""
    server = serve(pair, workers, policy=policy, flows=flows,
                   estimator=KNOWN, options=PAPER, seed=seed, until=until)
    return {"pair": pair, "policy": policy, "workers": workers,
            "flows": flows, **bounds(server, pair, until)}


def verdict(mine: list[dict[str, Any]]) -> dict[str, Any]:
    """RS where it saturates, and the best VF at a bound no smaller."""
    rs, vf = where(mine, policy="mr3-rs"), where(mine, policy="mr3-vf")
    most = max(r["requests_per_s"] for r in rs)
    at = next(r for r in rs if r["requests_per_s"] >= SATURATED * most)
    return {"pair": mine[0]["pair"], "workers": at["workers"],
            "rs_bound_us": at["bound_us"],
            "rs_requests_per_s": at["requests_per_s"],
            "vf_requests_per_s": max(r["requests_per_s"] for r in vf),
            # At RS's bound or below: as little unfairness as RS.
            "vf_as_fair_requests_per_s": max(
                (r["requests_per_s"] for r in vf
                 if r["bound_us"] <= at["bound_us"]), default=None)}


def run(c: Context) -> Result:
    """See Figure."""
    until = UNTIL // 5 if c.quick else UNTIL
    found = c.map(point, [(p, *v, c.seed, until) for p in PAIRS for v in (
        *(("mr3-rs", w, 0) for w in WORKERS),
        *(("mr3-vf", ENOUGH, a) for a in FLOWS))])
    verdicts = [verdict(where(found, pair=p)) for p in PAIRS]
    lines = []
    for policy, key, name in (("mr3-rs", "workers", "W"),
                              ("mr3-vf", "flows", "alpha")):
        mine = where(found, policy=policy)
        steps = dict.fromkeys(r[key] for r in mine)
        lines += [f"{policy}: requests/s, and the empirical bound (us)",
                  *table((f"pair, by {name}", *map(str, steps)),
                         [(" ".join(p) + what, *(
                             round(r[k]) for r in where(mine, pair=p)))
                          for p in PAIRS for what, k in (
                              ("  1/s", "requests_per_s"),
                              ("   us", "bound_us"))])]
    lines += ["where RS saturates, and VF: at no larger bound, at any",
              *table(("pair", "W", "bound (us)", "RS (1/s)",
                      "VF as fair (1/s)", "VF (1/s)"),
                     [(" ".join(v["pair"]), v["workers"],
                       round(v["rs_bound_us"]),
                       round(v["rs_requests_per_s"]),
                       round(v["vf_as_fair_requests_per_s"] or 0),
                       round(v["vf_requests_per_s"])) for v in verdicts])]
    return Result(
        {"cores": CORES, "workers": WORKERS, "flows": FLOWS,
         "workers_of_vf": ENOUGH, "verdicts": verdicts}, found,
        {"text": "for a fixed empirical bound, RS generally achieves higher "
         "aggregate throughput than VF"}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    figure.set_size_inches(9, 6)
    for ax, p in zip(figure.subplots(2, 3).flat, PAIRS, strict=True):
        for policy, style in (("mr3-rs", "o-"), ("mr3-vf", "s--")):
            mine = where(data["results"], policy=policy, pair=p)
            ax.plot([r["bound_us"] for r in mine],
                    [r["requests_per_s"] for r in mine], style, label=policy)
        ax.set(title=" ".join(p), xlabel="empirical bound (us)",
               ylabel="requests/s")
    figure.axes[0].legend()


FIGURE = Figure("sandpaper-fig11", "MR3 unsynchronised, or with virtual flows",
                run, plot)
