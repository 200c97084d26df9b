#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/1 client that reads slowly, but reads, until the response ends.

slow_reader.py ADDRESS PORT HOST: sends one GET and reads 64 kB of the response
fifty times a second. Prints how many bytes it got; exit status 0.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import time


def main() -> int:
    address, port, host = sys.argv[1:]
    got = 0
    with socket.socket() as s, contextlib.suppress(ConnectionError):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.connect((address, int(port)))
        s.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        while chunk := s.recv(65536):
            got += len(chunk)
            time.sleep(0.02)
    print(got)
    return 0


if __name__ == "__main__":
    sys.exit(main())
