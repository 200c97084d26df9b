# SPDX-License-Identifier: BSD-2-Clause
"""Is a price between tiers worth its code? The test that decides.

The rival is `halve`, which needs no price. Both have the constants that
`tiers-sweep` found best on other seeds. For each seed there is one quotient,
price over halve: the geometric mean of all cases with too much load. The figure
is the median of the seeds, with its 95 % interval.

The rule, which was written before the first run on these seeds: the price is
better if the interval of the goodput, or of the work saved, is at least BETTER.
The other one of both must then be at least KEPT. Work saved is the work of
`none` on requests that were refused, less that of the rule. Where all is served
(loads 0.5 and 1) the goodput must be at least HARMLESS of that of `none`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figure import (
    Context,
    Figure,
    Found,
    Result,
    judged,
    table,
    verdicts,
    where,
)
from ..tiercases import (
    CASES,
    EASY,
    GROUPS,
    LOADED,
    geometric,
    interval,
    measure,
    perfect,
)
from ..windows import NONE, Rule

BETTER, KEPT, HARMLESS = 1.05, 0.95, 0.99
SEEDS = 10
HALVE = Rule("halve", keep=0.3, add=0.0625, up=0.02)
PRICE, KIND = Rule("price", keep=0.5, add=0.25, up=0.05, gain=0.5), "own"
RULES = ((NONE, ""), (HALVE, ""), (PRICE, KIND))
QUICK = [n for n, c in enumerate(CASES) if c.group == GROUPS[0]
         and c.rtt == 20 and c.name != "load 10"]
Row = dict[str, Any]


def by_rule(rows: Sequence[Row]) -> list[dict[str, Row]]:
    """The rules' rows of each case and seed, by the rule's name."""
    found: dict[tuple[object, ...], dict[str, Row]] = {}
    for r in rows:
        key = r["case"], r["group"], r["rtt_ms"], r["seed"]
        found.setdefault(key, {})[r["rule"]] = r
    return list(found.values())


def saved(of: dict[str, Row], rule: str, what: str = "work") -> float:
    """The part of the work of `none` that a rule saves."""
    return 1 - of[rule][what] / of["none"][what]


def perfectly(of: dict[str, Row]) -> float:
    """The part of the work of `none` that a perfect rule would save."""
    none = of["none"]
    case, = (c for c in CASES if (c.name, c.group.name, c.rtt) == (
        none["case"], none["group"], none["rtt_ms"]))
    return 1 - perfect(case)[1] / none["work"]


def quotients(cases: Sequence[dict[str, Row]], seed: int) -> Row:
    """Price over halve, of one seed."""
    of = [c for c in cases if c["none"]["seed"] == seed]
    return {"seed": seed,
            "goodput": geometric([
                c["price"]["good"] / c["halve"]["good"] for c in of]),
            **{what: geometric([saved(c, "price", what)
                                / saved(c, "halve", what) for c in of])
               for what in ("work", "work_there")}}


def spread(values: Sequence[float]) -> str:
    """A median and its interval."""
    low, middle, high = interval(values)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def decision(goodput: Sequence[float], work: Sequence[float]) -> bool:
    """Is the price better, by the rule above?"""
    low, other = interval(goodput)[0], interval(work)[0]
    return (low >= BETTER and other >= KEPT) or (
        other >= BETTER and low >= KEPT)


def judgements(rows: Sequence[Row]) -> list[Found]:
    """Of the whole run."""
    names = {c.name for c in LOADED}
    cases = by_rule([r for r in rows if r["case"] in names])
    seeds = sorted({r["seed"] for r in rows})
    found = [quotients(cases, s) for s in seeds]
    good, work, there = ([f[k] for f in found]
                         for k in ("goodput", "work", "work_there"))
    room = [geometric([perfectly(c) / saved(c, "halve") for c in cases
                       if c["none"]["seed"] == s]) for s in seeds]
    easy = [c["price"]["good"] / c["none"]["good"]
            for c in by_rule([r for r in rows if r["case"] not in names])]
    return [
        judged(f"price over halve: goodput at least {BETTER}", spread(good),
               interval(good)[0] >= BETTER),
        judged(f"price over halve: work saved at least {BETTER}",
               spread(work), interval(work)[0] >= BETTER),
        judged(f"for information, without 429 of a child: {BETTER}",
               spread(there), interval(there)[0] >= BETTER),
        judged("for information: a perfect rule's work saved over halve's",
               spread(room), interval(room)[0] >= BETTER),
        judged("the price is better by the rule: part 4 goes into src/",
               "yes" if decision(good, work) else "no", decision(good, work)),
        judged(f"loads 0.5 and 1: the price keeps {HARMLESS} of the goodput",
               spread(easy), interval(easy)[0] >= HARMLESS)]


def summary(rows: Sequence[Row]) -> list[Row]:
    """By group, case and round trip: medians of the seeds."""
    found: list[Row] = []
    for case in CASES:
        name = {"case": case.name, "group": case.group.name,
                "rtt_ms": case.rtt}
        cases = by_rule(where(rows, **name))
        if not cases:
            continue
        row: Row = dict(name)
        for rule in ("none", "halve", "price"):
            row[f"good_{rule}"] = interval(
                [c[rule]["good"] for c in cases])[1]
        for rule in ("halve", "price"):
            row[f"saved_{rule}"] = None if case in EASY else interval(
                [saved(c, rule) for c in cases])[1]
            row["saved_perfect"] = None if case in EASY else interval(
                [perfectly(c) for c in cases])[1]
            row[f"there_{rule}"] = None if case in EASY else interval(
                [saved(c, rule, "work_there") for c in cases])[1]
        found.append(row)
    return found


def run(c: Context) -> Result:
    """See Figure."""
    cases = QUICK if c.quick else range(len(CASES))
    seeds = range(c.seed, c.seed + (2 if c.quick else SEEDS))
    found = c.map(measure, [(n, rule, price, s) for n in cases
                            for rule, price in RULES for s in seeds])
    said, rows = judgements(found), summary(found)
    return Result(
        {"seeds": len(seeds), "price": KIND,
         "rules": [vars(rule) for rule, _ in RULES], "summary": rows},
        found, {"judgements": said}, [
            *table(list(rows[0]), [list(r.values()) for r in rows]),
            *verdicts(said)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    rows = [r for r in data["parameters"]["summary"]
            if r["saved_halve"] is not None]
    for what in ("good", "saved"):
        axes.plot([r[f"{what}_price"] / r[f"{what}_halve"] for r in rows],
                  range(len(rows)), "o", label=what)
    axes.set_yticks(range(len(rows)), [
        f"{r['group']}, {r['case']}, {r['rtt_ms']} ms" for r in rows])
    axes.tick_params(labelsize="x-small")
    axes.axvline(BETTER, color="black")
    axes.set(xlabel="price over halve")
    axes.legend()


FIGURE = Figure("tiers-judge", "two tiers: a price on answers, or only 429: "
                "the test that decides", run, plot)
