#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/2 client that reads nothing before it is told to.

Sends one GET with windows of 2^31 - 1, waits for a line on standard input,
then reads the response. Exit status 0 if the body has the length given.
"""

from __future__ import annotations

import socket
import sys

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("0000060400000000000004 7fffffff")
WINDOW = bytes.fromhex("000004080000000000 7fff0000")
# HPACK: GET, https, /, :authority a.example; END_HEADERS and END_STREAM
HEADERS = bytes.fromhex("00000e010500000001 828784 0109") + b"a.example"
DATA, END_STREAM = 0, 1


def main() -> int:
    address, port, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    s.connect((address, port))
    s.sendall(PREFACE + SETTINGS + WINDOW + HEADERS)
    sys.stdin.readline()
    f = s.makefile("rb")
    body = 0
    while head := f.read(9):
        size = int.from_bytes(head[:3], "big")
        kind, flags = head[3], head[4]
        f.read(size)
        if kind == DATA:
            body += size
            if flags & END_STREAM:
                break
    print(f"{body} of {length} bytes")
    return 0 if body == length else 1


if __name__ == "__main__":
    sys.exit(main())
