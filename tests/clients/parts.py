# SPDX-License-Identifier: BSD-2-Clause
"""Clients that send a request in two parts.

parts.py ADDRESS PORT N: a connection sends a part of a request. Then N - 1
others do. Then the last one and the first one send the rest: prints the status
of both answers, or "closed" for a connection that the server has closed. Before
each step it prints a word and waits for a line.
"""

from __future__ import annotations

import socket
import sys

from client import connect

PART = b"GET / HTTP/1.1\r\nHost: a.example\r\nX-Part: "
REST = b"1\r\n\r\n"
TIMEOUT = 30.0


def answer(s: socket.socket) -> str:
    try:
        s.sendall(REST)
        got = s.recv(1000)
    except ConnectionError:
        got = b""
    return got.split()[1].decode() if got else "closed"


def step(word: str) -> None:
    print(word, flush=True)
    sys.stdin.readline()


def main() -> int:
    address, port, many = sys.argv[1:]
    connections = []
    for n in range(int(many)):
        s = connect(address, int(port))
        s.settimeout(TIMEOUT)
        s.sendall(PART)
        connections.append(s)
        if n == 0:
            step("first")
    step("sent")
    step(f"{answer(connections[-1])} {answer(connections[0])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
