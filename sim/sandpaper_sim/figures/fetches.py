# SPDX-License-Identifier: BSD-2-Clause
"""Fetches from an origin that is slow, with a fetch target and without.

An origin serves four fetches at a time, each for 40 ms, or 16, each for 160 ms:
100/s. Others serve all at once, each for 200 ms. A fetch is good if its answer
comes within the target, 0.5 s. Good answers are given over those that are
possible: all that came, or all that the origin can serve.

`none` has the limit that varnishd has without a target. `fixed` is the best of
a few limits that never change, chosen for each case after all were tried. So it
knows the origin and the load. The rules of the verdicts are in `judge()`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import binom

from ..fetches import (
    ANSWERED,
    BACKGROUND,
    MISS,
    POLL,
    REFUSED,
    Cache,
    Controlled,
    Fetches,
    Fixed,
    Origin,
    arrivals,
)
from ..figure import Context, Figure, Result, judged, table, verdicts, where
from ..releaser import Releaser
from ..server import MS, SECOND, Environment
from ..workload import Constant, Exponential, generator, poisson, stream

CORES, WORKERS = 2, 20
COST = SECOND // 5000           # mean processing time of a miss
CAPACITY = 100                  # fetches/s
DELAY = 200 * MS                # of the origin that serves all at once
EVERYBODY = 1_000_000           # servers
SERVERS = {"exponential": (4, 40 * MS), "fixed": (4, 40 * MS),
           "wide": (16, 160 * MS), "delay": (EVERYBODY, DELAY),
           "varies": (EVERYBODY, DELAY)}
TARGET = SECOND // 2
LIMIT = 2500                    # the default of sandpaper_fetch_limit
FACTOR = 4                      # of the service time while it is slow
REFUSES = MS                    # an origin that is dead says so after it
TIMES_OUT = 5 * SECOND          # one that hangs
POLLS = 20 * SECOND             # a long poll takes
NEIGHBOUR, NEAR = 200, 20 * MS  # its fetches/s, and how long each takes
BIN = 2                         # s, in which it is looked if it has settled
SETTLED = 0.5                   # of what is possible
# The rules of the verdicts, parts
MOST = 0.95                     # is nearly all
BEST = 0.9                      # of the best limit that never changes
NONE = 0.001                    # is nothing
SOON = 5                        # s
UNHURT = 1.05                   # times the p99 of a neighbour that is alone

Period = tuple[float, float]    # s
NEVER: Period = (0, 0)


@dataclass(frozen=True)
class Case:
    """A load and an origin over time, and when they are measured; s."""

    name: str
    load: float                 # of misses, in parts of the capacity
    measured: Period
    onset: float = 0            # it should settle from then on
    burst: Period = NEVER       # the load is ten times the capacity
    background: float = 0       # in parts of the capacity
    polls: float = 0            # begin in a second
    slow: Period = NEVER
    dead: Period = NEVER
    fails: int = REFUSES        # ns, then a fetch of the dead origin fails
    service: str = "exponential"
    neighbour: bool = False
    limits: tuple[int, ...] = (16, 24, 32, 40)

    def most(self) -> float:
        """The largest load."""
        return 10 if self.burst[1] else self.load

    def share(self) -> float:
        """What of the capacity the origin has while it is measured."""
        if self.service in {"delay", "varies"}:
            return float("inf")
        return 1 / FACTOR if within(self.slow, self.measured[0]) else 1


LATER = (5, 25)
FEW = (4, 8, 12, 16)
CASES = {c.name: c for c in (
    *(Case(f"{load:g} x", load, LATER) for load in (0.5, 0.8, 1, 2, 5, 10)),
    *(Case(f"{load:g} x, fixed times", load, LATER, service="fixed")
      for load in (0.5, 0.8, 1, 2, 5, 10)),
    *(Case(f"{load:g} x, 16 servers", load, LATER, service="wide")
      for load in (0.5, 0.8, 1, 2, 5, 10)),
    *(Case(f"{load:g} x, serves all", load, (0, 20), service="delay",
           limits=(400,)) for load in (1, 10)),
    *(Case(f"{load:g} x, serves all, times vary", load, (0, 20),
           service="varies", limits=(400,)) for load in (1, 10)),
    Case("10 x, first 10 s", 10, (0, 10)),
    Case("10 x, 16 servers, first 10 s", 10, (0, 10), service="wide"),
    Case("10 x for 10 s", 0.5, (10, 20), 10, burst=(10, 20)),
    Case("after 10 x for 10 s", 0.5, (22, 32), 20, burst=(10, 20)),
    Case("0.8 x, 4 times slower", 0.8, (10, 30), 10, slow=(10, 30), limits=FEW),
    Case("0.8 x, fast again", 0.8, (32, 50), 30, slow=(10, 30)),
    Case("2 x, dead, then slow", 2, (20, 40), 20, dead=(10, 20), slow=(20, 40),
         limits=FEW),
    Case("2 x, dead, then fast", 2, (20, 40), 20, dead=(10, 20)),
    Case("2 x, hangs, then fast", 2, (20, 40), 20, dead=(10, 20),
         fails=TIMES_OUT),
    Case("0.8 x, background 0.8 x", 0.8, LATER, background=0.8),
    Case("2 x, background 2 x", 2, LATER, background=2),
    Case("0.5 x, long polls", 0.5, LATER, polls=1),
    Case("2 x, long polls", 2, LATER, polls=1, limits=(24, 40, 48, 60)),
    Case("neighbour alone", 0, LATER, neighbour=True, limits=()),
    Case("10 x, neighbour", 10, LATER, neighbour=True, limits=()),
)}
QUICK = ("0.8 x", "5 x", "10 x, serves all, times vary")


def within(period: Period, at: float) -> bool:
    """Is it this time? s."""
    return period[0] <= at < period[1]


def gate(variant: str) -> Fetches:
    """A tenant's limit of fetches."""
    if variant == "target":
        return Controlled(TARGET)
    return Fixed(LIMIT if variant == "none" else
                 int(variant.removeprefix("fixed-")))


def origin(case: Case, env: Environment, rng: np.random.Generator) -> Origin:
    """The tenant's."""
    servers, each = SERVERS[case.service]
    costs = Exponential if case.service in {"exponential", "varies"} \
        else Constant
    return Origin(
        env, servers, stream(costs(each), rng).__next__,
        slower=lambda now: FACTOR if within(case.slow, now / SECOND) else 1,
        fails=lambda now: case.fails if within(case.dead, now / SECOND) else 0)


def simulate(name: str, variant: str, seed: int) -> dict[str, Any]:
    """One case with one limit of fetches."""
    case = CASES[name]
    env = Environment(0)
    cache = Cache(env, Releaser("mr3-rs", WORKERS), CORES)

    def random(what: str) -> np.random.Generator:
        return generator(seed, "fetches", name, what)

    def clients(what: str, rate: Callable[[int], float], most: float,
                ask: Callable[[], object]) -> None:
        arrivals(env, lambda now: CAPACITY * rate(now), CAPACITY * most,
                 random(what), ask)

    its = origin(case, env, random("services"))
    tenant = cache.site(gate(variant), its)
    if case.dead[1]:
        cache.at(round(case.dead[0] * SECOND), its.die)
    cpu = stream(Exponential(COST), random("costs"))
    clients("misses", lambda now: 10 if within(case.burst, now / SECOND)
            else case.load, case.most(),
            lambda: cache.submit(tenant, next(cpu)))
    clients("background", lambda _: case.background, case.background,
            lambda: cache.fetch(tenant, BACKGROUND))
    polled = Origin(env, EVERYBODY, lambda: POLLS)
    clients("polls", lambda _: case.polls / CAPACITY, case.polls / CAPACITY,
            lambda: cache.fetch(tenant, POLL, polled))
    near = Origin(env, EVERYBODY, lambda: NEAR)
    other = cache.site(gate("none" if variant == "none" else "target"), near)
    if case.neighbour:
        poisson(cache, other, NEIGHBOUR, stream(
            Exponential(COST), random("neighbour's costs")),
            random("neighbour"))
    cache.run(round(case.measured[1] * SECOND) + TARGET)
    return {"case": name, "variant": variant, "seed": seed,
            "most": cache.most} | found(case, cache, tenant) | (
                neighbour(case, cache, other) if case.neighbour else {})


def good(rows: Any) -> Any:  # noqa: ANN401
    """Those whose answer came within the target."""
    return rows[(rows["outcome"] == ANSWERED)
                & (rows["end"] - rows["begin"] <= TARGET)]


def between(rows: Any, column: str, period: Period) -> Any:  # noqa: ANN401
    """Those of this time."""
    return rows[(rows[column] >= period[0] * SECOND)
                & (rows[column] < period[1] * SECOND)]


def found(case: Case, cache: Cache, tenant: int) -> dict[str, Any]:
    """What became of its fetches."""
    rows = cache.rows()
    rows = rows[rows["tenant"] == tenant]
    of = [rows[rows["kind"] == kind] for kind in (MISS, BACKGROUND)]
    begun = [between(r, "begin", case.measured) for r in of]
    ended = [between(r, "end", case.measured) for r in of]
    seconds = case.measured[1] - case.measured[0]
    possible = min(len(begun[0]), CAPACITY * seconds * case.share())
    answers = ended[0][ended[0]["outcome"] == ANSWERED]
    took = answers["end"] - answers["begin"]
    left = CAPACITY * seconds - possible
    return {
        "of_possible": len(good(ended[0])) / possible if possible else None,
        "refused": float((begun[0]["outcome"] == REFUSED).mean())
        if len(begun[0]) else None,
        "p99_ms": float(np.percentile(took, 99)) / MS if len(took) else None,
        "background_of_left": float(
            (ended[1]["outcome"] == ANSWERED).sum() / left)
        if case.background and left > 0 else None,
        "background_refused": float((begun[1]["outcome"] == REFUSED).mean())
        if case.background else None,
        "settled_s": settled(case, of[0]) if len(begun[0]) else None}


def settled(case: Case, misses: Any) -> float:  # noqa: ANN401
    """Return the end of the last bin with few good answers, s after the onset.

    Few is less than SETTLED of those that are possible."""
    last = case.onset
    for begin in np.arange(case.onset, case.measured[1] - BIN + 1e-9, BIN):
        part = (begin, begin + BIN)
        possible = min(len(between(misses, "begin", part)),
                       CAPACITY * BIN * case.share())
        if len(good(between(misses, "end", part))) < SETTLED * possible:
            last = part[1]
    return float(last - case.onset)


def neighbour(case: Case, cache: Cache, tenant: int) -> dict[str, Any]:
    """What became of its requests; p99 of the whole response time."""
    rows = cache.releaser.records()
    rows = between(rows[rows["tenant"] == tenant], "end", case.measured)
    fetches = cache.rows()
    fetches = between(fetches[fetches["tenant"] == tenant], "begin",
                      case.measured)
    return {
        "neighbour_p99_ms": float(np.percentile(
            rows["end"] - rows["arrival"], 99)) / MS,
        "neighbour_refused": float((fetches["outcome"] == REFUSED).mean())}


FIGURES = ("of_possible", "refused", "p99_ms", "settled_s", "most",
           "background_of_left", "background_refused", "neighbour_p99_ms",
           "neighbour_refused")


def interval(values: list[float]) -> list[float]:
    """Of the median, 95 %: two of the values, by the binomial distribution."""
    n = len(values)
    k = max(int(binom.ppf(0.025, n, 0.5)), 1)
    return [sorted(values)[k - 1], sorted(values)[n - k]]


def summed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over seeds, and the interval of each."""
    found: dict[str, Any] = {"case": rows[0]["case"],
                             "variant": rows[0]["variant"]}
    for figure in FIGURES:
        values = [r[figure] for r in rows if r.get(figure) is not None]
        if values:
            found[figure] = round(median(values), 4)
            found[figure + "_ci"] = [round(v, 4) for v in interval(values)]
    return found


def chosen(found: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Of a case: no target, the target, and the best limit that is fixed."""
    of = {v: summed(where(found, case=name, variant=v))
          for v in dict.fromkeys(r["variant"] for r in found
                                 if r["case"] == name)}
    fixed = [r for v, r in of.items() if v.startswith("fixed-")]
    if not fixed:
        return [of["none"], of["target"]]
    best = max(fixed, key=lambda r: r["of_possible"])
    limit = int(best["variant"].removeprefix("fixed-"))
    return [of["none"], of["target"],
            best | {"variant": "fixed", "limit": limit}]


class Judge:
    """Compares the medians of cases."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = {(r["case"], r["variant"]): r for r in rows}

    def of(self, name: str, figure: str, variant: str = "target") -> float:
        """Return a median."""
        return float(self._rows[name, variant][figure])

    def least(self, claim: str, limit: float, names: list[str], *,
              of: str | None = None) -> dict[str, Any]:
        """The good answers are so many at least; of: over another variant's."""
        found = {n: self.of(n, "of_possible") / (
            self.of(n, "of_possible", of) if of else 1) for n in names}
        worst = min(found, key=found.__getitem__)
        return judged(f"{claim}: at least {limit:g}",
                      f"at least {found[worst]:.3f} ({worst})",
                      found[worst] >= limit)

    def most(self, claim: str, limit: float, names: list[str],
             figure: str) -> dict[str, Any]:
        """A figure is so large at most."""
        found = {n: self.of(n, figure) for n in names}
        worst = max(found, key=found.__getitem__)
        return judged(f"{claim}: at most {limit:g}",
                      f"at most {found[worst]:.4g} ({worst})",
                      found[worst] <= limit)


def judge(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The verdicts."""
    j = Judge(rows)
    kinds = ("", ", fixed times", ", 16 servers")
    over = [f"{n} x{kind}" for n in (2, 5, 10) for kind in kinds]
    under = [f"{n} x{kind}" for n in (0.5, 0.8) for kind in kinds]
    vary = [f"{n} x, serves all, times vary" for n in (1, 10)]
    slow = ["0.8 x, 4 times slower", "2 x, dead, then slow"]
    onset = ["10 x, first 10 s", "10 x, 16 servers, first 10 s",
             "10 x for 10 s"]
    back = ["after 10 x for 10 s", "0.8 x, fast again"]
    fast = ["2 x, dead, then fast", "2 x, hangs, then fast"]
    both, twice = "0.8 x, background 0.8 x", "2 x, background 2 x"
    alone = j.of("neighbour alone", "neighbour_p99_ms")
    return [
        j.least("2, 5 and 10 x: good answers, of those possible", MOST, over),
        j.most("2, 5 and 10 x: p99 of answers, ms", TARGET / MS, over,
               "p99_ms"),
        j.least("1 x: good answers, of those with the best fixed limit", MOST,
                [f"1 x{kind}" for kind in kinds], of="fixed"),
        j.most("0.5 and 0.8 x: refused", NONE, under, "refused"),
        j.most("an origin that serves all: refused", NONE,
               [f"{n} x, serves all" for n in (1, 10)], "refused"),
        j.least("the same with times that vary: good answers, of those "
                "without a target", MOST, vary, of="none"),
        j.most("10 x from one moment on: settled, s", SOON, onset,
               "settled_s"),
        j.most("a slow origin: settled, s", SOON, slow, "settled_s"),
        j.least("a slow origin: good answers, of those with the best fixed "
                "limit", BEST, slow, of="fixed"),
        j.least("2 s after overload: good answers, of those possible", MOST,
                back),
        j.most("2 s after overload: refused", 1 - MOST, back, "refused"),
        j.least("after 10 s without answers: good answers, of those possible",
                MOST, fast),
        j.least("background fetches: good misses, of those possible", MOST,
                [both, twice]),
        judged("background fetches get at least half of what misses leave",
               f"{j.of(both, 'background_of_left'):.3f}",
               j.of(both, "background_of_left") >= 0.5),
        judged("misses fill the origin: background fetches are refused",
               f"{j.of(twice, 'background_refused'):.3f}",
               j.of(twice, "background_refused") >= MOST),
        j.most("long polls at 0.5 x: refused", NONE, ["0.5 x, long polls"],
               "refused"),
        j.least("long polls at 2 x: good answers, of those possible", MOST,
                ["2 x, long polls"]),
        j.most("a neighbour: p99, of its p99 alone, ms", UNHURT * alone,
               ["10 x, neighbour"], "neighbour_p99_ms"),
        j.most("a neighbour: refused", NONE, ["10 x, neighbour"],
               "neighbour_refused")]


def run(c: Context) -> Result:
    """See Figure."""
    seeds = range(c.seed, c.seed + (1 if c.quick else 20))
    names = QUICK if c.quick else tuple(CASES)
    raw = c.map(simulate, [
        (name, variant, seed) for name in names for variant in (
            "none", "target", *(f"fixed-{n}" for n in CASES[name].limits))
        for seed in seeds])
    found = [row for name in names for row in chosen(raw, name)]
    judgements = [] if c.quick else judge(found)
    return Result(
        {"capacity_per_s": CAPACITY, "target_s": TARGET / SECOND,
         "limit": LIMIT, "seeds": len(seeds)}, found,
        {"judgements": judgements}, [
            *table(("load", "limit", "good", "refused", "p99, ms", "settled, s",
                    "background", "neighbour's p99, ms"), [
                (r["case"], f"{r['variant']} {r.get('limit', '')}".strip(), *(
                    r.get(f) for f in ("of_possible", "refused", "p99_ms",
                                       "settled_s", "background_of_left",
                                       "neighbour_p99_ms"))) for r in found]),
            *verdicts(judgements)])


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    axes = figure.subplots()
    for variant in ("none", "target", "fixed"):
        rows = [r for r in where(data["results"], variant=variant)
                if r["case"].endswith(" x")]
        loads = [float(r["case"].split()[0]) for r in rows]
        axes.plot(loads, [r["of_possible"] for r in rows], "o-", label=variant)
    axes.set(xscale="log", xlabel="load, in parts of the capacity",
             ylabel="good answers, over those possible")
    axes.legend(fontsize="x-small")


FIGURE = Figure("fetches", "fetches from an origin that is slow, with a fetch "
                "target and without", run, plot)
