#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The log of the testbed: it takes lines as a syslog daemon does.

It throws them away.  `syslog.py PATH` binds a datagram socket to PATH and
prints "ready".
"""

from __future__ import annotations

import socket
import sys

LINE_MAX = 8192


def main(path: str) -> None:
    """Receive for ever."""
    log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    log.bind(path)
    print("ready", flush=True)
    line = bytearray(LINE_MAX)
    while True:
        log.recv_into(line)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: syslog.py PATH")
    main(sys.argv[1])
