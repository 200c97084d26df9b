# SPDX-License-Identifier: BSD-2-Clause
"""Whose objects make room in the cache, with an origin and a client."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import client as http
import pytest
from common import TIMEOUT, until
from pages import Origin

from varnishd import Varnishd

STORE = 4_000_000  # bytes of storage
PAGE = 100_000  # bytes of one object: fewer than 40 fit
KEPT = 10
HOURS = 3600  # seconds
LIMIT = 2**20  # bytes: 1MB in VCL
VCL = """vcl 4.1;
import sandpaper;
backend origin {{ .host = "127.0.0.1"; .port = "{port}"; }}
sub vcl_init {{
	sandpaper.tenant("shop", weight = {weight});
	sandpaper.host("shop", "shop.example");
	sandpaper.tenant("scan");
	sandpaper.host("scan", "scan.example");
	sandpaper.tenant("news");
	sandpaper.host("news", "news.example");
	{more}
}}
sub vcl_recv {{
	set req.url = req.url + "/" + req.http.Host;
}}
"""


class Cache:
    """A varnishd with little storage, before the origin."""

    def __init__(self, varnishd: Varnishd, pages: Origin, memory: str,
                 weight: float = 1, more: str = "", page: int = PAGE,
                 store: int = STORE, parameters: Sequence[str] = (),
                 preload: str = "") -> None:
        self.varnishd, self.pages, self.page = varnishd, pages, page
        if preload:
            varnishd.step_clock(0)
        varnishd.start(
            f"sandpaper_memory={memory}", "lru_interval=0", *parameters,
            preload=preload, vcl=VCL.format(port=pages.server_port, weight=weight, more=more),
            arguments=["-s", f"malloc,{store}"])
        self.client = HTTPConnection("127.0.0.1", varnishd.port,
                                     timeout=TIMEOUT)

    def get(self, host: str, numbers: range) -> None:
        """Get these pages of a Host."""
        for n in numbers:
            self.client.request("GET", f"/{self.page}/{n}",
                                headers={"Host": f"{host}.example"})
            answer = self.client.getresponse()
            assert (answer.status, len(answer.read())) == (200, self.page)

    def misses(self, host: str, numbers: range) -> int:
        """Get these pages, and return how many the origin was asked for."""
        before = self.pages.asked.total()
        self.get(host, numbers)
        return self.pages.asked.total() - before

    def bytes(self, *tenants: str) -> int:
        """Return the bytes in the cache of these tenants."""
        return sum(self.varnishd.cache(t)["cached_bytes"] for t in tenants)

    @contextmanager
    def slow(self, host: str, numbers: range) -> Iterator[None]:
        """While it lasts, a client reads the head of each of these pages, and
        no more."""
        with ExitStack() as clients:
            for n in numbers:
                client = clients.enter_context(
                    http.connect("127.0.0.1", self.varnishd.port, 4096))
                client.settimeout(TIMEOUT)
                client.sendall(http.get(f"{host}.example",
                                        f"/{self.page}/{n}"))
                assert client.recv(12) == b"HTTP/1.1 200"
            yield


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


@pytest.mark.parametrize(("idle", "lost"), [(3600, KEPT), (9000, 0), (0, 0)])
def test_a_share_is_for_use(varnishd: Varnishd, pages: Origin, idle: int,
                            lost: int) -> None:
    cache = Cache(varnishd, pages, "on", parameters=[
        f"sandpaper_memory_idle={idle}", "default_ttl=100000",
        f"clock_step={3 * HOURS}"], preload="clock_step")
    cache.get("shop", range(KEPT))
    cache.get("news", range(1))
    varnishd.step_clock(2 * HOURS)
    # A client asks for it, so it is not idle
    assert cache.misses("news", range(1)) == 0
    cache.get("scan", range(100))
    assert cache.misses("shop", range(KEPT)) == lost
    assert cache.misses("news", range(1)) == 0


def test_a_slow_client_keeps_one_idle_object(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on", parameters=[
        "default_ttl=100000", f"clock_step={3 * HOURS}"],
        preload="clock_step")
    cache.get("shop", range(KEPT))
    with cache.slow("shop", range(1)):
        cache.get("shop", range(1, KEPT))  # so the first one is its oldest
        varnishd.step_clock(2 * HOURS)
        cache.get("scan", range(100))
        assert cache.misses("shop", range(1, KEPT)) == KEPT - 1


def test_a_share_follows_the_weight(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on", weight=3)
    cache.get("shop", range(60))
    cache.get("scan", range(60))
    # 3/4 and 1/4 of about 38 pages
    assert 2.5 < cache.bytes("shop") / cache.bytes("scan") < 3.5


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


def test_a_tenant_stays_below_its_limit(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on",
                  more='sandpaper.memory("scan", limit = 1MB);')
    cache.get("scan", range(30))
    # Ten pages are its limit, although there is room for more
    assert cache.misses("scan", range(21, 30)) == 0
    assert cache.misses("scan", range(9)) == 9
    until(lambda: cache.bytes("scan") <= LIMIT)


def test_a_group_stays_below_its_limit(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on", more="""
	sandpaper.group("media");
	sandpaper.member("news", "media");
	sandpaper.member("scan", "media");
	sandpaper.memory("media", limit = 1MB);""")
    cache.get("news", range(30))
    cache.get("scan", range(30))
    cache.get("shop", range(20))
    until(lambda: cache.bytes("news", "scan") <= LIMIT)
    assert cache.misses("shop", range(20)) == 0


def test_a_reservation_is_kept_from_all_others(
        varnishd: Varnishd, pages: Origin) -> None:
    cache = Cache(varnishd, pages, "on",
                  more='sandpaper.memory("shop", reservation = 3MB);')
    cache.get("shop", range(28))
    cache.get("news", range(50))
    cache.get("scan", range(50))
    assert cache.misses("shop", range(28)) == 0


def test_slow_clients_do_not_keep_memory_for_their_tenant(
        varnishd: Varnishd, pages: Origin) -> None:
    # A page that does not fit into the buffers of a socket
    most = int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    page = max(5_000_000, most * 5 // 4)
    cache = Cache(varnishd, pages, "on", page=page, store=20 * page)
    cache.get("scan", range(18))
    with cache.slow("scan", range(9)):
        # The pages that they read are the least recently used ones now
        cache.get("scan", range(9, 18))
        # shop takes its half from the other pages. A search ends after eight
        # that are in use, so shop may lose one of its own at first
        for _ in range(2):
            cache.get("shop", range(8))
        assert cache.misses("shop", range(8)) == 0
    varnishd.assert_alive()
