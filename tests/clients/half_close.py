# SPDX-License-Identifier: BSD-2-Clause
"""A client that ends its half of the connection with what it has sent.

half_close.py ADDRESS PORT TIMES SENT ANSWER: so many connections, one after
the other, send SENT (with \\r and \\n) and a FIN in one packet. Exit status 0
if each was answered by what begins with ANSWER (by nothing, if that is
empty) and then closed.
"""

from __future__ import annotations

import socket
import sys

from client import connect


def ask(address: str, port: int, sent: bytes) -> bytes:
    with connect(address, port) as s:
        s.send(sent, socket.MSG_MORE)
        s.shutdown(socket.SHUT_WR)
        return s.makefile("rb").read()


def main() -> int:
    address, port, times, sent, answer = sys.argv[1:]
    raw = sent.encode().decode("unicode_escape").encode()
    for _ in range(int(times)):
        got = ask(address, int(port), raw)
        if not got.startswith(answer.encode()) or (got and not answer):
            print(f"answered by {got!r}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
