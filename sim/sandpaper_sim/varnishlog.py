# SPDX-License-Identifier: BSD-2-Clause
"""The log of a Sandpaper varnishd, as a trace.

It is what COMMAND prints, with -r FILE of what -w FILE has recorded, or what
varnishlog prints by request or session.
Of a request it says: Timestamp "Enqueue", when it came to the releaser; the
record Sandpaper, its tenant, how long it waited, what it cost a core and the
link; the last Timestamp before that, its end; the Timestamps of what a client's
worker waits for, its fetch; Begin, its connection, or the stream of one;
ReqHeader, its Host.

A connection of HTTP/2 has many requests at a time. Here each of these has a
connection of its own, so that on one each follows the end of another."""

from __future__ import annotations

import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from .files import Wrong
from .logfile import COMMAND, log_lines
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
NEEDS = f"has no request: record the log with `{shlex.join(COMMAND)}`"
HEADING = re.compile(r"\*\S*\s+<< Request +>> +(\d+)")
Row = tuple[int, ...]           # as REQUEST has it
UNDONE = 100_000                # requests that are kept until their record


@dataclass(slots=True)
class Request:
    """One that is under way; ns, -1: not known."""

    connection: str = ""        # VXID
    arrival: int = -1
    fetch: int = 0
    last: int = -1
    host: str = ""


Undone = OrderedDict[str, Request]      # by VXID, the oldest first


class Reader:
    """Takes a log record by record. tenant_of: a Host's tenant; without it,
    or without a Host in the log, the tenant is the one in the log."""

    def __init__(self, path: Path,
                 tenant_of: Callable[[str], str] | None = None) -> None:
        self.path = path
        self.tenant_of = cache(tenant_of) if tenant_of else None
        self.line = 0
        self.cut = False        # the line has no end
        # Requests that have no record yet: before and after the releaser
        self.begun: Undone = OrderedDict()
        self.open: Undone = OrderedDict()
        self.forgotten = 0
        self.tenants, self.connections = Numbers(), Numbers()
        self.left_out = self.hosts = 0
        self.heed = {"Begin": self.begin, "Timestamp": self.timestamp,
                     "ReqHeader": self.header}

    def read(self, file: Iterable[str]) -> Trace:
        """All of it; Wrong."""
        rows = as_rows(self.requests(file))
        if not len(rows):
            raise Wrong(f"{self.path}: {NEEDS}")
        rows = rows[np.argsort(rows["arrival"], kind="stable")]
        rows["connection"] = one_at_a_time(rows)
        return Trace(list(self.tenants.of), rows, self.left_out,
                     len(self.begun) + len(self.open) + self.forgotten,
                     self.hosts)

    def records(self, file: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Those of clients' transactions: VXID, tag, text."""
        vxid = ""               # of a group of records, with a heading
        for line in file:
            self.line += 1
            self.cut = not line.endswith("\n")
            words = line.split(None, 3)
            if len(words) < 3:
                continue
            if words[0][0] == "*":
                found = HEADING.match(line)
                vxid = found[1] if found else ""
            elif words[0][0] != "-":
                if len(words) == 4 and words[2] == "c":
                    yield words[0], words[1], words[3]
            elif vxid:
                if words[1].isdecimal():        # varnishlog -v
                    words = ["-", words[2], words[3].partition(" ")[2]]
                yield vxid, words[1], " ".join(words[2:])

    def requests(self, file: Iterable[str]) -> Iterator[Row]:
        """Those that are done; the last line may be cut off."""
        try:
            for vxid, tag, text in self.records(file):
                if tag == "Sandpaper":
                    yield from self.sandpaper(vxid, text.split())
                elif heed := self.heed.get(tag):
                    heed(vxid, text.split())
        except Wrong:
            if not self.cut:
                raise
            self.left_out += 1

    def wrong(self, text: str) -> Wrong:
        """An error of this line."""
        return Wrong(f"{self.path}:{self.line}: {text}")

    def begin(self, vxid: str, words: list[str]) -> None:
        """A request of a session, or again after a restart."""
        if len(words) < 3:
            raise self.wrong(f"Begin: has {len(words)} fields, not 3")
        kind, parent, reason = words[:3]
        if kind == "req" and reason == "restart":
            kept = self.begun if parent in self.begun else self.open
            self.keep(kept, vxid, kept.pop(parent, Request()))
        elif kind == "req" and reason == "rxreq":
            self.keep(self.begun, vxid, Request(parent))

    def keep(self, kept: Undone, vxid: str, request: Request) -> None:
        """Until its record; a refused one has none, so not too many."""
        kept[vxid] = request
        if len(kept) > UNDONE:
            kept.popitem(last=False)
            self.forgotten += 1

    def request(self, vxid: str) -> Request | None:
        """One that is under way."""
        return self.open.get(vxid) or self.begun.get(vxid)

    def header(self, vxid: str, words: list[str]) -> None:
        """The Host that the client sent: VCL may write others later."""
        request = self.request(vxid)
        if request and not request.host and len(words) == 2 and \
                words[0].lower() == "host:":
            request.host = words[1]

    def timestamp(self, vxid: str, words: list[str]) -> None:
        """An event, its time, and how long since the one before."""
        if len(words) != 4:
            raise self.wrong(f"Timestamp: has {len(words)} fields, not 4")
        if words[0] == "Enqueue:" and vxid not in self.open:
            self.keep(self.open, vxid, self.begun.pop(vxid, Request()))
        request = self.request(vxid)
        if request is None:             # part of another, or cut off
            return
        name = f"{self.path}:{self.line}: Timestamp {words[0]}"
        request.last = nanoseconds(words[1], ARRIVAL_MAX, name)
        if words[0] == "Enqueue:":
            request.arrival = request.last
        elif words[0] in WAITS and request.arrival >= 0:
            request.fetch += nanoseconds(words[3], COST_MAX, name)

    def sandpaper(self, vxid: str, words: list[str]) -> Iterator[Row]:
        """What it waited and cost: it is done."""
        if len(words) != SANDPAPER:
            raise self.wrong(f"Sandpaper: has {len(words)} fields, not "
                             f"{SANDPAPER}")
        name = f"{self.path}:{self.line}: Sandpaper: "
        wait, cpu, net = (
            nanoseconds(text, COST_MAX, name + what)
            for what, text in zip(("wait", "CPU cost", "net cost"),
                                  words[1:4], strict=True))
        if not (words[5].isdecimal() and len(words[5]) < 19):
            raise Wrong(f"{name}bytes: {words[5]!r} is not allowed: use a "
                        "whole number")
        r = self.open.pop(vxid, None) or self.begun.pop(vxid, Request())
        if r.arrival < 0:
            self.left_out += 1
            self.forgotten = max(0, self.forgotten - 1)     # it was not undone
            return
        start, name = r.arrival + wait, words[0]
        if r.host:
            self.hosts += 1
            name = self.tenant_of(r.host) if self.tenant_of else name
        yield (r.arrival, start, max(r.last, start), cpu, net, r.fetch,
               self.tenants(name),
               self.connections(r.connection) if r.connection else -1,
               int(words[5]))


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


def read_log(path: Path, varnishlog: str = "",
             tenant_of: Callable[[str], str] | None = None) -> Trace:
    """The whole file; Wrong. varnishlog: the program for a binary one."""
    with log_lines(path, varnishlog) as lines:
        return Reader(path, tenant_of).read(lines)


def read(path: Path) -> Trace:
    """A trace in CSV, if its name ends so, or a log; Wrong."""
    return read_csv(path) if path.suffix == ".csv" else read_log(path)
