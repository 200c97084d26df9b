# SPDX-License-Identifier: BSD-2-Clause
"""Traces: who asked for what, and when.

CSV: the first line names the columns arrival_s, tenant, cpu_s and link_s, and
fetch_s if requests wait for an origin, in any order; one request a line, in
order of arrival. cpu_s is the time it takes a core, as varnishd logs it;
link_s the time it takes the link. A varnishd's log holds the same and more:
varnishlog.py."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from .files import Wrong, reading
from .releaser import COST_MAX, Records
from .server import SECOND

NEEDED = ("arrival_s", "tenant", "cpu_s", "link_s")
COLUMNS = (*NEEDED, "fetch_s")
ARRIVAL_MAX = 2**62             # ns

# ns; -1: it is not known, as start, end and the last two of a trace in CSV
REQUEST = np.dtype([("arrival", "i8"), ("start", "i8"), ("end", "i8"),
                    ("cpu", "i8"), ("net", "i8"), ("fetch", "i8"),
                    ("tenant", "i4"), ("connection", "i4"),
                    ("bytes", "i8")])


@dataclass
class Trace:
    """Names of tenants, and requests of type REQUEST in order of arrival."""

    tenants: list[str]
    rows: Records
    left_out: int = 0           # requests of which not all is known
    undone: int = 0             # requests that began and were not done
    hosts: int = 0              # requests whose Host is known

    def of(self, tenant: int) -> Records:
        """A tenant's requests."""
        return self.rows[self.rows["tenant"] == tenant]


@dataclass
class Numbers:
    """Numbers for names, in order of appearance."""

    of: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str) -> int:
        """That of a name."""
        return self.of.setdefault(name, len(self.of))


def nanoseconds(text: str, most: int, where: str) -> int:
    """Seconds, not negative; exact to the ns. where: file, line, field."""
    try:
        x = Decimal(text).scaleb(9)
    except InvalidOperation:
        x = Decimal(-1)
    if not (x.is_finite() and 0 <= x <= most):
        raise Wrong(f"{where}: {text!r} is not allowed: use a number of "
                    f"seconds, 0 to {most // SECOND}")
    return round(x)


def read_head(path: Path, head: list[str]) -> list[str]:
    """The columns; Wrong."""
    for name in COLUMNS:
        if head.count(name) > 1:
            raise Wrong(f"{path}:1: {name}: is there twice: remove one")
        if name in NEEDED and name not in head:
            raise Wrong(f"{path}:1: {name}: is missing: use the columns "
                        f"{', '.join(NEEDED)} and, if needed, fetch_s")
    for name in head:
        if name not in COLUMNS:
            raise Wrong(f"{path}:1: {name}: is not known: use the columns "
                        f"{', '.join(COLUMNS)}")
    return head


def read_rows(path: Path, file: Iterable[str],
              number: Numbers) -> Iterator[tuple[int, ...]]:
    """Of a CSV file, as REQUEST has it; Wrong."""
    lines = csv.reader(file)
    head = read_head(path, [name.strip() for name in next(lines, [])])
    last, last_text = -1, ""
    for cells in lines:
        if not cells:
            continue
        where = f"{path}:{lines.line_num}"
        if len(cells) != len(head):
            raise Wrong(f"{where}: has {len(cells)} fields: use "
                        f"{len(head)}, as line 1")
        row = dict(zip(head, map(str.strip, cells), strict=True))
        if not row["tenant"]:
            raise Wrong(f"{where}: tenant: is empty: use a name")
        at = nanoseconds(row["arrival_s"], ARRIVAL_MAX, f"{where}: arrival_s")
        if at < last:
            raise Wrong(f"{where}: arrival_s: {row['arrival_s']} is "
                        f"earlier than the request before: use {last_text} "
                        "or later")
        last, last_text = at, row["arrival_s"]
        cpu, net, fetch = (
            nanoseconds(row.get(c, "0"), COST_MAX, f"{where}: {c}")
            for c in ("cpu_s", "link_s", "fetch_s"))
        yield at, -1, -1, cpu, net, fetch, number(row["tenant"]), -1, -1


def read_csv(path: Path) -> Trace:
    """The whole file; Wrong."""
    number = Numbers()
    try:
        with reading(path), path.open(newline="", encoding="utf-8") as file:
            rows = as_rows(read_rows(path, file, number))
    except csv.Error as e:
        raise Wrong(f"{path}: {e}") from None
    if not len(rows):
        raise Wrong(f"{path}: has no request: add one line for each")
    return Trace(list(number.of), rows)


def as_rows(values: Iterable[tuple[int, ...]]) -> Records:
    """Of type REQUEST. As an array: millions of tuples need much memory."""
    flat = array("q")
    for row in values:
        flat.extend(row)
    columns = np.frombuffer(flat, np.int64).reshape(-1, len(REQUEST))
    rows = np.empty(len(columns), REQUEST)
    for name, column in zip(REQUEST.names or (), columns.T, strict=True):
        rows[name] = column
    return rows


def seconds(ns: int) -> str:
    """All of its digits."""
    return f"{ns // SECOND}.{ns % SECOND:09d}"


def write_csv(trace: Trace, path: Path) -> None:
    """What read_csv() reads; starts, ends and connections are left out."""
    rows = trace.rows
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(COLUMNS)
        for at, tenant, *costs in zip(
                *(rows[k].tolist() for k in (
                    "arrival", "tenant", "cpu", "net", "fetch")),
                strict=True):
            out.writerow((seconds(at), trace.tenants[tenant],
                          *map(seconds, costs)))
