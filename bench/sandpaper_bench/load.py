# SPDX-License-Identifier: BSD-2-Clause
"""Load on a running varnishd: loadgen (the instrument) or wrk (the check).

`measure` runs groups of connections together for one window and returns what
each group saw, what CPU time varnishd used in the window, and how much of the
proxy's cores others used meanwhile (the noise of the machine).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .customers import CUSTOMERS, host
from .reaper import Reaper
from .testbed import Testbed, TestbedError
from .varnish import TICKS_PER_SECOND, Varnish

BENCH = Path(__file__).resolve().parent.parent
BUILD = BENCH.parent / "build" / "bench"
SPARE = 60.0  # seconds a load generator may take beyond its window


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

    def spec(self) -> str:
        """Return the group as loadgen's argument."""
        return ",".join(f"{k}={v}" for k, v in vars(self).items())


def tenant(name: str, conns: int = 100, twin: bool = False) -> Group:
    """Return the closed-loop group of a customer."""
    return Group(name=name + ("-twin" if twin else ""),
                 host=host(name, twin), path=CUSTOMERS[name].path,
                 conns=conns)


@dataclass(frozen=True)
class Seen:
    """What one group saw in the window; times in seconds."""

    name: str
    connections: int
    rps: float
    p50_s: float
    p99_s: float
    max_s: float
    errors: int
    not_200: int
    waiting: int
    conn_min: int
    conn_max: int
    conn_mean: float
    sent_in_all: int
    slices: list[int]

    @property
    def failures(self) -> int:
        """Requests without an answer, or with another status than 200."""
        return self.errors + self.not_200

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


@dataclass(frozen=True)
class Measurement:
    """One window: the groups, and CPU seconds by whom."""

    window_s: float
    cpu_s: float
    foreign_s: float
    groups: dict[str, Seen] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Seen:
        return self.groups[name]

    @property
    def cpu_us_per_request(self) -> float:
        """varnishd's CPU time over all requests, microseconds."""
        requests = sum(g.rps for g in self.groups.values()) * self.window_s
        return self.cpu_s * 1e6 / requests if requests else 0.0


def busy_seconds(cores: list[int]) -> float:
    """CPU time that the cores spent on anything, steal included."""
    total = 0
    wanted = {f"cpu{core}" for core in cores}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name in wanted:
            user, nice, system, _idle, _io, irq, soft, steal = map(
                int, ticks[:8])
            total += user + nice + system + irq + soft + steal
    return total / TICKS_PER_SECOND


def build_loadgen() -> Path:
    """Compile loadgen.c if it is newer than the program."""
    source, program = BENCH / "loadgen.c", BUILD / "loadgen"
    if (program.exists()
            and program.stat().st_mtime >= source.stat().st_mtime):
        return program
    BUILD.mkdir(parents=True, exist_ok=True)
    fresh = program.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror",
         "-o", str(fresh), str(source), "-lm"],
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TestbedError(f"loadgen.c does not compile:\n{done.stderr}")
    fresh.replace(program)
    return program


class Load:
    """Starts load generators on the testbed's client."""

    def __init__(
        self, bed: Testbed, reaper: Reaper, seed: int, wrk: bool = False
    ) -> None:
        self._bed = bed
        self._reaper = reaper
        self._seed = seed
        self._wrk = wrk
        self._loadgen = build_loadgen()
        if wrk and not shutil.which("wrk"):
            raise TestbedError("no wrk: apt-get install wrk")

    def measure(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float = 1.0,
    ) -> Measurement:
        """Load `varnish` with all groups for one window of `seconds`."""
        wrk = self._wrk and all(g.mode == "closed" for g in groups)
        run = self._run_wrk if wrk else self._run_loadgen
        measurement = run(varnish, groups, seconds, warmup)
        if varnish.restarted():
            raise TestbedError(
                f"{varnish.variant.name}: the worker process died under "
                f"load of {', '.join(g.name for g in groups)}")
        return measurement

    def prime(self, varnish: Varnish, groups: list[Group]) -> None:
        """Ask for each group's page once, so that it is in the cache."""
        for g in groups:
            once = Group(name=g.name, host=g.host, path=g.path, conns=1,
                         limit=1)
            seen = self._run_loadgen(varnish, [once], 30.0, 0.0)[g.name]
            if seen.sent_in_all != 1 or seen.rps == 0 or seen.errors:
                raise TestbedError(
                    f"{varnish.variant.name}: no answer for {g.host}")

    def _run_loadgen(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float,
    ) -> Measurement:
        process = self._reaper.popen(self._bed.command("client", [
            str(self._loadgen), "-w", str(warmup), "-t", str(seconds),
            "-s", str(self._seed),
            f"{self._bed.proxy_addr}:{self._bed.proxy_port}",
            *(g.spec() for g in groups)]))
        try:
            assert process.stdout is not None
            before = after = (0.0, 0.0)
            for line in process.stdout:
                if line == "start\n":
                    before = self._clocks(varnish)
                elif line == "end\n":
                    after = self._clocks(varnish)
                else:
                    return self._seen(json.loads(line), before, after)
        finally:
            self._reaper.end(process)
        raise TestbedError("loadgen ended without a result")

    def _run_wrk(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        warmup: float,
    ) -> Measurement:
        """The same with one wrk a group; it can't count connections."""
        url = f"http://{self._bed.proxy_addr}:{self._bed.proxy_port}"
        before = self._clocks(varnish)
        running = [self._reaper.popen(self._bed.command("client", [
            "wrk", "-t", "1", "-c", str(g.conns),
            "-d", f"{round(seconds + warmup)}s",
            "--timeout", f"{round(seconds + warmup + SPARE)}s",
            "-H", f"Host: {g.host}", "--latency",
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
                    "sent_in_all": 0, "slices": []})
        finally:
            for process in running:
                self._reaper.end(process)
        return self._seen(
            {"window_s": found[0]["window_s"], "groups": found},
            before, self._clocks(varnish))

    def _clocks(self, varnish: Varnish) -> tuple[float, float]:
        return varnish.cpu_seconds(), busy_seconds(self._bed.proxy_cores)

    @staticmethod
    def _seen(
        result: dict[str, Any], before: tuple[float, float],
        after: tuple[float, float],
    ) -> Measurement:
        keys = Seen.__dataclass_fields__.keys()
        cpu = after[0] - before[0]
        return Measurement(
            window_s=result["window_s"], cpu_s=cpu,
            foreign_s=max(0.0, after[1] - before[1] - cpu),
            groups={g["name"]: Seen(**{k: g[k] for k in keys})
                    for g in result["groups"]})
