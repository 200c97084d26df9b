# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-exporter and a varnishd that runs."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import client as http
import pytest
from common import ROOT, TIMEOUT, TOP, ran, until
from exporter_samples import PROGRAM, Exporter, series
from sandpaper_bench.figures import Figures

from varnishd import HELLO, Varnishd, status

pytest.importorskip("prometheus_client")

REQUESTS = 'sandpaper_tenant_requests_total{tenant="%s"}'
UNMAPPED = REQUESTS % "(unmapped)"
CLIENTS = 4
MANY = 10_000


class Tenants:
    """A varnishd with a file of tenants."""

    def __init__(self, varnishd: Varnishd) -> None:
        self.varnishd = varnishd
        self.file = varnishd.folder / "tenants"
        self.usage = varnishd.folder / "usage"
        self.usage.mkdir()

    def start(self, *lines: str, params: tuple[str, ...] = ()) -> None:
        self.write(*lines)
        self.varnishd.start(*params, vcl=HELLO.replace("sub vcl_recv", f"""\
import sandpaper;
sub vcl_init {{ sandpaper.tenants_file("{self.file}"); }}
sub vcl_recv"""))

    def write(self, *lines: str) -> None:
        self.file.write_text("".join(f"{line}\n" for line in lines))

    def reload(self, *lines: str) -> None:
        self.write(*lines)
        self.varnishd.cli("sandpaper.reload")

    def ask(self, host: str, times: int) -> None:
        with self.varnishd.connect() as client:
            for _ in range(times):
                assert self.varnishd.get(host, client=client) == 200

    def exporter(self, *options: str, usage: bool = False) -> Exporter:
        """Return an exporter that has looked once, and has written it down."""
        found = Exporter(self.varnishd, *options, *(
            ("--usage", str(self.usage)) if usage else ())).await_value(
                "sandpaper_up", 1)
        if usage:
            until(lambda: self.used() != {}, "there is no file of usage")
        return found

    def used(self, column: str = "requests") -> dict[str, float]:
        """Return what all hours have of each tenant."""
        found: dict[str, float] = {}
        for file in self.usage.glob("*.csv"):
            with file.open(newline="") as f:
                for row in csv.DictReader(f):
                    found[row["tenant"]] = (found.get(row["tenant"], 0)
                                            + float(row[column]))
        return found

    def unknown(self) -> float:
        """Return the seconds that are unknown in all hours."""
        return self.used("unknown_s").get("(unmapped)", 0)


@pytest.fixture
def tenants(varnishd: Varnishd) -> Tenants:
    return Tenants(varnishd)


def test_counters_across_reloads(tenants: Tenants) -> None:
    """No counter vanishes, shrinks or moves when a tenant leaves the map."""
    tenants.start("my-shop shop.example", "blog blog.example")
    exporter = tenants.exporter()
    shop = REQUESTS % "my-shop"
    assert (exporter.values()[shop], exporter.values()[UNMAPPED]) == (0, 0)
    tenants.ask("shop.example", 5)
    tenants.ask("blog.example", 3)
    tenants.ask("other.example", 2)
    exporter.await_value(shop, 5).await_value(UNMAPPED, 2)
    assert exporter.values()[REQUESTS % "blog"] == 3
    tenants.reload("blog blog.example")
    tenants.ask("shop.example", 4)
    exporter.await_value(UNMAPPED, 6)
    assert exporter.values()[shop] == 5
    tenants.reload("my-shop shop.example", "blog blog.example")
    tenants.ask("shop.example", 7)
    exporter.await_value(shop, 12)
    found = exporter.values()
    assert (found[UNMAPPED], found[REQUESTS % "blog"]) == (6, 3)
    assert found['sandpaper_tenant_wait_seconds_count{tenant="my-shop"}'] == 12
    assert not any("example" in name for name in found)


def test_a_clock_that_is_set(tenants: Tenants) -> None:
    """Ten years ahead, and back: nothing is lost, and no hour is made up."""
    varnishd = tenants.varnishd
    tenants.start("shop shop.example")
    varnishd.step_clock(0)
    Exporter(varnishd, "--usage", str(tenants.usage), before=(
        "env", f"LD_PRELOAD={varnishd.shim('clock_step')}",
        f"CLOCK_STEP={varnishd.step}"))
    until(lambda: tenants.used() != {}, "there is no file of usage")
    done = 0
    for years in (0, 10, 0):
        varnishd.step_clock(years * 365 * 24 * 3600)
        tenants.ask("shop.example", 5)
        done += 5
        until(lambda done=done: tenants.used().get("shop") == done,
              lambda: str(tenants.used()))
    files = [f.read_text() for f in tenants.usage.glob("*.csv")]
    assert len(files) in (2, 3)  # an hour may end
    assert not any(",yes," in text for text in files)


def test_worker_process_begins_again(tenants: Tenants) -> None:
    """Each scrape is answered meanwhile, and nothing shrinks."""
    tenants.start("shop shop.example")
    exporter = tenants.exporter()
    tenants.ask("shop.example", 5)
    exporter.await_value(REQUESTS % "shop", 5)
    begun = exporter.values()["sandpaper_worker_start_time_seconds"]
    tenants.varnishd.cli("stop")
    until(lambda: exporter.values()["sandpaper_up"] == 0)
    assert exporter.values()[REQUESTS % "shop"] == 5
    tenants.varnishd.cli("start")
    exporter.await_value("sandpaper_up", 1)
    tenants.ask("shop.example", 2)
    exporter.await_value(REQUESTS % "shop", 7)
    assert exporter.values()["sandpaper_worker_start_time_seconds"] > begun
    lines = exporter.said().splitlines()
    assert "the worker process does not run" in lines[1]
    assert lines[-1].endswith(": varnishd answers")
    assert len(lines) < 6, lines  # one for each state, not for each look


def test_varnishd_that_is_gone(tenants: Tenants) -> None:
    tenants.start("shop shop.example")
    exporter = tenants.exporter()
    tenants.varnishd.end()
    until(lambda: exporter.values()["sandpaper_up"] == 0)
    assert exporter.values()[REQUESTS % "shop"] == 0
    assert "Traceback" not in exporter.said()


class Clients:
    """Clients that ask until they are told to stop, and note each answer."""

    def __init__(self, varnishd: Varnishd, host: str) -> None:
        self._varnishd, self._host = varnishd, host
        self._over = threading.Event()
        self.answered: list[float] = []  # Unix times
        self._threads = [threading.Thread(target=self._ask)
                         for _ in range(CLIENTS)]

    def _ask(self) -> None:
        while not self._over.is_set():
            try:
                with socket.create_connection(
                        ("127.0.0.1", self._varnishd.port), TIMEOUT) as client:
                    while not self._over.is_set():
                        client.sendall(http.get(self._host))
                        assert status(client) == 200
                        self.answered.append(time.time())
            except (OSError, AssertionError):
                time.sleep(0.01)  # there is no worker process

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def go_on(self, more: int) -> None:
        """Return when there are more answers."""
        least = len(self.answered) + more
        until(lambda: len(self.answered) >= least)


def test_a_killed_worker_process_loses_a_second(tenants: Tenants) -> None:
    """What is lost is at most what the clients got in the unknown time."""
    tenants.start("shop shop.example")
    tenants.exporter(usage=True)
    before = tenants.unknown()  # the hour's part before the exporter
    with Clients(tenants.varnishd, "shop.example") as clients:
        until(lambda: tenants.used().get("shop", 0) > 0)
        clients.go_on(500)
        looked = float((tenants.usage / "looked").read_text())
        worker = tenants.varnishd.worker()
        os.kill(worker, signal.SIGKILL)
        killed = time.time()
        until(lambda: tenants.unknown() > before)
        clients.go_on(500)
    unknown = tenants.unknown() - before
    total = len(clients.answered)
    late = sum(killed - unknown <= at <= killed for at in clients.answered)
    until(lambda: tenants.used()["shop"] >= total - late - CLIENTS,
          lambda: f"{tenants.used()} of {total}, {late} in {unknown} s")
    assert tenants.used()["shop"] <= total + CLIENTS
    begun = tenants.varnishd.state()["started"]
    assert unknown <= begun - looked + 0.001  # CSV has three digits


def test_a_killed_exporter_loses_nothing(tenants: Tenants) -> None:
    """Nor do a reload, and a tenant that leaves the map."""
    tenants.start("shop shop.example", "blog blog.example")
    exporter = tenants.exporter(usage=True)
    before = tenants.unknown()
    tenants.ask("shop.example", 5)
    tenants.ask("blog.example", 5)
    until(lambda: tenants.used().get("blog") == 5)
    exporter.kill()
    tenants.ask("shop.example", 6)
    tenants.ask("nobody.example", 4)
    tenants.exporter(usage=True)
    tenants.reload("blog blog.example")
    until(lambda: tenants.used() == {
        "shop": 11, "blog": 5, "(unmapped)": 4},
        lambda: str(tenants.used()))
    assert tenants.unknown() == before
    sums = tenants.varnishd.state()["sums"]
    assert sum(tenants.used().values()) == sums["completed"]
    for column, key in (("cpu_s", "cpu_s"), ("bytes", "bytes")):
        assert sum(tenants.used(column).values()) == pytest.approx(
            sums[key], rel=0.01)


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """Mount a small file system; yield a file that fills it."""
    ran("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder)
    try:
        yield folder / "fills"
    finally:
        ran("umount", "-l", folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_full_disk(tenants: Tenants) -> None:
    """Accounting stops with one line, and goes on when there is space."""
    tenants.start("shop shop.example")
    with full_disk(tenants.usage) as fills:
        exporter = tenants.exporter(usage=True)

        def stops() -> bool:
            """Does accounting stop?  It may have freed what was full."""
            with fills.open("ab", buffering=0) as f, suppress(OSError):
                while True:
                    f.write(bytes(4096))
            return exporter.values()["sandpaper_usage_up"] == 0

        tenants.ask("shop.example", 5)
        until(stops)
        tenants.ask("shop.example", 6)
        exporter.await_value(REQUESTS % "shop", 11)
        assert "shop" not in tenants.used()
        fills.unlink()
        until(lambda: tenants.used().get("shop") == 11)
        exporter.await_value("sandpaper_usage_up", 1)
        lines = [line for line in exporter.said().splitlines()
                 if "accounting" in line]
        assert len(lines) == 2, lines
        assert lines[0].endswith("No space left on device")
        exporter.end()


def test_ten_thousand_tenants(tenants: Tenants) -> None:
    """A scrape takes less than 1 s and 2 MB."""
    tenants.start(*(f"t{n} t{n}.example" for n in range(MANY)),
                  params=(f"sandpaper_tenants_max={2 * MANY}",))
    exporter = tenants.exporter()
    tenants.ask("t7.example", 5)
    exporter.await_value(REQUESTS % "t7", 5)
    request = urllib.request.Request(
        f"http://127.0.0.1:{exporter.port}/metrics",
        headers={"Accept-Encoding": "gzip"})
    took: list[float] = []
    while len(took) < 3:
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            packed = answer.read()
        took.append(time.monotonic() - began)
    found = series(gzip.decompress(packed).decode())
    assert sum(name.startswith("sandpaper_tenant_requests_total")
               for name in found) == MANY + 1
    assert sum(name.startswith("sandpaper_tenant_wait_seconds_count")
               for name in found) == 500
    print(f"{took} s, {len(packed)} bytes")
    assert min(took) < 1
    assert len(packed) < 2_000_000


def test_what_it_costs_can_be_measured(folder: Path) -> None:
    """As doc/metrics.md has it."""
    ran(sys.executable, TOP / "bench" / "record-exporter", "--root", ROOT,
        "--tenants", "10", "--seconds", "2", "--json", folder)
    row, = json.loads((folder / "exporter.json").read_text())["results"]
    assert row["tenants"] == 10
    assert row["looks"] >= 1
    assert all(value > 0 for key, value in row.items()
               if not key.startswith("look_")), row
    text = Figures({"exporter": json.loads(
        (folder / "exporter.json").read_text())}, lambda _: False).render(
            "exporter")
    assert f"| 10 | {row['series']} |" in text


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core")
def test_what_is_served_meanwhile_can_be_measured(folder: Path) -> None:
    """As doc/metrics.md has it."""
    ran(sys.executable, TOP / "bench" / "record-watching", "--root", ROOT,
        "--tenants", "10", "--seconds", "1", "--turns", "1", "--json", folder,
        timeout=2 * TIMEOUT)
    record = json.loads((folder / "watching.json").read_text())
    row, = record["results"]
    assert row["tenants"] == 10
    assert 0.1 < row["watched_rps"] < 10
    assert 0 <= row["cli_part"] < 1
    text = Figures({"watching": record}, lambda _: False).render("watching")
    assert f"| 10 | {row['watched_rps']:.3f} |" in text


def test_a_reload_can_be_measured(folder: Path) -> None:
    """As doc/configure.md has it."""
    ran(sys.executable, TOP / "bench" / "record-reload-time", "--root", ROOT,
        "--tenants", "100", "--reloads", "2", "--json", folder)
    record = json.loads((folder / "reload-time.json").read_text())
    row, = record["results"]
    assert (row["tenants"], row["reloads"]) == (100, 2)
    for key in ("reload_s", "longest_s", "before_s"):
        assert 0 < row[key] <= row[f"{key}_max"]
    text = Figures({"reload-time": record}, lambda _: False).render(
        "reload-time")
    assert f"| 100 | {1000 * row['reload_s']:.1f}, " in text


# HTTP, and what cannot work

def test_clients_change_nothing(tenants: Tenants) -> None:
    tenants.start("shop shop.example")
    exporter = tenants.exporter()
    assert exporter.get("/").startswith("<!DOCTYPE html>")
    assert REQUESTS % "shop" in exporter.get("/metrics?x=y")
    for path, method, code in (("/nothing", "GET", 404),
                               ("/metrics", "POST", 405),
                               ("/metrics", "PUT", 405)):
        request = urllib.request.Request(
            f"http://127.0.0.1:{exporter.port}{path}", method=method)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=TIMEOUT)
        assert error.value.code == code
    request = urllib.request.Request(
        f"http://127.0.0.1:{exporter.port}/metrics", method="HEAD")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        assert (answer.status, answer.read()) == (200, b"")


def test_clients_that_hold_all_connections(tenants: Tenants) -> None:
    tenants.start("shop shop.example")
    exporter = tenants.exporter()
    held = [socket.create_connection(("127.0.0.1", exporter.port), TIMEOUT)
            for _ in range(20)]  # more than it answers at a time
    until(lambda: not answers(exporter))
    for client in held:
        client.close()
    until(lambda: answers(exporter))


def test_clients_that_send_a_byte_now_and_then(tenants: Tenants) -> None:
    """Each has some seconds in all, not for each byte."""
    tenants.start("shop shop.example")
    exporter = tenants.exporter()
    held = [socket.create_connection(("127.0.0.1", exporter.port), TIMEOUT)
            for _ in range(20)]

    def go_on() -> bool:
        for client in held:
            with suppress(OSError):
                client.send(b"a")
        return answers(exporter)

    until(lambda: not go_on())
    until(go_on)
    for client in held:
        client.close()


def answers(exporter: Exporter) -> bool:
    try:
        exporter.get()
    except urllib.error.HTTPError as error:
        assert error.code == 503
        return False
    return True


def run(*arguments: str, code: int) -> str:
    """Run the program; return the one line that it says."""
    done: subprocess.CompletedProcess[str] = ran(
        sys.executable, PROGRAM, *arguments, status=code)
    assert done.stdout == ""
    assert done.stderr.startswith("sandpaper-exporter: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_what_cannot_work_is_one_line(folder: Path) -> None:
    adm = ("--varnishadm", shutil.which("true") or "true")
    for arguments, says in (
            (("--listen", "x"), "ADDRESS:PORT"),
            (("--listen", "127.0.0.1:65536"), "ADDRESS:PORT"),
            (("--interval", "0"), "from 1 to 60"),
            (("--gauges", "x"), "from 0 to 1000000"),
            (("-n", "a", "-T", "b:1"), "not both"),
            (("-S", "a"), "needs -T")):
        assert says in run(*arguments, code=2)
    assert "No such file" in run(
        *adm, "--usage", str(folder / "none"), code=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "Address already in use" in run(
            *adm, "--listen", f"127.0.0.1:{port}", code=1)
