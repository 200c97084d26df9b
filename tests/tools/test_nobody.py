# SPDX-License-Identifier: BSD-2-Clause
"""Connections without a tenant have a quarter of the cores, by measurement.

A flood of connections, on one core.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from varnishd import HELLO, Varnishd, allow_descriptors, answered

FLOOD = 3000  # connections: accepting and parsing them takes 0.1 s and more
PARTS = 2000  # see spd_part.c
OTHERS = 200  # descriptors
DRIPS = 5  # bytes of each
LIMITED = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
	sandpaper.tenant("a");
	sandpaper.host("a", "a.example");
	sandpaper.limits("a", limit = 0.5);
}
sub vcl_recv { return (synth(200)); }
"""
HALF, REST = b"GET / HTTP/1.1\r\n", b"Host: a.example\r\n\r\n"
PART = 1 / 4  # of the core
# Seconds of CPU: of the bucket in spd_cost.c, and of what had begun when it
# was empty.  A turn that is measured counts for those that are not.
BURST, BEGUN = 0.010, 0.010


def start(varnishd: Varnishd, vcl: str = HELLO) -> None:
    """Start varnishd on one core, which may have all connections."""
    many = FLOOD + PARTS + OTHERS
    allow_descriptors(2 * many)
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        varnishd.start("listen_depth=8192", "timeout_idle=600",
                       f"sandpaper_queue_limit={many}", vcl=vcl)
    finally:
        os.sched_setaffinity(0, cores)


@contextmanager
def stopped(varnishd: Varnishd) -> Iterator[Callable[[], None]]:
    """Stop varnishd; yield what lets it go on.

    So all that clients did reaches it at once, however slow they are.
    """
    worker = varnishd.worker()
    os.kill(worker, signal.SIGSTOP)
    try:
        yield lambda: os.kill(worker, signal.SIGCONT)
    finally:
        os.kill(worker, signal.SIGCONT)


@contextmanager
def judged(varnishd: Varnishd) -> Iterator[None]:
    """Judge what connections without a tenant have taken meanwhile."""
    began, name = time.monotonic(), "SANDPAPER.cpu_unowned_ns"
    before = varnishd.counter(name)
    yield
    took = (varnishd.counter(name) - before) * 1e-9
    passed = time.monotonic() - began
    assert took <= passed * PART + BURST + BEGUN


def connected(varnishd: Varnishd, many: int, sent: bytes = b""
              ) -> list[socket.socket]:
    """Return so many clients that have sent this."""
    clients = [varnishd.connect() for _ in range(many)]
    for client in clients:
        client.sendall(sent)
    return clients


def test_while_a_request_waits(varnishd: Varnishd) -> None:
    start(varnishd)
    varnishd.cli("debug.sandpaper.freeze")
    clients = [varnishd.ask("b.example")]
    varnishd.await_counter("SANDPAPER.waiting", 1)
    with stopped(varnishd) as go_on:
        clients += connected(varnishd, FLOOD, HALF + REST)
        with judged(varnishd):
            go_on()
            varnishd.await_counter("SANDPAPER.waiting", 1 + FLOOD)
    varnishd.cli("debug.sandpaper.thaw")
    answered(clients)
    varnishd.assert_alive()


def test_not_while_only_a_limit_holds_back(varnishd: Varnishd) -> None:
    start(varnishd, LIMITED)
    varnishd.cli("debug.sandpaper.cost a 1000000000 0")  # us
    assert varnishd.get("a.example") == 200
    varnishd.ask("a.example")  # may go in 2000 s
    varnishd.await_counter("SANDPAPER.waiting", 1)
    accepted = varnishd.counter("MAIN.sess_conn")
    with stopped(varnishd):  # they send nothing: nothing else waits
        clients = connected(varnishd, FLOOD)
    varnishd.await_counter("MAIN.sess_conn", accepted + len(clients))
    assert varnishd.counter("SANDPAPER.accept_naps") == 0
    assert varnishd.counter("SANDPAPER.waiting") == 1
    assert varnishd.get("b.example") == 200


def test_while_parts_are_many(varnishd: Varnishd) -> None:
    start(varnishd)
    clients = connected(varnishd, PARTS, HALF)
    varnishd.await_counter("SANDPAPER.parts", PARTS)
    with stopped(varnishd) as go_on:
        clients += connected(varnishd, FLOOD, HALF)
        with judged(varnishd):
            go_on()
            varnishd.await_counter("SANDPAPER.parts", len(clients))
    for _ in range(DRIPS):
        for client in clients:
            client.sendall(b"x")
    for client in clients:
        client.sendall(b": x\r\n" + REST)
    answered(clients)
    varnishd.assert_alive()
