# SPDX-License-Identifier: BSD-2-Clause
"""The log that a varnishd would have written of a scenario's run."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import repeat
from pathlib import Path

import numpy as np

from sandpaper_sim import play
from sandpaper_sim.releaser import Records
from sandpaper_sim.scenario import Scenario, read
from sandpaper_sim.server import SECOND

EPOCH = 1_795_352_626 * SECOND


def text(ns: int) -> str:
    """As varnishd prints a time, s."""
    us = (ns + 500) // 1000
    return f"{us // 10**6}.{us % 10**6:06d}"


def connections(rows: Records, first: int) -> list[int]:
    """Of a tenant's requests, in order of arrival: a closed loop's."""
    free: list[tuple[int, int]] = []
    found, n = [], 0
    for at, end in zip(rows["arrival"].tolist(), rows["end"].tolist(),
                       strict=True):
        if free and free[0][0] <= at:
            c = heappop(free)[1]
        else:
            c, n = n, n + 1
        heappush(free, (end, c))
        found.append(first + c)
    return found


def record(vxid: int, connection: int, name: str, row: np.void,
           fetch: int, cpu: int) -> list[str]:
    """A request's lines."""
    at, start, end = (int(row[k]) + EPOCH for k in ("arrival", "start",
                                                    "end"))
    lines = [f"Begin          c req {connection} rxreq",
             f"Timestamp      c Start: {text(at)} 0.000000 0.000000",
             f"Timestamp      c Enqueue: {text(at)} 0.000000 0.000000",
             f"Timestamp      c Release: {text(start)} {text(start - at)} "
             f"{text(start - at)}"]
    if fetch:
        lines.append(f"Timestamp      c Fetch: {text(start + fetch)} "
                     f"{text(start + fetch - at)} {text(fetch)}")
    lines += [
        f"Timestamp      c Resp: {text(end)} {text(end - at)} 0.000000",
        f"Sandpaper      c {name} {text(start - at)} {text(cpu)} "
        f"{text(int(row['net']))} 0.000000 9 m"]
    return [f"{vxid:10} {line}" for line in lines]


def write(scenario: Path, policy: str, log: Path, *,
          logged: float = 1.0) -> Scenario:
    """Runs it. logged: part of the CPU time that the log has."""
    s = read(scenario)
    server = play.start(s, policy, s.file.seed)
    server.run(round(s.seconds * SECOND) + 1)
    rows = server.releaser.records()
    done: list[tuple[int, list[str]]] = []
    for i, a in enumerate(s.tenants):
        mine = rows[rows["tenant"] == i]
        mine = mine[np.lexsort((mine["start"], mine["arrival"]))]
        first = (i + 1) * 10_000_000
        of = connections(mine, first) if a.connections else \
            range(first, first + len(mine))
        delays = play.misses(s, a, s.file.seed) if a.miss else repeat(0)
        for k, (row, c) in enumerate(zip(mine, of, strict=True)):
            cpu = int(row["cpu"] * max(s.serves.cores, 1) * logged)
            done.append((int(row["end"]), record(
                first + 1_000_000 + k, c, a.name, row, next(delays), cpu)))
    done.sort(key=lambda d: d[0])
    log.write_text("\n".join(line for _, lines in done for line in lines))
    return s
