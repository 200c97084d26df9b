# SPDX-License-Identifier: BSD-2-Clause
"""Whose objects make room in the cache, with an origin and a client."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from common import TIMEOUT

from varnishd import Varnishd

STORE = 4_000_000  # bytes of storage
PAGE = 100_000  # bytes of one object: fewer than 40 fit
KEPT = 10
VCL = """vcl 4.1;
import sandpaper;
backend origin {{ .host = "127.0.0.1"; .port = "{port}"; }}
sub vcl_init {{
	sandpaper.tenant("shop", weight = {weight});
	sandpaper.host("shop", "shop.example");
	sandpaper.tenant("scan");
	sandpaper.host("scan", "scan.example");
	{more}
}}
"""


class Origin(ThreadingHTTPServer):
    """Answers each request with a page, and counts the pages of each Host."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.asked: Counter[tuple[str, str]] = Counter()


class Page(BaseHTTPRequestHandler):
    """One request of varnishd."""

    server: Origin
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # noqa: N802
        self.server.asked[self.headers["Host"], self.path] += 1
        self.send_response(200)
        self.send_header("Content-Length", str(PAGE))
        self.end_headers()
        self.wfile.write(b"x" * PAGE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[Origin]:
    with Origin() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Cache:
    """A varnishd with little storage, before the origin."""

    def __init__(self, varnishd: Varnishd, pages: Origin, memory: str,
                 weight: float = 1, more: str = "") -> None:
        self.varnishd, self.pages = varnishd, pages
        varnishd.start(
            f"sandpaper_memory={memory}", "lru_interval=0",
            vcl=VCL.format(port=pages.server_port, weight=weight, more=more),
            arguments=["-s", f"malloc,{STORE}"])
        self.client = HTTPConnection("127.0.0.1", varnishd.port,
                                     timeout=TIMEOUT)

    def get(self, host: str, numbers: range) -> None:
        """Get these pages of a Host."""
        for n in numbers:
            self.client.request("GET", f"/{n}",
                                headers={"Host": f"{host}.example"})
            answer = self.client.getresponse()
            assert (answer.status, len(answer.read())) == (200, PAGE)

    def misses(self, host: str, numbers: range) -> int:
        """Get these pages, and return how many the origin was asked for."""
        before = self.pages.asked.total()
        self.get(host, numbers)
        return self.pages.asked.total() - before


def test_a_scan_pushes_out_its_own_objects(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on")
    cache.get("shop", range(KEPT))
    cache.get("scan", range(100))
    assert cache.misses("shop", range(KEPT)) == 0


def test_without_shares_a_scan_pushes_out_all(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "off")
    cache.get("shop", range(KEPT))
    cache.get("scan", range(100))
    assert cache.misses("shop", range(KEPT)) == KEPT


def test_memory_that_nobody_uses_is_lent(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on")
    fits = range(30)
    cache.get("scan", fits)
    assert cache.misses("scan", fits) == 0
    # shop asks for its half
    cache.get("shop", fits)
    assert cache.misses("shop", range(15, 30)) == 0
    assert cache.misses("scan", range(15, 30)) <= 2


def test_shares_change_while_it_runs(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "off")
    cache.get("shop", range(KEPT))
    varnishd.cli("param.set", "sandpaper_memory", "on")
    # A client asks for them: they are on shop's list now
    assert cache.misses("shop", range(KEPT)) == 0
    cache.get("scan", range(100))
    assert cache.misses("shop", range(KEPT)) == 0
    varnishd.cli("param.set", "sandpaper_memory", "off")
    cache.get("scan", range(100, 200))
    assert cache.misses("shop", range(KEPT)) == KEPT
    varnishd.assert_alive()


def test_a_limit_and_a_reservation(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on", more="""
	sandpaper.memory("shop", reservation = 3MB);
	sandpaper.memory("scan", limit = 1MB);""")
    cache.get("scan", range(30))
    # About ten pages are its limit, although there is room for more
    assert cache.misses("scan", range(21, 30)) == 0
    assert cache.misses("scan", range(9)) == 9
    cache.get("scan", range(30))
    cache.get("shop", range(28))
    cache.get("scan", range(100, 200))
    assert cache.misses("shop", range(28)) == 0
