# SPDX-License-Identifier: BSD-2-Clause
"""What comes at the worst moment, by what is preloaded into varnishd."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import threading
import time
import unittest
from contextlib import suppress

from preloaded import HELLO, HERE, ROOT, TIMEOUT, Preloaded

IDLE_MAX = 2000  # connections that keep their request, see spd_conn.c
OTHERS = 100  # requests of workers, parsers and acceptors, at most
STREAMS = 4000  # refused 5 ms apart: 20 s
LONG = """vcl 4.1;
backend none none;
sub vcl_recv {
	if (req.http.X-Long ~ "^a{700}b{700}$") {
		return (synth(200));
	}
	return (synth(400));
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Waits(Preloaded):
    """Nobody signals again, and a write has sent a part."""

    def setUp(self) -> None:
        super().setUp()
        self.origin = self.enterContext(
            socket.create_server(("127.0.0.1", 0)))
        self.origin.settimeout(TIMEOUT)

    def start(self, preload: str, *options: str) -> None:
        """Start varnishd with the preloaded source and our origin."""
        self.varnishd(preload, "-b",
                      "127.0.0.1:%d" % self.origin.getsockname()[1], *options,
                      HELD_NOW=str(self.now), HELD_GO=str(self.go))

    def answer(self) -> None:
        """Answer one request when a worker's wait has ended by time."""
        peer, _ = self.origin.accept()
        with peer:
            peer.recv(4096)
            self.now.read_bytes()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
                         b"Connection: close\r\n\r\nlate")

    def test_what_came_true_meanwhile_is_seen(self) -> None:
        self.start("held_wait")
        answering = threading.Thread(target=self.answer, daemon=True)
        answering.start()
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.settimeout(TIMEOUT / 3)
            client.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\n"
                           b"Connection: close\r\n\r\n")
            answering.join(TIMEOUT)
            self.await_counter("SANDPAPER.fetches", 1)  # has ended
            self.go.write_bytes(b"x")
            got = b""
            while chunk := client.recv(4096):
                got += chunk
        self.assertTrue(got.endswith(b"late"), got)

    def test_a_part_of_a_vector_is_followed_by_the_rest(self) -> None:
        # HTTP/2 takes a short count for a client that does not read.
        self.start("short_send", "-p", "feature=+http2")
        with subprocess.Popen(
                [sys.executable, str(HERE.parent / "clients" / "h2_late_reader.py"),
                 "127.0.0.1", str(self.port), "4"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as client:
            self.addCleanup(client.kill)
            peer, _ = self.origin.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
                             b"Connection: close\r\n\r\nlate")
            self.assertEqual(
                client.communicate("\n", timeout=TIMEOUT)[0],
                "4 of 4 bytes\n")

    def test_a_tenant_with_bytes_to_parse_is_not_forgotten(self) -> None:
        most, on = 5, self.folder / "on"
        self.varnishd(
            "held_recv", "-f", self.vcl(HELLO),
            "-p", "sandpaper_new_hosts=tenant", "-p", "sandpaper_cores=1",
            "-p", f"sandpaper_tenants_max={most}", HELD_ON=str(on),
            HELD_GO=str(self.go))
        clients = [self.ask("a.example") for _ in range(10)]
        for client in clients:
            self.assertEqual(self.status(client), 200)
        on.touch()
        for client in clients:
            self.send(client, "a.example")
        self.await_counter("SANDPAPER.ready", 5)
        for n in range(2 * most):  # each needs room
            self.cli(f"debug.sandpaper.cost new{n}.example 1 0")
        self.assertEqual(self.tenant("a.example")["requests"], len(clients))
        with self.go.open("wb"):
            for client in clients:
                self.assertEqual(self.status(client), 200)
        self.assert_alive()

    def test_a_session_does_not_wait_for_who_is_gone(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO), "-p", "feature=+http2", "-p",
                      "sandpaper_queue_limit=1")
        self.cli("debug.sandpaper.freeze")
        waiting = self.ask("a.example")
        self.await_counter("SANDPAPER.waiting", 1)
        session = self.session()
        for number in range(STREAMS):
            self.stream(session, "a.example", 2 * number + 1)
        session.shutdown(socket.SHUT_WR)
        began = time.monotonic()
        self.await_counter("SANDPAPER.refused", STREAMS)
        self.assertLess(time.monotonic() - began, STREAMS * 0.005 / 2)
        self.cli("debug.sandpaper.thaw")
        self.assertEqual(self.status(waiting), 200)

    def allow(self, many: int) -> None:
        """Let this process and varnishd have so many connections."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < many + OTHERS:
            self.skipTest(f"not applicable: at most {hard} descriptors")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def assert_closed(self, client: socket.socket) -> None:
        """The connection ends, whether or not varnishd has read all."""
        with suppress(ConnectionResetError):
            self.assertEqual(client.recv(64), b"")

    def idle(self, many: int, status: int = 200) -> list[socket.socket]:
        """Return so many connections that linger after a request."""
        clients = []
        for _ in range(many):
            clients.append(self.ask("a.example"))
            self.assertEqual(self.status(clients[-1]), status)
        self.await_counter("SANDPAPER.lingering", many, many)
        return clients

    def test_those_beyond_many_that_linger_are_served_again(self) -> None:
        many = IDLE_MAX + OTHERS
        self.allow(many)
        self.varnishd("", "-f", self.vcl(HELLO), "-p", "timeout_linger=60",
                      "-p", "timeout_idle=60", "-p",
                      f"sandpaper_queue_limit={many}")
        clients = self.idle(many)
        self.assertLess(self.counter("MEMPOOL.req[0-9].live"),
                        IDLE_MAX + OTHERS)
        for client in clients:
            self.send(client, "a.example")
        for client in clients:
            self.assertEqual(self.status(client), 200)

    def test_those_that_linger_without_a_request_go_to_the_waiter(
            self) -> None:
        many = IDLE_MAX + OTHERS
        self.allow(many)
        self.varnishd("", "-f", self.vcl(HELLO), "-p", "timeout_linger=60",
                      "-p", "timeout_idle=60")
        self.idle(IDLE_MAX)
        self.cli("param.set timeout_linger 0.2")
        clients = [self.ask("a.example") for _ in range(OTHERS)]
        for client in clients:
            self.assertEqual(self.status(client), 200)
        clients += [self.connect() for _ in range(OTHERS)]
        self.await_counter("MAIN.sess_conn", IDLE_MAX + 2 * OTHERS)
        self.await_counter("SANDPAPER.lingering", IDLE_MAX, IDLE_MAX)
        for client in clients:
            self.send(client, "a.example")
        for client in clients:
            self.assertEqual(self.status(client), 200)

    def test_parts_beyond_many_grow_without_a_request(self) -> None:
        self.allow(IDLE_MAX + OTHERS)
        self.varnishd("", "-f", self.vcl(LONG), "-p", "timeout_linger=60",
                      "-p", "timeout_idle=60", "-p", "http_req_size=4096")
        self.idle(IDLE_MAX, 400)
        clients = [self.connect() for _ in range(OTHERS)]
        for part in (b"GET / HTTP/1.1\r\nHost: a.example\r\n", b"X-Long:",
                     700 * b"a", 700 * b"b", b"\r\n"):
            for client in clients:
                client.sendall(part)
            self.await_counter("SANDPAPER.parts", OTHERS, OTHERS)
        self.assertLess(self.counter("MEMPOOL.req[0-9].live"),
                        IDLE_MAX + OTHERS // 2)
        for client in clients:
            client.sendall(b"\r\n")
        for client in clients:
            self.assertEqual(self.status(client), 200)

        # One that is too long, and one that does not end
        clients[0].sendall(b"GET / HTTP/1.1\r\n")
        self.await_counter("SANDPAPER.parts", 1, 1)
        clients[0].sendall(4096 * b"x")
        self.assert_closed(clients[0])
        self.cli("param.set timeout_idle 1")
        self.send(clients[1], "a.example")
        self.assertEqual(self.status(clients[1]), 400)
        clients[1].sendall(b"GET / HTTP/1.1\r\n")
        self.assert_closed(clients[1])
        self.await_counter("SANDPAPER.parts", 0, 0)
        self.assert_alive()

    def test_those_that_wait_to_be_parsed_keep_no_request(self) -> None:
        many = IDLE_MAX + 1000
        self.allow(many)
        self.start("held_recv")
        clients = []
        for _ in range(many):
            client = self.enterContext(
                socket.create_connection(("127.0.0.1", self.port)))
            client.settimeout(TIMEOUT)
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")  # no Host: 400
            clients.append(client)
        self.await_counter("SANDPAPER.ready", many - OTHERS)
        self.assertLess(self.counter("MEMPOOL.req[0-9].live"),
                        IDLE_MAX + OTHERS)
        with self.go.open("wb"):
            for client in clients:
                self.assertTrue(client.recv(64).startswith(b"HTTP/1.1 "))


if __name__ == "__main__":
    unittest.main()
