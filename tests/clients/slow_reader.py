# SPDX-License-Identifier: BSD-2-Clause
"""An HTTP/1 client that reads slowly, but reads, until the response ends.

slow_reader.py ADDRESS PORT HOST: sends one GET and reads 64 kB of the response
fifty times a second. Prints how many bytes it got; exit status 0.
"""

from __future__ import annotations

import contextlib
import sys
import time

from client import connect, get


def main() -> int:
    address, port, host = sys.argv[1:]
    got = 0
    with (connect(address, int(port), holds=65536) as s,
          contextlib.suppress(ConnectionError)):
        s.sendall(get(host))
        while chunk := s.recv(65536):
            got += len(chunk)
            time.sleep(0.02)
    print(got)
    return 0


if __name__ == "__main__":
    sys.exit(main())
