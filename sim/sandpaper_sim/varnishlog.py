# SPDX-License-Identifier: BSD-2-Clause
"""The log of a Sandpaper varnishd, as a trace.

It is what `varnishlog -g raw -i Begin,Timestamp,Sandpaper` prints, with -r FILE
of what -w FILE has recorded. Of a request it says: Timestamp "Enqueue", when it
came to the releaser; the record Sandpaper, its tenant, how long it waited, what
it cost a core and the link; the last Timestamp before that, its end; the
Timestamps of what a client's worker waits for, its fetch; Begin, its
connection, or the stream of one.

A connection of HTTP/2 has many requests at a time. Here each of these has a
connection of its own, so that on one each follows the end of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import Wrong, reading
from .releaser import COST_MAX, Records
from .trace import (
    ARRIVAL_MAX,
    Numbers,
    Trace,
    as_rows,
    nanoseconds,
    read_csv,
)

# The slot is lent meanwhile: design, section 5.
WAITS = ("Fetch:", "Waitinglist:", "ReqBody:")
SANDPAPER = 7                   # fields of the record
NEEDS = ("has no request: record the log with "
         "`varnishlog -g raw -i Begin,Timestamp,Sandpaper`")


@dataclass
class Request:
    """One that is under way; ns, -1: not known."""

    connection: int = -1
    arrival: int = -1
    fetch: int = 0
    last: int = -1


class Reader:
    """Takes a log record by record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open: dict[str, Request] = {}
        self.tenants, self.connections = Numbers(), Numbers()
        self.left_out = 0

    def read(self, file: Iterable[str]) -> Trace:
        """All of it; Wrong."""
        rows = as_rows(self.requests(file))
        if not len(rows):
            raise Wrong(f"{self.path}: {NEEDS}")
        rows = rows[np.argsort(rows["arrival"], kind="stable")]
        rows["connection"] = one_at_a_time(rows)
        return Trace(list(self.tenants.of), rows, self.left_out)

    def requests(self, file: Iterable[str]) -> Iterator[tuple[int, ...]]:
        """Those that are done, as REQUEST has it."""
        for n, line in enumerate(file, 1):
            words = line.split(None, 3)
            if len(words) < 4 or words[2] != "c":
                continue
            where, text = f"{self.path}:{n}", words[3].split()
            if words[1] == "Begin":
                self.begin(words[0], text, where)
            elif words[1] == "Timestamp":
                self.timestamp(words[0], text, where)
            elif words[1] == "Sandpaper":
                yield from self.sandpaper(words[0], text, where)

    def begin(self, vxid: str, words: list[str], where: str) -> None:
        """A request of a session, or again after a restart."""
        if len(words) < 3:
            raise Wrong(f"{where}: Begin: has {len(words)} fields, not 3")
        kind, parent, reason = words[:3]
        if kind == "req" and reason == "restart":
            self.open[vxid] = self.open.pop(parent, Request())
        elif kind == "req" and reason == "rxreq":
            self.open[vxid] = Request(self.connections(parent))

    def timestamp(self, vxid: str, words: list[str], where: str) -> None:
        """An event, its time, and how long since the one before."""
        if len(words) != 4:
            raise Wrong(f"{where}: Timestamp: has {len(words)} fields, not 4")
        if words[0] == "Enqueue:":
            self.open.setdefault(vxid, Request())
        request = self.open.get(vxid)
        if request is None:             # part of another, or cut off
            return
        name = f"{where}: Timestamp {words[0]}"
        request.last = nanoseconds(words[1], ARRIVAL_MAX, name)
        if words[0] == "Enqueue:":
            request.arrival = request.last
        elif words[0] in WAITS and request.arrival >= 0:
            request.fetch += nanoseconds(words[3], COST_MAX, name)

    def sandpaper(self, vxid: str, words: list[str],
                  where: str) -> Iterator[tuple[int, ...]]:
        """What it waited and cost: it is done."""
        if len(words) != SANDPAPER:
            raise Wrong(f"{where}: Sandpaper: has {len(words)} fields, "
                        f"not {SANDPAPER}")
        wait, cpu, net = (
            nanoseconds(text, COST_MAX, f"{where}: Sandpaper: {what}")
            for what, text in zip(("wait", "CPU cost", "net cost"),
                                  words[1:4], strict=True))
        r = self.open.pop(vxid, Request())
        if r.arrival < 0:
            self.left_out += 1
            return
        start = r.arrival + wait
        yield (r.arrival, start, max(r.last, start), cpu, net, r.fetch,
               self.tenants(words[0]), r.connection)


def one_at_a_time(rows: Records) -> Records:
    """Numbers of connections that have one request at a time, or -1.

    A request follows the last one that had ended before it."""
    idle: dict[tuple[int, int], list[tuple[int, int]]] = {}
    n, numbers = 0, np.full(len(rows), -1, np.int32)
    for i, row in enumerate(zip(*(rows[k].tolist() for k in (
            "connection", "tenant", "arrival", "end")), strict=True)):
        connection, tenant, arrival, end = row
        if connection < 0:
            continue
        free = idle.setdefault((connection, tenant), [])
        before = max((f for f in free if f[0] <= arrival), default=None)
        if before is None:
            number, n = n, n + 1
        else:
            free.remove(before)
            number = before[1]
        free.append((end, number))
        numbers[i] = number
    return numbers


def read_log(path: Path) -> Trace:
    """The whole file; Wrong."""
    with reading(path), path.open(encoding="utf-8",
                                  errors="replace") as file:
        return Reader(path).read(file)


def read(path: Path) -> Trace:
    """A trace in CSV, if its name ends so, or a log; Wrong."""
    return read_csv(path) if path.suffix == ".csv" else read_log(path)
