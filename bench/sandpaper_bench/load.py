# SPDX-License-Identifier: BSD-2-Clause
"""Load on a running varnishd: loadgen (the instrument) or wrk (the check).

`measure` runs groups of connections together for one window and returns what
each group saw, what CPU time varnishd used in the window, and how much of the
proxy's cores others used meanwhile (the noise of the machine), a hypervisor's
other guests included.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from .customers import host, own, path
from .reaper import Reaper
from .testbed import BENCH, BUILD, Testbed, TestbedError, last_line
from .varnish import TICKS_PER_SECOND, Varnish
from .vmod import newer, said

T = TypeVar("T")

LOADGEN = BENCH / "loadgen"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
PRIMED = 32  # requests: at least one with each set of headers
SPARE = 60.0  # seconds a load generator may take beyond its window

# Long enough for a closed loop to settle, short enough that the machine is the
# same one in the next phase.
PHASE_SECONDS = 0.6
SETTLE_SECONDS = 0.25  # of that: nothing counts


@dataclass(frozen=True)
class Group:
    """Connections of one kind; the fields are loadgen's keys."""

    name: str
    host: str
    path: str = "/"
    mode: str = "closed"
    conns: int = 100
    rate: float = 0
    limit: int = 0
    random_host: int = 0
    unique: int = 0
    hosts: int = 0
    every: int = 0
    streams: int = 1
    window: int = 2**31 - 1
    mark: int = 0
    on: float = 0
    off: float = 0
    since: float = 0
    shift: float = 0
    till: float = 0
    phase: int = -1
    to: str = ""
    patience: float = 0
    fresh: int = 0
    even: int = 0
    steps: str = ""  # SECOND:RATE/SECOND:RATE.., seconds of the run
    target: float = 0
    retries: int = 0
    regard: int = 0
    headers: str = ""  # a file
    think: float = 0  # seconds
    per_conn: int = 0  # requests
    paths: str = ""  # a file
    in_order: int = 0

    def spec(self) -> str:
        """Return the group as loadgen's argument."""
        return ",".join(f"{k.replace('since', 'from')}={v}"
                        for k, v in vars(self).items() if v != "")


def tenant(name: str, conns: int = 100, headers: str = "") -> Group:
    """Return the closed-loop group of a customer or twin.

    A name may say how many connections it has.
    """
    described = own(name)
    if described is not None:
        conns = described.connections
    return Group(name, host(name), path(name), conns=conns, headers=headers)


@dataclass(frozen=True)
class GroupResult:
    """What one group saw in the window; times in seconds."""

    name: str
    connections: int
    rps: float
    p50_s: float
    p99_s: float
    max_s: float
    errors: int
    not_200: int
    bytes: int
    waiting: int
    conn_min: int
    conn_max: int
    conn_mean: float
    sent: int
    sent_in_all: int
    slices: list[int]
    unanswered: int = 0
    extra: int = 0
    first_error: str = ""
    due: int = 0  # of an open loop: what came, without what was asked again
    behind_s: float = 0.0  # mean lateness of the load generator
    connects: int = 0
    good: int = 0  # 200 within the target
    refused: int = 0  # 503 and 429
    retried: int = 0
    given_up: int = 0  # refused for the last time
    due_slices: list[int] = field(default_factory=list)
    good_slices: list[int] = field(default_factory=list)
    jain: float = 0.0  # Jain's index of the connections' answers
    mean_s: float = 0.0

    @property
    def failures(self) -> int:
        """Requests without an answer, or with another status than 200."""
        return self.errors + self.not_200

    @property
    def lost(self) -> int:
        """Requests that were not answered exactly once."""
        return self.errors + self.unanswered + self.extra

    def bytes_in(self, window_s: float) -> float:
        """Return the bytes of an answer, in a window of so many seconds."""
        return self.bytes / (max(self.rps, 1e-9) * window_s)

    @property
    def stretch(self) -> float:
        """p99 over the mean wait of a closed loop (design: testbed)."""
        return self.p99_s * self.rps / self.connections

    @property
    def slowest_to_mean(self) -> float:
        """Requests of the slowest connection over those of the mean."""
        return self.conn_min / self.conn_mean if self.conn_mean else 0.0

    @property
    def slowest_to_fastest(self) -> float:
        """Requests of the slowest connection over the fastest's."""
        return self.conn_min / self.conn_max if self.conn_max else 0.0


def once_each(group: Group) -> int:
    """Return how many requests have each set of headers, or each URL."""
    if group.paths:
        return len(Path(group.paths).read_text().splitlines())
    return PRIMED if group.headers else 1


def wrk_headers(group: Group) -> list[str]:
    """Return the first set of a group's headers as wrk's options."""
    if not group.headers:
        return []
    first = Path(group.headers).read_text().split("\n\n")[0]
    return [word for line in first.splitlines() for word in ("-H", line)]


def seen(group: dict[str, Any]) -> GroupResult:
    """Return a group of loadgen's result."""
    return GroupResult(**{
        k: group[k] for k in GroupResult.__dataclass_fields__})


@dataclass(frozen=True)
class Measurement:
    """One window: the groups, and CPU seconds by whom."""

    window_s: float
    cpu_s: float
    foreign_s: float
    stolen_s: float
    groups: dict[str, GroupResult] = field(default_factory=dict)
    began: float = 0.0  # on the monotonic clock of the run

    def __getitem__(self, name: str) -> GroupResult:
        return self.groups[name]

    @property
    def cpu_us_per_request(self) -> float:
        """varnishd's CPU time over all requests, microseconds."""
        requests = sum(g.rps for g in self.groups.values()) * self.window_s
        return self.cpu_s * 1e6 / requests if requests else 0.0


@dataclass(frozen=True)
class Interleaved:
    """Phases that took turns, and what loaded always.

    CPU microseconds a request are of the varnishd of each phase, over all.
    """

    window_s: float
    stolen_s: float
    phases: list[dict[str, GroupResult]]
    cpu_us: list[float]
    always: dict[str, GroupResult]


@dataclass(frozen=True)
class Clocks:
    """CPU seconds so far: varnishd's, its cores', stolen from any core."""

    varnish: float
    busy: float
    stolen: float
    at: float  # monotonic


def core_seconds(stat: str, cores: Iterable[int]) -> tuple[float, float]:
    """CPU time spent on anything, steal included, and the stolen part.

    `stat` is what is in /proc/stat.
    """
    total = stolen = 0
    wanted = {f"cpu{core}" for core in cores}
    for line in stat.splitlines():
        name, *ticks = line.split()
        if name in wanted:
            user, nice, system, _idle, _io, irq, soft, steal = map(
                int, ticks[:8])
            total += user + nice + system + irq + soft + steal
            stolen += steal
    return total / TICKS_PER_SECOND, stolen / TICKS_PER_SECOND


def build_loadgen() -> Path:
    """Compile loadgen if a file of it is newer than the program."""
    files, program = sorted(LOADGEN.glob("*.[ch]")), BUILD / "loadgen"
    if newer(program, files):
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    said("loadgen does not compile", "gcc", *FLAGS, "-o", str(fresh),
         *(str(f) for f in files if f.suffix == ".c"), "-lm")
    fresh.replace(program)
    return program


class WorkerDied(TestbedError):
    """varnishd's worker process ended while it was under load."""


class Load:
    """Starts load generators on the testbed's client."""

    def __init__(
        self, bed: Testbed, reaper: Reaper, seed: int, wrk: bool = False
    ) -> None:
        self._bed = bed
        self._reaper = reaper
        self.seed = seed  # of what is random, in the runs to come
        self._wrk = wrk
        self._loadgen_program = build_loadgen()
        bed.check("client", self._loadgen_program)
        if wrk:
            bed.find("client", "wrk", "wrk")

    def measure(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float = 1.0, drain: float = 0.0,
    ) -> Measurement:
        """Load `varnish` with all groups for one window of `seconds`.

        Who is owed an answer then is waited for, `drain` seconds at most.
        """
        if (self._wrk and not drain
                and all(g.mode == "closed" for g in groups)):
            measurement = self._run_wrk(varnish, groups, seconds, warmup)
        else:
            measurement = self._run_loadgen(varnish, groups, seconds, warmup,
                                            drain)
        self.check([varnish])
        return measurement

    def disturbed(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        drain: float,
    ) -> dict[str, GroupResult]:
        """Load while something is done to varnishd, even if it stops."""
        result, _, _ = self._loadgen(
            varnish, ["-d", str(drain), *(g.spec() for g in groups)],
            seconds, 0.0, lambda: None)
        return {g["name"]: seen(g) for g in result["groups"]}

    def background(
        self, varnish: Varnish, groups: Sequence[Group], seconds: float
    ) -> subprocess.Popen[str]:
        """Load until the process is ended; a line of JSON each second."""
        return self._reaper.popen(self._bed.command("client", [
            str(self._loadgen_program), "-w", "0", "-t", str(seconds), "-i",
            "1", "-s", str(self.seed), varnish.proxy.listen,
            *(g.spec() for g in groups)]))

    @staticmethod
    def check(running: Iterable[Varnish]) -> None:
        """Has no worker process died?"""
        for varnish in running:
            if varnish.restarted():
                raise WorkerDied(f"{varnish.variant.name}: the worker process "
                                 f"died under load{varnish.obituary()}")

    def in_phases(
        self, phases: Sequence[tuple[Varnish, list[Group]]],
        seconds: float, warmup: float, always: Sequence[Group] = (),
        length: float = PHASE_SECONDS,
    ) -> Interleaved:
        """Load in phases that take turns, each with its own connections.

        The groups in `always`, which say to whom, load all the time.  A
        phase takes `length` seconds.
        """
        specs = [
            replace(g, name=f"{number}.{g.name}", phase=number,
                    to=varnish.proxy.listen).spec()
            for number, (varnish, groups) in enumerate(phases)
            for g in groups]
        specs += [g.spec() for g in always]
        running = list(dict.fromkeys(varnish for varnish, _ in phases))

        def clocks() -> list[Clocks]:
            return [self.clocks(v) for v in running]

        result, before, after = self._loadgen(
            phases[0][0], ["-p", str(len(phases)), "-l", str(length),
                           "-q", str(SETTLE_SECONDS * length
                                     / PHASE_SECONDS), *specs],
            seconds, warmup, clocks)
        self.check(running)
        found: list[dict[str, GroupResult]] = [{} for _ in phases]
        other = {}
        for g in result["groups"]:
            number, dot, name = g["name"].partition(".")
            if dot:
                found[int(number)][name] = seen(g | {"name": name})
            else:
                other[g["name"]] = seen(g)
        cpu = {}
        for varnish, old, new in zip(running, before, after, strict=True):
            asked = sum(s.sent for (v, _), of_phase
                        in zip(phases, found, strict=True) if v is varnish
                        for s in of_phase.values())
            cpu[varnish] = (new.varnish - old.varnish) * 1e6 / max(asked, 1)
        return Interleaved(
            result["window_s"], after[0].stolen - before[0].stolen, found,
            [cpu[v] for v, _ in phases], other)

    def prime(self, varnish: Varnish, groups: list[Group]) -> None:
        """Ask for each group's pages, so that they are in the cache."""
        for g in groups:
            once = Group(g.name, g.host, g.path, conns=1, headers=g.headers,
                         paths=g.paths, in_order=1, limit=once_each(g))
            seen = self._run_loadgen(varnish, [once], 30.0, 0.0)[g.name]
            if (seen.sent_in_all != once.limit or seen.rps == 0
                    or seen.failures):
                raise TestbedError(
                    f"{varnish.variant.name}: no request of {g.host} was "
                    "answered")

    def _run_loadgen(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float, drain: float = 0.0,
    ) -> Measurement:
        return self.measured(*self._loadgen(
            varnish, ["-d", str(drain), *(g.spec() for g in groups)],
            seconds, warmup, lambda: self.clocks(varnish)))

    def _loadgen(
        self, varnish: Varnish, arguments: list[str], seconds: float,
        warmup: float, clocks: Callable[[], T],
    ) -> tuple[dict[str, Any], T, T]:
        """Run loadgen; its result, the clocks as the window opened, closed.

        Options come first in `arguments`, groups last.
        """
        first = next(i for i, a in enumerate(arguments) if "=" in a)
        log = self._reaper.top / "loadgen.log"
        log.unlink(missing_ok=True)
        process = self._reaper.popen(self._bed.command("client", [
            str(self._loadgen_program), *(["-b"] if self._bed.busy else []),
            "-w", str(warmup), "-t", str(seconds), "-s", str(self.seed),
            *arguments[:first],
            varnish.proxy.listen, *arguments[first:]]), log)
        try:
            assert process.stdout is not None
            before = after = clocks()
            for line in process.stdout:
                if line == "start\n":
                    before = clocks()
                elif line == "end\n":
                    after = clocks()
                else:
                    return json.loads(line), before, after
        finally:
            self._reaper.end(process)
        raise TestbedError("loadgen ended without a result: "
                           + last_line(log.read_text(errors="replace")))

    def _run_wrk(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float,
    ) -> Measurement:
        """The same with one wrk a group; it can't count connections."""
        url = f"http://{varnish.proxy.listen}"
        before = self.clocks(varnish)
        running = [self._reaper.popen(self._bed.command("client", [
            "wrk", "-t", "1", "-c", str(g.conns),
            "-d", f"{round(seconds + warmup)}s",
            "--timeout", f"{round(seconds + warmup + SPARE)}s",
            "-H", f"Host: {g.host}", *wrk_headers(g), "--latency",
            "-s", str(BENCH / "wrk-scripts" / "report.lua"),
            url + g.path])) for g in groups]
        found: list[dict[str, Any]] = []
        try:
            for g, process in zip(groups, running, strict=True):
                out, _ = process.communicate(
                    timeout=seconds + warmup + SPARE)
                found.append(json.loads(out.splitlines()[-1]) | {
                    "name": g.name, "connections": g.conns, "waiting": 0,
                    "conn_min": 0, "conn_max": 0, "conn_mean": 0.0,
                    "sent": 0, "sent_in_all": 0, "slices": [],
                    "unanswered": 0, "extra": 0, "first_error": "",
                    "due": 0, "behind_s": 0.0, "connects": 0, "good": 0,
                    "refused": 0, "retried": 0, "given_up": 0,
                    "due_slices": [], "good_slices": [], "jain": 0.0,
                    "mean_s": 0.0})
        finally:
            for process in running:
                self._reaper.end(process)
        return self.measured(
            {"window_s": found[0]["window_s"], "groups": found},
            before, self.clocks(varnish))

    def clocks(self, varnish: Varnish) -> Clocks:
        """Return the CPU seconds so far."""
        at, used = time.monotonic(), varnish.cpu_seconds()
        stat = self._bed.read(varnish.proxy.role, Path("/proc/stat"))
        return Clocks(used, core_seconds(stat, self._bed.proxy_cores)[0],
                      core_seconds(stat, self._bed.cores)[1], at)

    @staticmethod
    def measured(
        result: dict[str, Any], before: Clocks, after: Clocks,
    ) -> Measurement:
        """Return a window of a load generator's result and the clocks."""
        cpu = after.varnish - before.varnish
        return Measurement(
            window_s=result["window_s"], cpu_s=cpu,
            foreign_s=max(0.0, after.busy - before.busy - cpu),
            stolen_s=after.stolen - before.stolen,
            groups={g["name"]: seen(g) for g in result["groups"]},
            began=before.at)
