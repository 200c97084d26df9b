# SPDX-License-Identifier: BSD-2-Clause
"""A multipath flow over n CPUs or one of its own: Figures 8, 10 and 11 of
RED_4 MQ.

What the paper does not say is in sandpaper_sim/red4mq.py."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts
from ..red4mq import (
    BATCH,
    FAIR,
    MBIT,
    NEAR,
    Setup,
    line,
    medians,
    pair,
    parameters,
    seeds,
)
from ..theory import reno_fill

CPUS = (1, 2, 4, 8)
OPTIMUM, SMALL = 0.02, 4        # of the optimum, from that many CPUs on
EIGHT = (("droptail", 1), ("fq", 1), ("fq", BATCH))
KEPT = (("droptail", 1), ("mq", BATCH))
TEN = (*KEPT, ("red-4", 1), ("fq", 1))
USUAL = "LIA"
# What keeps a total low: the low threshold, and LIA
VARIANTS = ((USUAL, Setup()), ("LIA, 2 products", Setup(buffer=2.0)),
            ("coupled", Setup(long="coupled")),
            ("coupled, 2 products", Setup(long="coupled", buffer=2.0)))
BATCHES = (1, 4, 16, 64, 256, 1024)
RATIO, LINE = 8, 4              # of Figure 11
NOISE = 0.01                    # of a median, that is no fall
KEEPS = 0.9                     # of droptail's total


def fair(cpus: int, part: float) -> float:
    """The total over the best, if L has this part of each of n CPUs."""
    return (1 + part + (1 - part) * cpus) / (1 + cpus)


def label(kind: str, batch: int) -> str:
    """Of a line of a figure."""
    return kind if kind in ("droptail", "red-4") else f"{kind}, b = {batch}"


def lines(c: Context, kinds: tuple[tuple[str, int], ...], setup: Setup,
          cpus: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """Each number of CPUs with each queue; one seed of another setup."""
    until = 60 if c.quick else 100
    few = (1, 4) if c.quick else CPUS
    return c.map(line, [(kind, n, batch, setup, until, s)
                        for kind, batch in kinds for n in cpus or few
                        for s in seeds(c.seed, c.quick or setup != Setup())])


def by(rows: list[dict[str, Any]], field: str) -> dict[Any, float]:
    """Medians of a field, by queue and number of CPUs."""
    return medians(rows, lambda r: (r["kind"], r["batch"], r["cpus"]),
                   lambda r: r[field])


def figure8(c: Context) -> Result:
    """See Figure."""
    found = lines(c, EIGHT, Setup())
    total, first = by(found, "total"), by(found, "shared")
    cpus = sorted({r["cpus"] for r in found})
    drop = {n: total["droptail", 1, n] for n in cpus}
    fq = [abs(total["fq", 1, n] - fair(n, 0.5)) for n in cpus]
    batched = [abs(total["fq", BATCH, n] - fair(n, 0.25)) for n in cpus]
    l_one = [MBIT * first["fq", 1, n] for n in cpus]
    l_more = [MBIT * first["fq", BATCH, n] for n in cpus]
    more = [total["fq", BATCH, n] - total["fq", 1, n] for n in cpus if n > 1]
    large = min(drop[n] for n in cpus if n >= SMALL)
    judgements = [
        judged(f"droptail: within 2 % of the optimum, n >= {SMALL}",
               f"at least {large:.3f} of it", large >= 1 - OPTIMUM),
        judged("droptail: small deviations when n is small",
               f"at least {min(drop.values()):.3f}",
               min(drop.values()) >= 1 - NEAR),
        judged("FQ: L gets 50 Mbit/s of the n CPUs, whatever n is",
               f"{min(l_one):.0f} to {max(l_one):.0f} Mbit/s",
               min(l_one) > 45 and max(l_one) < 55),
        judged("FQ: the total is (150 + 50n)/(100 + 100n) of the optimum",
               f"at most {max(fq):.3f} off", max(fq) <= NEAR),
        judged("FQ with batches is slightly better",
               f"{min(more):+.3f} to {max(more):+.3f}", min(more) > 0),
        judged("FQ with batches: L gets 25 Mbit/s, whatever n is",
               f"{min(l_more):.0f} to {max(l_more):.0f} Mbit/s",
               min(l_more) > 20 and max(l_more) < 30),
        judged("FQ with batches: (125 + 75n)/(100 + 100n) of the optimum",
               f"at most {max(batched):.3f} off", max(batched) <= NEAR)]
    rows = [(n, drop[n], total["fq", 1, n], fair(n, 0.5),
             total["fq", BATCH, n], fair(n, 0.25)) for n in cpus]
    return Result(parameters(Setup()), found, {"judgements": judgements}, [
        *table(("n", "droptail", "FQ", "formula", "FQ, batches", "formula"),
               rows), *verdicts(judgements)])


def figure10(c: Context) -> Result:
    """See Figure."""
    found, totals = [], {}
    for name, setup in VARIANTS:
        rows = lines(c, TEN if name == USUAL else KEPT, setup)
        totals[name] = by(rows, "total")
        found += [r | {"variant": name} for r in rows]
    cpus, total = sorted({r["cpus"] for r in found}), totals[USUAL]

    def least(kind: str, batch: int, name: str) -> float:
        of = totals[name]
        return min(of[kind, batch, n] / of["droptail", 1, n] for n in cpus)
    kept = {name: least("mq", BATCH, name) for name, _ in VARIANTS}
    red = least("red-4", 1, USUAL)
    over = [total["mq", BATCH, n] - total["fq", 1, n]
            for n in cpus if n >= SMALL]
    fill = reno_fill(Setup().low)
    judgements = [
        *(judged(f"MQ: within 10 % of droptail's total, {name}",
                 f"at least {x:.3f} of it", x >= KEEPS)
          for name, x in kept.items()),
        judged(f"RED_4: within 10 % of droptail's total, {USUAL}",
               f"at least {red:.3f} of it", red >= KEEPS),
        judged(f"FQ hurts the total: it is below MQ's, n >= {SMALL}",
               f"by {min(over):.3f} or more", min(over) > 0)]
    columns = [(USUAL, key) for key in TEN] + [
        (name, key) for name, _ in VARIANTS[1:] for key in KEPT]
    rows = [(n, *(totals[name][*key, n] for name, key in columns))
            for n in cpus]
    return Result(
        parameters(Setup()) | {"reno_fill": fill}, found,
        {"judgements": judgements}, [
            *table(("n", *(f"{label(*key)} ({name})" for name, key in columns)),
                   rows),
            "By theory one Reno flow uses "
            f"{fill:.3f} of a CPU that drops at the low threshold.",
            *verdicts(judgements)])


def no_fall(values: list[float]) -> bool:
    """Each is at least the one before, except for noise."""
    return all(b >= a - NOISE for a, b in zip(values, values[1:], strict=False))


def figure11(c: Context) -> Result:
    """See Figure."""
    setup, several = Setup(), seeds(c.seed, c.quick)
    batches = (1, 16, 1024) if c.quick else BATCHES
    shares = c.map(pair, [("mq", RATIO, b, setup, 120 if c.quick else 420, s)
                          for b in batches for s in several])
    totals = lines(c, tuple(("mq", b) for b in batches), setup, cpus=(LINE,))
    drop = by(lines(c, (("droptail", 1),), setup, cpus=(LINE,)), "total")
    share = medians(shares, lambda r: r["batch"], lambda r: r["share"])
    total = medians(totals, lambda r: r["batch"], lambda r: r["total"])
    fairs = [share[b] for b in batches]
    keeps = [total[b] / drop["droptail", 1, LINE] for b in batches]

    def said(values: list[float]) -> str:
        return ", ".join(f"{v:.3f}" for v in values)
    names = ", ".join(map(str, batches))
    judgements = [
        judged(f"fairness does not fall with b = {names}", said(fairs),
               no_fall([min(x, 1 - x) for x in fairs])),
        judged("batching is crucial: at b = 1 it is not fair",
               f"{fairs[0]:.3f}", fairs[0] < FAIR[0]),
        judged("at b = 1024 it is within 10 % of the half",
               f"{fairs[-1]:.3f}", FAIR[0] <= fairs[-1] <= FAIR[1]),
        judged("the line's total over droptail's does not fall with b",
               said(keeps), no_fall(keeps)),
        judged(f"at b = 1024 it is at least {KEEPS}", f"{keeps[-1]:.3f}",
               keeps[-1] >= KEEPS)]
    return Result(
        parameters(setup) | {"ratio": RATIO, "cpus": LINE}, shares + totals,
        {"judgements": judgements}, [
            *table(("b", f"share, r = {RATIO}", f"total, n = {LINE}",
                    "over droptail's"),
                   [(b, share[b], total[b], k)
                    for b, k in zip(batches, keeps, strict=True)]),
            *verdicts(judgements)])


def plot_line(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = [r for r in data["results"] if r.get("variant", USUAL) == USUAL]
    total = by(rows, "total")
    for kind, batch in dict.fromkeys((k, b) for k, b, _ in total):
        cpus = sorted(n for k, b, n in total if (k, b) == (kind, batch))
        axes.plot(cpus, [total[kind, batch, n] for n in cpus], "o-",
                  label=label(kind, batch))
    for part, style in ((0.5, ":"), (0.25, "--")):
        axes.plot(cpus, [fair(n, part) for n in cpus], style, color="black",
                  label=f"L has {part:g} of the n CPUs")
    axes.set(xlabel="CPUs", ylabel="total over the optimum", ylim=(0.4, 1.05))
    axes.legend(fontsize="x-small")


def plot11(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for field, text in (("share", "the first flow's part of the CPU"),
                        ("total", "total over the optimum")):
        found = medians([r for r in data["results"] if field in r],
                        lambda r: r["batch"], lambda r, f=field: r[f])
        axes.plot(list(found), list(found.values()), "o-", label=text)
    axes.set(xscale="log", xlabel="batch, packets", ylim=(0, 1.05))
    axes.legend()


FIGURES = [
    Figure("red4mq-fig8", "a multipath flow and n CPUs: droptail and fair "
           "queueing", figure8, plot_line),
    Figure("red4mq-fig10", "the same with RED_4 and RED_4 MQ", figure10,
           plot_line),
    Figure("red4mq-fig11", "RED_4 MQ by the size of a batch", figure11,
           plot11)]
