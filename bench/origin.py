#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An origin that makes up pages of any size, at any speed.

Apache serves the experiments' pages; this one drips those of `drip-origin`,
and is what the load generator's tests load.

/bytes/N            N bytes at once
/drip/N/R           N bytes, R bytes/s (at least one byte at a time)
/fail/M             closed without an answer after M ms
/late/N/M           N bytes after an exponential time with mean M ms
/silent             no answer, ever
/missing/M          404 after such a time
anything else       404

A page's text repeats, so that it compresses and has words for VCL to work on.
`origin.py ADDR PORT` prints "ready" once it listens.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import resource
import sys

TEXT = b"<li><a href=/news/2019-11-07>An edge proxy serves many</a></li>\n"
DRIP_INTERVAL = 0.1  # seconds between two pieces of a dripped page
LATENESS = random.Random(1)


def page(size: int) -> bytes:
    """Return a page of `size` bytes."""
    return (TEXT * (size // len(TEXT) + 1))[:size]


def head(status: str, size: int) -> bytes:
    """Return the response head for a body of `size` bytes."""
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\n"
        f"Content-Length: {size}\r\n\r\n"
    ).encode()


async def drip(writer: asyncio.StreamWriter, size: int, rate: float) -> None:
    """Write `size` bytes at `rate` bytes/s."""
    step = max(1, int(rate * DRIP_INTERVAL))
    for start in range(0, size, step):
        writer.write(page(min(step, size - start)))
        await writer.drain()
        await asyncio.sleep(step / rate)


async def answer(path: str, writer: asyncio.StreamWriter) -> None:
    """Answer one GET of `path`."""
    match path.split("?")[0].strip("/").split("/"):
        case ["bytes", size] if size.isdigit():
            writer.write(head("200 OK", int(size)) + page(int(size)))
        case ["drip", size, rate] if size.isdigit() and rate.isdigit():
            writer.write(head("200 OK", int(size)))
            await drip(writer, int(size), max(1, int(rate)))
        case ["fail", late] if late.isdigit():
            await asyncio.sleep(int(late) / 1e3)
            raise ConnectionAbortedError
        case ["late", size, mean] if size.isdigit() and mean.isdigit():
            await asyncio.sleep(LATENESS.expovariate(1) * int(mean) / 1e3)
            writer.write(head("200 OK", int(size)) + page(int(size)))
        case ["silent"]:
            await asyncio.Event().wait()
        case ["missing", mean] if mean.isdigit():
            await asyncio.sleep(LATENESS.expovariate(1) * int(mean) / 1e3)
            writer.write(head("404 Not Found", 0))
        case _:
            writer.write(head("404 Not Found", 0))
    await writer.drain()


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer the requests of one connection until it closes."""
    with contextlib.suppress(
        asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError
    ):
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            words = request.split(b" ", 2)
            if len(words) < 3 or words[0] not in (b"GET", b"HEAD"):
                break
            await answer(words[1].decode("latin-1"), writer)
    writer.close()


async def main(addr: str, port: int) -> None:
    """Listen on `addr`:`port` for ever."""
    server = await asyncio.start_server(serve, addr, port, backlog=1024)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[2].isdigit():
        sys.exit("usage: origin.py ADDR PORT")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], int(sys.argv[2])))
