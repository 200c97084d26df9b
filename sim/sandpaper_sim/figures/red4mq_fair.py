# SPDX-License-Identifier: BSD-2-Clause
"""Flows with different costs of a packet on a CPU: Figure 9 of RED_4 MQ, and
100 flows.

What the paper does not say is in sandpaper_sim/red4mq.py."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts, where
from ..red4mq import (
    BATCH,
    FAIR,
    NEAR,
    Setup,
    crowd,
    medians,
    pair,
    parameters,
    seeds,
)

KINDS = (("droptail", 1), ("fq", 1), ("red-4", 1), ("mq", BATCH))
RATIOS = (1, 2, 4, 8, 12, 16, 32)
JUDGED = 16                     # above, windows of the second are too small
FLOWS = 100
CASES = ((12_000, (1,)), (12_000, (1, 2, 4)), (120_000, (1,)),
         (120_000, (1, 2, 4)))  # ns of a packet, times these
JAIN = 0.9


def figure9(c: Context) -> Result:
    """See Figure."""
    setup, until = Setup(), 120 if c.quick else 420
    ratios = (1, 4, 16, 32) if c.quick else RATIOS
    found = c.map(pair, [(kind, r, batch, setup, until, s)
                         for kind, batch in KINDS for r in ratios
                         for s in seeds(c.seed, c.quick)])
    share = medians(found, lambda r: (r["kind"], r["ratio"]),
                    lambda r: r["share"])
    off = {kind: max(abs(share[kind, r] - 1 / (1 + r)) for r in ratios)
           for kind in ("droptail", "fq")}
    spans = {kind: [share[kind, r] for r in ratios if r <= JUDGED]
             for kind in ("red-4", "mq")}
    timeouts = {n: sum(r["dear"]["timeouts"]
                       for r in where(found, kind="red-4", ratio=n))
                for n in (1, 32)}
    judgements = [
        *(judged(f"{kind}: the first flow has 1/(1 + r)",
                 f"at most {off[kind]:.3f} off", off[kind] <= NEAR)
          for kind in off),
        *(judged(f"{kind}: within 10 % of the half, r = 1 to {JUDGED}",
                 f"{min(x):.3f} to {max(x):.3f}",
                 FAIR[0] <= min(x) and max(x) <= FAIR[1])
          for kind, x in spans.items()),
        judged("red-4: with large r the first has slightly more: timeouts",
               f"{share['red-4', 32]:.3f} with r = 32; {timeouts[32]} "
               f"timeouts of the second, {timeouts[1]} with r = 1",
               share["red-4", 32] > 0.5 and timeouts[32] > timeouts[1])]
    rows = [(r, 1 / (1 + r), *(share[kind, r] for kind, _ in KINDS))
            for r in ratios]
    return Result(parameters(setup), found, {"judgements": judgements}, [
        *table(("r", "1/(1 + r)", *(kind for kind, _ in KINDS)), rows),
        *verdicts(judgements)])


def plot9(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    share = medians(data["results"], lambda r: (r["kind"], r["ratio"]),
                    lambda r: r["share"])
    for kind, _ in KINDS:
        ratios = sorted(r for k, r in share if k == kind)
        axes.plot(ratios, [share[kind, r] for r in ratios], "o-", label=kind)
    axes.axhspan(*FAIR, alpha=0.2)
    axes.set(xscale="log", xlabel="cost of the second flow's packets, times",
             ylabel="the first flow's part of the CPU", ylim=(0, 1))
    axes.legend()


def name(row: dict[str, Any]) -> str:
    """Of a case."""
    costs = ", ".join(map(str, row["costs"]))
    return f"{row['mbit']} Mbit/s, costs {costs}"


def flows(c: Context) -> Result:
    """See Figure."""
    until = 40 if c.quick else 80
    tasks = [(kind, costs, FLOWS, batch, Setup(cost=cost), until, c.seed)
             for cost, costs in CASES for kind, batch in KINDS]
    found = c.map(crowd, tasks)
    for row, task in zip(found, tasks, strict=True):
        row["mbit"] = 12_000_000 // task[4].cost
    judgements = [
        judged(f"{r['kind']}: Jain's index of 100 flows is at least {JAIN}, "
               f"{name(r)}", f"{r['jain']:.3f}", r["jain"] >= JAIN)
        for kind in ("red-4", "mq") for r in where(found, kind=kind)]
    return Result(parameters(Setup()), found, {"judgements": judgements}, [
        *table(("CPU", "queue", "Jain", "busy", "timeouts", "CPU by cost"), [
            (name(r), r["kind"], r["jain"], r["busy"], r["timeouts"],
             ", ".join(f"{x:.2f}" for x in r["by_cost"])) for r in found]),
        *verdicts(judgements)])


def plot_flows(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = data["results"]
    axes.barh([f"{name(r)}, {r['kind']}" for r in rows],
              [r["jain"] for r in rows])
    axes.axvline(JAIN, color="black")
    axes.tick_params(labelsize="x-small")
    axes.set(xlabel="Jain's index of the CPU times")


FIGURES = [
    Figure("red4mq-fig9", "two flows on a CPU, by the cost of the second's "
           "packets", figure9, plot9),
    Figure("red4mq-flows", "100 flows on a CPU", flows, plot_flows)]
