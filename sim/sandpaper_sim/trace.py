# SPDX-License-Identifier: BSD-2-Clause
"""Traces: who asked for what, and when.

CSV: the first line names the columns time_s, tenant, cpu_us and net_us, in any
order. cpu_us is processing time: a core's time over the number of cores.

Log: what `varnishlog -g raw -i Timestamp,Sandpaper` prints of a Sandpaper
varnishd (with -r FILE, of a recorded day). A request's Timestamp "Enqueue" says
when it came, its Sandpaper record what it cost. Those still without their
record at the end are left out."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from .releaser import COST_MAX
from .server import SECOND

COLUMNS = ("time_s", "tenant", "cpu_us", "net_us")
US = 1000                       # ns
Named = TypeVar("Named")


class Wrong(Exception):
    """What is wrong with a trace: file, line, field, what is allowed."""


@dataclass(frozen=True)
class Row:
    """A request; ns."""

    time: int
    tenant: str
    cpu: int
    net: int


def nanoseconds(text: str, unit: int, most: int, where: str) -> int:
    """A number of units, not negative."""
    try:
        x = float(text)
    except ValueError:
        x = math.nan
    if not 0 <= x * unit <= most:
        raise Wrong(f"{where}: {text!r}: a number, 0 to {most / unit:g}")
    return round(x * unit)


def read_csv(path: Path, file: Iterable[str]) -> Iterator[Row]:
    """Rows of a CSV file, in its order."""
    rows = csv.reader(file)
    head = [name.strip() for name in next(rows, [])]
    for name in COLUMNS:
        if head.count(name) != 1:
            raise Wrong(f"{path}:1: {name}: is "
                        f"{'there twice' if name in head else 'missing'}; "
                        f"the columns are {', '.join(COLUMNS)}")
    at = [head.index(name) for name in COLUMNS]
    for row in rows:
        if not row:
            continue
        where = f"{path}:{rows.line_num}"
        if len(row) != len(head):
            raise Wrong(f"{where}: {len(row)} fields; "
                        f"line 1 names {len(head)}")
        time, tenant, cpu, net = (row[i].strip() for i in at)
        if not tenant:
            raise Wrong(f"{where}: tenant: is empty")
        yield Row(nanoseconds(time, SECOND, 2**62, f"{where}: time_s"),
                  tenant,
                  nanoseconds(cpu, US, COST_MAX, f"{where}: cpu_us"),
                  nanoseconds(net, US, COST_MAX, f"{where}: net_us"))


RECORD = re.compile(r"^[\s*-]*(\d+)\s+(Timestamp|Sandpaper)\s+(?:[bc-]\s+)?"
                    r"(.*)$")


def read_log(path: Path, file: Iterable[str]) -> Iterator[Row]:
    """Requests of a log, in order of their ends."""
    came: dict[str, int] = {}
    for n, line in enumerate(file, 1):
        m = RECORD.match(line)
        if m is None:
            continue
        vxid, tag, text = m.groups()
        where, words = f"{path}:{n}", text.split()
        if tag == "Timestamp":
            if words[:1] == ["Enqueue:"] and len(words) > 1:
                came[vxid] = nanoseconds(words[1], SECOND, 2**62,
                                         f"{where}: Enqueue")
            continue
        if len(words) != 7:
            raise Wrong(f"{where}: Sandpaper: {len(words)} fields, not 7")
        if vxid in came:
            yield Row(came.pop(vxid), words[0],
                      nanoseconds(words[2], SECOND, COST_MAX,
                                  f"{where}: CPU cost"),
                      nanoseconds(words[3], SECOND, COST_MAX,
                                  f"{where}: NIC cost"))


def rows_of(path: Path, file: TextIO) -> Iterator[Row]:
    """By what its first line looks like."""
    first = file.readline()
    file.seek(0)
    if "time_s" in first or path.suffix == ".csv":
        return read_csv(path, file)
    return read_log(path, file)


def read(path: Path) -> list[Row]:
    """In order of time, the first one at 0; Wrong."""
    try:
        with path.open(newline="") as file:
            rows = list(rows_of(path, file))
    except OSError as e:
        raise Wrong(f"{path}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{path}: not UTF-8") from None
    if not rows:
        raise Wrong(f"{path}: no request in it")
    rows.sort(key=lambda r: r.time)
    begin = rows[0].time
    return [Row(r.time - begin, r.tenant, r.cpu, r.net) for r in rows]


def number(rows: Sequence[Row], known: list[Named],
           make: Callable[[str], Named],
           ) -> tuple[list[tuple[int, int, int, int]], list[Named]]:
    """Rows with numbers for tenants, and the tenants: those that are known
    (by their `name`), then the others in order of appearance."""
    by_name = {getattr(t, "name"): i  # noqa: B009
               for i, t in enumerate(known)}
    tenants = list(known)
    for r in rows:
        if r.tenant not in by_name:
            by_name[r.tenant] = len(tenants)
            tenants.append(make(r.tenant))
    # A request that cost nothing still takes a moment.
    return [(r.time, by_name[r.tenant], max(r.cpu, 1), r.net)
            for r in rows], tenants
