# SPDX-License-Identifier: BSD-2-Clause
"""Hosts that no map names, and clients that invent them.

The rule is that of src/tenants/newhosts.c. What varnishd's keeper does with it
(src/varnishd/spd_new.c), a Keeper does here."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

from .releaser import AGE, EVERY, FEW, PROOF
from .server import MS, SECOND, Server, Timer

WEIGHT = 0.1                    # sandpaper_new_weight
LOOK = 100 * MS                 # from one look at who is proven to the next
TRIES = 8                       # records that are asked whether they are idle


class Keeper:
    """Hosts begin in the group (new), and leave it when they are proven.

    `changes` has (ns, tenant, proven) of all that changed."""

    def __init__(self, server: Server, weight: float = WEIGHT) -> None:
        self.server = server
        self.group = server.tenant(weight)
        self.changes: list[tuple[int, int, bool]] = []
        # The group is a tenant of its own: it has no requests.
        server.releaser.adopt(self.group, server.env.now)
        Timer(server.env, self._look).start(LOOK)

    def _look(self, timer: Timer) -> None:
        releaser, now = self.server.releaser, self.server.env.now
        self.changes += [(now, t, not releaser.is_new(t))
                         for t in releaser.changes(now)]
        timer.start(LOOK)

    def proven_at(self, tenant: int) -> int | None:
        """When the Host was first proven, ns."""
        return next((at for at, t, proven in self.changes
                     if t == tenant and proven), None)


def most_proven(seconds: int, before: int = 0, *, tokens: int = FEW,
                crowd: bool = False) -> int:
    """The largest number of Hosts that are proven so long after the first
    request of any, by the rule in newhosts.h.

    before: proven Hosts at the start. tokens: in the bucket at the start.
    crowd: more than NEW_FEW Hosts have evidence all the time."""
    held, proven = 1000 * tokens, before
    for s in range(1, seconds + 1):
        added = max(1000 // EVERY, proven)
        held = min(held + added,
                   max(added, 1000 if crowd else 1000 * FEW))
        if s >= (AGE if crowd else PROOF - 1):
            proven += held // 1000
            held %= 1000
    return proven - before


@dataclass(frozen=True)
class Invented:
    """Clients that send Hosts of their choice, one request at a time each.

    lifetime: requests until a client takes another Host; 0: it keeps its
    first. pace: ns from one request to the next, at least; 0: a closed
    loop."""

    clients: int
    status: int = 200
    lifetime: int = 1
    pace: int = 0
    begin: int = 0              # ns


class Inventors:
    """The clients of one Invented; `tenants` are the records that they used.

    Records are used again, as varnishd's table of tenants does it."""

    def __init__(self, server: Server, what: Invented, cpu: Iterator[int],
                 net: Iterator[int] | None = None) -> None:
        self.server, self.what = server, what
        self.tenants: list[int] = []
        self.hosts = 0
        self._cpu = cpu.__next__
        self._net = (net or repeat(0)).__next__
        self._used: deque[int] = deque()
        for i in range(what.clients):
            server.at(what.begin + i * what.pace // what.clients,
                      self._client())

    def _host(self) -> int:
        """A Host that nobody has sent before."""
        server, now = self.server, self.server.env.now
        self.hosts += 1
        for _ in range(min(TRIES, len(self._used))):
            tenant = self._used.popleft()
            if server.releaser.another_host(tenant, self.what.status, now):
                return tenant
            self._used.append(tenant)
        tenant = server.tenant()
        server.releaser.host(tenant, self.what.status, now)
        self.tenants.append(tenant)
        return tenant

    def _client(self) -> Callable[[], None]:
        """Its first request; the next ones follow."""
        server, what = self.server, self.what
        tenant, left, due = -1, 0, 0

        def send() -> None:
            nonlocal tenant, left, due
            if left == 0:
                tenant, left = self._host(), what.lifetime or -1
                server.done[tenant] = answered
            left -= 1
            due = server.env.now + what.pace
            server.submit(tenant, self._cpu(), self._net())

        def answered() -> None:
            if left == 0:
                self._used.append(tenant)
            if due > server.env.now:
                server.at(due, send)
            else:
                send()

        return send


def site(server: Server, status: int = 200) -> int:
    """A Host that no map names, which its owner does not invent."""
    tenant = server.tenant()
    server.releaser.host(tenant, status, server.env.now)
    return tenant


def seconds(ns: int | None) -> float | None:
    """For the JSON."""
    return None if ns is None else ns / SECOND
