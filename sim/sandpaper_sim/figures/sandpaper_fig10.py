# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper, Figure 10: the empirical fairness bound of pairs of customers
beside the relative fairness bound 2WL + 2L, by the number of workers W.

known: costs are constant and known, the policy is the paper's Figure 8.
table1, lognormal: costs vary (as in Table 1; with sigma 1), are estimated and
settled. Without settlement, what was charged and what was served drift apart,
and no bound holds for long: the last part."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..figure import Context, Figure, Result, table, where
from ..metrics import bounds_upto
from ..releaser import ALL, KNOWN, PAPER, SANDPAPER
from ..server import MS, SECOND, US
from .customers import CORES, PAIRS, Pair, both, bounds, serve

WORKERS = (12, 16, 20, 30, 40, 60, 80, 100, 120)
VARIANTS = {"known": ("constant", KNOWN, PAPER),
            "table1": ("table1", SANDPAPER, ALL),
            "lognormal": ("lognormal", SANDPAPER, ALL)}
UNTIL = 500 * MS
DRIFT_WORKERS, DRIFT_UNTIL, DRIFT_STEPS = 20, 4 * SECOND, 8
DRIFT = {"settled": ALL, "not settled": PAPER}


def point(pair: Pair, variant: str, workers: int, seed: int,
          until: int) -> dict[str, Any]:
    """One simulation."""
    costs, estimator, options = VARIANTS[variant]
    server = serve(pair, workers, costs=costs, estimator=estimator,
                   options=options, seed=seed, until=until)
    return {"pair": pair, "variant": variant, "workers": workers,
            **bounds(server, pair, until)}


def drift(pair: Pair, variant: str, seed: int, until: int) -> dict[str, Any]:
    """The empirical bound of [0, t], for some t."""
    server = serve(pair, DRIFT_WORKERS, costs="lognormal",
                   options=DRIFT[variant], seed=seed, until=until)
    step = until // DRIFT_STEPS
    times = np.arange(step, until + 1, step)
    bound = bounds_upto(*both(server, pair), times)
    return {"pair": pair, "variant": variant, "workers": DRIFT_WORKERS,
            "t_s": (times / SECOND).tolist(),
            "bound_us": (bound / US).round(1).tolist()}


def run(c: Context) -> Result:
    """See Figure."""
    workers = (12, 16, 120) if c.quick else WORKERS
    until, longer = (UNTIL // 5, DRIFT_UNTIL // 4) if c.quick else (
        UNTIL, DRIFT_UNTIL)
    points = c.map(point, [(p, v, w, c.seed, until) for v in VARIANTS
                           for p in PAIRS for w in workers])
    drifts = c.map(drift, [(p, v, c.seed, longer)
                           for p in PAIRS for v in DRIFT])
    lines = []
    for v in VARIANTS:
        mine = [where(points, variant=v, pair=p) for p in PAIRS]
        lines += [f"{v}: empirical bound (us) by W, and its largest part "
                  "of the RFB", *table(
            ("pair", *map(str, workers), "of RFB"),
            [(" ".join(p), *(round(r["bound_us"]) for r in of),
              max(r["bound_us"] / r["rfb_us"] for r in of))
             for p, of in zip(PAIRS, mine, strict=True)])]
    lines += [f"lognormal, W = {DRIFT_WORKERS}: the bound (us) up to t (s)",
              *table(("pair", "", *map(str, drifts[0]["t_s"])),
                     [(" ".join(r["pair"]), r["variant"],
                       *map(round, r["bound_us"])) for r in drifts])]
    return Result(
        {"cores": CORES, "workers": workers, "until_s": until / SECOND,
         "variants": list(VARIANTS)},
        [*points, *drifts],
        {"text": "the empirical bound is significantly smaller than the "
         "derived RFB, and goes up with W"}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    figure.set_size_inches(8, 6)
    axes = figure.subplots(2, 2).flat
    for ax, v in zip(axes, VARIANTS, strict=False):
        for i, p in enumerate(PAIRS):
            mine = where(data["results"], variant=v, pair=p)
            w = [r["workers"] for r in mine]
            ax.plot(w, [r["bound_us"] for r in mine], f"C{i}-",
                    label=" ".join(p))
            ax.plot(w, [r["rfb_us"] for r in mine], f"C{i}:")
        ax.set(title=v, yscale="log", xlabel="workers W",
               ylabel="bound (us)")
    ax = list(figure.axes)[3]
    for r in data["results"]:
        if "t_s" in r:
            i = PAIRS.index(r["pair"])
            ax.plot(r["t_s"], r["bound_us"],
                    f"C{i}" + ("-" if r["variant"] == "settled" else "--"))
    ax.set(title="lognormal; dashed: not settled", yscale="log",
           xlabel="time (s)", ylabel="bound (us)")
    figure.axes[0].legend(fontsize="small")


FIGURE = Figure("sandpaper-fig10", "empirical and theoretical fairness bound",
                run, plot)
