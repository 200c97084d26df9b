# SPDX-License-Identifier: BSD-2-Clause
"""Slow clients behind a TLS terminator, which hitch is: what varnishd sees is
a Unix socket with PROXY, on which TCP says nothing about them.

There is one slot, and a client to whom it matters.
"""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import client as http
import pytest
from common import TIMEOUT, ran, until

from sandpaper_bench.testbed import free_port
from varnishd import Varnishd

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
CONF = """frontend = {{ host = "127.0.0.1" port = "{port}" }}
backend = "{sock}"
pem-file = "{pem}"
write-proxy-v2 = on
workers = 1
daemon = off
syslog = off
{user}
"""
# Debian keeps it out of a user's way
HITCH = shutil.which("hitch", path=os.environ["PATH"] + ":/usr/sbin")

pytestmark = pytest.mark.skipif(not HITCH, reason="hitch is not installed")


class Terminator:
    """A hitch before a varnishd."""

    def __init__(self, varnishd: Varnishd, sock: Path) -> None:
        self.varnishd = varnishd
        self.port = free_port()
        folder = varnishd.folder
        folder.chmod(0o755)  # hitch is another user
        pem, conf = folder / "pem", folder / "hitch.conf"
        ran("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
            "-subj", "/CN=a.example", "-days", "2", "-keyout", pem, "-out",
            f"{pem}.crt")
        pem.write_text(pem.read_text() + (folder / "pem.crt").read_text())
        conf.write_text(CONF.format(
            port=self.port, sock=sock, pem=pem,
            user='user = "nobody"' if os.getuid() == 0 else ""))
        self.process = subprocess.Popen(
            [str(HITCH), f"--config={conf}"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        varnishd.callback(self.process.wait)
        varnishd.callback(self.process.terminate)
        until(self.listens, "hitch does not start")

    def listens(self) -> bool:
        assert self.process.poll() is None, "hitch has ended"
        with suppress(OSError):
            self.send(b"").close()
            return True
        return False

    def send(self, request: bytes) -> ssl.SSLSocket:
        """Return a connection on which this was sent."""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        plain = socket.create_connection(("127.0.0.1", self.port), TIMEOUT)
        client = self.varnishd.enter_context(context.wrap_socket(plain))
        client.sendall(request)
        return client

    def serves(self) -> None:
        """Ask as another tenant, and be answered."""
        got = self.send(http.get("b.example", "/", "Connection: close")
                        ).makefile("rb").read()
        assert got.startswith(b"HTTP/1.1 200")
        # PROXY told who asks
        assert got.endswith(b"\r\n\r\n127.0.0.1")


@pytest.fixture
def hitch(varnishd: Varnishd) -> Terminator:
    page, sock = varnishd.folder / "page", varnishd.folder / "v.sock"
    page.write_bytes(b"x" * SIZE)
    varnishd.start("sandpaper_cores=1", "sandpaper_workers_per_core=1",
                   vcl=VCL % page, arguments=("-a", f"{sock},PROXY,mode=0666"))
    return Terminator(varnishd, sock)


def test_those_that_do_not_read_keep_no_slot(varnishd: Varnishd,
                                             hitch: Terminator) -> None:
    slow = [hitch.send(http.get("a.example", "/large", "Connection: close"))
            for _ in range(SLOW)]
    varnishd.await_counter("SANDPAPER.slow_readers", SLOW)
    varnishd.await_counter("SANDPAPER.running", 0, 0)
    hitch.serves()
    # What was promised is kept, in the end
    for client in slow:
        assert http.body_length(client) == SIZE
        client.close()
    varnishd.await_counter("SANDPAPER.lent", 0, 0)


def test_half_a_request_keeps_no_slot(varnishd: Varnishd,
                                      hitch: Terminator) -> None:
    for _ in range(SLOW):
        hitch.send(b"GET /large HTTP/1.1\r\nHost: a.exa")
    hitch.serves()
    varnishd.await_counter("SANDPAPER.running", 0, 0)
