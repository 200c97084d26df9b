# SPDX-License-Identifier: BSD-2-Clause
"""What a record of requests says of those who asked, and of what served them.

What comes next depends on what was answered, if clients wait for answers. So a
tenant is replayed as an open loop (requests come when they came) or as a closed
one: as many connections as there were at each time send one request at a time,
with the costs and pauses that were recorded in the same second, in order,
again from the first of these if more are needed. A tenant is closed if its
connections spent at least half of their time with an unanswered request: a
connection's rate is one over response plus pause, so that this part, of the
response, is by how much the rate follows it. Only requests that follow another
one on their connection tell; if most of a tenant's do not, it is open.

A server may do less than its cores and its link could: it has other work. While
requests wait, the busier of CPU and link is what they wait for, and as busy as
it can be: its capacity, of all of the record or of each second, or of up to
ten seconds if there are few requests."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .metrics import Floats, Ints, every, received
from .releaser import Records
from .server import MS, SECOND, Server

CLOSED = 0.5                    # of a connection's time, and of requests
WINDOW = 100 * MS               # of capacity
WAITING = 0.9                   # of a window, to count
ENOUGH = 10                     # windows
LONG = 10                       # s
STEPS = 1, LONG                 # s: a capacity is of the same
SURE = 200                      # requests, at least, in a step
LEAST = 0.01                    # a part that is not 0
NEAR = SECOND                   # ns: costs and pauses are of the same


# Loops

@dataclass(frozen=True)
class Loop:
    """How a tenant's requests come; times are ns."""

    closed: bool
    joins: list[int]                # connections, by time
    leaves: list[int]
    thinks: list[int]               # from an end to the next arrival
    ends: list[int] = field(default_factory=list)   # of these, in order


def loop_of(mine: Records, say: bool | None) -> Loop:
    """A tenant's, from its requests. say: that it is closed, or not."""
    mine = mine[mine["connection"] >= 0]
    mine = mine[np.lexsort((mine["arrival"], mine["connection"]))]
    follows = np.flatnonzero(mine["connection"][1:] ==
                             mine["connection"][:-1])
    first = np.setdiff1d(np.arange(len(mine)), follows + 1)
    last = np.setdiff1d(np.arange(len(mine)), follows)
    before = mine[follows]
    thinks = mine["arrival"][follows + 1] - before["end"]
    busy = int((before["end"] - before["arrival"]).sum())
    idle = int(thinks.sum())
    found = len(follows) >= max(1, CLOSED * len(mine)) and \
        busy >= CLOSED * (busy + idle)
    order = np.argsort(mine["end"][follows], kind="stable")
    return Loop(found if say is None else say,
                mine["arrival"][first].tolist(), mine["end"][last].tolist(),
                thinks[order].tolist(), before["end"][order].tolist())


class Near:
    """Numbers of what was recorded in the same NEAR as a time, in order; again
    from the first of these if more are needed. If there is nothing, of what was
    recorded before."""

    def __init__(self, at: Ints) -> None:
        windows = np.asarray(at, np.int64) // NEAR
        self.windows, self.begins = np.unique(windows, return_index=True)
        self.ends = np.append(self.begins[1:], len(windows))
        self.window = -1
        self.i = self.begin = self.end = 0

    def __call__(self, now: int) -> int:
        """The next one."""
        window = now // NEAR
        if window != self.window:
            self.window = window
            k = max(0, int(np.searchsorted(self.windows, window, "right")) - 1)
            begin, end = int(self.begins[k]), int(self.ends[k])
            if end != self.end:
                self.i, self.begin, self.end = begin, begin, end
        if self.i == self.end:
            self.i = self.begin
        i, self.i = self.i, self.i + 1
        return i


class Closed:
    """A tenant's connections, that join and leave, on a server.

    costs(now): of the next request, ns."""

    def __init__(self, server: Server, tenant: int,
                 costs: Callable[[int], tuple[int, int]], loop: Loop) -> None:
        self.server, self.tenant, self.costs = server, tenant, costs
        self.leaving = 0
        self.thinks = loop.thinks or [0]
        self.think = Near(np.array(loop.ends or [0] * len(self.thinks)))
        server.done[tenant] = self.answered
        for at in loop.joins:
            server.at(at, self.send)
        for at in loop.leaves:
            server.at(at, self.leave)

    def leave(self) -> None:
        """One of them, when it has its answer."""
        self.leaving += 1

    def send(self) -> None:
        """The next request."""
        self.server.submit(self.tenant, *self.costs(self.server.env.now))

    def answered(self) -> None:
        """The next request after a pause, or none."""
        pause = self.thinks[self.think(self.server.env.now)]
        if self.leaving:
            self.leaving -= 1
        elif pause:
            self.server.at(self.server.env.now + pause, self.again)
        else:
            self.send()

    def again(self) -> None:
        """After the pause."""
        if self.leaving:
            self.leaving -= 1
        else:
            self.send()


# Capacity

def busy_windows(rows: Records, end: int) -> Ints:
    """Windows of which nearly all of the time requests waited.

    Without the first ones: what runs at the start of a record ends later,
    and nothing that ran before it ends in it."""
    # Their waits as spells that do not overlap.
    ends = np.maximum.accumulate(rows["start"])
    begins = np.maximum(rows["arrival"], np.concatenate(([0], ends[:-1])))
    edges = every(0, end, WINDOW)
    waited = np.diff(received(begins, np.maximum(begins, ends), edges))
    found = np.flatnonzero(waited >= WAITING * WINDOW)
    return found[found >= ENOUGH]


def parts(cpu: float, link: float, windows: int,
          cores: int) -> tuple[float, float]:
    """Capacity, by what ended in so many busy windows, ns."""
    past = windows * WINDOW
    cpu, link = max(cpu / past / cores, LEAST), link / past
    return (1.0, link) if link > cpu else (cpu, 1.0)


def capacity(rows: Records, cores: int, end: int) -> tuple[float, float]:
    """Of CPU and link, as parts of all; 1 if that was never needed."""
    busy = busy_windows(rows, end)
    if len(busy) < ENOUGH:
        return 1.0, 1.0
    mine = rows[np.isin(rows["end"] // WINDOW, busy)]
    return parts(float(mine["cpu"].sum()), float(mine["net"].sum()),
                 len(busy), cores)


def step_of(rows: Records, end: int) -> int:
    """How long capacity is the same, ns: shorter, if there is more to see."""
    needed = math.ceil(SURE * end / SECOND / len(rows))
    return int(np.clip(needed, *STEPS)) * SECOND


def capacities(rows: Records, cores: int, end: int, step: int,
               whole: tuple[float, float]) -> Floats:
    """The same of each step, an array (n, 2); `whole` where it is not known.

    It is known if requests waited for half of the step."""
    busy = busy_windows(rows, end)
    n = end // step + 1
    in_busy = np.isin(rows["end"] // WINDOW, busy)
    mine = rows[in_busy]
    at = mine["end"] // step
    cpu, link = (np.bincount(at, mine[k], n) for k in ("cpu", "net"))
    windows = np.bincount(busy * WINDOW // step, minlength=n)
    return np.array([
        parts(cpu[k], link[k], int(windows[k]), cores)
        if 2 * windows[k] * WINDOW >= step else whole for k in range(n)])


def cores_of(rows: Records) -> int:
    """As many as its busiest ten seconds need, but for a tenth."""
    ends = np.maximum(rows["end"], rows["arrival"])
    used = np.bincount(ends // SECOND, rows["cpu"]) / SECOND
    n = min(LONG, len(used) - 1) or 1       # the last second is a part
    most = np.convolve(used, np.ones(n), "valid").max() / n
    return max(1, math.ceil(float(most) - 0.1))
