# SPDX-License-Identifier: BSD-2-Clause
"""The wall clock is stepped, within clock_step: waits are as long as ever.

By more than anybody waits for here, so that a deadline by that clock is
either over at once or too late for the test.
"""

from __future__ import annotations

import os
import sys

import client as http
from common import TIMEOUT, ran

from varnishd import Varnishd, status

STEP = 2 * TIMEOUT  # seconds
YEARS = 10 * 365 * 24 * 3600  # seconds: ten of them
THREADS = """
import threading, time
def spin(end=time.monotonic() + 0.5):
    while time.monotonic() < end:
        pass
threads = [threading.Thread(target=spin) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def start(varnishd: Varnishd, *params: str) -> None:
    """Start varnishd, with a wall clock that is right."""
    varnishd.step_clock(0)
    varnishd.start(f"clock_step={2 * STEP}", *params, preload="clock_step")


def test_waits_by_another_clock_are_left_alone(varnishd: Varnishd) -> None:
    """Python's threads wait for each other by the time since the boot."""
    varnishd.step_clock(YEARS)
    ran(sys.executable, "-c", THREADS, env=os.environ | {
        "LD_PRELOAD": str(varnishd.shim("clock_step")),
        "CLOCK_STEP": str(varnishd.step)})


def test_forward_while_a_request_waits(varnishd: Varnishd) -> None:
    start(varnishd, f"sandpaper_queue_timeout={TIMEOUT}")
    varnishd.cli("debug.sandpaper.freeze")
    client = varnishd.ask("a.example")
    varnishd.cli("debug.sandpaper.wait 1")
    varnishd.await_counter("SANDPAPER.oldest_wait_ms", 1)
    before = varnishd.counter("SANDPAPER.oldest_wait_ms")
    varnishd.step_clock(STEP)
    # The keeper has looked at it three times
    varnishd.await_counter("SANDPAPER.oldest_wait_ms", before + 300,
                           TIMEOUT * 1000)
    varnishd.cli("debug.sandpaper.thaw")
    assert status(client) == 200
    varnishd.await_counter("SANDPAPER.completed", 1)
    assert varnishd.counter("SANDPAPER.refused_late") == 0
    assert varnishd.tenant("a.example")["wait_s"] < TIMEOUT
    varnishd.assert_alive()


def test_backward_while_a_request_waits(varnishd: Varnishd) -> None:
    start(varnishd, f"sandpaper_queue_timeout={TIMEOUT}")
    varnishd.cli("debug.sandpaper.freeze")
    client = varnishd.ask("a.example")
    varnishd.cli("debug.sandpaper.wait 1")
    varnishd.step_clock(-STEP)
    varnishd.cli("param.set sandpaper_queue_timeout 1")
    assert status(client) == 503
    assert varnishd.counter("SANDPAPER.refused_late") == 1
    varnishd.assert_alive()


def test_forward_while_a_connection_lingers(varnishd: Varnishd) -> None:
    start(varnishd, f"timeout_linger={TIMEOUT}", f"timeout_idle={TIMEOUT}")
    client = varnishd.connect()
    assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.lingering", 1)
    harvests = varnishd.counter("SANDPAPER.harvests")
    varnishd.step_clock(STEP)
    assert varnishd.get("b.example") == 200
    varnishd.await_counter("SANDPAPER.harvests", harvests + 1)
    assert varnishd.get("a.example", client=client) == 200
    assert varnishd.counter("MAIN.sess_herd") == 0
    varnishd.assert_alive()


def test_backward_while_a_connection_lingers(varnishd: Varnishd) -> None:
    start(varnishd, "timeout_linger=4")
    client = varnishd.connect()
    assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.lingering", 1)
    varnishd.step_clock(-STEP)
    varnishd.await_counter("SANDPAPER.lingering", 0, 0)
    assert varnishd.get("a.example", client=client) == 200
    varnishd.assert_alive()


def test_backward_while_half_requests_wait(varnishd: Varnishd) -> None:
    start(varnishd, "sandpaper_cores=1", "timeout_idle=4")
    for _ in range(2):  # as many as may be parsed at a time
        client = varnishd.connect()
        client.sendall(http.get("a.example") + b"GET / HTTP/1.1\r\n")
        assert status(client) == 200
    varnishd.await_counter("SANDPAPER.lingering", 2)
    varnishd.step_clock(-STEP)
    varnishd.await_counter("SANDPAPER.lingering", 0, 0)
    assert varnishd.get("b.example") == 200
    varnishd.assert_alive()
