# SPDX-License-Identifier: BSD-2-Clause
"""What comes at the worst moment, by what is preloaded into varnishd."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from statistics import mean
from typing import Any

import client as http
import pytest
from common import SOON, TIMEOUT, TOP, port_of, until

from varnishd import Varnishd, allow_descriptors, answered, respond, status

IDLE_MAX = 2000  # connections that keep their request, see spd_conn.c
OTHERS = 100  # requests of workers, parsers and acceptors, at most
HELD = 10  # parsers and the like, at most
STREAMS = 4000  # refused 5 ms apart: 20 s
LINGERS = "timeout_linger=60", "timeout_idle=60"
TARGET = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
	sandpaper.tenant("a");
	sandpaper.host("a", "a.example");
	sandpaper.target("a", 0.001s);
}
sub vcl_recv {
	return (synth(200));
}
"""
LONG = """vcl 4.1;
backend none none;
sub vcl_recv {
	if (req.http.X-Long ~ "^a{700}b{700}$") {
		return (synth(200));
	}
	return (synth(400));
}
"""


def start(varnishd: Varnishd, origin: socket.socket, preload: str,
          *params: str, **env: Any) -> None:  # noqa: ANN401
    """Start varnishd with the preloaded source and our origin."""
    varnishd.start(*params, vcl="", preload=preload,
                   arguments=("-b", f"127.0.0.1:{port_of(origin)}"), **env)


@pytest.fixture
def held(varnishd: Varnishd) -> Path:
    """While there is this file, a thread is held."""
    file = varnishd.folder / "held"
    file.touch()
    return file


def test_what_came_true_meanwhile_is_seen(
        varnishd: Varnishd, origin: socket.socket, held: Path) -> None:
    def answer() -> None:
        """Answer one request when a worker's wait has ended by time."""
        peer, _ = origin.accept()
        until(Path(f"{held}.held").exists, "no wait has ended by time")
        respond(peer, b"late")

    start(varnishd, origin, "held", HELD_WAIT=held)
    answering = threading.Thread(target=answer, daemon=True)
    answering.start()
    client = varnishd.connect()
    client.settimeout(SOON)
    client.sendall(http.get("a.example", "/", "Connection: close"))
    answering.join(TIMEOUT)
    varnishd.await_counter("SANDPAPER.fetches", 1)  # has ended
    held.unlink()
    assert client.makefile("rb").read().endswith(b"late")


def test_a_part_of_a_vector_is_followed_by_the_rest(
        varnishd: Varnishd, origin: socket.socket) -> None:
    # HTTP/2 takes a short count for a client that does not read.
    start(varnishd, origin, "short_send", "feature=+http2")
    with subprocess.Popen(
            [sys.executable, TOP / "tests/clients/h2_late_reader.py",
             "127.0.0.1", str(varnishd.port), "4"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True) as client:
        varnishd.callback(client.kill)
        respond(origin.accept()[0], b"late")
        assert client.communicate("\n", timeout=TIMEOUT)[0] == (
            "4 of 4 bytes\n")


def test_a_tenant_with_bytes_to_parse_is_not_forgotten(
        varnishd: Varnishd, held: Path) -> None:
    most = 5
    held.unlink()
    varnishd.start(
        "sandpaper_new_hosts=tenant", "sandpaper_cores=1", *LINGERS,
        f"sandpaper_tenants_max={most}", preload="held", HELD_RECV=held)
    clients = [varnishd.ask("a.example") for _ in range(10)]
    answered(clients)
    held.touch()
    for client in clients:
        client.sendall(http.get("a.example"))
    varnishd.await_counter("SANDPAPER.ready", 5)
    for n in range(2 * most):  # each needs room
        varnishd.cli(f"debug.sandpaper.cost new{n}.example 1 0")
    assert varnishd.tenant("a.example")["completed"] == len(clients)
    held.unlink()
    answered(clients)
    varnishd.assert_alive()


@pytest.mark.parametrize("known", [True, False])
def test_late_requests_do_not_make_new_ones_late(
        varnishd: Varnishd, held: Path, known: bool) -> None:
    # Means of twenty: a worker that loses its core logs its request late
    held.unlink()
    varnishd.start("sandpaper_cores=1", *LINGERS, vcl=TARGET, preload="held",
                   HELD_RECV=held)
    clients = [varnishd.connect() for _ in range(200)]
    for client in clients if known else []:     # of a tenant
        client.sendall(http.get("a.example"))
        assert status(client) in (200, 503)
    # A worker that still reads from a connection would be held, too
    varnishd.await_counter("SANDPAPER.lingering", len(clients))
    refused = varnishd.counter("SANDPAPER.refused_target")
    held.touch()
    for client in clients:
        client.sendall(http.get("a.example"))
    varnishd.await_counter("SANDPAPER.ready", len(clients) - HELD)
    # Late is what waited for more than 20 ms
    came = time.monotonic()
    until(lambda: time.monotonic() > came + 0.02, "time stands still")
    held.unlink()
    assert {status(client) for client in clients} <= {200, 503}
    requests = len(clients) * (1 + known)
    until(lambda: len(varnishd.log("-i", "ReqStart")) >= requests)
    place = {line.split()[4]: n  # of its last request
             for n, line in enumerate(varnishd.log("-i", "ReqStart"))}
    first, middle, newest = (
        mean(place[str(client.getsockname()[1])] for client in some)
        for some in (clients[5:25], clients[90:110], clients[-20:]))
    assert max(first, newest) < middle
    varnishd.await_counter("SANDPAPER.refused_target",
                           refused + len(clients) - HELD)


def test_a_session_does_not_wait_for_who_is_gone(varnishd: Varnishd) -> None:
    varnishd.start("feature=+http2", "sandpaper_queue_limit=1")
    varnishd.cli("debug.sandpaper.freeze")
    waiting = varnishd.ask("a.example")
    varnishd.await_counter("SANDPAPER.waiting", 1)
    session = varnishd.session()
    for number in range(STREAMS):
        session.sendall(http.get_stream("a.example", 2 * number + 1))
    session.shutdown(socket.SHUT_WR)
    began = time.monotonic()
    varnishd.await_counter("SANDPAPER.refused", STREAMS)
    assert time.monotonic() - began < STREAMS * 0.005 / 2
    varnishd.cli("debug.sandpaper.thaw")
    assert status(waiting) == 200


def closed(client: socket.socket) -> bool:
    """Does the connection end, whether or not varnishd has read all?"""
    with suppress(ConnectionResetError):
        return client.recv(64) == b""
    return True


def idle(varnishd: Varnishd, many: int, wanted: int = 200
         ) -> list[socket.socket]:
    """Return so many connections that linger after a request."""
    clients = []
    for _ in range(many):
        clients.append(varnishd.ask("a.example"))
        assert status(clients[-1]) == wanted
    varnishd.await_counter("SANDPAPER.lingering", many, many)
    return clients


def test_those_beyond_many_that_linger_are_served_again(
        varnishd: Varnishd) -> None:
    many = IDLE_MAX + OTHERS
    allow_descriptors(many + OTHERS)
    varnishd.start(*LINGERS, f"sandpaper_queue_limit={many}")
    clients = idle(varnishd, many)
    assert varnishd.counter("MEMPOOL.req[0-9].live") < IDLE_MAX + OTHERS
    for client in clients:
        client.sendall(http.get("a.example"))
    answered(clients)


def test_those_that_linger_without_a_request_go_to_the_waiter(
        varnishd: Varnishd) -> None:
    allow_descriptors(IDLE_MAX + 2 * OTHERS)
    varnishd.start(*LINGERS)
    idle(varnishd, IDLE_MAX)
    varnishd.cli("param.set timeout_linger 0.2")
    clients = [varnishd.ask("a.example") for _ in range(OTHERS)]
    answered(clients)
    clients += [varnishd.connect() for _ in range(OTHERS)]
    varnishd.await_counter("MAIN.sess_conn", IDLE_MAX + 2 * OTHERS)
    varnishd.await_counter("SANDPAPER.lingering", IDLE_MAX, IDLE_MAX)
    for client in clients:
        client.sendall(http.get("a.example"))
    answered(clients)


def test_parts_beyond_many_grow_without_a_request(varnishd: Varnishd) -> None:
    allow_descriptors(IDLE_MAX + 2 * OTHERS)
    varnishd.start(*LINGERS, "http_req_size=4096", vcl=LONG)
    idle(varnishd, IDLE_MAX, 400)
    clients = [varnishd.connect() for _ in range(OTHERS)]
    for part in (b"GET / HTTP/1.1\r\nHost: a.example\r\n", b"X-Long:",
                 700 * b"a", 700 * b"b", b"\r\n"):
        for client in clients:
            client.sendall(part)
        varnishd.await_counter("SANDPAPER.parts", OTHERS, OTHERS)
    assert varnishd.counter("MEMPOOL.req[0-9].live") < IDLE_MAX + OTHERS // 2
    for client in clients:
        client.sendall(b"\r\n")
    answered(clients)

    # One that is too long, and one that does not end
    long, endless = clients[:2]
    long.sendall(b"GET / HTTP/1.1\r\n")
    varnishd.await_counter("SANDPAPER.parts", 1, 1)
    long.sendall(4096 * b"x")
    assert closed(long)
    varnishd.cli("param.set timeout_idle 1")
    assert varnishd.get("a.example", client=endless) == 400
    endless.sendall(b"GET / HTTP/1.1\r\n")
    assert closed(endless)
    varnishd.await_counter("SANDPAPER.parts", 0, 0)
    varnishd.assert_alive()


def test_those_that_wait_to_be_parsed_keep_no_request(
        varnishd: Varnishd, origin: socket.socket, held: Path) -> None:
    many = IDLE_MAX + 1000
    allow_descriptors(many + OTHERS)
    start(varnishd, origin, "held", HELD_RECV=held)
    clients = []
    for _ in range(many):
        clients.append(varnishd.connect())
        clients[-1].sendall(b"GET / HTTP/1.1\r\n\r\n")  # no Host: 400
    varnishd.await_counter("SANDPAPER.ready", many - OTHERS)
    assert varnishd.counter("MEMPOOL.req[0-9].live") < IDLE_MAX + OTHERS
    held.unlink()
    for client in clients:
        assert client.recv(64).startswith(b"HTTP/1.1 ")
