# SPDX-License-Identifier: BSD-2-Clause
"""Misses of tenants whose origins can be slow, and who may fetch.

A Cache is a proxy. Each of its requests is a miss: half way through its CPU
time it asks the tenant's Fetches if it may fetch, and then waits for the
tenant's Origin. A refused miss fails at once. A fetch in the background has no
request: its client has an answer already.

Controlled is src/overload/fetches.c, the same object code as in varnishd.
Fixed is a limit that never changes. A fetch's time is from its begin to its
answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from _sandpaper_glue import ffi, lib

from .overload import Rate
from .releaser import Releaser
from .server import SECOND, Environment, Job, Proxy, Timer
from .workload import Exponential, stream

MISS, BACKGROUND, POLL = range(3)       # kinds
ANSWERED, FAILED, REFUSED = range(3)
FETCH = np.dtype([("begin", "i8"), ("end", "i8"), ("tenant", "i4"),
                  ("kind", "i4"), ("outcome", "i4")])
Then = Callable[[bool], None]           # called with: it is an answer


class Fetches(Protocol):
    """May one more fetch of a tenant begin?"""

    def begins(self, now: int, *, background: bool) -> bool:
        """Count it if it may."""

    def ended(self, now: int, took: int, *, failed: bool) -> None:
        """One that was counted has an answer, or has failed."""


class Controlled:
    """The controller. target: ns."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.state = ffi.new("struct ovl_fetches *")

    def begins(self, now: int, *, background: bool) -> bool:
        """See Fetches."""
        return bool(lib.OVL_FetchBegins(
            self.state, self._target, background, now))

    def ended(self, now: int, took: int, *, failed: bool) -> None:
        """See Fetches."""
        end = lib.OVL_FetchFailed if failed else lib.OVL_FetchAnswered
        end(self.state, self._target, took, now)


class Fixed:
    """At most so many; one in the background may begin below half of it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting = 0

    def begins(self, now: int, *, background: bool) -> bool:
        """See Fetches."""
        if self._waiting << background >= self._limit:
            return False
        self._waiting += 1
        return True

    def ended(self, now: int, took: int, *, failed: bool) -> None:
        """See Fetches."""
        self._waiting -= 1


class Origin:
    """Serves `servers` fetches at a time, the others in order of arrival.

    service: ns that each takes. slower(now): so many times that, if it begins
    to be served now. fails(now): 0, or the origin is dead, and a fetch that
    comes now fails after so many ns."""

    def __init__(self, env: Environment, servers: int,
                 service: Callable[[], int], *,
                 slower: Callable[[int], float] = lambda _: 1,
                 fails: Callable[[int], int] = lambda _: 0) -> None:
        self._env, self._servers = env, servers
        self._service, self._slower, self._fails = service, slower, fails
        self._queue: deque[Then] = deque()
        self._served: dict[Timer, Then] = {}

    def ask(self, then: Then) -> None:
        """Fetch; then(True) is called with the answer, or then(False)."""
        if fails := self._fails(self._env.now):
            Timer(self._env, lambda _: then(False)).start(fails)
        elif len(self._served) < self._servers:
            self._serve(then)
        else:
            self._queue.append(then)

    def _serve(self, then: Then) -> None:
        timer = Timer(self._env, self._done)
        self._served[timer] = then
        timer.start(round(self._service() * self._slower(self._env.now)))

    def _done(self, timer: Timer) -> None:
        then = self._served.pop(timer, None)
        if then is None:
            return                      # it died meanwhile
        if self._queue:
            self._serve(self._queue.popleft())
        then(True)

    def die(self) -> None:
        """The origin is dead from now on: what is there fails like the rest."""
        there = [*self._served.values(), *self._queue]
        self._served.clear()
        self._queue.clear()
        for then in there:
            self.ask(then)


class Cache(Proxy):
    """A proxy whose requests are all misses."""

    def __init__(self, env: Environment, releaser: Releaser,
                 cores: int) -> None:
        super().__init__(env, releaser, cores, fetch=lambda _: 1)
        self._sites: list[tuple[Fetches, Origin]] = []
        self._rows: list[tuple[int, int, int, int, int]] = []
        self.most = 0                   # fetches at a time

    def site(self, fetches: Fetches, origin: Origin) -> int:
        """A new tenant."""
        self._sites.append((fetches, origin))
        return self.tenant()

    def fetch(self, tenant: int, kind: int, origin: Origin | None = None,
              job: Job | None = None) -> bool:
        """Fetch from the tenant's origin, or another one, if it may.

        job: the request that waits for it, if there is one."""
        fetches, usual = self._sites[tenant]
        begin = self.env.now

        def ended(answer: bool) -> None:
            now = self.env.now
            fetches.ended(now, now - begin, failed=not answer)
            self._rows.append((begin, now, tenant, kind,
                               ANSWERED if answer else FAILED))
            if job is None:
                self._away(-1)
            else:
                self._fetched(job)

        if not fetches.begins(begin, background=kind == BACKGROUND):
            self._rows.append((begin, begin, tenant, kind, REFUSED))
            return False
        self._away(1)
        self.most = max(self.most, self.fetching)
        (origin or usual).ask(ended)
        return True

    def _computed(self, job: Job) -> None:
        if not job.fetch:
            super()._computed(job)
            return
        job.fetch = 0
        if self.fetch(job.tenant, MISS, job=job):
            self._give_back(job)
        else:
            self._finished(job)

    def rows(self) -> Any:  # noqa: ANN401
        """Of all fetches that have ended or were refused, in this order."""
        return np.array(self._rows, FETCH)


def arrivals(env: Environment, rate: Rate, most: float,
             rng: np.random.Generator, ask: Callable[[], object]) -> None:
    """An open loop whose rate changes, at most `most` requests/s."""
    if not most:
        return
    gaps = stream(Exponential(SECOND / most), rng)

    def arrive(timer: Timer) -> None:
        # Thinning: a Poisson process of the largest rate loses some
        if rng.random() * most < rate(env.now):
            ask()
        timer.start(next(gaps))

    Timer(env, arrive).start(next(gaps))
