# SPDX-License-Identifier: BSD-2-Clause
"""No thread can be made for a while: what there is serves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from common import TIMEOUT, port_of

from varnishd import Varnishd, answered, respond

THREADS = 20
CLIENTS = 40
VCL = """vcl 4.0;
backend be { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_recv { return (pass); }
"""


@pytest.fixture
def no_threads(varnishd: Varnishd) -> Path:
    """While there is this file, no more threads can be made."""
    return varnishd.folder / "no_threads"


@pytest.fixture
def open_origin(varnishd: Varnishd, origin: socket.socket, no_threads: Path
                ) -> Callable[[], None]:
    """Let more requests run than there are threads; they wait for the origin.

    The function opens the origin: all are answered.
    """
    opened = threading.Event()

    def serve() -> None:
        for _ in range(CLIENTS):
            peer, _ = origin.accept()
            opened.wait(TIMEOUT)
            respond(peer)

    def open_it() -> None:
        opened.set()
        answered(clients)
        varnishd.assert_alive()

    varnishd.start(
        "thread_pools=1", f"thread_pool_min={THREADS}",
        # While a task is queued, Varnish makes threads above the minimum
        f"thread_pool_max={THREADS}", "thread_pool_reserve=10",
        "thread_pool_fail_delay=0.01", "sandpaper_cores=1",
        "sandpaper_workers_per_core=5", vcl=VCL % port_of(origin),
        preload="refused", NO_THREADS=no_threads)
    varnishd.await_counter("MAIN.threads", THREADS)
    no_threads.touch()
    varnishd.cli("param.reset thread_pool_max")
    # Slots for all of them
    varnishd.cli(f"param.set sandpaper_workers_per_core {CLIENTS}")
    varnishd.await_counter("SANDPAPER.threads_wanted", CLIENTS)
    threading.Thread(target=serve, daemon=True).start()
    clients = [varnishd.ask("a.example") for _ in range(CLIENTS)]
    varnishd.await_counter("MAIN.thread_queue_len", 1)
    varnishd.await_counter("MAIN.threads_failed", 1)
    return open_it


def test_more_requests_than_threads(
        varnishd: Varnishd, open_origin: Callable[[], None]) -> None:
    open_origin()
    assert varnishd.counter("MAIN.threads") == THREADS


def test_they_are_made_later(varnishd: Varnishd, no_threads: Path,
                             open_origin: Callable[[], None]) -> None:
    no_threads.unlink()
    varnishd.await_counter("MAIN.threads", CLIENTS)
    open_origin()
