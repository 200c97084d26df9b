# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/2 client that reads nothing before a line comes.

h2_late_reader.py ADDRESS PORT LENGTH: sends one GET with windows of 2^31 - 1,
waits for a line on standard input, then reads the response. Exit status 0 if
the body has that length.
"""

from __future__ import annotations

import sys

from client import (
    DATA,
    END_STREAM,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    connect,
    frame,
    frames,
    get_stream,
)

# SETTINGS_INITIAL_WINDOW_SIZE, and what the connection's window lacks of it
LARGE_STREAM = frame(SETTINGS, bytes.fromhex("0004 7fffffff"))
LARGE_CONNECTION = frame(WINDOW_UPDATE, bytes.fromhex("7fff0000"))


def main() -> int:
    address, port, length = sys.argv[1:]
    s = connect(address, int(port), holds=16384)
    s.sendall(PREFACE + LARGE_STREAM + LARGE_CONNECTION
              + get_stream("a.example"))
    sys.stdin.readline()
    body = 0
    for kind, flags, payload in frames(s):
        if kind == DATA:
            body += len(payload)
            if flags & END_STREAM:
                break
    print(f"{body} of {length} bytes")
    return 0 if body == int(length) else 1


if __name__ == "__main__":
    sys.exit(main())
