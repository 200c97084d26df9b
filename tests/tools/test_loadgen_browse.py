# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's clients that think and connect anew."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from typing import Any

import pytest
from loadgen import ANSWER
from sandpaper_bench.load import build_loadgen
from test_loadgen_open import TIMEOUT, Server, refusal

CLOSED = refusal(200, b"Connection: close")


def seen_by(address: str, group: str, seconds: str) -> dict[str, Any]:
    """Load a server; return what the group saw."""
    done = subprocess.run(
        [str(build_loadgen()), "-w", "0", "-t", seconds, address,
         f"host=a,mode=browse,{group}"], capture_output=True, text=True,
        timeout=TIMEOUT, check=True)
    found: dict[str, Any] = json.loads(
        done.stdout.splitlines()[-1])["groups"][0]
    return found


def test_a_connection_has_so_many_requests() -> None:
    for per_conn, connections in ((1, 6), (2, 3), (5, 2), (0, 1)):
        server = Server(lambda _: ANSWER)
        seen = server.loaded(
            f"mode=browse,per_conn={per_conn},limit=6", TIMEOUT)
        assert (seen["answered_in_all"], seen["errors"]) == (6, 0)
        assert server.connections == connections
        assert seen["connects"] == connections


def test_a_connection_that_the_answer_closes() -> None:
    server = Server(lambda n: CLOSED if n % 2 else ANSWER)
    seen = server.loaded("mode=browse,per_conn=5,think=0.01,limit=6", TIMEOUT)
    assert (seen["answered_in_all"], seen["errors"]) == (6, 0)
    assert server.connections == 3


def test_it_thinks_after_each_answer() -> None:
    for per_conn in (0, 1):
        at: list[float] = []

        def answer(_: int, at: list[float] = at) -> bytes:
            at.append(time.monotonic())
            return ANSWER

        Server(answer).loaded(
            f"mode=browse,per_conn={per_conn},think=0.05,limit=4", TIMEOUT)
        assert len(at) == 4
        assert all(b - a >= 0.05 for a, b in zip(at, at[1:], strict=False))


def test_each_client_thinks_for_itself() -> None:
    seen = Server(lambda _: ANSWER).loaded(
        "mode=browse,conns=20,think=0.001,per_conn=3,limit=2000", TIMEOUT)
    assert (seen["answered_in_all"], seen["errors"]) == (2000, 0)
    assert seen["conn_min"] > 0


def close_each(server: socket.socket) -> None:
    """Answer each connection once, and close it."""
    with contextlib.suppress(OSError):
        while True:
            with server.accept()[0] as peer:
                peer.recv(8192)
                peer.sendall(ANSWER)


def test_a_connection_that_is_closed_meanwhile() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=close_each, args=(server,),
                         daemon=True).start()
        seen = seen_by(f"127.0.0.1:{server.getsockname()[1]}",
                       "think=1,limit=3", str(TIMEOUT))
        server.shutdown(socket.SHUT_RDWR)
    assert (seen["answered_in_all"], seen["errors"]) == (3, 0)


def test_who_gets_no_connection_waits() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        seen = seen_by(f"127.0.0.1:{server.getsockname()[1]}", "conns=8",
                       "0.3")
    assert seen["sent_in_all"] < 8
    assert (seen["waiting"], seen["requests"]) == (8, 0)
    assert seen["p50_s"] > 0


@pytest.mark.parametrize(("group", "said"), [
    ("think=1", "think and per_conn work only with mode=browse"),
    ("per_conn=1", "think and per_conn work only with mode=browse"),
    ("mode=browse,on=1,off=1", "on does not work with mode=browse")])
def test_what_is_wrong_is_named(group: str, said: str) -> None:
    done = subprocess.run(
        [str(build_loadgen()), "127.0.0.1:1", f"host=a,{group}"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
