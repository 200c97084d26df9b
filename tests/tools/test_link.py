# SPDX-License-Identifier: BSD-2-Clause
"""Which interface is net: that of a client from outside this machine.

A health check over loopback often comes first, and an address can move.
"""

from __future__ import annotations

import re

import client as http
import pytest
from common import until
from network import OWN_SYS, Network

from varnishd import Varnishd

PORT = 8080


@pytest.fixture(autouse=True)
def start(proxy: Network, client: Network, varnishd: Varnishd) -> None:
    """Two interfaces and loopback."""
    for number, device in enumerate(("one", "two")):
        proxy.join(device, f"10.79.{number}.1", client, device,
                   f"10.79.{number}.2")
        for network, host in ((proxy, 1), (client, 2)):
            network.ip("addr", "add", f"fd79:{number}::{host}/64", "dev",
                       device, "nodad")
    # Nobody knows the speed of a bridge without ports
    proxy.ip("link", "add", "three", "type", "bridge")
    proxy.ip("addr", "add", "10.79.2.1/24", "dev", "three")
    proxy.ip("link", "set", "three", "up")
    varnishd.start(
        "vsl_mask=+Debug", before=OWN_SYS, preload="refused",
        NO_NETLINK=varnishd.folder / "refused", arguments=(
            "-a", f"0.0.0.0:{PORT}", "-a", f"[::]:{PORT}"))


def ask(where: Network, address: str) -> None:
    """Send one request, on a connection of its own."""
    with where, http.connect(address, PORT) as s:
        s.sendall(http.get("a.example"))
        assert s.recv(12) == b"HTTP/1.1 200"


def log(varnishd: Varnishd) -> list[tuple[str, int]]:
    """Return the interfaces that were net, in order, and their rates."""
    said = "\n".join(varnishd.log("-i", "Debug"))
    return [(name, int(rate)) for name, rate in re.findall(
        r"net is the interface (\w+), its rate is (\d+)", said)]


def await_log(varnishd: Varnishd, *interfaces: str) -> None:
    """Wait until these were net."""
    until(lambda: [name for name, _ in log(varnishd)] == list(interfaces),
          f"these were not net: {interfaces}")


def test_loopback_counts_only_at_first(
        varnishd: Varnishd, proxy: Network, client: Network) -> None:
    def moved() -> bool:
        ask(client, "10.79.1.1")
        return [name for name, _ in log(varnishd)] == ["lo", "one", "two"]

    ask(proxy, "127.0.0.1")
    await_log(varnishd, "lo")
    ask(client, "10.79.0.1")
    await_log(varnishd, "lo", "one")
    # What comes later changes nothing, while the address stays
    ask(proxy, "127.0.0.1")
    ask(client, "10.79.1.1")
    proxy.ip("link", "del", "one")
    until(moved, "the second interface is not net")


def test_ipv6(varnishd: Varnishd, proxy: Network, client: Network) -> None:
    ask(proxy, "::1")
    await_log(varnishd, "lo")
    ask(client, "fd79:1::1")
    await_log(varnishd, "lo", "two")
    assert log(varnishd) == [("lo", 0), ("two", 10_000_000_000)]


def test_speed_is_not_known(varnishd: Varnishd, proxy: Network) -> None:
    ask(proxy, "10.79.2.1")
    await_log(varnishd, "three")
    assert log(varnishd) == [("three", 0)]


def test_the_first_read_fails(varnishd: Varnishd, client: Network) -> None:
    def found() -> bool:
        ask(client, "10.79.1.1")
        return bool(log(varnishd))

    refused = varnishd.folder / "refused"
    refused.touch()
    ask(client, "10.79.1.1")
    until(lambda: refused.stat().st_size, "the kernel was not asked")
    assert log(varnishd) == []
    refused.rename(varnishd.folder / "allowed")
    until(found, "no interface is net")
    assert log(varnishd) == [("two", 10_000_000_000)]
