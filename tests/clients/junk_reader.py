# SPDX-License-Identifier: BSD-2-Clause
"""HTTP/1 clients on a Unix socket that read nothing, and then send junk.

junk_reader.py PATH CLIENTS [at-once]: the first client asks until varnishd has
no room left for an answer. The others ask for as many answers as there was room
for, and then send what is no request, or send it with their last request.
Prints `sent`; ends with its standard input.
"""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
import termios
import time

from client import get

JUNK = b"X\r\n\r\n"
NO_ROOM = 0.5  # seconds without an answer
TIMEOUT = 20.0


def unread(s: socket.socket) -> int:
    """Return how many bytes of answers wait."""
    count: int = struct.unpack(
        "i", fcntl.ioctl(s, termios.FIONREAD, bytes(4)))[0]
    return count


def ask(s: socket.socket, seconds: float, more: bytes = b"") -> bool:
    """Send a request, and more; has an answer come in that time?"""
    before, end = unread(s), time.monotonic() + seconds
    s.sendall(get("a.example") + more)
    while time.monotonic() < end:
        if unread(s) > before:
            return True
        time.sleep(0.0005)
    return False


def connect(path: str) -> socket.socket:
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s


def main() -> int:
    path, clients, at_once = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    room = 0
    with connect(path) as s:
        while ask(s, NO_ROOM):
            room += 1
    full = [connect(path) for _ in range(clients)]
    for s in full:
        last = JUNK if at_once else b""
        if not all(ask(s, TIMEOUT, last if i == room - 1 else b"")
                   for i in range(room)):
            return 1
    if not at_once:
        for s in full:
            s.sendall(JUNK)
    print("sent", flush=True)
    sys.stdin.readline()
    return 0


if __name__ == "__main__":
    sys.exit(main())
