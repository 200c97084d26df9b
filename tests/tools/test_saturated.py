# SPDX-License-Identifier: BSD-2-Clause
"""Who can do nothing waits without burning CPU time."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
from pathlib import Path

from common import TIMEOUT, port_of

from varnishd import Varnishd, answered

THREADS = 20
WAITING = 200  # requests, more than there are threads
WINDOW = 5.0  # seconds
MOST = 0.01  # of one core, beyond what it takes when nothing waits
CLIENTS = 5  # for whom there is no descriptor
EMFILE = "MAIN.sess_fail_emfile"
PAUSE = 0.01  # seconds, of an acceptor, after ten tries at the latest
BLOCK = """vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
	vtc.barrier_sync("127.0.0.1:%d");
	return (synth(200));
}
"""


def cpu_s(varnishd: Varnishd) -> float:
    """Return what the worker process has used so far."""
    fields = Path(f"/proc/{varnishd.worker()}/stat").read_text().rpartition(
        ")")[2]
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")


def used(varnishd: Varnishd) -> float:
    """Return which part of a core it takes."""
    before, start = cpu_s(varnishd), time.monotonic()
    time.sleep(WINDOW)  # what is measured is what nothing takes
    return (cpu_s(varnishd) - before) / (time.monotonic() - start)


def test_threads_that_block_wait_for_nothing(
        varnishd: Varnishd, origin: socket.socket) -> None:
    """All threads block in VCL, and more want to."""
    opened = threading.Event()

    def serve() -> None:
        """Be the barrier: once it is open, all may pass."""
        for _ in range(WAITING):
            peer, _ = origin.accept()
            opened.wait(TIMEOUT)
            peer.close()

    varnishd.start(
        "thread_pools=1", f"thread_pool_min={THREADS}",
        f"thread_pool_max={THREADS}", "sandpaper_cores=1",
        "sandpaper_workers_per_core=4", vcl=BLOCK % port_of(origin))
    idle = used(varnishd)
    threading.Thread(target=serve, daemon=True).start()
    clients = [varnishd.ask(f"{n % 10}.example") for n in range(WAITING)]
    varnishd.await_counter("SANDPAPER.waiting", WAITING - THREADS)
    assert used(varnishd) - idle < MOST
    opened.set()
    answered(clients)
    varnishd.assert_alive()


def test_an_acceptor_without_descriptors_pauses(varnishd: Varnishd) -> None:
    """Connections wait to be accepted, and there is no descriptor."""
    varnishd.start("thread_pools=1")
    worker = varnishd.worker()
    free = resource.prlimit(worker, resource.RLIMIT_NOFILE)
    resource.prlimit(worker, resource.RLIMIT_NOFILE, (3, free[1]))
    clients = [varnishd.ask("a.example") for _ in range(CLIENTS)]
    varnishd.await_counter(EMFILE, 20)
    start, before = time.monotonic(), varnishd.counter(EMFILE)
    varnishd.await_counter(EMFILE, before + 100)
    tries = varnishd.counter(EMFILE) - before
    assert tries <= (time.monotonic() - start) / PAUSE + 5
    resource.prlimit(worker, resource.RLIMIT_NOFILE, free)
    answered(clients)
    varnishd.assert_alive()
