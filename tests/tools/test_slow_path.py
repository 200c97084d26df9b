# SPDX-License-Identifier: BSD-2-Clause
"""A client that reads, behind a slow path, does not keep its slot.

Three network namespaces: varnishd, a router whose way on is slow, and the
client. Varnishd's own link is not what is slow.
"""

from __future__ import annotations

import subprocess
import sys
import unittest

from namespaces import TIMEOUT, Namespaces, run

SIZE = 20_000_000  # bytes: more than sockets and router hold
SECONDS = 40  # that the client's way takes for it
PORT = 8080
SO_RCVBUFFORCE = 33  # Python has no name for it

# It has room for all of it and reads what comes; says when the first byte does
CLIENT = f"""
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, {SO_RCVBUFFORCE}, {2 * SIZE})
s.connect(("10.78.0.1", {PORT}))
s.sendall(b"GET /large HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n")
s.recv(1)
print("began", flush=True)
while s.recv(1 << 20):
    pass
"""
OTHER = f"""
import socket
s = socket.create_connection(("10.78.0.1", {PORT}), {SECONDS // 2})
s.sendall(b"GET / HTTP/1.1\\r\\nHost: b.example\\r\\n\\r\\n")
print(s.recv(12).decode(), flush=True)
"""
VCL = """vcl 4.1;
import std;
backend default none;
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
	if (req.url == "/large") { set resp.body = std.fileread("%s"); }
	else { set resp.body = "small"; }
	return (deliver);
}
"""


class SlowPath(Namespaces):
    """One slot, and one client that is slow."""

    def setUp(self) -> None:
        super().setUp()
        self.proxy, self.router, self.client = self.namespaces(
            "p", "r", "c")
        self.join(self.proxy, "10.78.0.1", self.router, "10.78.0.2")
        self.join(self.client, "10.78.1.1", self.router, "10.78.1.2")
        run("ip", "-n", self.proxy, "route", "add", "default", "via",
            "10.78.0.2")
        run("ip", "-n", self.client, "route", "add", "default", "via",
            "10.78.1.2")
        run("ip", "netns", "exec", self.router, "sysctl", "-qw",
            "net.ipv4.ip_forward=1")
        run("tc", "-n", self.router, "qdisc", "add", "dev", "near10.78.1.1",
            "root", "tbf", "rate", f"{SIZE * 8 // SECONDS}bit", "burst",
            "16k", "limit", "64k")

    @staticmethod
    def join(a: str, a_ip: str, b: str, b_ip: str) -> None:
        """Join two namespaces; the router's end is named after the other."""
        near = f"near{a_ip}"
        run("ip", "-n", a, "link", "add", "far", "type", "veth", "peer",
            "name", near, "netns", b)
        for name, dev, ip in ((a, "far", a_ip), (b, near, b_ip)):
            run("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", dev)
            run("ip", "-n", name, "link", "set", dev, "up")

    def test_others_are_served_meanwhile(self) -> None:
        page = self.folder / "page"
        page.write_bytes(b"x" * SIZE)
        self.varnishd(self.proxy, VCL % page, "-a", f"10.78.0.1:{PORT}",
                      "-p", "sandpaper_cores=1",
                      "-p", "sandpaper_workers_per_core=1")
        slow = self.start(self.client, sys.executable, "-c", CLIENT)
        assert slow.stdout is not None
        self.assertEqual(slow.stdout.readline(), "began\n")
        other = self.start(self.proxy, sys.executable, "-c", OTHER)
        said, _ = other.communicate(timeout=TIMEOUT)
        self.assertEqual(said, "HTTP/1.1 200\n")
        self.assertIsNone(slow.poll(), "the slow client was served first")


if __name__ == "__main__":
    unittest.main()
