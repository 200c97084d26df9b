# SPDX-License-Identifier: BSD-2-Clause
"""When the kernel is asked about a socket, and what its answers do."""

from __future__ import annotations

import re
from http.client import HTTPConnection
from pathlib import Path
from socket import SO_RCVBUF, SOL_SOCKET
from typing import Any

import client as http
from common import TIMEOUT

from varnishd import LINK, PART, Varnishd, status

LARGE = 20_000_000  # bytes: more than sockets hold
HOLDS = 1_000_000  # bytes: of the client's socket, which else grows to 32 MB
VCL = """vcl 4.1;
import std;
backend none none;
sub vcl_recv {
	if (req.method == "POST") { std.cache_req_body(1MB); }
	return (synth(200));
}
sub vcl_synth {
	if (req.url == "/part") { set resp.body = std.fileread("%s"); }
	elseif (req.url == "/large") { set resp.body = std.fileread("%s"); }
	else { set resp.body = "small"; }
	return (deliver);
}
"""


def start(varnishd: Varnishd, *params: str,
          **env: Any) -> Path:  # noqa: ANN401
    """Start varnishd; return the file with all questions to the kernel."""
    calls, part, large = (varnishd.folder / name
                          for name in ("calls", "part", "large"))
    calls.touch()
    part.write_bytes(b"x" * PART)
    large.write_bytes(b"x" * LARGE)
    varnishd.start(*params, vcl=VCL % (part, large), preload="sockets",
                   CALLS=calls, **env)
    varnishd.await_counter("SANDPAPER.slots", 2)  # from now on it is on
    return calls


def asked_of_slow(varnishd: Varnishd, rwnd: int) -> str:
    """Return what was asked until a reader on a busy link was slow."""
    calls = start(varnishd, f"sandpaper_nic_rate={LINK}",
                  "sandpaper_new_hosts=tenant", RWND=rwnd)
    client = HTTPConnection("127.0.0.1", varnishd.port, timeout=TIMEOUT)
    varnishd.callback(client.close)
    client.connect()
    client.sock.setsockopt(SOL_SOCKET, SO_RCVBUF, HOLDS)
    varnishd.fill_link(client, "/part")
    before = len(calls.read_text())
    client.request("GET", "/large", headers={"Host": "a.example"})
    varnishd.await_counter("SANDPAPER.lendings", 1)
    varnishd.await_counter("SANDPAPER.nic_backlog_bytes", 1)  # a gauge, 50 ms late
    return calls.read_text()[before:]


def test_a_reader_that_holds_the_sender_up_is_slow(varnishd: Varnishd) -> None:
    # The second look tells, if meanwhile there was no room
    assert re.fullmatch("tw+t", asked_of_slow(varnishd, 51))


def test_a_reader_that_does_so_half_of_the_time_is_not(
        varnishd: Varnishd) -> None:
    # Each look says so, until its time is over
    assert asked_of_slow(varnishd, 50).count("t") > 2


def test_a_slow_reader_is_one_thread_more(varnishd: Varnishd) -> None:
    start(varnishd, "thread_pools=1", "thread_pool_min=5")
    varnishd.await_counter("SANDPAPER.threads_wanted", 1)
    before = varnishd.counter("SANDPAPER.threads_wanted")
    varnishd.connect(HOLDS).sendall(http.get("a.example", "/large"))
    varnishd.await_counter("SANDPAPER.slow_readers", 1)
    varnishd.await_counter("SANDPAPER.threads_wanted", before + 1)
    assert varnishd.counter("SANDPAPER.threads_wanted") == before + 1


def test_a_body_that_is_there_is_read_with_the_slot(
        varnishd: Varnishd) -> None:
    calls = start(varnishd, LATE=1)
    varnishd.cli("debug.sandpaper.freeze")
    client = varnishd.connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: a.example\r\n"
                   b"Content-Length: 4\r\n\r\n")
    varnishd.cli("debug.sandpaper.wait 1")
    client.sendall(b"Body")
    varnishd.cli("debug.sandpaper.thaw")
    assert status(client) == 200
    assert calls.read_text() == "hr"
    assert varnishd.counter("SANDPAPER.lendings") == 0


def test_nothing_is_asked_for_a_request_without_a_body(
        varnishd: Varnishd) -> None:
    calls = start(varnishd)
    client = varnishd.connect()
    for _ in range(10):
        assert varnishd.get("a.example", client=client) == 200
    assert calls.read_text() == ""
