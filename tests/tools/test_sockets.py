# SPDX-License-Identifier: BSD-2-Clause
"""When the kernel is asked about a socket, and what its answers do."""

from __future__ import annotations

import unittest
from http.client import HTTPConnection
from socket import SO_RCVBUF, SOL_SOCKET

from preloaded import ROOT, TIMEOUT, Preloaded

LINK = 16_000_000  # bits/s
PART = 300_000  # bytes: more than NIC_SHARE
FILL = 200  # answers that count NIC_SHARE each: 26 s of LINK
LARGE = 20_000_000  # bytes: more than sockets hold
HOLDS = 1_000_000  # bytes: of the client's socket, which else grows to 32 MB
VCL = """vcl 4.1;
import std;
backend none none;
sub vcl_recv {
	if (req.method == "POST") { std.cache_req_body(1MB); }
	return (synth(200));
}
sub vcl_synth {
	if (req.url == "/part") { set resp.body = std.fileread("%s"); }
	elseif (req.url == "/large") { set resp.body = std.fileread("%s"); }
	else { set resp.body = "small"; }
	return (deliver);
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Sockets(Preloaded):
    """Each question to the kernel is noted."""

    def start(self, *options: str, **env: str) -> None:
        """Start varnishd."""
        self.calls = self.folder / "calls"
        self.calls.touch()
        part, large = self.folder / "part", self.folder / "large"
        part.write_bytes(b"x" * PART)
        large.write_bytes(b"x" * LARGE)
        self.varnishd("sockets", "-f", self.vcl(VCL % (part, large)), *options,
                      CALLS=str(self.calls), **env)
        self.await_counter("SANDPAPER.slots", 2)  # from now on it is on

    def slow(self, rwnd: int) -> str:
        """Return what was asked until a reader on a busy link was slow."""
        self.start("-p", f"sandpaper_nic_rate={LINK}",
                   "-p", "sandpaper_new_hosts=tenant", RWND=str(rwnd))
        for tenant in "ab":  # released whatever stands before the link
            self.cli(f"debug.sandpaper.cost {tenant}.example 1000 0")
        client = HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        client.connect()
        client.sock.setsockopt(SOL_SOCKET, SO_RCVBUF, HOLDS)
        for n in range(FILL):
            client.request("GET", "/part",
                           headers={"Host": "ab"[n % 2] + ".example"})
            self.assertEqual(len(client.getresponse().read()), PART)
        before = len(self.calls.read_text())
        client.request("GET", "/large", headers={"Host": "a.example"})
        self.addCleanup(client.close)
        self.await_counter("SANDPAPER.lendings", 1)
        self.assertGreater(self.counter("SANDPAPER.nic_backlog"), 0)
        return self.calls.read_text()[before:]

    def test_a_reader_that_holds_the_sender_up_is_slow(self) -> None:
        # The second look tells, if meanwhile there was no room
        self.assertRegex(self.slow(51), "^tw+t$")

    def test_a_reader_that_does_so_half_of_the_time_is_not(self) -> None:
        # Each look says so, until its time is over
        self.assertGreater(self.slow(50).count("t"), 2)

    def test_a_slow_reader_is_one_thread_more(self) -> None:
        self.start("-p", "thread_pools=1", "-p", "thread_pool_min=5")
        self.await_counter("SANDPAPER.threads_wanted", 1)
        before = self.counter("SANDPAPER.threads_wanted")
        client = self.connect()
        client.setsockopt(SOL_SOCKET, SO_RCVBUF, HOLDS)
        self.send(client, "a.example", "/large")
        self.await_counter("SANDPAPER.slow_readers", 1)
        self.await_counter("SANDPAPER.threads_wanted", before + 1)
        self.assertEqual(self.counter("SANDPAPER.threads_wanted"), before + 1)

    def test_a_body_that_is_there_is_read_with_the_slot(self) -> None:
        self.start(LATE="1")
        self.cli("debug.sandpaper.freeze")
        client = self.connect()
        client.sendall(b"POST / HTTP/1.1\r\nHost: a.example\r\n"
                       b"Content-Length: 4\r\n\r\n")
        self.cli("debug.sandpaper.wait 1")
        client.sendall(b"Body")
        self.cli("debug.sandpaper.thaw")
        self.assertEqual(self.status(client), 200)
        self.assertEqual(self.calls.read_text(), "hr")
        self.assertEqual(self.counter("SANDPAPER.lendings"), 0)

    def test_nothing_is_asked_for_a_request_without_a_body(self) -> None:
        self.start()
        client = self.connect()
        for _ in range(10):
            self.send(client, "a.example")
            self.assertEqual(self.status(client), 200)
        self.assertEqual(self.calls.read_text(), "")


if __name__ == "__main__":
    unittest.main()
