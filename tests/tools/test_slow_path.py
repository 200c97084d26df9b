# SPDX-License-Identifier: BSD-2-Clause
"""A client that reads, behind a slow path, does not keep its slot.

Three network namespaces: varnishd, a router whose way on is slow, and the
client. Varnishd's own link is not what is slow.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "bench"))

from sandpaper_bench.reaper import Reaper  # noqa: E402
from sandpaper_bench.testbed import may_make_namespaces, run  # noqa: E402

ROOT = os.environ.get("VARNISH_ROOT", "")
SIZE = 20_000_000  # bytes: more than sockets and router hold
SECONDS = 40  # that the client's way takes for it
TIMEOUT = 60  # seconds
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


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(may_make_namespaces(), "needs root, for namespaces")
class SlowPath(unittest.TestCase):
    """One slot, and one client that is slow."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="path.")))
        self.reaper = Reaper()
        self.addCleanup(self.reaper.close)
        self.proxy, self.router, self.client = (
            f"spp{os.getpid()}-{name}" for name in "prc")
        for name in (self.proxy, self.router, self.client):
            self.reaper.netns(name)
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
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

    def start(self, where: str, *command: str) -> subprocess.Popen[str]:
        """Start a command in a namespace; it ends with the test."""
        process = self.reaper.popen(["ip", "netns", "exec", where, *command])
        self.addCleanup(self.reaper.end, process)
        return process

    def varnishd(self) -> None:
        """Start it with one slot; return when it answers."""
        page, vcl = self.folder / "page", self.folder / "vcl"
        page.write_bytes(b"x" * SIZE)
        vcl.write_text(VCL % page)
        self.start(
            self.proxy, f"{ROOT}/sbin/varnishd", "-F", "-j", "none",
            "-n", f"{self.folder}/n", "-f", str(vcl), "-a",
            f"10.78.0.1:{PORT}", "-p", "sandpaper_cores=1",
            "-p", "sandpaper_workers_per_core=1")
        end = time.monotonic() + TIMEOUT
        while subprocess.run(
                ["ip", "netns", "exec", self.proxy,
                 f"{ROOT}/bin/varnishadm", "-n", f"{self.folder}/n",
                 "-t", str(TIMEOUT), "ping"], check=False, timeout=TIMEOUT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode:
            self.assertLess(time.monotonic(), end, "varnishd does not start")

    def test_others_are_served_meanwhile(self) -> None:
        self.varnishd()
        slow = self.start(self.client, sys.executable, "-c", CLIENT)
        assert slow.stdout is not None
        self.assertEqual(slow.stdout.readline(), "began\n")
        other = self.start(self.proxy, sys.executable, "-c", OTHER)
        said, _ = other.communicate(timeout=TIMEOUT)
        self.assertEqual(said, "HTTP/1.1 200\n")
        self.assertIsNone(slow.poll(), "the slow client was served first")


if __name__ == "__main__":
    unittest.main()
