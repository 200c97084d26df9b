# SPDX-License-Identifier: BSD-2-Clause
"""What a strategic tenant gains, by search.

Two tenants of weight 1 on W workers. One is honest: it always has requests
waiting, all of one cost. The other one plays: it sends cheap and dear requests
in cycles of its choice, over as many connections as it likes, and may wait
between two cycles until all is answered, and for a time. Differential evolution
(R. Storn and K. Price, 1997) looks for what gives it most, and where: the
honest tenant's cost is part of the search, and M, the largest cost there is. It
starts from known attacks and from random points.

The gain is the player's part of all service over one half. It is taken over 40
((W+1)M + U) of service: two tenants may be 2(W+1)M + 2U apart, which is 1.05
there, so more is not the bound's. Eight times as much service tells what lasts
from what is had once.

Where requests are measured by draws (p = 1/5; always those above four times
their charge), the search sees draws of its own; what it found is then played
with others, or the luck of the draw would be reported as a gain."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import repeat
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

from ..figure import Context, Figure, Result, table, where
from ..metrics import Floats, services, spells
from ..releaser import (
    ALL,
    CAP,
    DEAR,
    KEEP_DEBT,
    KNOWN,
    PAPER,
    REJOIN,
    SCALE_ONE,
    SETTLE,
    Estimator,
    Releaser,
    policies,
)
from ..server import MS, US, Environment, ThreadPool
from ..workload import closed, generator

WORKERS = 10
QUANTUM_MAX = 4 * MS            # U
LONG = 8                        # times as much service
SAMPLE = 0.2                    # p
CLAIM = 1.05
RESTARTS, POINTS, ROUNDS = 2, 24, 12    # of the search; mr3-rs's restarts
DRAWS = 16
KNOWN_ATTACKS = (
    # Cheap and dear in turns; dear ones, and an empty queue in between; some
    # dear ones, just below what is always measured.
    (1, 1, 20, 0.1), (0, 1, 6, 0.1), (2, 1, 20, 0.26))


@dataclass(frozen=True)
class Rule:
    """How is service shared?"""

    policy: str = "mr3-rs"
    options: int = ALL
    estimator: Estimator | None = None
    sample: float = 1.0         # p
    divided: bool = True        # by p
    round_ns: int = 0           # REL_SetRound()


class Sampled(Releaser):
    """A host that measures only a part of the requests, drawn at random, as
    varnishd does where measuring is dear (design of mr3-rs: "sampled with
    probability p").

    A request above four times its charge is always measured, with weight 1.
    Another one is measured with probability p. What is settled of it then is
    divided by p, so that on average all is. p 1: all are measured. divided
    False: what is drawn has weight 1, too.

    `variance`, ns^2, by tenant: of all that its draws added to its account,
    or took off it; (c - k)^2 (1/p - 1) a request, if it is divided."""

    def __init__(self, name: str, slots: int, p: float,
                 rng: np.random.Generator, *, divided: bool = True,
                 **options: Any) -> None:  # noqa: ANN401
        super().__init__(name, slots, **options)
        if not 0 < p <= 1:
            raise ValueError(f"p {p} is not allowed: use above 0, at most 1")
        self.variance: dict[int, float] = {}
        self._p = p
        self._scale = round(SCALE_ONE / p) if divided else SCALE_ONE
        self._draw = rng.random
        self._always: dict[int, bool] = {}      # a request

    def dequeue(self, slot: int, now: int, closed: int = 0) -> int:
        """See Releaser."""
        request = super().dequeue(slot, now, closed)
        if request >= 0:
            a = self.answer
            c = max(a.cpu, a.net)
            self._always[request] = c > DEAR * a.charge
            if not self._always[request]:
                self.variance[a.tenant] = self.variance.get(a.tenant, 0) + \
                    (c - a.charge)**2 * (1 / self._p - 1)
        return request

    def complete(self, request: int, now: int, scale: int = SCALE_ONE) -> None:
        """See Releaser."""
        if not self._always[request]:
            scale = self._scale if self._draw() < self._p else 0
        super().complete(request, now, scale)


NO_ACCOUNTS = "fifo", "round-robin"

RULES: dict[str, Rule] = {
    "mr3-rs, the paper's": Rule(options=PAPER),
    "mr3-rs, the paper's, costs known": Rule(options=PAPER, estimator=KNOWN),
    "mr3-rs, not settled": Rule(options=ALL & ~SETTLE),
    "mr3-rs, debt not kept": Rule(options=ALL & ~KEEP_DEBT),
    "mr3-rs, no cap": Rule(options=ALL & ~CAP),
    "mr3-rs, no rejoining": Rule(options=ALL & ~REJOIN),
    "mr3-rs": Rule(),
    "mr3-rs, rounds of 4 ms": Rule(round_ns=4 * MS),
    "mr3-rs, sampled": Rule(sample=SAMPLE, divided=False),
    "mr3-rs, sampled, divided by p": Rule(sample=SAMPLE),
    "mr3-rs, sampled, divided by p, rounds of 4 ms": Rule(
        sample=SAMPLE, round_ns=4 * MS),
    **{p + how: Rule(p, options) for p in policies() if p != "mr3-rs"
       for how, options in (("", ALL), (", not settled", ALL & ~SETTLE))
       if not how or p not in NO_ACCOUNTS},
}
QUICK = ("mr3-rs, the paper's", "mr3-rs, not settled",
         "mr3-rs, debt not kept", "mr3-rs")


@dataclass(frozen=True)
class Play:
    """Without a pause each connection goes on as soon as it is answered."""

    largest_ns: int             # M
    cheap_ns: int
    dear_ns: int
    cheap: int                  # requests a cycle
    dear: int
    dear_first: bool
    connections: int
    pause_ns: int               # between cycles, when all is answered; or -1
    honest_ns: int              # the other tenant's cost

    @property
    def service(self) -> int:
        """Ns, of both, over which the gain is taken."""
        return 40 * ((WORKERS + 1) * self.largest_ns + QUANTUM_MAX)


# Least and most of the log2 of: M over 1 ms; the three costs over M; what a
# cycle has, two; connections. Then the pause, M times its square, or none;
# and the order.
BOUNDS = ((0, 4), (-4, 0), (-4, 0), (-3.5, 0), (-1, 5), (-1, 5), (0, 6),
          (-1, 2), (0, 1))


def decoded(genes: Floats) -> Play:
    """A point of the search."""
    g = genes.tolist()
    largest = round(MS * 2**g[0])
    cheap_ns, dear_ns, honest_ns = (round(largest * 2**x) for x in g[1:4])
    cheap, dear, connections = (int(2**x) for x in g[4:7])
    return Play(largest, cheap_ns, dear_ns, cheap, max(dear, not cheap),
                g[8] > 0.5, connections,
                round(largest * g[7]**2) if g[7] > 0 else -1, honest_ns)


def encoded(cheap: int, dear: int, connections: int, part: float) -> Floats:
    """A known attack, M = 1 ms; part: of M, the cheap and the honest cost."""
    def log(n: float) -> float:
        return float(np.log2(n)) + 1e-9 if n else -1.0
    return np.array([0, log(part), 0, log(part), log(cheap), log(dear),
                     log(connections), -1, 0])


def releaser(rule: Rule, draws: int) -> Releaser:
    """Of this rule; draws: a seed."""
    how: dict[str, Any] = {"options": rule.options,
                           "estimator": rule.estimator}
    if rule.sample == 1:
        r = Releaser(rule.policy, WORKERS, **how)
    else:
        r = Sampled(rule.policy, WORKERS, rule.sample,
                    generator(draws, "gaming", "sample"),
                    divided=rule.divided, **how)
    r.set_round(rule.round_ns)
    return r


def player(server: ThreadPool, tenant: int, play: Play) -> None:
    """A closed loop that sends its cycle, again and again."""
    cycle = [play.cheap_ns] * play.cheap + [play.dear_ns] * play.dear
    if play.dear_first:
        cycle.reverse()
    sent = done = 0

    def send() -> None:
        nonlocal sent
        server.submit(tenant, cycle[sent % len(cycle)])
        sent += 1

    def begin() -> None:
        n = play.connections
        for _ in range(n if play.pause_ns < 0 else min(n, len(cycle))):
            send()

    def answered() -> None:
        nonlocal done
        done += 1
        if play.pause_ns < 0 or sent % len(cycle):
            send()
        elif done == sent:
            server.at(server.env.now + play.pause_ns, begin)

    server.done[tenant] = answered
    server.at(0, begin)


def gains(rule: Rule, play: Play, draws: int, *times: int) -> list[float]:
    """Over so many times play.service."""
    server = ThreadPool(Environment(0), releaser(rule, draws))
    player(server, server.tenant(), play)
    closed(server, server.tenant(), 3 * WORKERS,
           repeat(play.honest_ns))
    return [gain(server, n * play.service) for n in times]


def gain(server: ThreadPool, upto: int) -> float:
    """Runs it until both have got so many ns; the first one's gain."""
    while True:
        now = server.env.now
        got = services(spells(server.releaser), 2, np.array([now]))[0]
        left = upto - int(got.sum())
        if left <= upto // 1000:
            return float(2 * got[0] / got.sum())
        # Workers idle only with synchronisation, then it takes longer.
        server.run(now + max(left // WORKERS, 1))


def start(seed: int, restart: int, n: int) -> Floats:
    """The search's first points."""
    low, high = np.array(BOUNDS, float).T
    rng = generator(seed, "gaming", "start", restart)
    known = np.array([encoded(*a) for a in KNOWN_ATTACKS])
    random = rng.uniform(low, high, (n - len(known), len(BOUNDS)))
    return np.vstack((known, random))


def search(name: str, restart: int, seed: int, quick: bool) -> dict[str, Any]:
    """The best play that one search found."""
    rule = RULES[name]
    # Draws that no other run sees.
    draws = range(1) if rule.sample == 1 else range(1000, 1002)

    def loss(genes: Floats) -> float:
        play = decoded(genes)
        return -float(np.mean([gains(rule, play, d, 1)[0]
                               for d in draws]))

    found = differential_evolution(
        loss, BOUNDS, init=start(seed, restart, 12 if quick else POINTS),
        maxiter=3 if quick else ROUNDS, polish=False, tol=0,
        rng=generator(seed, "gaming", name, restart))
    return {"rule": name, "restart": restart, "tried": found.nfev,
            "gain": -found.fun, "play": asdict(decoded(found.x))}


def confirm(name: str, play: dict[str, Any], quick: bool) -> dict[str, Any]:
    """The play's gain, with other draws, and over longer."""
    rule = RULES[name]
    draws = 1 if rule.sample == 1 else 4 if quick else DRAWS
    got = np.array([gains(rule, Play(**play), d, 1, LONG)
                    for d in range(draws)])
    return {"rule": name, "gain": float(got[:, 0].mean()),
            "sd": float(got[:, 0].std(ddof=1)) if draws > 1 else 0.0,
            "lasting": float(got[:, 1].mean()),
            "lasting_sd": float(got[:, 1].std(ddof=1)) if draws > 1 else 0.0,
            "draws": draws, "play": play}


def words(p: dict[str, Any]) -> str:
    """A play, in short; times in us."""
    parts = [f"{p['cheap']} of {p['cheap_ns'] // US}"] if p["cheap"] else []
    parts += [f"{p['dear']} of {p['dear_ns'] // US}"] if p["dear"] else []
    if p["dear_first"]:
        parts.reverse()
    then = "" if p["pause_ns"] < 0 else f", pause {p['pause_ns'] // US}"
    return (f"{', '.join(parts)} on {p['connections']}{then}; "
            f"{p['honest_ns'] // US}; {p['largest_ns'] // US}")


def restarts(name: str, quick: bool) -> int:
    """How often the search begins anew."""
    return 1 if quick or RULES[name].policy != "mr3-rs" else RESTARTS


def run(c: Context) -> Result:
    """See Figure."""
    names = QUICK if c.quick else tuple(RULES)
    searches = c.map(search, [(n, r, c.seed, c.quick) for n in names
                              for r in range(restarts(n, c.quick))])
    played = c.map(confirm, [(s["rule"], s["play"], c.quick)
                             for s in searches])
    found = [max(where(played, rule=n), key=lambda p: p["gain"])
             for n in names]
    for f in found:
        f["tried"] = sum(s["tried"] for s in where(searches, rule=f["rule"]))
    return Result(
        {"workers": WORKERS, "service": "40 ((W+1)M + U)", "long": LONG,
         "sample": SAMPLE, "restarts": RESTARTS}, found,
        {"claim": CLAIM, "text": "design: no settlement 1.22, sampled only "
         "1.20, divided by p 1.005, every request 1.000"},
        table(("rule", "gain", "sd", f"{LONG} times", "sd", "tried",
               "cycle on connections; honest one's cost; M (us)"),
              [(f["rule"], f"{f['gain']:.3f}", f"{f['sd']:.3f}",
                f"{f['lasting']:.3f}", f"{f['lasting_sd']:.3f}", f["tried"],
                words(f["play"])) for f in found]))


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """See Figure."""
    rows = data["results"][::-1]
    figure.set_size_inches(8, 1 + 0.25 * len(rows))
    axes, y = figure.subplots(), np.arange(len(rows))
    axes.barh(y, [r["gain"] for r in rows], xerr=[r["sd"] for r in rows])
    axes.plot([r["lasting"] for r in rows], y, "k|",
              label=f"over {LONG} times as much service")
    axes.axvline(data["paper"]["claim"], color="black", ls=":")
    axes.set(xlabel="gain: part of the service over one half", xlim=(0.9, 2),
             yticks=y, yticklabels=[r["rule"] for r in rows])
    axes.legend()


FIGURE = Figure("gaming", "what a tenant gains that tries to cheat", run,
                plot)
