# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/1 client with a small window that reads nothing before a line comes.

late_reader.py ADDRESS PORT HOST LENGTH: sends one GET, then waits for a line
on standard input: `read`: reads the response, exit status 0 if its body has
that length; `reset`: closes the socket, whose unread bytes make that a reset.
"""

from __future__ import annotations

import sys

from client import body_length, connect, get


def main() -> int:
    address, port, host, length = sys.argv[1:]
    with connect(address, int(port), holds=16384) as s:
        s.sendall(get(host, "/", "Connection: close"))
        if sys.stdin.readline().strip() != "read":
            return 0
        body = body_length(s)
    print(f"{body} of {length} bytes")
    return 0 if body == int(length) else 1


if __name__ == "__main__":
    sys.exit(main())
