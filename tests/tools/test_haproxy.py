# SPDX-License-Identifier: BSD-2-Clause
"""haproxy in front, as doc/deploy.md has it: TLS with PROXY, and a load
balancer with health checks that pass the queue and fail while varnishd drains.
"""

from __future__ import annotations

import csv
import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import client as http
import pytest
from common import TIMEOUT, ran, until
from sandpaper_bench.testbed import free_port
from varnishd import Varnishd, answered, status

CHECKS = 5  # health checks that a test waits for
CONF = """\
global
    stats socket {folder}/stats mode 600

defaults
    mode tcp
    timeout connect 5s
    timeout check 60s
    timeout client 90s
    timeout server 90s

frontend https
    bind 127.0.0.1:{tls} ssl crt {folder}/pem alpn h2,http/1.1
    default_backend varnish

backend varnish
    server varnish 127.0.0.1:{proxied} send-proxy-v2

frontend balancer
    mode http
    bind 127.0.0.1:{plain}
    default_backend machines

backend machines
    mode http
    option httpchk GET /healthz
    server cache1 127.0.0.1:{port} check inter 100ms fall 3 rise 2
"""
VCL = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
	sandpaper.exempt("/healthz", per_second = 100);
}
sub vcl_recv {
	if (req.url == "/healthz" && sandpaper.draining()) {
		return (synth(503));
	}
	return (synth(200, client.ip));
}
sub vcl_synth {
	set resp.http.Asked-By = client.ip;
	return (deliver);
}
"""
# Debian keeps it out of a user's way
HAPROXY = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")

pytestmark = pytest.mark.skipif(not HAPROXY, reason="haproxy is not installed")


class Haproxy:
    """A haproxy before a varnishd."""

    def __init__(self, varnishd: Varnishd) -> None:
        self.varnishd, self.folder = varnishd, varnishd.folder
        self.tls, self.plain, proxied = (free_port() for _ in range(3))
        varnishd.start("feature=+http2", vcl=VCL, arguments=(
            "-a", f"127.0.0.1:{proxied},PROXY"))
        pem, conf = self.folder / "pem", self.folder / "haproxy.cfg"
        ran("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
            "-subj", "/CN=a.example", "-days", "2", "-keyout", pem, "-out",
            f"{pem}.crt")
        pem.write_text(pem.read_text() + Path(f"{pem}.crt").read_text())
        conf.write_text(CONF.format(
            folder=self.folder, tls=self.tls, plain=self.plain,
            proxied=proxied, port=varnishd.port))
        self.process = subprocess.Popen(
            [str(HAPROXY), "-db", "-f", conf], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        varnishd.callback(self.process.wait)
        varnishd.callback(self.process.terminate)
        until(lambda: self.state() == "UP", "haproxy finds no server")

    def state(self) -> str:
        """Return what haproxy thinks of the machine."""
        assert self.process.poll() is None, "haproxy has ended"
        with (suppress(OSError),
              socket.socket(socket.AF_UNIX) as stats):
            stats.connect(str(self.folder / "stats"))
            stats.sendall(b"show stat\n")
            rows = csv.DictReader(stats.makefile())
            return next((row["status"] for row in rows
                         if row["svname"] == "cache1"), "")
        return ""

    def ask(self) -> socket.socket:
        """Send a request through the load balancer."""
        client = self.varnishd.enter_context(
            socket.create_connection(("127.0.0.1", self.plain), TIMEOUT))
        client.sendall(http.get("a.example", "/"))
        return client


@pytest.fixture
def haproxy(varnishd: Varnishd) -> Haproxy:
    return Haproxy(varnishd)


@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_tls_and_the_address_of_the_client(haproxy: Haproxy,
                                           protocol: str) -> None:
    done = ran("curl", "-sik", "--max-time", str(TIMEOUT),
               "--http2" if protocol == "h2" else "--http1.1",
               "--resolve", f"a.example:{haproxy.tls}:127.0.0.1",
               f"https://a.example:{haproxy.tls}/").stdout
    assert done.startswith("HTTP/2 200" if protocol == "h2" else
                           "HTTP/1.1 200")
    assert "asked-by: 127.0.0.1" in done.lower()
    # It completes after its answer has been sent
    until(lambda: haproxy.varnishd.tenant("a.example")["completed"] == 1,
          "the request does not complete")


def test_health_checks_pass_the_queue(haproxy: Haproxy) -> None:
    varnishd = haproxy.varnishd
    varnishd.cli("debug.sandpaper.freeze")
    client = haproxy.ask()
    varnishd.cli("debug.sandpaper.wait 1")
    varnishd.await_counter(
        "SANDPAPER.exempt", varnishd.counter("SANDPAPER.exempt") + CHECKS)
    until(lambda: haproxy.state() == "UP", "haproxy has lost it")
    varnishd.cli("debug.sandpaper.thaw")
    answered([client])


def test_a_machine_that_drains_gets_no_more(haproxy: Haproxy) -> None:
    answered([haproxy.ask()])
    haproxy.varnishd.cli("sandpaper.drain on")
    until(lambda: haproxy.state() == "DOWN", "haproxy does not notice")
    before = haproxy.varnishd.tenant("a.example")["completed"]
    assert status(haproxy.ask()) == 503
    assert haproxy.varnishd.tenant("a.example")["completed"] == before
    haproxy.varnishd.cli("sandpaper.drain off")
    until(lambda: haproxy.state() == "UP", "haproxy does not notice")
    answered([haproxy.ask()])
