# SPDX-License-Identifier: BSD-2-Clause
"""Who can do nothing waits without burning CPU time."""

from __future__ import annotations

import os
import resource
import socket
import threading
import time
import unittest
from pathlib import Path

from preloaded import ROOT, TIMEOUT, Preloaded

THREADS = 20
WAITING = 200  # requests, more than there are threads
WINDOW = 5.0  # seconds
MOST = 0.01  # of one core, beyond what it takes when nothing waits
BLOCK = 'vtc.barrier_sync("127.0.0.1:%d");'
CLIENTS = 5  # for whom there is no descriptor
EMFILE = "MAIN.sess_fail_emfile"
PAUSE = 0.01  # seconds, of an acceptor, after ten tries at the latest
VCL = """vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
	%s
	return (synth(200));
}
"""


class Idle(Preloaded):
    """A varnishd for which something waits that it can't serve now."""

    def cpu_s(self) -> float:
        """Return what the worker process has used so far."""
        fields = Path(f"/proc/{self.worker()}/stat").read_text().rpartition(
            ")")[2]
        return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def worker(self) -> int:
        """Return the worker process, the manager's one child."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def used(self) -> float:
        """Return which part of a core it takes."""
        before, start = self.cpu_s(), time.monotonic()
        time.sleep(WINDOW)  # what is measured is what nothing takes
        return (self.cpu_s() - before) / (time.monotonic() - start)


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Saturated(Idle):
    """All threads block in VCL, and more want to."""

    def setUp(self) -> None:
        super().setUp()
        self.barrier = self.enterContext(
            socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        self.opened = threading.Event()
        self.varnishd(
            "", "-f", self.vcl(VCL % BLOCK % self.barrier.getsockname()[1]),
            "-p", "thread_pools=1", "-p", f"thread_pool_min={THREADS}",
            "-p", f"thread_pool_max={THREADS}", "-p", "sandpaper_cores=1",
            "-p", "sandpaper_workers_per_core=4")

    def serve(self) -> None:
        """Be the barrier: once it is open, all may pass."""
        for _ in range(WAITING):
            peer, _ = self.barrier.accept()
            self.opened.wait(TIMEOUT)
            peer.close()

    def test_it_waits_for_nothing(self) -> None:
        idle = self.used()
        threading.Thread(target=self.serve, daemon=True).start()
        clients = [self.ask(f"{n % 10}.example") for n in range(WAITING)]
        self.await_counter("SANDPAPER.waiting", WAITING // 2)
        self.assertLess(self.used() - idle, MOST)
        self.opened.set()
        for client in clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class NoDescriptors(Idle):
    """Connections wait to be accepted, and there is no descriptor."""

    def test_it_pauses(self) -> None:
        self.varnishd("", "-f", self.vcl(VCL % ""), "-p", "thread_pools=1")
        free = resource.prlimit(self.worker(), resource.RLIMIT_NOFILE)
        resource.prlimit(self.worker(), resource.RLIMIT_NOFILE, (3, free[1]))
        clients = [self.ask("a.example") for _ in range(CLIENTS)]
        self.await_counter(EMFILE, 20)
        start, before = time.monotonic(), self.counter(EMFILE)
        self.await_counter(EMFILE, before + 100)
        tries = self.counter(EMFILE) - before
        took = time.monotonic() - start
        self.assertLessEqual(tries, took / PAUSE + 5)
        resource.prlimit(self.worker(), resource.RLIMIT_NOFILE, free)
        for client in clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
