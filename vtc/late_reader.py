#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/1 client with a small window that reads nothing before it is told.

late_reader.py ADDRESS PORT HOST LENGTH: sends one GET, then waits for a line
on standard input: `read`: reads the response, exit status 0 if its body has
that length; `reset`: closes the socket, whose unread bytes make that a reset.
"""

from __future__ import annotations

import socket
import sys


def body_length(s: socket.socket) -> int:
    f = s.makefile("rb")
    while f.readline() not in (b"\r\n", b""):
        pass
    body = 0
    while chunk := f.read1(65536):
        body += len(chunk)
    return body


def main() -> int:
    address, port, host, length = sys.argv[1:]
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        s.connect((address, int(port)))
        s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n"
                  "Connection: close\r\n\r\n".encode())
        if sys.stdin.readline().strip() != "read":
            return 0
        body = body_length(s)
    print(f"{body} of {length} bytes")
    return 0 if body == int(length) else 1


if __name__ == "__main__":
    sys.exit(main())
