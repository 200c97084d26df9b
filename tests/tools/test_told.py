# SPDX-License-Identifier: BSD-2-Clause
"""What counters, lists and the log say is what has happened."""

from __future__ import annotations

import time

import client as http
from common import until

from varnishd import FILES, Varnishd, answered, status

SESSIONS = 7
TENANTS_MAX = 10
HOSTS = 40
SIZE = 100_000  # bytes, a second on the link


def test_a_session_of_http2_has_a_thread(varnishd: Varnishd) -> None:
    varnishd.start("feature=+http2", "thread_pools=1", "thread_pool_min=5",
                   "sandpaper_cores=1", "sandpaper_workers_per_core=10")
    varnishd.await_counter("SANDPAPER.threads_wanted", 1)
    before = varnishd.counter("SANDPAPER.threads_wanted")
    for _ in range(SESSIONS):
        varnishd.connect().sendall(http.PREFACE + http.frame(http.SETTINGS))
    varnishd.await_counter("SANDPAPER.threads_wanted", before + SESSIONS)


def test_more_tenants_than_there_may_be(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_new_hosts=tenant",
                   f"sandpaper_tenants_max={TENANTS_MAX}")
    assert varnishd.state()["tenants_overflow"] == 0
    varnishd.cli("debug.sandpaper.freeze")
    waiting = [varnishd.ask(f"host{n}.example") for n in range(HOSTS)]
    varnishd.cli("debug.sandpaper.wait", str(HOSTS))
    assert varnishd.state()["tenants_overflow"] >= HOSTS - TENANTS_MAX
    varnishd.cli("debug.sandpaper.thaw")
    answered(waiting)


def test_how_long_the_link_was_closed(varnishd: Varnishd) -> None:
    body = varnishd.folder / "body"
    body.write_bytes(b"x" * SIZE)
    varnishd.start("sandpaper_new_hosts=tenant",
                   f"sandpaper_nic_rate={8 * SIZE}", vcl=FILES)
    assert varnishd.state()["nic_closed_s"] == 0
    # Two tenants: for one alone nothing is held
    for host in ("a.example", "b.example", "a.example", "b.example"):
        assert varnishd.get(host, str(body)) == 200
    until(lambda: varnishd.state()["nic_closed_s"] >= 0.5)


def test_a_short_run_logs_no_host_and_learns_no_rate(
        varnishd: Varnishd) -> None:
    # Each look of the keeper, 0.1 s apart, could log what became of Hosts
    varnishd.start("vsl_mask=+Debug")
    assert varnishd.get("a.example") == 200
    varnishd.await_counter("SANDPAPER.threads_wanted", 1)
    assert not any("Sandpaper: Host" in line
                   for line in varnishd.log("-i", "Debug"))
    assert varnishd.counter("SANDPAPER.nic_learned") == 0


def test_nobody_waits_too_long_without_a_limit(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_queue_timeout=0")
    varnishd.cli("debug.sandpaper.freeze")
    client = varnishd.ask("a.example")
    # The keeper has looked twice
    varnishd.await_counter("SANDPAPER.oldest_wait_ms", 200)
    varnishd.cli("debug.sandpaper.thaw")
    assert status(client) == 200


def test_a_request_starts_with_its_first_byte(varnishd: Varnishd) -> None:
    varnishd.start()
    client = varnishd.connect()
    client.sendall(b"GET / HTTP/1.1\r\n")
    varnishd.await_counter("SANDPAPER.parts", 1)
    seen = time.time()
    client.sendall(b"Host: a.example\r\n\r\n")
    assert status(client) == 200
    varnishd.served(1)
    start = next(line for line in varnishd.log("-i", "Timestamp")
                 if "Start:" in line)
    assert float(start.split("Start: ")[1].split()[0]) < seen


def test_a_request_that_took_no_time_was_measured(varnishd: Varnishd) -> None:
    varnishd.start("sandpaper_sample=1", "sandpaper_counter=thread-clock",
                   preload="cpu_clocks", CPU_STEP_NS=0)
    assert varnishd.get("a.example") == 200
    record, = varnishd.served(1)
    assert record.endswith(" m")
