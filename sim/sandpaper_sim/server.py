# SPDX-License-Identifier: BSD-2-Clause
"""Models of what serves requests, on SimPy.

ThreadPool  2DFQ, section 6: W threads of a constant rate, not preemptive.
Proxy       Sandpaper, Figure 5 and section 6.3: C cores under egalitarian
            processor sharing by at most W workers, and then a link that
            sends one response at a time while its worker blocks; or a queue
            before the link, which frees the worker. On a miss the worker's
            slot is given back for as long as the fetch takes.

Time is ns, an integer. All that happens at one instant happens before a
worker asks for its next request, and workers ask in order of their slots."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy
from _sandpaper_glue import lib
from simpy.events import NORMAL, Event

from . import opening
from .releaser import CPU, NET, NEVER, NOT_YET, Releaser

LAST = NORMAL + 1               # after all else of this instant

US = 1000                       # ns
MS = 1_000_000                  # ns
SECOND = 1_000_000_000          # ns
DRAIN = lib.NIC_PERCENT         # of what the link can do
REFRESH = 10 * MS               # 2DFQ, section 5


class Environment(simpy.Environment):
    """SimPy's, with an integer for time, ns."""

    @property
    def now(self) -> int:
        """The time of the event that is looked at."""
        return self._now  # type: ignore[return-value]


class Timer(Event):
    """A SimPy event that is used again: making one a request costs time."""

    def __init__(self, env: Environment,
                 callback: Callable[[Timer], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self._again = [callback]
        self.slot = self.request = self.tenant = self.began = -1

    def start(self, delay: int, priority: int = NORMAL) -> None:
        """To go off in so many ns; it must not be under way."""
        self.callbacks = self._again  # type: ignore[assignment]
        self.env.schedule(self, priority, delay)  # type: ignore[arg-type]


def nothing() -> None:
    """What an open loop does when a request is done."""


class Server:
    """Workers, what waits for them, and who wants to know that it is done.

    A model says what happens from a request's release on, in `_begin`.
    refresh: ns between looks at what running requests have cost so far
    (2DFQ's refresh charging), 0: none."""

    def __init__(self, env: Environment, releaser: Releaser,
                 refresh: int = 0) -> None:
        self.env = env
        self.releaser = releaser
        self.done: list[Callable[[], None]] = []    # a tenant
        self._idle = list(range(releaser.slots))    # in order
        self.closed = 0             # REL_MASK()s of resources
        self._due = NEVER           # ns, the next look for what is shut
        self._woken = False
        self._waking = Timer(env, self._dispatch)
        self._refresh = refresh
        if refresh:
            self._ticking = Timer(env, self._tick)
            self._ticking.start(refresh)

    def tenant(self, weight: float = 1.0, reservation: float = 0.0,
               limit: float = 0.0) -> int:
        """A new one; its done() is called when one of its requests is."""
        self.done.append(nothing)
        tenant = self.releaser.tenant(weight)
        if reservation or limit:
            self.releaser.set_limits(tenant, reservation, limit, self.env.now)
        return tenant

    def at(self, time: int, what: Callable[[], None]) -> None:
        """Call it at this time, ns."""
        Timer(self.env, lambda _: what()).start(time - self.env.now)

    def run(self, until: int) -> None:
        """Up to this time, ns."""
        self.env.run(until)

    def submit(self, tenant: int, cpu: int, net: int = 0) -> None:
        """A request has arrived. cpu, net: what it will cost, ns."""
        self.releaser.enqueue(tenant, cpu, net, self.env.now)
        self._wake()

    def _wake(self) -> None:
        if self._idle and not self._woken:
            self._woken = True
            self._waking.start(0, LAST)

    def _dispatch(self, _: Timer | None = None) -> None:
        self._woken = False
        now, idle, rel = self.env.now, self._idle, self.releaser
        i = 0
        while i < len(idle) and self._free():
            request = rel.dequeue(idle[i], now, self.closed)
            if request >= 0:
                self._begin(idle.pop(i), request)
            elif request == NOT_YET:
                self._look_at(rel.answer.when)
                i += 1              # another slot may be eligible
            else:
                return

    def _look_at(self, when: int) -> None:
        if when < self._due:
            self._due = when
            self.at(when, lambda: self._look(when))

    def _look(self, when: int) -> None:
        if when == self._due:       # else it was brought forward
            self._due = NEVER
            self._wake()

    def _free(self) -> bool:
        return True

    def _begin(self, slot: int, request: int) -> None:
        raise NotImplementedError

    def _running(self) -> list[tuple[int, int]]:
        """Requests that run, and what each has cost so far, ns."""
        raise NotImplementedError

    def _tick(self, timer: Timer) -> None:
        now = self.env.now
        for request, cost in self._running():
            self.releaser.refresh(request, cost, now)
        self._wake()                # a turn may have ended by that
        timer.start(self._refresh)


class ThreadPool(Server):
    """A request of cost c occupies one of W threads for c ns."""

    def __init__(self, env: Environment, releaser: Releaser,
                 refresh: int = 0) -> None:
        super().__init__(env, releaser, refresh)
        self._threads = [Timer(env, self._end)
                         for _ in range(releaser.slots)]

    def _begin(self, slot: int, request: int) -> None:
        thread, answer = self._threads[slot], self.releaser.answer
        thread.slot = slot
        thread.request = request
        thread.tenant = answer.tenant
        thread.began = self.env.now
        thread.start(answer.cpu)

    def _end(self, thread: Timer) -> None:
        env = self.env
        self.releaser.complete(thread.request, env.now)
        thread.request = -1
        insort(self._idle, thread.slot)
        if self._woken:
            self.done[thread.tenant]()
            return
        self._woken = True          # so that done() wakes nobody yet
        self.done[thread.tenant]()
        if env.peek() > env.now:
            self._dispatch()
        else:
            self._waking.start(0, LAST)

    def _running(self) -> list[tuple[int, int]]:
        now = self.env.now
        return [(t.request, now - t.began)
                for t in self._threads if t.request >= 0]


class Job:
    """A request on its way through a proxy."""

    __slots__ = ("request", "tenant", "slot", "cpu", "net", "later", "fetch",
                 "came", "began", "ends", "link_began")

    def __init__(self, request: int, tenant: int, slot: int, cpu: int,
                 net: int) -> None:
        self.request = request
        self.tenant = tenant
        self.slot = slot            # -1: none, above W
        self.cpu = cpu              # ns on a core, this time
        self.net = net              # ns on the link
        self.later = 0              # ns on a core after the fetch
        self.fetch = 0              # ns
        self.came = -1              # ns, on the cores
        self.began = self.ends = -1     # V of the cores
        self.link_began = -1        # ns


# Of a tenant: begin and end in the resource's own measure, and in ns.
Spell = tuple[int, int, int, int, int]


class Cores:
    """C cores, shared equally, at most one core a job.

    V is what each job on them has got so far (the virtual time of processor
    sharing), in ns over 1024: it grows by min(1, C/n) with n jobs. A job that
    came at V is done at V + its need. `used` is CPU time so far, ns, with that
    of other work: see pace() and bench/results/2026-11-29-replay.md. With keep
    `clock` has (ns, V) of every change, and `spells` (tenant, V, V, ns, ns) of
    every job that is done."""

    FINE = 1024
    FULL = 1 << 16              # speed of cores without other work

    def __init__(self, env: Environment, cores: int,
                 done: Callable[[Job], None], keep: bool = True) -> None:
        self.env = env
        self.cores = cores
        self.v = self.used = 0
        self.speed = self.FULL
        self.clock: list[tuple[int, int]] = [(0, 0)]
        self.spells: list[Spell] = []
        self.jobs: list[tuple[int, int, Job]] = []     # by V of their end
        self._done, self._keep = done, keep
        self._since = 0
        self._arrivals = 0
        self._next: Timer | None = None

    def advance(self) -> int:
        """V at this instant."""
        now = self.env.now
        past, n = now - self._since, len(self.jobs)
        if past and n:
            self.v += past * self.FINE * min(self.cores, n) * self.speed // (
                n * self.FULL)
            self.used += past * min(self.cores, n)
        self._since = now
        if self._keep and self.clock[-1] != (now, self.v):
            self.clock.append((now, self.v))
        return self.v

    def pace(self, part: float) -> None:
        """From now on other work leaves this part of the cores."""
        self.advance()
        self.speed = max(1, round(part * self.FULL))
        self._plan()

    def add(self, job: Job) -> None:
        """The job needs job.cpu ns of a core."""
        job.came, job.began = self.env.now, self.advance()
        job.ends = job.began + job.cpu * self.FINE
        self._arrivals += 1
        heappush(self.jobs, (job.ends, self._arrivals, job))
        self._plan()

    def _plan(self) -> None:
        """When will the next one be done?"""
        if not self.jobs:
            self._next = None
            return
        n = len(self.jobs)
        share = self.FINE * min(self.cores, n) * self.speed
        delay = -(-(self.jobs[0][0] - self.v) * n * self.FULL // share)
        self._next = Timer(self.env, self._look)
        self._next.start(max(delay, 0))

    def _look(self, timer: Timer) -> None:
        if timer is not self._next:
            return
        v, ended = self.advance(), []
        while self.jobs and self.jobs[0][0] <= v:
            job = heappop(self.jobs)[2]
            if self._keep:
                self.spells.append((job.tenant, job.began, job.ends, job.came,
                                    self.env.now))
            ended.append(job)
        self._plan()
        for job in ended:
            self._done(job)


class Link:
    """Sends one response at a time, in order; `spells` as of Cores, in ns."""

    def __init__(self, env: Environment, begun: Callable[[Job], None],
                 done: Callable[[Job], None], keep: bool) -> None:
        self.env = env
        self.queue: deque[Job] = deque()
        self.job: Job | None = None
        self.spells: list[Spell] = []
        self._begun, self._done, self._keep = begun, done, keep
        self._timer = Timer(env, self._sent)

    def add(self, job: Job) -> None:
        """The job needs the link for job.net ns."""
        self.queue.append(job)
        if self.job is None:
            self._send()

    def _send(self) -> None:
        self.job = job = self.queue.popleft()
        job.link_began = self.env.now
        self._timer.start(job.net)
        self._begun(job)

    def _sent(self, _: Timer) -> None:
        job, self.job = self.job, None
        assert job is not None
        if self._keep:
            spell = job.link_began, self.env.now
            self.spells.append((job.tenant, *spell, *spell))
        if self.queue:
            self._send()
        self._done(job)


class Proxy(Server):
    """C cores, W workers, a link.

    A request's `cpu` is its processing time, so it needs cpu x C of a core;
    `net` is its time on the link. queue: a response waits for the link
    without its worker; with `hold`, nothing that needs the link most is
    released while the link has more than so many ns to do with what has been
    released, as in varnishd (design, section 6). fetch(tenant): ns for which
    the request, half way through its CPU time, waits for an origin; 0: it is
    a hit. closing: slots close while the cores are busy. keep: spells are
    recorded, which takes memory for each request."""

    def __init__(self, env: Environment, releaser: Releaser, cores: int,
                 *, queue: bool = False, hold: int = 0, refresh: int = 0,
                 fetch: Callable[[int], int] | None = None,
                 closing: bool = False, keep: bool = True) -> None:
        super().__init__(env, releaser, refresh)
        self.cores = Cores(env, cores, self._computed, keep)
        self.link = Link(env, self._sending, self._finished, keep)
        self._open = releaser.slots
        self._keep = keep
        if closing:
            self._opening = opening.Opening(releaser.slots, cores)
            self._keeper = Timer(env, self._keeps)
            self._keeper.start(opening.EVERY)
        self.fetching = 0                   # requests
        self.fetches: list[tuple[int, int]] = [(0, 0)]  # (ns, fetching)
        self._queue = queue
        self._hold = hold
        self._backlog = self._counted = 0   # ns on the link, and when
        self._fetch = fetch
        self._jobs: dict[int, Job] = {}
        self._above = 0                     # workers that have no slot

    def _free(self) -> bool:
        if self._hold:
            self._count(0)
        return not self._above and self._running_now() < self._open

    def _running_now(self) -> int:
        """Slots that are taken."""
        return self.releaser.slots - len(self._idle) + self._above

    def _keeps(self, timer: Timer) -> None:
        """Slots open or close."""
        self.cores.advance()
        more = self._opening.look(self._running_now(), self.cores.used,
                                  self.env.now)
        self._open = self._opening.open
        if more:
            self._wake()
        timer.start(opening.EVERY)

    def _begin(self, slot: int, request: int) -> None:
        a, c = self.releaser.answer, self.cores.cores
        job = Job(request, a.tenant, slot, a.cpu * c, a.net)
        self._jobs[request] = job
        if self._hold:
            self._count(job.net)
        if self._fetch is not None:
            job.fetch = self._fetch(job.tenant)
        if job.fetch:
            job.later = job.cpu // 2
            job.cpu -= job.later
        self.cores.add(job)

    def _count(self, net: int) -> None:
        """So many ns of link are released."""
        now = self.env.now
        sent = (now - self._counted) * DRAIN // 100
        self._backlog = max(0, self._backlog - sent) + net
        self._counted = now
        over = self._backlog - self._hold
        self.closed = (over > 0) << NET
        if over > 0:
            self._look_at(now + over * 100 // DRAIN + 1)

    def _computed(self, job: Job) -> None:
        if job.fetch:
            self._give_back(job)
            self._away(1)
            delay, job.fetch = job.fetch, 0
            self.at(self.env.now + delay, lambda: self._fetched(job))
        elif job.net:
            if self._queue:
                self._give_back(job)
            self.link.add(job)
        else:
            self._finished(job)

    def _away(self, n: int) -> None:
        self.fetching += n
        if self._keep:
            self.fetches.append((self.env.now, self.fetching))

    def _fetched(self, job: Job) -> None:
        """Its slot is retaken at once, above W if there is none."""
        self._away(-1)
        if self._idle:
            job.slot = self._idle.pop()
        else:
            self._above += 1
        job.cpu = job.later
        self.cores.add(job)

    def _give_back(self, job: Job) -> None:
        slot, job.slot = job.slot, -1
        if slot < 0:
            self._above -= 1
        else:
            insort(self._idle, slot)
        self._wake()

    def _sending(self, job: Job) -> None:
        self.releaser.progress(job.request, NET, self.env.now)
        self._wake()

    def _finished(self, job: Job) -> None:
        request, tenant = job.request, job.tenant
        self.releaser.complete(request, self.env.now)
        del self._jobs[request]
        if not (self._queue and job.net):
            self._give_back(job)
        self.done[tenant]()
        self._wake()

    def _running(self) -> list[tuple[int, int]]:
        """By what it has got of the CPU: varnishd looks at nothing else."""
        v, c = self.cores.advance(), self.cores.cores
        return [(request, (min(v, job.ends) - job.began) // Cores.FINE // c)
                for request, job in self._jobs.items()]

    def spells(self, resource: int) -> list[Spell]:
        """Of all jobs on a resource; what has not ended yet ends never."""
        if resource == CPU:
            return self.cores.spells + [
                (j.tenant, j.began, NEVER, j.came, NEVER)
                for _, _, j in self.cores.jobs]
        job = self.link.job
        return self.link.spells + (
            [(job.tenant, job.link_began, NEVER, job.link_began, NEVER)]
            if job else [])


def pool(policy: str, threads: int, *, refresh: int = 0,
         **options: Any) -> ThreadPool:  # noqa: ANN401
    """A thread pool with a releaser of its own, at time 0."""
    return ThreadPool(Environment(0),
                      Releaser(policy, threads, **options), refresh)


def proxy(policy: str, workers: int, cores: int, *, queue: bool = False,
          hold: int = 0, refresh: int = 0,
          fetch: Callable[[int], int] | None = None, closing: bool = False,
          **options: Any) -> Proxy:  # noqa: ANN401
    """A proxy with a releaser of its own, at time 0."""
    return Proxy(Environment(0), Releaser(policy, workers, **options), cores,
                 queue=queue, hold=hold, refresh=refresh, fetch=fetch,
                 closing=closing)
