# SPDX-License-Identifier: BSD-2-Clause
"""A pool whose threads are all blocked waits without burning CPU time."""

from __future__ import annotations

import os
import socket
import threading
import time
import unittest
from pathlib import Path

from preloaded import ROOT, TIMEOUT, Preloaded

THREADS = 20
WAITING = 200  # requests, more than there are threads
WINDOW = 5.0  # seconds
MOST = 0.01  # of one core
VCL = """vcl 4.1;
import vtc;
backend default none;
sub vcl_recv {
	vtc.barrier_sync("127.0.0.1:%d");
	return (synth(200));
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Saturated(Preloaded):
    """All block in VCL, and more want to."""

    def setUp(self) -> None:
        super().setUp()
        self.barrier = self.enterContext(
            socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        self.opened = threading.Event()
        self.varnishd(
            "", "-f", self.vcl(VCL % self.barrier.getsockname()[1]),
            "-p", "thread_pools=1", "-p", f"thread_pool_min={THREADS}",
            "-p", f"thread_pool_max={THREADS}", "-p", "sandpaper_cores=1",
            "-p", "sandpaper_workers_per_core=4")

    def cpu_s(self) -> float:
        """Return what the worker process has used so far."""
        worker = self.children(self.process.pid)
        fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2]
        return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def children(pid: int) -> int:
        """Return the one child of a process."""
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def serve(self) -> None:
        """Be the barrier: once it is open, all may pass."""
        for _ in range(WAITING):
            peer, _ = self.barrier.accept()
            self.opened.wait(TIMEOUT)
            peer.close()

    def test_it_waits_for_nothing(self) -> None:
        threading.Thread(target=self.serve, daemon=True).start()
        clients = [self.ask(f"{n % 10}.example") for n in range(WAITING)]
        self.await_counter("SANDPAPER.waiting", WAITING // 2)
        before, start = self.cpu_s(), time.monotonic()
        time.sleep(WINDOW)  # what is measured is what nothing takes
        used = (self.cpu_s() - before) / (time.monotonic() - start)
        self.assertLess(used, MOST)
        self.opened.set()
        for client in clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
