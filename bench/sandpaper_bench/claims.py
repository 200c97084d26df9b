# SPDX-License-Identifier: BSD-2-Clause
"""What is claimed, the paper's figure beside it, and what the results say.

A claim is met if its whole interval meets the target, missed if its whole
interval misses it, unresolved if the interval covers it or is unknown, and
invalid if the control of its own measurement does not cover 1.  An experiment that has several controls, one
for each customer, pair or variant, has each claim judged by its own: one of
ten 95 % intervals misses 1 by chance often enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import paper
from .abuses import ABUSES
from .customers import NOOP
from .estimate import WHOLE, known, verdict
from .latency import LIMIT
from .parts import COST as PARTS_COST
from .parts import TIMES as PARTS_TIMES
from .policies import SLOTS
from .rig import controls
from .table import cell, sides
from .timeline import CLAIM
from .varnish import STOCK

Report = dict[str, Any]
Result = dict[str, Any]

FAIR = 0.95  # min/max of normalised throughput
STRETCH = 1.5
LOST_NOOP = 0.03
LOST_REALISTIC = 0.01
LOST_MANY = 0.02
SAMPLED = "sampled"  # the setting of costs that is the default
NONE = "–"


@dataclass(frozen=True)
class Claim:
    """One row of the headline; all but `verdict` as it is printed."""

    what: str
    paper: str
    stock: str
    ours: str
    interval: str
    target: str
    verdict: str


@dataclass(frozen=True)
class Unit:
    """How a value is printed: scaled, with so many digits, and what."""

    digits: int
    what: str = ""
    times: float = 1.0

    def text(self, value: float | None) -> str:
        """Return the value with its unit."""
        if value is None:
            return NONE
        return f"{value * self.times:.{self.digits}f}{self.what}"

    def interval(self, ends: Sequence[float]) -> str:
        """Return a 95 % interval with its unit."""
        if not known(ends):
            return "unknown"
        low, high = (f"{e * self.times:.{self.digits}f}" for e in ends)
        return f"{low} .. {high}{self.what}"

    def at_most(self, limit: float) -> str:
        """Return a limit with its unit."""
        return f"at most {limit * self.times:g}{self.what}" if limit else "0"


RATIO = Unit(2)
TIMES = Unit(1, " ×")
PERCENT = Unit(1, " %", 100.0)


def noop(row: Result) -> bool:
    """Is it the customer with the no-op VCL?"""
    return bool(row["customer"] == NOOP)


def limited(row: Result) -> bool:
    """Is it a customer for whom the paper says what it loses?"""
    return paper.lost(row["customer"]) is not None


def lost_limit(row: Result) -> float:
    """Return what a customer alone may lose."""
    return LOST_NOOP if noop(row) else LOST_REALISTIC


def lost_paper(row: Result) -> str:
    """Return what a customer alone lost in the paper."""
    lost = f"{100 * (paper.lost(row['customer']) or 0):.0f} %"
    return lost if noop(row) else f"under {lost}"


def pair_paper(row: Result) -> str | None:
    """Return stock's fairness of a pair in the paper."""
    told = paper.stock_ratio(row["a"], row["b"])
    return f"stock {told:.2f}" if told else None


def abuse_limit(row: Result) -> float:
    """Return what a victim has to keep."""
    return float(ABUSES[row["abuse"]].kept * row["fair"])


@dataclass(frozen=True)
class Rule:
    """What is claimed of results.

    The names of fields are those of a result, or of what `facts` adds.
    FIELD_ci has the interval of FIELD.
    """

    what: str  # a template of the result
    value: str  # the field
    target: float | Callable[[Result], float]
    unit: Unit = RATIO
    at_most: bool = False  # the target is a limit
    paper: str | Callable[[Result], str | None] = NONE
    part: str = ""  # a template: the key of its control, if it has its own
    stock: Sequence[str] | None = ()  # fields that stock's result has as well
    # Which results: else those of the last variant
    only: Callable[[Result], bool] | None = None
    worst: Callable[[Result], float] | None = None  # only the largest of all
    each_side: bool = False  # of each tenant of a pair, not of the pair
    if_all: str = ""  # a field: else the claim is unresolved

    def limit(self, row: Result) -> float:
        """Return the target for a result."""
        return (self.target(row) if callable(self.target)
                else float(self.target))

    def words(self, row: Result) -> str:
        """Return the target with its unit."""
        limit = self.limit(row)
        return (self.unit.at_most(limit) if self.at_most
                else f"at least {self.unit.text(limit)}")


PAIR = Rule(
    "fairness of {a} and {b}: min/max of normalised throughput", "ratio",
    FAIR, paper=pair_paper, stock=("a", "b"))
LINE = Rule(
    "throughput kept while the other has {phase}, of the fair one", "of_fair",
    CLAIM, stock=("phase",))
LOST = Rule(
    "throughput lost by {customer} alone ({work})", "lost", lost_limit,
    PERCENT, at_most=True, paper=lost_paper, only=limited, part="{customer}")


def rate(what: str) -> Rule:
    """Return the claim of the worst pair, with the target of the plan."""
    return Rule(
        "fairness of the worst pair ({a} and {b}), if the link's rate "
        + what, "ratio", lambda r: r["plan_target"], paper=pair_paper,
        stock=("a", "b"), worst=lambda r: -r["ratio"])


ABUSE = (
    Rule("throughput that {victim} keeps under {abuse}, of its throughput "
         "alone", "kept", abuse_limit, part="{variant}"),
    Rule("p99 of {victim} under {abuse}, over its p99 alone, at half of its "
         "fair rate", "p99_times", lambda r: ABUSES[r["abuse"]].times, TIMES,
         at_most=True, part="{variant}",
         only=lambda r: r["last"] and not ABUSES[r["abuse"]].fifo),
)
PAIRS = (
    PAIR,
    Rule("worst stretch of all tenants ({tenant} with {beside}): p99 over "
         "connections/rate", "stretch", STRETCH, TIMES, at_most=True,
         paper="about 27 ×", worst=lambda r: r["stretch"],
         each_side=True, if_all="stretch_counts"))
RULES: dict[str, Sequence[Rule]] = {
    "pairs": PAIRS, "random-pairs": PAIRS, "quick": PAIRS,
    "alone": (LOST,),
    "overhead": (replace(
        LOST, what=f"{LOST.what}, costs sampled",
        part="{customer}, {setting}",
        only=lambda r: r["setting"] == SAMPLED and limited(r)),),
    "workers": (Rule(
        f"fairness of {{a}} and {{b}} with {SLOTS} slots per core, "
        "{connections} connections each", "ratio", FAIR, stock=None,
        only=lambda r: r["slots"] == SLOTS),),
    "latency": (Rule(
        "worst p99 of open loops ({tenant} with {beside}), over p99 alone / "
        "share", "times", LIMIT, TIMES, at_most=True, part="{pair}",
        stock=("tenant", "beside"), worst=lambda r: r["times"]),),
    "scale": (Rule(
        "throughput lost with {tenants} tenants and {connections} "
        "connections", "lost", LOST_MANY, PERCENT, at_most=True,
        paper=f"{PERCENT.text(paper.LOST_MANY)} at {paper.MANY}",
        worst=lambda r: r["tenants"]),),
    "content-change": (replace(LINE, paper="“isolated”"),),
    "flash-crowd": (replace(LINE, paper="“more resilient”"),),
    "parts": (
        Rule("p99 of {tenant} beside {connections} connections with a part of "
             "a request, over that beside {few}", "times", PARTS_TIMES,
             TIMES, at_most=True, part="{tenant}"),
        Rule("CPU time per request of {tenant} beside them, over that alone",
             "cost", PARTS_COST, TIMES, at_most=True, stock=None,
             only=lambda r: r["last"] and r["cost"] is not None)),
    **dict.fromkeys(ABUSES, ABUSE),
    "soak": (Rule(
        "requests forgotten or lost of {enqueued}, and processes that died, "
        "in {soaked_s:.0f} s of most abuses", "wrong", 0, Unit(0),
        at_most=True),),
    "compress": (Rule(
        "requests/s of a page that is compressed by price, over those of "
        "{against}, with {link}", "ratio", lambda r: float(r["goal"]),
        part="{link}", stock=None),),
    "rate-unknown": (rate("is not set"),),
    "rate-wrong": (rate("is set twice too high"),),
}


def rows(report: Report, each_side: bool) -> Iterable[Result]:
    """Return the results, or the tenants of pairs, with what rules need."""
    last = report["results"][-1].get("variant")
    for result in report["results"]:
        for row in sides(result) if each_side else [result]:
            yield row | facts(report, row) | {
                "last": row.get("variant") == last}


def facts(report: Report, row: Result) -> Result:
    """Return what rules need beyond the fields of a result."""
    found: Result = {"plan_target": report["plan"].get("target")}
    if "baseline" in row:
        low, high = row["ratio_ci"]
        found |= {"lost": 1 - row["ratio"], "lost_ci": (
            (1 - high, 1 - low) if high < WHOLE else (-math.inf, math.inf))}
    if "customer" in row:
        found["work"] = ("no-op VCL, 1 KB" if noop(row)
                         else "the paper's VCL" if "setting" in row
                         else "realistic VCL")
    if "beside" in row:
        found["pair"] = pair_control(report, row)
    if "unaccounted" in row:
        wrong = abs(row["unaccounted"]) + row["lost"] + row["died"]
        found |= {"wrong": wrong, "wrong_ci": (wrong, wrong)}
    return found


def pair_control(report: Report, row: Result) -> str:
    """Return the key of the control of a tenant's pair, if it has one."""
    pair = row["tenant"], row["beside"]
    return next((key for key in ("-".join(pair), "-".join(reversed(pair)))
                 if key in report["control"]), "")


def judge(rule: Rule, interval: Sequence[float], target: float) -> str:
    """Say if the claim holds over the interval."""
    if not rule.at_most:
        return verdict((interval[0], interval[1]), target)
    if interval[1] <= target:
        return "met"
    return "missed" if interval[0] > target else "unresolved"


def valid(report: Report, part: str) -> bool:
    """Does its own control cover 1?  Without one of its own: do all?"""
    control = report["control"]
    own = control.get(part)
    return all(c["covers_one"] for c in ([own] if own else controls(control)))


def stock(rule: Rule, every: Iterable[Result], ours: Result) -> float | None:
    """Return stock's figure of the same, if it was measured."""
    if rule.stock is None:
        return None
    return next((
        float(row[rule.value]) for row in every if row["variant"] == STOCK
        and all(row[key] == ours[key] for key in rule.stock)), None)


def claims_of(report: Report, rule: Rule) -> Iterable[Claim]:
    """Return what a rule says of a report."""
    every = list(rows(report, rule.each_side))
    if rule.worst:
        every.sort(key=rule.worst, reverse=True)
    chosen = [row for row in every
              if (rule.only(row) if rule.only else row["last"])]
    sure = all(row[rule.if_all] for row in chosen if rule.if_all)
    for row in chosen[:1] if rule.worst else chosen:
        interval = row[f"{rule.value}_ci"]
        said = judge(rule, interval, rule.limit(row)) if sure else "unresolved"
        told = rule.paper(row) if callable(rule.paper) else rule.paper
        yield Claim(
            cell(rule.what, row), told or NONE,
            rule.unit.text(stock(rule, every, row)),
            rule.unit.text(row[rule.value]), rule.unit.interval(interval),
            rule.words(row),
            said if valid(report, cell(rule.part, row)) else "invalid")


def claims(report: Report) -> list[Claim]:
    """Return the claims that an experiment is about."""
    return [claim for rule in RULES.get(report["experiment"], ())
            for claim in claims_of(report, rule)]
