# SPDX-License-Identifier: BSD-2-Clause
"""Answers of sandpaper.list, made up, and the program sandpaper-exporter."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from typing import Any, Self

from common import ROOT, TIMEOUT, TOOLS, until
from sandpaper_bench.testbed import free_port
from sandpaper_exporter.fields import COUNTERS, GAUGES
from sandpaper_exporter.poll import Answer
from sandpaper_exporter.totals import OWN

from varnishd import Varnishd

START = 1_800_000_000 - 1_800_000_000 % 3600  # Unix time: an hour begins
BOUNDS = [0.00025 * 2**k for k in range(16)]
PROGRAM = TOOLS / "sandpaper-exporter"


def tenant(name: str, completed: int, *, mapped: bool = True,
           **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a row: a request takes 10 ms and 1000 bytes, and waits 1 ms."""
    return {"tenant": name, "mapped": mapped,
            **{f.key: 0 for f in (*COUNTERS, *GAUGES)},
            "completed": completed, "cpu_s": completed / 100,
            "bytes": completed * 1000, "wait_s": completed / 1000,
            "waits": [0, 0, completed, *[0] * 14], **more}


def answer(seconds: float, *rows: dict[str, Any], rest: int = 0,
           started: float = START, boot: float | None = None) -> Answer:
    """Return an answer, some seconds after START.

    `rest`: what tenants without a row have done.  `boot`: seconds after START
    by a clock that nobody sets, if they are others.
    """
    whole = [r for r in rows
             if not r["tenant"].startswith("(") or r["tenant"] in OWN]
    sums = {f.key: sum(r[f.key] for r in whole) for f in COUNTERS}
    sums["completed"] += rest
    sums["cpu_s"] += rest / 100
    sums["bytes"] += rest * 1000
    return Answer(START + seconds, 0.01, {
        "started": started, "sums": sums, "wait_bounds_s": BOUNDS,
        "mode": "on", "slots": 20, "waiting": 0}, list(rows),
        seconds if boot is None else boot)


class Exporter:
    """sandpaper-exporter for a varnishd; it ends with it."""

    def __init__(self, varnishd: Varnishd, *options: str,
                 before: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        self.log = varnishd.folder / f"exporter-{self.port}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*before, sys.executable, str(PROGRAM), "-n",
                 f"{varnishd.folder}/n", "--varnishadm",
                 f"{ROOT}/bin/varnishadm", "--listen",
                 f"127.0.0.1:{self.port}", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        varnishd.callback(self.end)
        until(self._ready, self.said)

    def end(self) -> None:
        """End it as systemd does."""
        self.process.terminate()
        self.process.wait(TIMEOUT)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait(TIMEOUT)

    def said(self) -> str:
        """Return its log."""
        return self.log.read_text()

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.said()
        return "ready on" in self.said()

    def get(self, path: str = "/metrics") -> str:
        """Return a page."""
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}{path}", timeout=TIMEOUT) as r:
            text: str = r.read().decode()
        return text

    def values(self) -> dict[str, float]:
        """Return all series of /metrics."""
        return series(self.get())

    def await_value(self, name: str, least: float) -> Self:
        """Return when a series has at least this value."""
        until(lambda: self.values().get(name, -1) >= least,
              lambda: f"{name} is {self.values().get(name)}, not {least}: "
              + self.said())
        return self


def series(text: str) -> dict[str, float]:
    """Return the series of a text for Prometheus."""
    return {name: float(value) for name, value in (
        line.rsplit(" ", 1) for line in text.splitlines()
        if line and not line.startswith("#"))}
