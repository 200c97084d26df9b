# SPDX-License-Identifier: BSD-2-Clause
"""What queueing theory says, for the tests and as the reference.

Generalised processor sharing is exact, from event to event."""

from __future__ import annotations

from heapq import heappop, heappush
from math import factorial

import numpy as np

from .metrics import Floats, Ints, received


def erlang_c(servers: int, load: float) -> float:
    """P(an arrival waits) in M/M/c; load = lambda / mu < servers."""
    if not 0 < load < servers:
        raise ValueError(f"load {load} is not allowed: use above 0, below "
                         f"{servers}")
    top = load**servers / factorial(servers) * servers / (servers - load)
    return top / (sum(load**k / factorial(k) for k in range(servers)) + top)


def mmc_wait(rate: float, mean: float, servers: int) -> float:
    """Mean wait in the queue of M/M/c, in the unit of `mean`."""
    load = rate * mean
    return erlang_c(servers, load) * mean / (servers - load)


def sharing_response(rate: float, mean: float, cores: int = 1) -> float:
    """Mean response of M/G/c under processor sharing, in the unit of `mean`.

    Of the distribution only the mean counts: that of M/M/c's, whose number
    of jobs moves in the same way."""
    return mean + mmc_wait(rate, mean, cores)


class Gps:
    """Generalised processor sharing of a capacity of `rate`, a fluid.

    rate: ns of work a ns (2DFQ's reference has N r). Virtual time v grows by
    rate over the weight of those who have work, and a tenant of weight w gets
    w for each of it. always: tenants that have work all the time."""

    def __init__(self, rate: float, weights: list[float],
                 always: set[int] | None = None) -> None:
        self.rate = rate
        self.weights = weights
        self.always = always or set()

    def served(self, arrivals: Ints, tenants: Ints, work: Ints,
               at: Ints) -> Floats:
        """Service up to each time, ns: an array (times, tenants).

        arrivals, in order, and work: ns, of one tenant each."""
        clock, busy = self._run(arrivals, tenants, work, int(at[-1]))
        times, v = np.array(clock, np.float64).T
        v_at = np.interp(at, times, v)
        out = np.empty((len(at), len(self.weights)))
        for i, w in enumerate(self.weights):
            if i in self.always:
                out[:, i] = w * v_at
                continue
            periods = np.array(busy[i], np.float64).reshape(-1, 2)
            out[:, i] = w * received(periods[:, 0], periods[:, 1], v_at)
        return out

    def _run(self, arrivals: Ints, tenants: Ints, work: Ints, end: int,
             ) -> tuple[list[tuple[float, float]],
                        list[list[tuple[float, float]]]]:
        """Corners (time, v), and the tenants' busy periods in v."""
        n = len(self.weights)
        self._t = self._v = 0.0
        self._active = sum(self.weights[i] for i in self.always)
        self._finish = [-1.0] * n       # v at which it has no more work
        self._since = [-1.0] * n        # v, of its busy period; -1: none
        self._order: list[tuple[float, int]] = []
        self._clock = [(0.0, 0.0)]
        self._busy: list[list[tuple[float, float]]] = [[] for _ in range(n)]
        for t, i, c in zip(arrivals.tolist(), tenants.tolist(),
                           work.tolist(), strict=True):
            if i in self.always or t > end:
                continue
            self._advance(t)
            self._add(i, c)
        self._advance(end)
        for i, since in enumerate(self._since):
            if since >= 0:
                self._busy[i].append((since, self._finish[i]))
        return self._clock, self._busy

    def _add(self, i: int, work: float) -> None:
        w = self.weights[i]
        if self._since[i] < 0:
            self._since[i] = self._finish[i] = self._v
            self._active += w
        self._finish[i] += work / w
        heappush(self._order, (self._finish[i], i))

    def _advance(self, to: float) -> None:
        while self._order:
            finish, i = self._order[0]
            if finish < self._finish[i]:    # more has come since
                heappop(self._order)
                continue
            need = (finish - self._v) * self._active / self.rate
            if self._t + need > to:
                break
            heappop(self._order)
            self._go(self._t + need, finish)
            self._busy[i].append((self._since[i], finish))
            self._since[i] = -1.0
            self._active -= self.weights[i]
            if not self._order and not self.always:
                self._active = 0.0          # no rest of the arithmetic
        if to > self._t:
            grown = (to - self._t) * self.rate / self._active \
                if self._active > 0 else 0.0
            self._go(to, self._v + grown)

    def _go(self, t: float, v: float) -> None:
        self._t, self._v = t, v
        self._clock.append((t, v))


def reno_fill(buffer: float) -> float:
    """The part of a link that one Reno flow uses, in the mean.

    buffer: bandwidth-delay products that may wait, 0 to 1. The window grows by
    a packet a round trip from m/2 to m = 1 + buffer products. Below 1 the link
    is not full. Above 1 a round trip takes the window's time."""
    if not 0 <= buffer <= 1:
        raise ValueError(f"buffer {buffer} is not allowed: use 0 to 1")
    m = 1 + buffer
    return 0.75 * m * m / (1 + m * m - m)


RENO_RANDOM = 1.3098            # Ott, Kemperman and Mathis, 1996


def reno_window(loss: float) -> float:
    """Packets a round trip of one Reno flow, if each packet is lost at random.

    Between losses w^2 grows by 2 a packet, then w is halved. The constant is
    that of exponential distances; with equal ones it is sqrt(3/2)."""
    if not 0 < loss < 1:
        raise ValueError(f"loss {loss} is not allowed: use above 0, below 1")
    return RENO_RANDOM / loss ** 0.5
