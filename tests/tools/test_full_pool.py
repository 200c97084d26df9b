# SPDX-License-Identifier: BSD-2-Clause
"""Pools that are full of pipes do not keep requests from threads of others."""

from __future__ import annotations

import random
import selectors
import socket
import threading
import time
import unittest

from preloaded import HELLO, ROOT, TIMEOUT, Preloaded

POOLS, THREADS = 8, 12  # of each pool, always
PIPES, ROUNDS, REQUESTS = 60, 4, 40
SECONDS = 1.0  # an answer takes at most
HEAD = b"GET /%s HTTP/1.1\r\nHost: a.example\r\n\r\n"
VCL = """vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_recv {
	if (req.url == "/pipe") { return (pipe); }
	return (synth(200));
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class FullPool(Preloaded):
    """Pipes keep 60 of 96 threads, so some pools have none that is idle."""

    def setUp(self) -> None:
        super().setUp()
        self.origin = socket.create_server(("127.0.0.1", 0), backlog=PIPES)
        self.addCleanup(self.origin.close)
        threading.Thread(target=self.hold, daemon=True).start()
        self.varnishd(
            "", "-f", self.vcl(VCL % self.origin.getsockname()[1]),
            "-p", f"thread_pools={POOLS}", "-p", f"thread_pool_min={THREADS}",
            "-p", f"thread_pool_max={THREADS}")

    def hold(self) -> None:
        """Begin an answer for each who connects; end when that one ends."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.origin, selectors.EVENT_READ)
            while self.origin.fileno() >= 0:
                for key, _ in waiting.select(1):
                    if key.fileobj is self.origin:
                        s, _ = self.origin.accept()
                        s.sendall(b"H")
                        waiting.register(s, selectors.EVENT_READ)
                    elif not key.fileobj.recv(4096):  # type: ignore[union-attr]
                        waiting.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]

    def pipe(self) -> socket.socket:
        """Return a connection whose pipe has a thread."""
        s = socket.create_connection(("127.0.0.1", self.port), TIMEOUT)
        self.addCleanup(s.close)
        s.sendall(HEAD % b"pipe")
        self.assertEqual(s.recv(1), b"H")
        return s

    def answered(self) -> bool:
        """Is a request on a new connection answered soon?"""
        with socket.create_connection(
                ("127.0.0.1", self.port), TIMEOUT) as s:
            s.settimeout(SECONDS)
            s.sendall(HEAD % b"")
            try:
                return s.recv(12) == b"HTTP/1.1 200"
            except TimeoutError:
                return False

    def test_all_are_answered(self) -> None:
        drawn = random.Random(1)
        pipes = [self.pipe() for _ in range(PIPES)]
        late = 0
        for _ in range(ROUNDS):
            drawn.shuffle(pipes)
            for s in pipes[:PIPES // 2]:
                s.close()
            pipes[:PIPES // 2] = [self.pipe() for _ in range(PIPES // 2)]
            late += sum(not self.answered() for _ in range(REQUESTS))
        self.assertEqual(late, 0, f"of {ROUNDS * REQUESTS}")
        for s in pipes:
            s.close()
        end = time.monotonic() + TIMEOUT
        while self.counter("SANDPAPER.lent"):
            self.assertLess(time.monotonic(), end, "pipes do not end")
        self.assert_alive()


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Proxied(Preloaded):
    """Connections with PROXY have all threads, and no task may wait."""

    def test_those_that_come_later_wait_in_the_kernel(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.varnishd(
            "", "-f", self.vcl(HELLO), "-a", f"127.0.0.1:{port},PROXY",
            "-p", "thread_pools=1", "-p", f"thread_pool_min={THREADS}",
            "-p", f"thread_pool_max={THREADS}", "-p", "thread_queue_limit=0",
            "-p", "timeout_idle=600")
        self.port = port
        clients = [self.connect() for _ in range(3 * THREADS)]
        for client in clients:
            client.sendall(b"PROXY TCP4 ")
        self.await_counter("MAIN.sess_conn", THREADS // 2)
        for client in clients:
            client.sendall(b"127.0.0.1 127.0.0.1 1 1\r\n" + HEAD % b"")
        for client in clients:
            self.assertEqual(self.status(client), 200)
            client.close()


if __name__ == "__main__":
    unittest.main()
