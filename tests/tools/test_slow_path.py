# SPDX-License-Identifier: BSD-2-Clause
"""A client that reads, behind a slow path, does not keep its slot.

Three network namespaces: varnishd, a router whose way on is slow, and the
client. Varnishd's own link is not what is slow.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import client as http
import pytest
from common import TIMEOUT, ran
from network import Network

from varnishd import FILES, LINK, PART, Varnishd

SIZE = 20_000_000  # bytes: more than sockets and router hold
SECONDS = 40  # that the client's way takes for it
PORT = 8080
ADDRESS = "10.78.0.1"
SO_RCVBUFFORCE = 33  # Python has no name for it
BLOCKED = 1.0  # seconds, SPD_BLOCKED
NO_ACK = 0.2  # seconds, SPD_NO_ACK


@pytest.fixture
def router() -> Network:
    return Network()


@pytest.fixture(autouse=True)
def way(proxy: Network, client: Network, router: Network) -> None:
    """Put the router between both; its way to the client is slow."""
    proxy.join("far", ADDRESS, router, "near", "10.78.0.2")
    client.join("far", "10.78.1.1", router, "slow", "10.78.1.2")
    proxy.ip("route", "add", "default", "via", "10.78.0.2")
    client.ip("route", "add", "default", "via", "10.78.1.2")
    with router:
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        ran("tc", "qdisc", "add", "dev", "slow", "root", "tbf", "rate",
            f"{SIZE * 8 // SECONDS}bit", "burst", "16k", "limit",
            str(SIZE // 2))  # it drops nothing


def start(varnishd: Varnishd, *params: str) -> None:
    """Start varnishd with one slot."""
    varnishd.start("sandpaper_cores=1", "sandpaper_workers_per_core=1",
                   *params, vcl=FILES, arguments=("-a", f"{ADDRESS}:{PORT}"))


def page(varnishd: Varnishd, size: int) -> str:
    """Return the URL of a page of so many bytes."""
    file = varnishd.folder / str(size)
    file.write_bytes(b"x" * size)
    return str(file)


def start_with_busy_link(varnishd: Varnishd) -> None:
    """Start varnishd with one slot, and let its link have a backlog.

    The link sends little later, but stays busy.
    """
    start(varnishd, f"sandpaper_nic_rate={LINK}", "sandpaper_new_hosts=tenant")
    fills = HTTPConnection(ADDRESS, PORT, timeout=TIMEOUT)
    varnishd.fill_link(fills, page(varnishd, PART))
    fills.close()


def slow(varnishd: Varnishd, client: Network) -> tuple[threading.Thread, float]:
    """Return who reads what comes, once it is answered, and when it asked.

    It has room for all of it.
    """
    def read() -> None:
        with suppress(ConnectionError):
            while s.recv(1 << 20):
                pass

    url = page(varnishd, SIZE)
    with client:
        s = varnishd.enter_context(socket.socket())
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2 * SIZE)
    s.connect((ADDRESS, PORT))
    asked = time.monotonic()
    s.sendall(http.get("a.example", url))
    s.recv(1)
    reads = threading.Thread(target=read)
    reads.start()
    varnishd.callback(reads.join)
    varnishd.callback(s.shutdown, socket.SHUT_RDWR)
    return reads, asked


def test_others_are_served_meanwhile(varnishd: Varnishd,
                                     client: Network) -> None:
    start(varnishd)
    reads, _ = slow(varnishd, client)
    with http.connect(ADDRESS, PORT) as other:
        other.settimeout(SECONDS / 2)
        other.sendall(http.get("b.example"))
        assert other.recv(12) == b"HTTP/1.1 200"
    assert reads.is_alive(), "the slow client was served first"


def test_it_keeps_its_slot_for_a_while_if_the_link_is_busy(
        varnishd: Varnishd, client: Network) -> None:
    start_with_busy_link(varnishd)
    _, asked = slow(varnishd, client)
    varnishd.await_counter("SANDPAPER.lendings", 1)
    assert time.monotonic() - asked >= BLOCKED
    assert varnishd.counter("SANDPAPER.nic_backlog_bytes") > 0, "not busy"


def test_the_time_without_an_ack_begins_with_the_write(
        varnishd: Varnishd, client: Network) -> None:
    # Another client has the slot, so the request waits for longer than NO_ACK.
    # Its answer then waits behind that client's bytes.
    start_with_busy_link(varnishd)
    _, asked = slow(varnishd, client)
    with client:
        waits = varnishd.enter_context(http.connect(ADDRESS, PORT))
    waits.sendall(http.get("b.example", page(varnishd, SIZE)))
    varnishd.await_counter("SANDPAPER.lendings", 2)
    assert time.monotonic() - asked >= BLOCKED + NO_ACK
    assert varnishd.counter("SANDPAPER.nic_backlog_bytes") > 0, "not busy"
