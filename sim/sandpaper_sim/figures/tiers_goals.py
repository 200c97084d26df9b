# SPDX-License-Identifier: BSD-2-Clause
"""What a child's windows do for two tiers: goals, with and without a price.

Rules and constants are those of `tiers-judge`. The limits were written before
the first run on these seeds. Each goal is about the median of the seeds.

refusals    load 3: the child's CPU on what a parent refuses, over `none`
neighbours  one tenant has 3 times the capacity, five others have half of their
            fair part: what these get of it, in all
stale       load 3, half of the requests can be stale: the part of these that
            gets an answer
settled     time after a step from load 0.5 to 3 until the goodput stays at
            0.9, and the parent's refusals at a fifth of those of `none`
unequal     two parents, the second with a third of the CPU: goodput over the
            optimum, with 0.9 and 1.2 times the capacity of both
gone        one of two parents vanishes for 2 s: goodput of the other one in
            the second half of this time, and of both 1 s after
lies        one of two parents says another price, load 1.5: see LIES"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..figure import Context, Figure, Found, Result, judged, table, verdicts
from ..server import MS, SECOND
from ..tiercases import (
    COSTS,
    FEW,
    UNTIL,
    WARM,
    goodput,
    interval,
    offered,
    refused,
    step,
)
from ..tiers import SERVED, STALE, Parent, Tenant, Tiers, simulate
from ..windows import Rule
from .tiers_judge import RULES

RTT = 20 * MS
SEEDS = 10
BIN = SECOND // 5
LESS, FAIR, ANSWERED, BEST, LOST = 0.2, 0.97, 0.9, 0.9, 0.05
SLOW = 1 / 3                    # of the usual CPU
LIES: dict[str, Callable[[float, int], list[str]]] = {
    "0": lambda price, now: ["0"],
    "huge": lambda price, now: ["1e300"],
    "no number": lambda price, now: ["NaN"],
    "negative": lambda price, now: [f"-{price}"],
    "repeated": lambda price, now: [f"{price}", f"{price}"]}
Row = dict[str, Any]


def measured(rows: Any, begin: float = WARM,  # noqa: ANN401
             end: float = UNTIL) -> Any:  # noqa: ANN401
    """Rows that ended in this time, s."""
    return rows[(rows["end"] >= begin * SECOND)
                & (rows["end"] < end * SECOND)]


def rate(rows: Any, begin: float = WARM,  # noqa: ANN401
         end: float = UNTIL) -> float:
    """Goodput in this time, parts of a parent."""
    return goodput(measured(rows, begin, end)) / ((end - begin) * SECOND)


def run_tiers(tenants: list[Tenant], parents: list[Parent], rule: Rule,
              seed: int) -> Any:  # noqa: ANN401
    """The rows of one simulation."""
    return simulate(Tiers(tenants, parents, FEW.children, RTT), rule,
                    UNTIL * SECOND, seed)


def refusals(rule: Rule, price: str, seed: int) -> Row:
    """See above; here in requests, which cost the child the same each."""
    rows = run_tiers(offered(FEW, 3), [Parent(price=price)], rule, seed)
    return {"refused": int(refused(measured(rows)).sum())}


def neighbours(rule: Rule, price: str, seed: int) -> Row:
    """See above."""
    loads = [*(0.5 / FEW.tenants for _ in COSTS[1:]), 3.0]
    tenants = [Tenant(round(cost * MS), lambda _, x=x: x, x)
               for cost, x in zip(COSTS, loads, strict=True)]
    rows = run_tiers(tenants, [Parent(price=price)], rule, seed)
    # Of requests that came early enough to be answered
    came = rows[(rows["arrival"] >= WARM * SECOND)
                & (rows["arrival"] < (UNTIL - 0.5) * SECOND)
                & (rows["tenant"] < len(COSTS) - 1)]
    return {"part": goodput(came) / float(came["cpu"].sum())}


def stale(rule: Rule, price: str, seed: int) -> Row:
    """See above."""
    rows = measured(run_tiers(offered(FEW, 3, stale=0.5),
                              [Parent(price=price)], rule, seed))
    can = rows[rows["stale"]]
    return {"answered": float(np.isin(can["what"], (SERVED, STALE)).mean())}


def settled(rule: Rule, price: str, seed: int) -> Row:
    """Goodput and refusals of each BIN; what they say needs all seeds."""
    rows = simulate(step(FEW, RTT // MS).tiers(price), rule, UNTIL * SECOND,
                    seed)
    edges = np.arange(0, UNTIL * SECOND + BIN, BIN)
    done = rows[rows["what"] == SERVED]
    return {"good": np.histogram(done["end"], edges, weights=done["cpu"])[0]
            .tolist(), "there": np.histogram(
                rows["end"][refused(rows)], edges)[0].tolist()}


def unequal(rule: Rule, price: str, seed: int) -> Row:
    """See above."""
    found = {}
    for load in (0.9, 1.2):
        rows = run_tiers(
            offered(FEW, load * (1 + SLOW)),
            [Parent(price=price), Parent(SLOW, price)], rule, seed)
        asked = float(measured(rows)["cpu"].sum()) / (
            (UNTIL - WARM) * SECOND)
        found[f"best_{load}"] = rate(rows) / min(asked, 1 + SLOW)
    return found


def gone(rule: Rule, price: str, seed: int) -> Row:
    """See above."""
    rows = run_tiers(offered(FEW, 3), [
        Parent(price=price),
        Parent(price=price, gone=(2 * SECOND, 4 * SECOND))], rule, seed)
    return {"other": rate(rows, 3, 4), "both": rate(rows, 5, 6) / 2}


def lies(rule: Rule, price: str, seed: int) -> Row:
    """The goodput of both parents, and what the liar has."""
    found = {}
    for name, says in LIES.items():
        rows = measured(run_tiers(
            offered(FEW, 3), [Parent(price=price),
                              Parent(price=price, says=says)], rule, seed))
        found[f"all_{name}"] = rate(rows)
        found[f"liar_{name}"] = rate(rows[rows["parent"] == 1])
        found[f"refused_{name}"] = int(refused(rows).sum())
    return found


WHAT = {f.__name__: f for f in (refusals, neighbours, stale, settled, unequal,
                                gone, lies)}


def task(name: str, rule: Rule, price: str, seed: int) -> Row:
    """One goal, rule and seed."""
    return {"goal": name, "rule": rule.name, "seed": seed,
            **WHAT[name](rule, price, seed)}


def settling(rows: list[Row], none: list[Row]) -> float:
    """Seconds after the step until all that follows, to 4 s, is in bounds."""
    def sums(of: list[Row], what: str) -> Any:  # noqa: ANN401
        return sum(np.array(r[what]) for r in of)
    first, last = 2 * SECOND // BIN, 4 * SECOND // BIN
    good = sums(rows, "good") / len(rows) / BIN
    bad = (good < 0.9) | (sums(rows, "there") > sums(none, "there") / 5)
    late = [n for n in range(first, last) if bad[n]]
    return (late[-1] + 1 - first) * BIN / SECOND if late else 0.0


class Rows:
    """What was found, by goal and rule."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def of(self, goal: str, rule: str) -> list[Row]:
        """All seeds."""
        return [r for r in self._rows
                if r["goal"] == goal and r["rule"] == rule]

    def middle(self, goal: str, rule: str, what: str) -> float:
        """The median of the seeds."""
        return interval([r[what] for r in self.of(goal, rule)])[1]


def goals(f: Rows, rule: str) -> list[Found]:
    """Of one rule."""
    def least(text: str, value: float, limit: float) -> Found:
        return judged(f"{rule}: {text} at least {limit:g}", f"{value:.3f}",
                      value >= limit)

    def most(text: str, value: float, limit: float) -> Found:
        return judged(f"{rule}: {text} at most {limit:g}", f"{value:.3f}",
                      value <= limit)

    part = f.middle("refusals", rule, "refused") / f.middle(
        "refusals", "none", "refused")
    return [
        most("load 3: a child's CPU on refused work, over none,", part, LESS),
        least("one tenant has load 3: the others' part of what they ask,",
              f.middle("neighbours", rule, "part"), FAIR),
        least("load 3: answers to what can be stale,",
              f.middle("stale", rule, "answered"), ANSWERED),
        most("a step to load 3: settled, s,", settling(
            f.of("settled", rule), f.of("settled", "none")), 1),
        *(least(f"two parents, load {x}: goodput over the best,",
                f.middle("unequal", rule, f"best_{x}"), BEST)
          for x in (0.9, 1.2)),
        least("a parent is gone: goodput of the other one,",
              f.middle("gone", rule, "other"), BEST),
        least("1 s after it is back: goodput of both,",
              f.middle("gone", rule, "both"), BEST)]


def lied(f: Rows) -> list[Found]:
    """What a parent gets from a price that is not true."""
    found = []
    for name in LIES:
        all_, liar = (f.middle("lies", "price", f"{k}_{name}")
                      for k in ("all", "liar"))
        if name == "huge":
            found.append(judged(
                f"price: a parent says {name}: it loses its traffic, the "
                "other one is full", f"{liar:.3f} and {all_ - liar:.3f}",
                liar <= LOST and all_ - liar >= BEST))
            continue
        part = f.middle("lies", "price", f"refused_{name}") / max(1, f.middle(
            "lies", "halve", f"refused_{name}"))
        found.append(judged(
            f"price: a parent says {name}: both are full, and refuse no more "
            "than with halve", f"{all_ / 2:.3f}, {part:.2f} times",
            all_ / 2 >= BEST and part <= 1))
    return found


def run(c: Context) -> Result:
    """See Figure."""
    seeds = range(c.seed, c.seed + (1 if c.quick else SEEDS))
    rows = c.map(task, [(name, rule, price, s) for name in WHAT
                        for rule, price in RULES for s in seeds])
    f = Rows(rows)
    said = [*goals(f, "halve"), *goals(f, "price"), *lied(f)]
    return Result({"seeds": len(seeds), "rtt_ms": RTT / MS}, rows,
                  {"judgements": said}, [
        *table(("goal", "found", "met"),
               [(j["paper"], j["found"], j["agrees"]) for j in said]),
        *verdicts(said)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for rule, _ in RULES:
        rows = [r for r in data["results"]
                if r["goal"] == "settled" and r["rule"] == rule.name]
        good = sum(np.array(r["good"]) for r in rows) / len(rows) / BIN
        axes.plot(np.arange(len(good)) * BIN / SECOND, good, label=rule.name)
    axes.set(xlabel="s", ylabel="goodput, parts of the parent's capacity")
    axes.legend()


FIGURE = Figure("tiers-goals", "two tiers: neighbours, stale answers, steps, "
                "two parents, lies", run, plot)
