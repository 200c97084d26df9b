# SPDX-License-Identifier: BSD-2-Clause
"""A client that reads, behind a slow path, does not keep its slot.

Three network namespaces: varnishd, a router whose way on is slow, and the
client. Varnishd's own link is not what is slow.
"""

from __future__ import annotations

import subprocess
import sys
import time
import unittest

from namespaces import ROOT, TIMEOUT, Namespaces, run

SIZE = 20_000_000  # bytes: more than sockets and router hold
SECONDS = 40  # that the client's way takes for it
PORT = 8080
SO_RCVBUFFORCE = 33  # Python has no name for it
BLOCKED = 1.0  # seconds, SPD_BLOCKED
LINK = 16_000_000  # bits/s: 4 times the slow way's, which keeps none busy
PART = 300_000  # bytes: more than NIC_SHARE
FILL = 200  # answers that count NIC_SHARE each: 26 s of LINK

# It has room for all of it and reads what comes; says when it asked, as soon
# as the first byte has come
CLIENT = f"""
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, {SO_RCVBUFFORCE}, {2 * SIZE})
s.connect(("10.78.0.1", {PORT}))
asked = time.monotonic()
s.sendall(b"GET /large HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n")
s.recv(1)
print(asked, flush=True)
while s.recv(1 << 20):
    pass
"""
OTHER = f"""
import socket
s = socket.create_connection(("10.78.0.1", {PORT}), {SECONDS // 2})
s.sendall(b"GET / HTTP/1.1\\r\\nHost: b.example\\r\\n\\r\\n")
print(s.recv(12).decode(), flush=True)
"""
# Two tenants, so that nobody has the link alone
FILLS = f"""
import http.client
c = http.client.HTTPConnection("10.78.0.1", {PORT}, timeout={TIMEOUT})
for n in range({FILL}):
    c.request("GET", "/part", headers={{"Host": "ab"[n % 2] + ".example"}})
    c.getresponse().read()
"""
VCL = """vcl 4.1;
import std;
backend default none;
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
	if (req.url == "/part") { set resp.body = std.fileread("%s"); }
	elseif (req.url == "/large") { set resp.body = std.fileread("%s"); }
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
            "16k", "limit", str(SIZE // 2))  # it drops nothing

    @staticmethod
    def join(a: str, a_ip: str, b: str, b_ip: str) -> None:
        """Join two namespaces; the router's end is named after the other."""
        near = f"near{a_ip}"
        run("ip", "-n", a, "link", "add", "far", "type", "veth", "peer",
            "name", near, "netns", b)
        for name, dev, ip in ((a, "far", a_ip), (b, near, b_ip)):
            run("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", dev)
            run("ip", "-n", name, "link", "set", dev, "up")

    def serve(self, *options: str) -> None:
        """Start varnishd with one slot."""
        page, part = self.folder / "page", self.folder / "part"
        page.write_bytes(b"x" * SIZE)
        part.write_bytes(b"x" * PART)
        self.varnishd(self.proxy, VCL % (part, page),
                      "-a", f"10.78.0.1:{PORT}", "-p", "sandpaper_cores=1",
                      "-p", "sandpaper_workers_per_core=1", *options)

    def said(self, command: str, *arguments: str) -> str:
        """Return what varnishadm or varnishstat says."""
        return subprocess.run(
            ["ip", "netns", "exec", self.proxy, f"{ROOT}/bin/{command}",
             "-n", f"{self.folder}/n", *arguments], check=True, text=True,
            stdout=subprocess.PIPE, timeout=TIMEOUT).stdout

    def counter(self, name: str) -> int:
        """Return a counter of Sandpaper."""
        return int(self.said("varnishstat", "-1", "-f",
                             f"SANDPAPER.{name}").split()[1])

    def slow(self) -> tuple[subprocess.Popen[str], float]:
        """Return the slow client, once it is answered, and when it asked."""
        slow = self.start(self.client, sys.executable, "-c", CLIENT)
        assert slow.stdout is not None
        return slow, float(slow.stdout.readline())

    def test_others_are_served_meanwhile(self) -> None:
        self.serve()
        slow, _ = self.slow()
        other = self.start(self.proxy, sys.executable, "-c", OTHER)
        said, _ = other.communicate(timeout=TIMEOUT)
        self.assertEqual(said, "HTTP/1.1 200\n")
        self.assertIsNone(slow.poll(), "the slow client was served first")

    def test_it_keeps_its_slot_for_a_while_if_the_link_is_busy(self) -> None:
        # The link sends little now, but it has a backlog
        self.serve("-p", f"sandpaper_nic_rate={LINK}",
                   "-p", "sandpaper_new_hosts=tenant")
        for tenant in "ab":  # released whatever stands before the link
            self.said("varnishadm", "debug.sandpaper.cost",
                      f"{tenant}.example", "1000", "0")
        fills = self.start(self.proxy, sys.executable, "-c", FILLS)
        self.assertEqual(fills.wait(TIMEOUT), 0)
        _, asked = self.slow()
        while self.counter("lendings") == 0:
            self.assertLess(time.monotonic(), asked + TIMEOUT, "never lent")
        self.assertGreaterEqual(time.monotonic() - asked, BLOCKED)
        self.assertGreater(self.counter("nic_backlog"), 0, "not busy")


if __name__ == "__main__":
    unittest.main()
