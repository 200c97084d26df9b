# SPDX-License-Identifier: BSD-2-Clause
"""What is claimed, the paper's figure beside it, and what the results say.

A claim is met or missed if its whole interval is, unresolved if its interval
covers the target or is unknown, and invalid if the control of its own
measurement does not cover 1.  An experiment that has several controls, one
for each customer, pair or variant, has each claim judged by its own: one of
ten 95 % intervals misses 1 by chance often enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import paper
from .abuses import ABUSES
from .estimate import known, verdict
from .lab import controls
from .latency import LIMIT
from .parts import COST as PARTS_COST
from .parts import TIMES as PARTS_TIMES
from .timeline import CLAIM

Report = dict[str, Any]
Result = dict[str, Any]

FAIR = 0.95  # min/max of normalised throughput
STRETCH = 1.5
LOST_NOOP = 0.03
LOST_REALISTIC = 0.01
LOST_MANY = 0.02
SLOTS = 10  # a core, the default
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


RATIO = Unit(2)
TIMES = Unit(1, " ×")
PERCENT = Unit(1, " %", 100.0)


def at_most(interval: Sequence[float], limit: float) -> str:
    """Say if the claim "at most `limit`" holds over the interval."""
    if interval[1] <= limit:
        return "met"
    return "missed" if interval[0] > limit else "unresolved"


def valid(report: Report, part: str) -> bool:
    """Does the control of that part cover 1?  One control is of all."""
    control = report["control"]
    own = control.get(part)
    return all(c["covers_one"] for c in ([own] if own else controls(control)))


def claim(
    report: Report, part: str, what: str, unit: Unit, judged: str, *,
    told: str | float | None, stock: float | None, ours: float,
    interval: Sequence[float], target: str,
) -> Claim:
    """Return a claim; `part` is the key of its control, if it has one."""
    return Claim(
        what, told if isinstance(told, str) else unit.text(told),
        unit.text(stock), unit.text(ours), unit.interval(interval), target,
        judged if valid(report, part) else "invalid")


def ours(report: Report) -> list[Result]:
    """Return the results that claims are about: the last variant's."""
    last = report["results"][-1]["variant"]
    return [r for r in report["results"] if r["variant"] == last]


def stock(report: Report, key: str, **same: Any) -> float | None:
    """Return stock's figure of the same, if it was measured."""
    for r in report["results"]:
        if r["variant"] == "stock" and same.items() <= r.items():
            return float(r[key])
    return None


def worst_side(result: Result) -> str:
    """Return the side of a pair whose stretch is worse."""
    return max("ab", key=lambda side: float(result[f"stretch_{side}"]))


def fair_pair(report: Report, r: Result, what: str, target: float) -> Claim:
    """Return the claim that a pair is treated fairly."""
    told = paper.stock_ratio(r["a"], r["b"])
    return claim(
        report, "", what, RATIO, verdict(r["ratio_ci"], target),
        told=f"stock {told:.2f}" if told else None,
        stock=stock(report, "ratio", a=r["a"], b=r["b"]), ours=r["ratio"],
        interval=r["ratio_ci"], target=f"at least {target:.2f}")


def pair_claims(report: Report) -> list[Claim]:
    """Fairness of each pair, and the worst stretch of all."""
    found = [fair_pair(report, r, f"fairness of {r['a']} and {r['b']}: "
                       "min/max of normalised throughput", FAIR)
             for r in ours(report)]
    worst = max(ours(report), key=lambda r: float(
        r[f"stretch_{worst_side(r)}"]))
    side = worst_side(worst)
    interval = worst[f"stretch_ci_{side}"]
    starved = not all(r["stretch_counts"] for r in ours(report))
    base = [r[f"stretch_{worst_side(r)}"] for r in report["results"]
            if r["variant"] == "stock"]
    found.append(claim(
        report, "", f"worst stretch of all tenants ({worst[side]} with "
        f"{worst['b' if side == 'a' else 'a']}): p99 over connections/rate",
        TIMES, "unresolved" if starved else at_most(interval, STRETCH),
        told="about 27 ×", stock=max(base, default=None),
        ours=worst[f"stretch_{side}"], interval=interval,
        target=f"at most {STRETCH:g} ×"))
    return found


def rate_claims(report: Report) -> list[Claim]:
    """Fairness of the worst pair, with the target of the plan."""
    worst = min(ours(report), key=lambda r: float(r["ratio"]))
    told = {"rate-unknown": "is not set", "rate-wrong": "is set twice too "
            "high"}.get(report["experiment"], "")
    return [fair_pair(
        report, worst, f"fairness of the worst pair ({worst['a']} and "
        f"{worst['b']}), if the link's rate {told}",
        report["plan"]["target"])]


def lost(
    report: Report, part: str, r: Result, what: str, told: str, limit: float
) -> Claim:
    """Return the claim that little throughput is lost."""
    low, high = r["ratio_ci"]
    interval = (1 - high, 1 - low) if high < 1e6 else (-1e9, 1e9)
    return claim(
        report, part, what, PERCENT, at_most(interval, limit), told=told,
        stock=None, ours=1 - r["ratio"], interval=interval,
        target=f"at most {100 * limit:g} %")


def alone_claims(report: Report) -> list[Claim]:
    """What the no-op and the realistic customers lose alone."""
    return [
        lost(report, name, r, f"throughput lost by {name} alone "
             + ("(no-op VCL, 1 KB)" if name == "k0" else "(realistic VCL)"),
             f"{100 * paper.LOST_NOOP:.0f} %" if name == "k0"
             else f"under {100 * paper.LOST_REALISTIC:.0f} %",
             LOST_NOOP if name == "k0" else LOST_REALISTIC)
        for r in report["results"]
        if (name := r["customer"]) == "k0" or name[0] in "Cc"]


def overhead_claims(report: Report) -> list[Claim]:
    """What the no-op and C1 to C4 lose alone, with costs as by default."""
    return [
        lost(report, f"{name}, {SAMPLED}", r, f"throughput lost by {name} "
             + ("alone (no-op VCL, 1 KB), costs sampled" if name == "k0"
                else "alone (the paper's VCL), costs sampled"),
             f"{100 * paper.LOST_NOOP:.0f} %" if name == "k0"
             else f"under {100 * paper.LOST_REALISTIC:.0f} %",
             LOST_NOOP if name == "k0" else LOST_REALISTIC)
        for r in report["results"] if r["setting"] == SAMPLED
        and ((name := r["customer"]) == "k0" or name[0] in "Cc")]


def scale_claims(report: Report) -> list[Claim]:
    """What the most tenants lose."""
    r = max(report["results"], key=lambda r: int(r["tenants"]))
    return [lost(report, "", r, f"throughput lost with {r['tenants']} tenants"
                 f" and {r['connections']} connections",
                 f"{PERCENT.text(paper.LOST_MANY)} at {paper.MANY}",
                 LOST_MANY)]


def worker_claims(report: Report) -> list[Claim]:
    """Fairness with the default slots, for each number of connections."""
    return [
        claim(report, "", f"fairness of {r['a']} and {r['b']} with {SLOTS} "
              f"slots per core, {r['connections']} connections each", RATIO,
              verdict(r["ratio_ci"], FAIR), told=None, stock=None,
              ours=r["ratio"], interval=r["ratio_ci"],
              target=f"at least {FAIR:.2f}")
        for r in report["results"] if r["slots"] == SLOTS]


def latency_claims(report: Report) -> list[Claim]:
    """What the worst tenant's p99 grows by, beside what is fair."""
    r = max(ours(report), key=lambda r: float(r["times"]))
    same = {"tenant": r["tenant"], "beside": r["beside"]}
    names = r["tenant"], r["beside"]
    pair = next((k for k in report["control"]
                 if k in ("-".join(names), "-".join(names[::-1]))), "")
    return [claim(
        report, pair, f"worst p99 of open loops ({r['tenant']} with "
        f"{r['beside']}), over p99 alone / share", TIMES,
        at_most(r["times_ci"], LIMIT), told=None,
        stock=stock(report, "times", **same), ours=r["times"],
        interval=r["times_ci"], target=f"at most {LIMIT:g} ×")]


def line_claims(report: Report) -> list[Claim]:
    """What the static tenant keeps in each phase."""
    found = []
    for r in ours(report):
        found.append(claim(
            report, "", f"throughput kept while the other has {r['phase']}, of "
            "the fair one", RATIO, verdict(r["of_fair_ci"], CLAIM),
            told="“isolated”" if report["experiment"] == "content-change"
            else "“more resilient”",
            stock=stock(report, "of_fair", phase=r["phase"]),
            ours=r["of_fair"], interval=r["of_fair_ci"],
            target=f"at least {CLAIM:.2f}"))
    return found


def abuse_claims(report: Report) -> list[Claim]:
    """What a victim keeps."""
    found = []
    for r in ours(report):
        abuse = ABUSES[r["abuse"]]
        limit = abuse.kept * r["fair"]
        found.append(claim(
            report, r["variant"], f"throughput that {r['victim']} keeps "
            f"under {r['abuse']}, of its throughput alone", RATIO,
            verdict(r["kept_ci"], limit), told=None,
            stock=stock(report, "kept"), ours=r["kept"],
            interval=r["kept_ci"], target=f"at least {limit:.2f}"))
        if abuse.fifo:
            continue
        found.append(claim(
            report, r["variant"], f"p99 of {r['victim']} under {r['abuse']}, "
            "over its p99 alone, at half of its fair rate", TIMES,
            at_most(r["p99_times_ci"], abuse.times), told=None,
            stock=stock(report, "p99_times"), ours=r["p99_times"],
            interval=r["p99_times_ci"], target=f"at most {abuse.times:g} ×"))
    return found


def parts_claims(report: Report) -> list[Claim]:
    """What connections with a part of a request cost others."""
    found = []
    for r in ours(report):
        found.append(claim(
            report, r["tenant"], f"p99 of {r['tenant']} beside "
            f"{r['connections']} connections with a part of a request, over "
            f"that beside {r['few']}", TIMES, at_most(r["times_ci"],
                                                      PARTS_TIMES),
            told=None, stock=stock(report, "times"), ours=r["times"],
            interval=r["times_ci"], target=f"at most {PARTS_TIMES:g} ×"))
        if r["cost"] is None:
            continue
        found.append(claim(
            report, "", f"CPU time per request of {r['tenant']} beside them, "
            "over that alone", TIMES, at_most(r["cost_ci"], PARTS_COST),
            told=None, stock=None, ours=r["cost"], interval=r["cost_ci"],
            target=f"at most {PARTS_COST:g} ×"))
    return found


def soak_claims(report: Report) -> list[Claim]:
    """No request is forgotten, and none lost."""
    r = report["results"][-1]
    wrong = abs(r["unaccounted"]) + r["lost"] + r["died"]
    return [claim(
        report, "", f"requests forgotten or lost of {r['enqueued']}, and "
        f"processes that died, in {r['soaked_s']:.0f} s of all abuses",
        Unit(0), at_most((wrong, wrong), 0), told=None, stock=None,
        ours=wrong, interval=(wrong, wrong), target="0")]


CLAIMS: dict[str, Callable[[Report], list[Claim]]] = {
    "pairs": pair_claims, "alone": alone_claims,
    "overhead": overhead_claims, "workers": worker_claims,
    "latency": latency_claims, "scale": scale_claims,
    "content-change": line_claims, "flash-crowd": line_claims,
    **dict.fromkeys(ABUSES, abuse_claims), "soak": soak_claims,
    "parts": parts_claims,
    "rate-unknown": rate_claims, "rate-wrong": rate_claims,
}


def claims(report: Report) -> list[Claim]:
    """Return the claims that an experiment is about."""
    make = CLAIMS.get(report["experiment"])
    return make(report) if make else []
