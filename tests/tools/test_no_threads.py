# SPDX-License-Identifier: BSD-2-Clause
"""No thread can be made for a while: what there is serves."""

from __future__ import annotations

import socket
import threading
import unittest

from preloaded import ROOT, TIMEOUT, Preloaded

THREADS = 20
CLIENTS = 40
VCL = """vcl 4.0;
backend be { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_recv { return (pass); }
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class NoThreads(Preloaded):
    """Threads are wanted that can't be made."""

    def setUp(self) -> None:
        super().setUp()
        self.origin = self.enterContext(
            socket.create_server(("127.0.0.1", 0), backlog=CLIENTS))
        self.opened = threading.Event()
        self.no_threads = self.folder / "no_threads"
        self.varnishd(
            "no_threads", "-f",
            self.vcl(VCL % self.origin.getsockname()[1]),
            "-p", "thread_pools=1", "-p", f"thread_pool_min={THREADS}",
            # While a task is queued, Varnish makes threads above the minimum
            "-p", f"thread_pool_max={THREADS}",
            "-p", "thread_pool_reserve=10",
            "-p", "thread_pool_fail_delay=0.01", "-p", "sandpaper_cores=1",
            "-p", "sandpaper_workers_per_core=5", NO_THREADS=str(
                self.no_threads))
        self.await_counter("MAIN.threads", THREADS)
        self.no_threads.touch()
        self.cli("param.reset thread_pool_max")
        # Slots for all of them
        self.cli(f"param.set sandpaper_workers_per_core {CLIENTS}")
        self.await_counter("SANDPAPER.threads_wanted", CLIENTS)
        threading.Thread(target=self.serve, daemon=True).start()
        self.clients = [self.ask("a.example") for _ in range(CLIENTS)]
        self.await_counter("MAIN.thread_queue_len", 1)
        self.await_counter("MAIN.threads_failed", 1)

    def serve(self) -> None:
        """Be the origin: once it is open, it answers all."""
        for _ in range(CLIENTS):
            peer, _ = self.origin.accept()
            self.opened.wait(TIMEOUT)
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                             b"Connection: close\r\n\r\n")

    def answered(self) -> None:
        """Open the origin: all are answered."""
        self.opened.set()
        for client in self.clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()

    def test_more_requests_than_threads(self) -> None:
        self.answered()
        self.assertEqual(self.counter("MAIN.threads"), THREADS)

    def test_they_are_made_later(self) -> None:
        self.no_threads.unlink()
        self.await_counter("MAIN.threads", CLIENTS)
        self.answered()


if __name__ == "__main__":
    unittest.main()
