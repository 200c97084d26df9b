# SPDX-License-Identifier: BSD-2-Clause
"""Overload control, and clients that send more than can be served.

The controllers are those of src/overload, the same object code as in
varnishd. A Front is a proxy that asks one before a request waits. A refusal
costs CPU time, too: it is computed at once, in competition with the workers.
Clients give up only when they are refused: a late answer is waited for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _sandpaper_glue import ffi, lib

from .releaser import Releaser
from .server import MS, SECOND, Environment, Job, Proxy, Timer
from .workload import Exponential, stream

QUEUE_LIMIT = 1000              # requests, the default of sandpaper_queue_limit
LEAST = 4                       # requests that can always wait
STANDING = 20 * MS

OUTCOME = np.dtype([("arrival", "i8"), ("end", "i8"), ("tenant", "i4"),
                    ("served", "?")])
Rate = Callable[[int], float]   # requests/s at a time, ns


def controllers() -> list[str]:
    """The names of all."""
    return [ffi.string(lib.OVL_Name(n)).decode()
            for n in range(lib.OVL_Controllers())]


class Gate:
    """A tenant's controller.

    newest: while its oldest request has waited for longer than the target,
    the newest one goes first."""

    def __init__(self, name: str, target: int, standing: int,
                 least: int, *, newest: bool = False) -> None:
        if name not in controllers():
            raise ValueError(f"controller '{name}' is not known: use one of "
                             f"{', '.join(controllers())}")
        self._number = lib.OVL_ByName(name.encode())
        self._state = ffi.new("struct ovl *")
        self._queue = ffi.new("struct ovl_queue *")
        self._queue.target, self._queue.standing = target, standing
        self._queue.least = least
        self._newest = newest
        self._came: deque[int] = deque()    # of the requests that wait, ns

    def admit(self, now: int) -> bool:
        """May one more request wait?"""
        waiting = len(self._came)
        self._queue.now, self._queue.waiting = now, waiting
        if waiting >= QUEUE_LIMIT or not lib.OVL_Admit(
                self._number, self._state, self._queue):
            return False
        self._came.append(now)
        return True

    def released(self, now: int) -> int:
        """A request is released.  Return when it came, ns.

        The releaser has chosen the oldest one.  If the newest one goes first,
        they change places; what they cost does not, which is random."""
        late = now - self._came[0] > self._queue.target
        came = self._came.pop() if self._newest and late else \
            self._came.popleft()
        self._queue.now, self._queue.waiting = now, len(self._came)
        lib.OVL_Released(self._number, self._state, self._queue, now - came)
        return came


class Front(Proxy):
    """A proxy whose tenants have a gate.

    refusal: ns of one core that a refusal takes. `outcomes` has every request
    that was served or refused."""

    def __init__(self, env: Environment, releaser: Releaser, cores: int, *,
                 refusal: int, fetch: Callable[[int], int] | None = None,
                 ) -> None:
        super().__init__(env, releaser, cores, fetch=fetch)
        self._refusal = refusal
        self._gates: list[Gate] = []
        self._came: dict[int, int] = {}     # of requests that run, ns
        self.refused: list[Callable[[], None]] = []     # a tenant
        self._outcomes: list[tuple[int, int, int, bool]] = []

    def gated(self, gate: Gate, weight: float = 1.0) -> int:
        """A new tenant."""
        self._gates.append(gate)
        self.refused.append(lambda: None)
        return self.tenant(weight)

    def submit(self, tenant: int, cpu: int, net: int = 0) -> None:
        """A request has arrived."""
        now = self.env.now
        if self._gates[tenant].admit(now):
            self.releaser.enqueue(tenant, cpu, net, now)
            self._wake()
            return
        self._outcomes.append((now, now, tenant, False))
        self.cores.add(Job(-1, tenant, -1, self._refusal, 0))
        # The tenant pays for it, else its neighbours would
        self.releaser.charge(tenant, self._refusal // self.cores.cores, now)
        self.refused[tenant]()

    def _begin(self, slot: int, request: int) -> None:
        gate = self._gates[self.releaser.answer.tenant]
        self._came[request] = gate.released(self.env.now)
        super()._begin(slot, request)

    def _computed(self, job: Job) -> None:
        if job.request >= 0:
            super()._computed(job)

    def _finished(self, job: Job) -> None:
        self._outcomes.append((
            self._came.pop(job.request), self.env.now, job.tenant, True))
        super()._finished(job)

    def outcomes(self) -> Any:  # noqa: ANN401
        """Of all requests, in order of their end."""
        return np.array(self._outcomes, OUTCOME)


class Clients:
    """An open loop whose rate changes.

    retry: ns until a refused client asks again, or None. A client gives up
    after `tries` requests."""

    def __init__(self, front: Front, tenant: int, rate: Rate, most: float,
                 cpu: Callable[[int], int], rng: np.random.Generator,
                 retry: Callable[[], int] | None = None, tries: int = 1,
                 ) -> None:
        self._front, self._tenant, self._rate = front, tenant, rate
        self._most, self._cpu, self._rng = most, cpu, rng
        self._retry, self._tries, self._left = retry, tries, tries
        self._gaps: Iterator[int] = stream(Exponential(SECOND / most), rng)
        if retry:
            front.refused[tenant] = self._refused
        Timer(front.env, self._arrive).start(next(self._gaps))

    def _arrive(self, timer: Timer) -> None:
        # Thinning: a Poisson process of the largest rate loses some
        if self._rng.random() * self._most < self._rate(self._front.env.now):
            self._ask(self._tries)
        timer.start(next(self._gaps))

    def _ask(self, tries: int) -> None:
        self._left = tries - 1
        self._front.submit(self._tenant, self._cpu(self._front.env.now))

    def _refused(self) -> None:
        tries = self._left
        if tries > 0 and self._retry:
            self._front.at(self._front.env.now + self._retry(),
                           lambda: self._ask(tries))


def best(load: float, refusal: float) -> float:
    """The largest goodput, in parts of the capacity.

    load: what is offered, in the same parts; refusal: what one costs, in parts
    of a request's cost. With the goodput g, g + (load - g) refusal = 1."""
    if load <= 1:
        return load
    return max(0.0, (1 - load * refusal) / (1 - refusal))


def summary(rows: Any, target: int, begin: int,  # noqa: ANN401
            end: int) -> dict[str, float]:
    """What became of requests that came, and were answered, in this time.

    p99_ms: of the response time."""
    came = rows[(rows["arrival"] >= begin) & (rows["arrival"] < end)]
    done = rows[(rows["end"] >= begin) & (rows["end"] < end) & rows["served"]]
    took = done["end"] - done["arrival"]
    return {
        "requests": len(came),
        "good": int((took <= target).sum()),
        "refused": 1 - float(came["served"].sum()) / max(len(came), 1),
        "p99_ms": float(np.percentile(took, 99)) / MS if len(took) else 0.0}
