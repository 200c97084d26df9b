# SPDX-License-Identifier: BSD-2-Clause
"""Vegeta, another load generator with an open loop: the check of ours.

It asks at even times, and opens as many connections as it needs.  Each request
is a line of its result, so what counts is chosen as in ours: answers that come
in the window, and requests that are due in it.  A response time counts from
when the request was due.  Vegeta says only when it was sent.  So the request
that was sent with the least delay is taken to be in time.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from .load import SPARE, Group, GroupResult, Load, Measurement
from .reaper import Reaper
from .testbed import Testbed, TestbedError, last_line
from .varnish import Varnish

PROGRAM = "vegeta"
MISSING = (f"{PROGRAM}, which is not in PATH: install Go 1.22 or later, run go "
           "install github.com/tsenart/vegeta/v12@v12.13.0, and put "
           "$(go env GOPATH)/bin in PATH")
NS = 1e9


@dataclass(frozen=True)
class Answer:
    """One request; times in seconds."""

    due_s: float
    sent_s: float
    status: int  # 0: no answer
    end_s: float

    @property
    def took_s(self) -> float:
        """Return the response time."""
        return self.end_s - self.due_s


def answers(text: str, rate: int) -> list[Answer]:
    """Return the requests of `vegeta encode -to csv`, at so many a second."""
    rows = [(int(row[0]), int(row[1]), int(row[2]), int(row[8]))
            for row in csv.reader(text.splitlines())]
    gap = NS / rate
    first = min((sent - number * gap for sent, _, _, number in rows),
                default=0.0)
    return [Answer(number / rate, (sent - first) / NS, status,
                   (sent + took - first) / NS)
            for sent, status, took, number in rows]


def quantile(values: Iterable[float], part: float) -> float:
    """Return a quantile as loadgen does; 0 if there are no values."""
    ordered = sorted(values)
    at = -int(-part * len(ordered) // 1)  # rounded up
    return ordered[max(at, 1) - 1] if ordered else 0.0


def seen(found: list[Answer], group: Group, seconds: float, warmup: float
         ) -> GroupResult:
    """Return what loadgen would say of these requests."""
    end = warmup + seconds
    due = [a for a in found if warmup <= a.due_s < end]
    done = [a for a in found if warmup <= a.end_s < end]
    whole = [a for a in done if a.status]
    times = [a.took_s for a in whole if a.status == 200]
    return GroupResult(
        group.name, group.conns, len(whole) / seconds, quantile(times, 0.5),
        quantile(times, 0.99), max(times, default=0.0),
        errors=len(done) - len(whole), not_200=len(whole) - len(times),
        bytes=0, waiting=0, conn_min=0, conn_max=0, conn_mean=0.0,
        sent=len(due), sent_in_all=len(found), slices=[], due=len(due),
        behind_s=sum(a.sent_s - a.due_s for a in due) / max(len(due), 1),
        good=sum(t <= group.target for t in times),
        refused=sum(a.status in (503, 429) for a in whole))


def attack(
    bed: Testbed, reaper: Reaper, listen: str, group: Group, seconds: float,
    warmup: float,
) -> GroupResult:
    """Load a proxy with an open loop; return what the group saw."""
    folder, rate = bed.folder("client"), round(group.rate)
    targets, log = folder / "targets", folder / "log"
    bed.write("client", targets, f"GET http://{listen}{group.path}\n"
              f"Host: {group.host}\n".encode())
    process = reaper.popen(bed.command("client", [
        PROGRAM, "attack", "-targets", str(targets), "-output",
        str(folder / "results"), "-rate", f"{rate}/1s",
        "-duration", f"{seconds + warmup:g}s", "-max-workers",
        str(group.conns), "-connections", str(group.conns), "-max-body", "0",
        "-timeout", f"{SPARE:g}s"]), log)
    try:
        process.communicate(timeout=seconds + warmup + 2 * SPARE)
    finally:
        reaper.end(process)
    done = bed.ask("client", [PROGRAM, "encode", "-to", "csv",
                              str(folder / "results")])
    bed.remove("client", folder)
    if done.returncode != 0:
        raise TestbedError(f"{PROGRAM}: {last_line(done.stderr)}")
    return seen(answers(done.stdout, rate), group, seconds, warmup)


def measure(
    load: Load, bed: Testbed, reaper: Reaper, varnish: Varnish, group: Group,
    seconds: float, warmup: float,
) -> Measurement:
    """Load `varnish` for one window, after a time that does not count.

    CPU seconds are those of both.
    """
    before = load.clocks(varnish)
    found = attack(bed, reaper, varnish.proxy.listen, group, seconds, warmup)
    load.check([varnish])
    return load.measured({"window_s": seconds, "groups": [vars(found)]},
                         before, load.clocks(varnish))


def missing() -> str | None:
    """Return what this machine lacks, if it does."""
    return None if shutil.which(PROGRAM) else MISSING
