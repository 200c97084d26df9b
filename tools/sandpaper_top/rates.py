# SPDX-License-Identifier: BSD-2-Clause
"""What happened between two answers of sandpaper.list, and before.

varnishd counts since its worker process began.  A sample has the rates of the
time between two looks.  A tenant's history keeps a few figures of each look.
"""

from __future__ import annotations

import operator
import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandpaper_ask import State

HISTORY = 300  # looks that are kept
NET_BUSY = 0.9  # part of the rate of net from which it counts as busy
CLOSED = 0.1  # part of an interval in which requests waited for net

COUNTED = ("completed", "refused", "shed", "cpu_s", "bytes", "wait_s")
# The fields of a tenant that varnishd is asked for
KEYS = ("group", "members", "weight", "waiting", "running", "new_seconds",
        "waits", *COUNTED)

Fields = Mapping[str, Any]


class History:
    """Some figures of a tenant, at each look since the first that was not 0.

    Ten thousand of these are kept, so the figures of all looks are in one
    array, those of a look side by side.
    """

    WHAT = ("rps", "used", "waiting", "p99_s")
    __slots__ = ("_looks", "_values")

    def __init__(self) -> None:
        self._looks = 0
        self._values = array("f")

    def add(self, rps: float, used: float, waiting: float,
            p99_s: float) -> int:
        """Take the figures of a look; return how many looks there were."""
        self._values.extend((rps, used, waiting, p99_s))
        self._looks += 1
        spare = len(self._values) - len(self.WHAT) * HISTORY
        if spare > len(self.WHAT) * HISTORY // 4:  # not at each look
            del self._values[:spare]
        return self._looks

    def last(self, what: str, most: int, until: int) -> list[float]:
        """Return the last figures of the first `until` looks."""
        n = len(self.WHAT)
        stop = len(self._values) // n - (self._looks - until)
        start = max(0, stop - min(most, HISTORY))
        return list(self._values[start * n + self.WHAT.index(what):
                                 max(0, stop) * n:n])


@dataclass(slots=True)
class Row:
    """A tenant in the last interval."""

    name: str
    group: str
    weight: float
    rps: float
    used: float | None  # part of what was used of the busiest resource
    cpu: float  # cores
    bits: float  # bits/s
    waiting: int
    running: int
    wait_s: float  # mean of the requests of the interval
    p99_s: float  # of their waits
    refused: float  # /s, with requests that were shed
    members: int = 0  # of a group
    new_seconds: int | None = None
    history: History | None = field(default=None, repr=False)
    until: int = 0  # looks of the history that had been when this was made

    def past(self, what: str, most: int) -> list[float]:
        """Return the last figures, the newest at the end."""
        return (self.history.last(what, most, self.until)
                if self.history else [])


@dataclass
class Sample:
    """All that the view shows of an interval."""

    mode: str
    policy: str
    slots: int
    running: int
    waiting: int
    tenants: int
    cpu: float
    bits: float
    link: float  # bits/s, 0 if not known
    busiest: str
    rows: list[Row]
    security_patches: str | None = None
    seconds: float = 0.0  # of the interval
    clock: str = ""  # local time at its end


def difference(new: Fields, old: Fields | None, what: str) -> float:
    """Return by how much a counter grew; one that began again counts."""
    now, before = float(new[what]), float(old[what]) if old else 0.0
    return now - before if now >= before else now


def quantile(counts: Sequence[float], bounds: Sequence[float],
             part: float) -> float:
    """Return a quantile of a histogram, linear within a bucket.

    `counts` has one more than `bounds`: what is longer counts as the last
    bound.
    """
    below, wanted = 0.0, part * sum(counts)
    for n, (count, bound) in enumerate(zip(counts, bounds, strict=False)):
        if count and below + count >= wanted:
            least = bounds[n - 1] if n else 0.0
            return least + (bound - least) * (wanted - below) / count
        below += count
    return bounds[-1] if wanted and bounds else 0.0


def waits_p99(new: Fields, old: Fields | None,
              bounds: Sequence[float]) -> float:
    """Return the p99 of the waits that ended between two looks."""
    counts = new.get("waits")
    if not counts or not bounds:
        return 0.0
    before = old.get("waits") if old else None
    if before and all(map(operator.le, before, counts)):
        counts = [a - b for a, b in zip(counts, before, strict=False)]
    return quantile(counts, bounds, 0.99)


class Rates:
    """Turns two answers of sandpaper.list into rates."""

    def __init__(self) -> None:
        self._old: State | None = None
        self._before: dict[str, Fields] = {}
        self._time = 0.0
        self._histories: dict[str, History] = {}

    def add(self, new: State, now: float) -> Sample | None:
        """Take an answer; return a sample if it is not the first."""
        old, seconds, before = self._old, now - self._time, self._before
        if old is not None and seconds <= 0:
            return None
        self._old = {k: v for k, v in new.items() if k != "list"}
        self._before = {t["tenant"]: t for t in new["list"]}
        self._time = now
        if old is None:
            return None
        if new["started"] != old["started"]:  # all counters began again
            old, before = {}, {}
        sums = old.get("sums")
        cpu = difference(new["sums"], sums, "cpu_s")
        octets = difference(new["sums"], sums, "bytes")
        bits = octets * 8 / seconds
        link = float(new.get("nic_rate_bps", 0))
        closed = max(0.0, float(new.get("nic_closed_s", 0))
                     - float(old.get("nic_closed_s", 0)))
        by_net = link > 0 and (bits >= NET_BUSY * link
                               or closed >= CLOSED * seconds)
        whole = octets if by_net else cpu
        bounds = new.get("wait_bounds_s", ())
        rows = [self._row(t, before.get(t["tenant"]), seconds, bounds,
                          "bytes" if by_net else "cpu_s", whole)
                for t in new["list"]]
        self._histories = {r.name: r.history for r in rows if r.history}
        return Sample(
            new["mode"], new["policy"], new["slots"], new["running"],
            new["waiting"], new["tenants"], cpu / seconds, bits, link,
            "net" if by_net else "cpu", rows, new.get("security_patches"),
            seconds, time.strftime("%H:%M:%S"))

    def _row(self, new: Fields, old: Fields | None, seconds: float,
             bounds: Sequence[float], scarce: str, whole: float) -> Row:
        """Return a tenant's row; `whole` is what all used of the scarce."""
        name = new["tenant"]
        row = Row(name, new.get("group", ""), new["weight"], 0.0,
                  0.0 if whole else None, 0.0, 0.0, new["waiting"],
                  new["running"], 0.0, 0.0, 0.0, new.get("members", 0),
                  new.get("new_seconds"), self._histories.get(name))
        g = {w: difference(new, old, w) for w in COUNTED}
        if any(g.values()):
            row.rps = g["completed"] / seconds
            row.used = g[scarce] / whole if whole else None
            row.cpu = g["cpu_s"] / seconds
            row.bits = g["bytes"] * 8 / seconds
            row.wait_s = (g["wait_s"] / g["completed"] if g["completed"]
                          else 0.0)
            row.p99_s = waits_p99(new, old, bounds)
            row.refused = (g["refused"] + g["shed"]) / seconds
        elif row.history is None and not row.waiting:
            return row
        if row.history is None:
            row.history = History()
        row.until = row.history.add(row.rps, row.used or 0.0, row.waiting,
                                    row.p99_s)
        return row
