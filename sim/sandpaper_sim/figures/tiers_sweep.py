# SPDX-License-Identifier: BSD-2-Clause
"""Constants of the rules between two tiers, and the kinds of prices.

The seeds are others than those of `tiers-judge`. The score is the geometric
mean, over some of its cases, of the goodput over that of `none`, times the part
of the work of `none` that is saved. `tiers-judge` has the best halve, and the
best price."""

from __future__ import annotations

from typing import Any

from ..figure import Context, Figure, Result, judged, table, verdicts
from ..tiercases import CASES, FEW, LOADED, geometric, measure
from ..windows import NONE, Rule
from .tiers_judge import HALVE, KIND, PRICE, by_rule, saved

FROM, SEEDS = 1000, 2           # added to the seed
SOME = [n for n, c in enumerate(LOADED) if c.most < 10 and c.rtt > 1
        and (c.rtt == 20 or c.name != "step")
        and (c.rtt == 100 or c.name != "load 3")]
# keep, add, up
HALVES = ((0.5, 1, 0), (0.5, 0.5, 0), (0.7, 0.25, 0), (0.5, 0.125, 0),
          (0.5, 0.0625, 0), (0.3, 0.125, 0), (0.4, 0.0625, 0.02),
          (0.4, 0.03125, 0.02), (0.3, 0.0625, 0.02), (0.3, 0.0625, 0.05),
          (0.3, 0.03125, 0.02), (0.2, 0.0625, 0.02))
# keep, add, up, gain, kind
PRICES = ((0.5, 1, 0, 0.25, "cost"), (0.5, 0.25, 0.1, 0.25, "cost"),
          (0.5, 0.25, 0.2, 1, "square"), (0.5, 0.5, 0, 1, "own"),
          (0.5, 0.25, 0.1, 1, "own"), (0.5, 0.25, 0.05, 0.5, "own"),
          (0.5, 0.25, 0.05, 0.25, "own"), (0.5, 0.125, 0.1, 0.25, "own"),
          (0.5, 0.125, 0.05, 0.25, "own"), (0.4, 0.125, 0.05, 0.5, "own"),
          (0.5, 0.25, 0.2, 8, "own"))
ALL = [(NONE, ""), *((Rule("halve", *h), "") for h in HALVES),
       *((Rule("price", *p), kind) for *p, kind in PRICES)]
Row = dict[str, Any]


def score(rule: Rule, price: str, rows: list[Row], none: list[Row]) -> Row:
    """Of one rule, over `none`."""
    both = by_rule(rows + none)
    good = geometric([c[rule.name]["good"] / c["none"]["good"] for c in both])
    work = geometric([saved(c, rule.name) for c in both])
    return {**vars(rule), "rule": rule.name, "kind": price, "goodput": good,
            "saved": work, "score": good * work,
            "few": geometric([c[rule.name]["good"] for c in both
                              if c["none"]["group"] == FEW.name]),
            "jain": geometric([r["jain"] for r in rows])}


def best(rows: list[Row], rule: str) -> Row:
    """The one with the highest score."""
    return max((r for r in rows if r["rule"] == rule),
               key=lambda r: r["score"])


def is_used(row: Row, rule: Rule, kind: str) -> bool:
    """Does tiers-judge have these constants?"""
    return all(row[k] == v for k, v in vars(rule).items()) \
        and row["kind"] == kind


def run(c: Context) -> Result:
    """See Figure."""
    rules = [(NONE, ""), (HALVE, ""), (PRICE, KIND)] if c.quick else ALL
    cases = [n for n in SOME if not c.quick or CASES[n].group == FEW]
    seeds = range(FROM + c.seed, FROM + c.seed + (1 if c.quick else SEEDS))
    tasks = [(n, rule, kind, s) for rule, kind in rules for n in cases
             for s in seeds]
    found = c.map(measure, tasks)
    each = len(cases) * len(seeds)
    rows = [score(rule, kind, found[n * each:(n + 1) * each], found[:each])
            for n, (rule, kind) in enumerate(rules) if n]
    said = [judged(f"tiers-judge has the {name} with the highest score",
                   f"{best(rows, name)['score']:.3f}",
                   is_used(best(rows, name), rule, kind))
            for name, rule, kind in (("halve", HALVE, ""),
                                     ("price", PRICE, KIND))]
    head = ["rule", "kind", "keep", "add", "up", "gain", "goodput", "saved",
            "score", "few", "jain"]
    return Result({"seeds": list(seeds), "cases": len(cases)}, rows,
                  {"judgements": said}, [
        *table(head, [[r[k] for k in head] for r in rows]), *verdicts(said)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for rule in ("halve", "price"):
        rows = [r for r in data["results"] if r["rule"] == rule]
        axes.plot([r["goodput"] for r in rows], [r["saved"] for r in rows],
                  "o", label=rule)
    axes.set(xlabel="goodput over none", ylabel="part of the work saved")
    axes.legend()


FIGURE = Figure("tiers-sweep", "two tiers: the constants of windows, and kinds "
                "of prices", run, plot)
