# SPDX-License-Identifier: BSD-2-Clause
"""Slow clients behind a TLS terminator, which hitch is: what varnishd sees is
a Unix socket with PROXY, on which TCP says nothing about them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import time
import unittest
from collections.abc import Iterator

from preloaded import ROOT, TIMEOUT, Preloaded

SIZE = 10_000_000  # bytes: more than sockets and hitch hold
SLOW = 20
VCL = """vcl 4.1;
import std;
backend default none;
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
	if (req.url == "/large") { set resp.body = std.fileread("%s"); }
	else { set resp.body = client.ip; }
	return (deliver);
}
"""
HITCH = """frontend = {{ host = "127.0.0.1" port = "{port}" }}
backend = "{sock}"
pem-file = "{pem}"
write-proxy-v2 = on
workers = 1
daemon = off
syslog = off
{user}
"""


def hitch() -> str | None:
    """Return where hitch is, which Debian keeps out of a user's way."""
    return shutil.which("hitch", path=os.environ["PATH"] + ":/usr/sbin")


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(hitch(), "hitch is not installed")
class Tls(Preloaded):
    """One slot, and a client to whom it matters."""

    def setUp(self) -> None:
        super().setUp()
        page = self.folder / "page"
        page.write_bytes(b"x" * SIZE)
        sock = self.folder / "v.sock"
        self.varnishd(
            "", "-a", f"{sock},PROXY,mode=0666", "-f",
            self.vcl(VCL % page), "-p", "sandpaper_cores=1",
            "-p", "sandpaper_workers_per_core=1")
        os.chmod(self.folder, 0o755)  # hitch is another user
        pem = self.folder / "pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
             "-subj", "/CN=a.example", "-days", "2", "-keyout", str(pem),
             "-out", f"{pem}.crt"], check=True, capture_output=True)
        pem.write_text(pem.read_text() + (self.folder / "pem.crt").read_text())
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        conf = self.folder / "hitch.conf"
        conf.write_text(HITCH.format(
            port=self.port, sock=sock, pem=pem,
            user='user = "nobody"' if os.getuid() == 0 else ""))
        process = subprocess.Popen(
            [str(hitch()), f"--config={conf}"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        end = time.monotonic() + TIMEOUT
        while True:
            with contextlib.suppress(OSError), self.client():
                return
            self.assertIsNone(process.poll(), "hitch has ended")
            self.assertLess(time.monotonic(), end, "hitch does not start")

    @contextlib.contextmanager
    def client(self, *more: str) -> Iterator[ssl.SSLSocket]:
        """Connect; send a request of these lines, if any."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        with socket.create_connection(
                ("127.0.0.1", self.port), TIMEOUT) as plain, \
                context.wrap_socket(plain) as tls:
            if more:
                tls.sendall("\r\n".join(more).encode())
            yield tls

    def served(self) -> None:
        """Ask as another tenant, and be answered."""
        with self.client("GET / HTTP/1.1", "Host: b.example",
                         "Connection: close", "", "") as other:
            got = b"".join(iter(lambda: other.recv(4096), b""))
        self.assertTrue(got.startswith(b"HTTP/1.1 200"), got)
        # PROXY told who asks
        self.assertTrue(got.endswith(b"\r\n\r\n127.0.0.1"), got)

    def test_those_that_do_not_read_keep_no_slot(self) -> None:
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(self.client(
                "GET /large HTTP/1.1", "Host: a.example",
                "Connection: close", "", "")) for _ in range(SLOW)]
            self.await_counter("SANDPAPER.slow_readers", SLOW)
            self.await_counter("SANDPAPER.running", 0, 0)
            self.served()
            # What was promised is kept, in the end
            for client in slow:
                got = sum(len(part) for part in iter(
                    lambda c=client: c.recv(1 << 18), b""))
                self.assertGreater(got, SIZE)
        self.await_counter("SANDPAPER.lent", 0, 0)

    def test_half_a_request_keeps_no_slot(self) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(SLOW):
                stack.enter_context(self.client(
                    "GET /large HTTP/1.1", "Host: a.exa"))
            self.served()
            self.await_counter("SANDPAPER.running", 0, 0)


if __name__ == "__main__":
    unittest.main()
