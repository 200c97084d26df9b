# SPDX-License-Identifier: BSD-2-Clause
"""Two tiers: children forward the requests of tenants to parents.

A parent is a proxy with the releaser and the controller `time` of varnishd. It
refuses with 429, which costs CPU time on its cores, too. Its answers and its
refusals have a price. A child has a window for each tenant and parent (see
windows.py). A request that no window has room for is answered at once: stale
if it can be, else with 429. So is one that the parent refused. The child's own
CPU is never full: it is counted.

The price of an answer is one of these:

cost    src/price: the congestion of all tenants' queues, times c/c_min
square  the congestion times (c/c_min)^2, as in RED_4
own     the congestion of the tenant's own queue: how long its last request
        waited, by the formula of src/price

Clients are an open loop. Times are ns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .overload import LEAST, STANDING, Front, Gate
from .price import Price, TenantPrices
from .releaser import Releaser
from .server import MS, SECOND, US, Environment, Timer
from .windows import FORGET, Rule, Window, price_of
from .workload import generator

CORES, WORKERS = 2, 20          # of a parent
TARGET = SECOND // 2            # of the controller `time`
REFUSAL = 40 * US               # ns of one core, at a parent and at a child
FORWARD = 2.5                   # refusals: what forwarding costs a child
TIMEOUT = SECOND                # until a child gives up
KINDS = ("cost", "square", "own")
SERVED, STALE, HERE, THERE, LOST = range(5)     # HERE: the child refused
ANSWER = np.dtype([("arrival", "i8"), ("end", "i8"), ("tenant", "i4"),
                   ("what", "i4"), ("cpu", "i8"), ("parent", "i4"),
                   ("stale", "?")])
Header = list[str] | float | None   # as said by a parent; a number is in order
Says = Callable[[float, int], list[str]]    # of a price, at a time


class Ask:
    """A request that is forwarded."""

    __slots__ = ("arrival", "child", "tenant", "parent", "cpu", "stale",
                 "over")

    def __init__(self, arrival: int, child: Child, tenant: int, parent: int,
                 cpu: int, stale: bool) -> None:
        self.arrival, self.child, self.tenant = arrival, child, tenant
        self.parent, self.cpu, self.stale = parent, cpu, stale
        self.over = False           # the child no longer waits


class Wire:
    """Delivers in order, after a constant delay."""

    def __init__(self, env: Environment, delay: int,
                 deliver: Callable[..., None]) -> None:
        self._env, self._delay, self._deliver = env, delay, deliver
        self._on: deque[tuple[int, tuple[Any, ...]]] = deque()
        self._timer = Timer(env, self._arrive)

    def send(self, *what: object) -> None:
        """To be delivered later."""
        self._on.append((self._env.now + self._delay, what))
        if len(self._on) == 1:
            self._timer.start(self._delay)

    def _arrive(self, timer: Timer) -> None:
        now = self._env.now
        while self._on[0][0] <= now:
            self._deliver(*self._on[0][1])
            self._on.popleft()
            if not self._on:
                return
        timer.start(self._on[0][0] - now)


@dataclass(frozen=True)
class Parent:
    """speed: of its CPU, 1 is the usual. price: one of KINDS, "" for none.

    gone: it answers nothing from .. to, ns. says: its headers, if it lies."""

    speed: float = 1.0
    price: str = "cost"
    gone: tuple[int, int] = (0, 0)
    says: Says | None = None

    def __post_init__(self) -> None:
        if self.price not in ("", *KINDS):
            raise ValueError(f"price '{self.price}' is not known: use one of "
                             f"{', '.join(KINDS)}")


class Server(Front):
    """A parent with prices."""

    def __init__(self, env: Environment, what: Parent, tenants: int,
                 refusal: int) -> None:
        super().__init__(env, Releaser("mr3-rs", WORKERS, keep=False), CORES,
                         refusal=round(refusal / what.speed))
        self.what = what
        self.prices = TenantPrices(self.releaser, STANDING)
        self._own = [Price(STANDING) for _ in range(tenants)]
        self._waiting: list[deque[Ask]] = [deque() for _ in range(tenants)]
        self._runs: dict[int, Ask] = {}
        for _ in range(tenants):
            self.gated(Gate("time", TARGET, STANDING, LEAST))

    def take(self, ask: Ask) -> None:
        """A request has arrived."""
        if self._gone():
            return
        before = len(self._outcomes)
        self.submit(ask.tenant, round(ask.cpu / self.what.speed))
        if len(self._outcomes) > before:
            ask.child.answer(ask, THERE, self.price(ask.tenant))
            return
        self._waiting[ask.tenant].append(ask)
        self._changed(ask.tenant)

    def price(self, tenant: int) -> Header:
        """Of an answer to this tenant."""
        now, kind = self.env.now, self.what.price
        if not kind:
            return None
        if kind == "own":
            price = self._own[tenant].congestion(now)
        else:
            price = self.prices.of(tenant, now)
            if kind == "square" and price:
                price *= price / self.prices.congestion(now)
        return self.what.says(price, now) if self.what.says else price

    def _changed(self, tenant: int) -> None:
        if self.what.price in {"cost", "square"}:
            self.prices.changed(tenant, self.env.now)

    def _gone(self) -> bool:
        return self.what.gone[0] <= self.env.now < self.what.gone[1]

    def _begin(self, slot: int, request: int) -> None:
        tenant, now = self.releaser.answer.tenant, self.env.now
        super()._begin(slot, request)
        self._runs[request] = self._waiting[tenant].popleft()
        self._changed(tenant)
        if self.what.price == "own":
            self._own[tenant].set(0, now - self._came[request], 0, now)

    def _finished(self, job: Any) -> None:  # noqa: ANN401
        ask = self._runs.pop(job.request)
        super()._finished(job)
        self._outcomes.clear()          # the child's count
        if not self._gone():
            ask.child.answer(ask, SERVED, self.price(ask.tenant))


class Child:
    """Forwards requests, or answers itself."""

    def __init__(self, env: Environment, servers: Sequence[Server],
                 tenants: int, rule: Rule, rtt: int) -> None:
        self.env = env
        self.answers: list[tuple[int, int, int, int, int, int, bool]] = []
        self.windows = [[Window(rule) for _ in servers]
                        for _ in range(tenants)]
        self._to = [Wire(env, rtt // 2, s.take) for s in servers]
        self._from = [Wire(env, rtt - rtt // 2, self._arrived)
                      for _ in servers]
        self._out: deque[tuple[int, Ask]] = deque()     # by time
        self._turn = 0
        self._bad: dict[int, int] = {}  # the last bad header of a parent
        self.log: list[tuple[int, int]] = []    # bad headers: time, parent
        Timer(env, self._give_up).start(TIMEOUT)

    def ask(self, tenant: int, cpu: int, stale: bool) -> None:
        """A client's request. stale: there is an old answer to it."""
        now, parent = self.env.now, self._choose(tenant)
        if parent is None:
            self._end(now, tenant, STALE if stale else HERE, cpu, -1, stale)
            return
        ask = Ask(now, self, tenant, parent, cpu, stale)
        self.windows[tenant][parent].sent(now)
        self._out.append((now, ask))
        self._to[parent].send(ask)

    def answer(self, ask: Ask, what: int, price: Header) -> None:
        """A parent answers."""
        self._from[ask.parent].send(ask, what, price)

    def _choose(self, tenant: int) -> int | None:
        """The cheaper parent, of those with room; then the emptier one."""
        now, windows = self.env.now, self.windows[tenant]
        can = [n for n, w in enumerate(windows) if w.may(now)]
        if len(can) < 2:
            return can[0] if can else None
        if not windows[0].rule.limits:
            self._turn += 1
            return can[self._turn % len(can)]
        return min(can, key=lambda n: (windows[n].price(now),
                                       windows[n].fill()))

    def _arrived(self, ask: Ask, what: int, header: Header) -> None:
        if ask.over:
            return
        ask.over = True
        now, window = self.env.now, self.windows[ask.tenant][ask.parent]
        price = self._read(ask.parent, header) \
            if isinstance(header, list) else header
        if what == SERVED:
            window.answered(now, ask.arrival, price)
        else:
            window.refused(now, ask.arrival, price)
            what = STALE if ask.stale else THERE
        self._end(ask.arrival, ask.tenant, what, ask.cpu, ask.parent,
                  ask.stale)

    def _read(self, parent: int, values: list[str]) -> float | None:
        """Of a header. A bad one is logged once, until FORGET without any."""
        price, now = price_of(values), self.env.now
        if price is None:
            if now - self._bad.get(parent, -FORGET) >= FORGET:
                self.log.append((now, parent))
            self._bad[parent] = now
        return price

    def _end(self, arrival: int, tenant: int, what: int, cpu: int,
             parent: int, stale: bool) -> None:
        self.answers.append((arrival, self.env.now, tenant, what, cpu, parent,
                             stale))

    def _give_up(self, timer: Timer) -> None:
        now, out = self.env.now, self._out
        while out and out[0][0] <= now - TIMEOUT:
            ask = out.popleft()[1]
            if not ask.over:
                ask.over = True
                self.windows[ask.tenant][ask.parent].lost(now, ask.arrival)
                self._end(ask.arrival, ask.tenant, LOST, ask.cpu, ask.parent,
                          ask.stale)
        timer.start(10 * MS)


@dataclass(frozen=True)
class Tenant:
    """cost: mean ns of a parent's CPU; load(s): over the parent's capacity.

    most: of load. stale: part of its requests that have an old answer."""

    cost: int
    load: Callable[[float], float]
    most: float
    stale: float = 0.0


def arrivals(tenant: Tenant, until: int, rng: np.random.Generator,
             ) -> list[tuple[int, int, bool]]:
    """(time, cost, stale) of each request: Poisson, exponential costs."""
    n = rng.poisson(tenant.most * until / tenant.cost)
    at = np.sort(rng.integers(until, size=n))
    keep = [rng_ * tenant.most < tenant.load(t / SECOND) for rng_, t in zip(
        rng.random(n).tolist(), at.tolist(), strict=True)]
    cpu = np.maximum(1, np.rint(rng.exponential(tenant.cost, n))).astype("i8")
    stale = rng.random(n) < tenant.stale
    return [row for row, k in zip(zip(at.tolist(), cpu.tolist(),
                                      stale.tolist(), strict=True),
                                  keep, strict=True) if k]


@dataclass(frozen=True)
class Tiers:
    """rtt: between the tiers, ns. refusal: ns of one core."""

    tenants: Sequence[Tenant]
    parents: Sequence[Parent]
    children: int
    rtt: int
    refusal: int = REFUSAL

    def requests(self, until: int, seed: int,
                 ) -> Iterator[tuple[int, int, int, int, bool]]:
        """(time, tenant, child, cost, stale) of each request, in order."""
        rows = sorted((at, n, cpu, stale) for n, t in enumerate(self.tenants)
                      for at, cpu, stale in arrivals(
                          t, until, generator(seed, "tiers", n)))
        which = generator(seed, "tiers", "children").integers(
            self.children, size=len(rows)).tolist()
        for child, (at, tenant, cpu, stale) in zip(which, rows, strict=True):
            yield at, tenant, child, cpu, stale


def simulate(tiers: Tiers, rule: Rule, until: int,
             seed: int) -> Any:  # noqa: ANN401
    """Return an array of ANSWER: what became of the clients' requests."""
    env = Environment(0)
    servers = [Server(env, p, len(tiers.tenants), tiers.refusal)
               for p in tiers.parents]
    children = [Child(env, servers, len(tiers.tenants), rule, tiers.rtt)
                for _ in range(tiers.children)]
    requests = tiers.requests(until, seed)
    following = next(requests, None)

    def arrive(timer: Timer) -> None:
        nonlocal following
        while following and following[0] <= env.now:
            _, tenant, child, cpu, stale = following
            children[child].ask(tenant, cpu, stale)
            following = next(requests, None)
        if following:
            timer.start(following[0] - env.now)

    if following:
        Timer(env, arrive).start(following[0])
    env.run(until)
    return np.array(sorted(a for c in children for a in c.answers), ANSWER)
