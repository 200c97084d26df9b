# SPDX-License-Identifier: BSD-2-Clause
"""A varnishd with many tenants, and an exporter that also keeps bills.

bench/record-exporter, record-watching and record-reload-time use it.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import http.client
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sandpaper_ask import Varnishadm

from . import machine, pedigree, record
from .testbed import free_port

TOP = Path(__file__).resolve().parents[2]
GAUGES = HISTOGRAMS = 500
TICKS = os.sysconf("SC_CLK_TCK")
VCL = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init { sandpaper.tenants_file("%s"); }
sub vcl_recv { return (synth(200)); }
"""


def until(so: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Return when something is so."""
    end = time.monotonic() + seconds
    while not so():
        if time.monotonic() > end:
            sys.exit(f"after {seconds:g} s {what}")
        time.sleep(0.1)


@contextlib.contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program meanwhile."""
    with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of its children that ended."""
    text = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    return sum(map(int, text.split()[11:15])) / TICKS


def cli_s(pid: int) -> float:
    """Return the CPU time of a process's first thread: varnishd's CLI."""
    ns = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
    return int(ns) / 1e9


def worker(pid: int) -> int:
    """Return the worker process of a varnishd."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def series(text: str) -> dict[str, float]:
    """Return the series of a text for Prometheus."""
    return {name: float(value) for name, value in (
        line.rsplit(" ", 1) for line in text.splitlines()
        if line and not line.startswith("#"))}


def parser(doc: str | None, name: str, sizes: Sequence[int]
           ) -> argparse.ArgumentParser:
    """Return what reads the options that all have."""
    p = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--root", type=Path, default=TOP / "build/7.7/root",
                   help="where varnishd is installed (%(default)s)")
    p.add_argument("--tenants", type=int, nargs="+", default=sizes,
                   metavar="N", help="numbers of tenants (%(default)s)")
    p.add_argument("--json", type=Path, metavar="FOLDER",
                   help=f"write FOLDER/{name}.json, and no record")
    return p


def save(name: str, options: argparse.Namespace, parameters: dict[str, Any],
         measured: Callable[[int], dict[str, Any]]) -> int:
    """Measure with each number of tenants, and record it."""
    results = []
    for tenants in options.tenants:
        results.append(measured(tenants))
        print(results[-1], flush=True)
    found = {
        "experiment": name, "date": f"{datetime.now(UTC):%Y-%m-%d}",
        **pedigree.code(), "command": f"bench/record-{name}",
        "machine": machine.short(), "parameters": parameters,
        "results": results}
    print("written to", record.write(found, folder=options.json)
          if options.json else record.write(found))
    return 0


class Running:
    """A varnishd with tenants, and its exporter.

    pin and pin_watcher are what comes before their commands, such as taskset.
    """

    def __init__(self, folder: Path, root: Path, tenants: int,
                 pin: Sequence[str] = (), pin_watcher: Sequence[str] = ()
                 ) -> None:
        self.pin, self.pin_watcher = pin, pin_watcher
        self.folder, self.root, self.tenants = folder, root, tenants
        self.port, self.web = free_port(), free_port()
        self.usage = folder / "usage"
        self.adm = Varnishadm(f"{root}/bin/varnishadm", ("-n", f"{folder}/n"))

    def write(self, weight: int = 1) -> Path:
        """Write the file of tenants."""
        file = self.folder / "tenants"
        file.write_text("".join(
            f"customer-{n} customer-{n}.example weight={weight}\n"
            for n in range(self.tenants)))
        return file

    @contextlib.contextmanager
    def varnishd(self) -> Iterator[int]:
        """Run it; its PID."""
        vcl = self.folder / "vcl"
        vcl.write_text(VCL % self.write())
        with running(*self.pin, f"{self.root}/sbin/varnishd", "-F", "-j",
                     "none", "-n", f"{self.folder}/n", "-a",
                     f"127.0.0.1:{self.port}", "-p", "syslog_cli_traffic=off",
                     "-p", f"sandpaper_tenants_max={2 * self.tenants + 10}",
                     "-f", str(vcl)) as process:
            until(lambda: self.adm.ask("ping").returncode == 0,
                  "varnishd does not answer")
            until(lambda: "running" in self.adm.ask("status").stdout,
                  "its worker process does not run")
            yield process.pid

    @contextlib.contextmanager
    def exporter(self) -> Iterator[int]:
        """Run it; its PID."""
        self.usage.mkdir(exist_ok=True)
        with running(*self.pin_watcher, sys.executable,
                     f"{TOP}/tools/sandpaper-exporter", "-n",
                     f"{self.folder}/n", "--varnishadm",
                     f"{self.root}/bin/varnishadm", "--listen",
                     f"127.0.0.1:{self.web}", "--usage", str(self.usage),
                     "--gauges", str(GAUGES), "--histograms", str(HISTOGRAMS)
                     ) as process:
            until(self.is_up, "sandpaper-exporter has not looked")
            yield process.pid

    def is_up(self) -> bool:
        """Has the exporter looked?"""
        with contextlib.suppress(OSError):
            return series(self.scrape()[1])["sandpaper_up"] == 1
        return False

    def scrape(self) -> tuple[float, str]:
        """Return how long a scrape takes, and its text."""
        began = time.monotonic()
        with urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{self.web}/metrics",
                headers={"Accept-Encoding": "gzip"}), timeout=30) as answer:
            body = answer.read()
            packed = answer.headers.get("Content-Encoding") == "gzip"
        took = time.monotonic() - began
        return took, (gzip.decompress(body) if packed else body).decode()

    def ask(self, tenants: Iterable[int]) -> None:
        """Send a request of each of these tenants."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        for n in tenants:
            client.request("GET", "/", headers={
                "Host": f"customer-{n}.example"})
            client.getresponse().read()
        client.close()

    def looks(self) -> float:
        """Return how often the exporter has looked."""
        return series(self.scrape()[1])["sandpaper_looks_total"]
