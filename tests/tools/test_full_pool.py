# SPDX-License-Identifier: BSD-2-Clause
"""Pools that are full of pipes do not keep requests from threads of others."""

from __future__ import annotations

import random
import selectors
import socket
import threading

import client as http
import pytest
from common import port_of

from sandpaper_bench.testbed import free_port
from varnishd import Varnishd, answered

POOLS, THREADS = 8, 12  # of each pool, always
PIPES, ROUNDS, REQUESTS = 60, 4, 40
SECONDS = 1.0  # an answer takes at most
VCL = """vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "%d"; }
sub vcl_recv {
	if (req.url == "/pipe") { return (pipe); }
	return (synth(200));
}
"""


def hold(origin: socket.socket, ended: threading.Event) -> None:
    """Begin an answer for each who connects; end when that one ends."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(origin, selectors.EVENT_READ)
        while not ended.is_set():
            for key, _ in waiting.select(0.1):
                s = key.fileobj
                assert isinstance(s, socket.socket)
                if s is origin:
                    peer, _ = s.accept()
                    peer.sendall(b"H")
                    waiting.register(peer, selectors.EVENT_READ)
                elif not s.recv(4096):
                    waiting.unregister(s)
                    s.close()


@pytest.fixture
def holding(varnishd: Varnishd, origin: socket.socket) -> socket.socket:
    """An origin whose pipes go on."""
    ended = threading.Event()
    thread = threading.Thread(target=hold, args=(origin, ended))
    thread.start()
    varnishd.callback(thread.join)
    varnishd.callback(ended.set)
    return origin


def pipe(varnishd: Varnishd) -> socket.socket:
    """Return a connection whose pipe has a thread."""
    s = varnishd.ask("a.example", "/pipe")
    assert s.recv(1) == b"H"
    return s


def late(varnishd: Varnishd) -> bool:
    """Does a request on a new connection wait for long?"""
    with varnishd.ask("a.example") as s:
        s.settimeout(SECONDS)
        try:
            return s.recv(12) != b"HTTP/1.1 200"
        except TimeoutError:
            return True


def test_all_are_answered(varnishd: Varnishd, holding: socket.socket) -> None:
    """Pipes keep 60 of 96 threads, so some pools have none that is idle."""
    varnishd.start(f"thread_pools={POOLS}", f"thread_pool_min={THREADS}",
                   f"thread_pool_max={THREADS}", vcl=VCL % port_of(holding))
    drawn = random.Random(1)
    pipes = [pipe(varnishd) for _ in range(PIPES)]
    waited = 0
    for _ in range(ROUNDS):
        drawn.shuffle(pipes)
        for s in pipes[:PIPES // 2]:
            s.close()
        pipes[:PIPES // 2] = [pipe(varnishd) for _ in range(PIPES // 2)]
        waited += sum(late(varnishd) for _ in range(REQUESTS))
    assert waited == 0, f"of {ROUNDS * REQUESTS}"
    for s in pipes:
        s.close()
    varnishd.await_counter("SANDPAPER.lent", 0, 0)  # pipes end
    varnishd.assert_alive()


def test_those_that_come_later_wait_in_the_kernel(varnishd: Varnishd) -> None:
    """Connections with PROXY have all threads, and no task may wait."""
    port = free_port()
    varnishd.start(
        "thread_pools=1", f"thread_pool_min={THREADS}",
        f"thread_pool_max={THREADS}", "thread_queue_limit=0",
        "timeout_idle=600", arguments=("-a", f"127.0.0.1:{port},PROXY"))
    varnishd.port = port
    clients = [varnishd.connect() for _ in range(3 * THREADS)]
    for client in clients:
        client.sendall(b"PROXY TCP4 ")
    varnishd.await_counter("MAIN.sess_conn", THREADS // 2)
    for client in clients:
        client.sendall(b"127.0.0.1 127.0.0.1 1 1\r\n" + http.get("a.example"))
    for client in clients:
        answered([client])
        client.close()
