# SPDX-License-Identifier: BSD-2-Clause
"""The load generator, and a server that it loads: the test."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from typing import Any

from common import TIMEOUT, port_of
from sandpaper_bench.load import build_loadgen

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@contextlib.contextmanager
def loaded(group: str, *options: str) -> Iterator[tuple[
        socket.socket, subprocess.Popen[str], dict[str, Any]]]:
    """Yield its first connection, itself, and a result that is there at the
    end."""
    found: dict[str, Any] = {}
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(TIMEOUT)
        load = subprocess.Popen(
            [str(build_loadgen()), "-w", "0", *options,
             f"127.0.0.1:{port_of(server)}", group],
            stdout=subprocess.PIPE, text=True)
        try:
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                yield peer, load, found
                out, _ = load.communicate(timeout=TIMEOUT)
        finally:
            load.kill()
            load.communicate()
    found |= json.loads(out.splitlines()[-1])["groups"][0]
