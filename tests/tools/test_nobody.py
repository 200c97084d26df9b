# SPDX-License-Identifier: BSD-2-Clause
"""Connections without a tenant have a quarter of the cores, by measurement."""

from __future__ import annotations

import os
import resource
import socket
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

from preloaded import HELLO, ROOT, Preloaded

FLOOD = 3000  # connections: accepting and parsing them takes 0.1 s and more
PARTS = 2000  # see spd_part.c
OTHERS = 200  # descriptors
DRIPS = 20  # bytes of each
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
# Seconds of CPU: of the bucket in spd_cost.c, and of what had begun when it
# was empty.  A turn that is measured counts for those that are not.
BURST, BEGUN = 0.010, 0.010


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Nobody(Preloaded):
    """A flood of connections, on one core."""

    def start(self, vcl: str = HELLO) -> None:
        """Start varnishd on one core, which may have all connections."""
        many = FLOOD + PARTS + OTHERS
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2 * many:
            self.skipTest(f"not applicable: at most {hard} descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            self.varnishd("", "-f", self.vcl(vcl), "-p",
                          "listen_depth=8192", "-p", "timeout_idle=60", "-p",
                          f"sandpaper_queue_limit={many}")
        finally:
            os.sched_setaffinity(0, cores)

    @contextmanager
    def judged(self, part: float = 1 / 4) -> Iterator[None]:
        """Judge what connections without a tenant have taken meanwhile."""
        start, name = time.monotonic(), "SANDPAPER.cpu_unowned_ns"
        before = self.counter(name)
        yield
        took = (self.counter(name) - before) * 1e-9
        self.assertLessEqual(
            took, (time.monotonic() - start) * part + BURST + BEGUN)

    def flood(self, many: int, sent: bytes) -> list[socket.socket]:
        """Return so many clients, which varnishd has accepted."""
        accepted = self.counter("MAIN.sess_conn")
        clients = []
        for _ in range(many):
            clients.append(self.connect())
            clients[-1].sendall(sent)
        self.await_counter("MAIN.sess_conn", accepted + many)
        return clients

    def test_while_a_request_waits(self) -> None:
        self.start()
        self.cli("debug.sandpaper.freeze")
        clients = [self.ask("b.example")]
        self.await_counter("SANDPAPER.waiting", 1)
        with self.judged():
            clients += self.flood(FLOOD, HALF + REST)
        self.await_counter("SANDPAPER.waiting", 1 + FLOOD)
        self.cli("debug.sandpaper.thaw")
        for client in clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()

    def test_not_while_only_a_limit_holds_back(self) -> None:
        self.start(LIMITED)
        self.cli("debug.sandpaper.cost a 1000000000 0")  # us
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.ask("a.example")  # may go in 2000 s
        self.await_counter("SANDPAPER.waiting", 1)
        for client in self.flood(FLOOD, HALF + REST.replace(b"a.", b"b.")):
            self.assertEqual(self.status(client), 200)
        self.assertEqual(self.counter("SANDPAPER.accept_naps"), 0)
        self.assertEqual(self.counter("SANDPAPER.waiting"), 1)

    def test_while_parts_are_many(self) -> None:
        self.start()
        clients = self.flood(PARTS, HALF)
        self.await_counter("SANDPAPER.parts", PARTS)
        with self.judged():
            clients += self.flood(FLOOD, HALF)
        # The looks that find these bytes come on top
        with self.judged(1 / 2):
            for _ in range(DRIPS):
                for client in clients:
                    client.sendall(b"x")
            self.await_counter("SANDPAPER.ready", 0, 0)
        for client in clients:
            client.sendall(b": x\r\n" + REST)
        for client in clients:
            self.assertEqual(self.status(client), 200)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
