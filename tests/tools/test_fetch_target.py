# SPDX-License-Identifier: BSD-2-Clause
"""A fetch target keeps answers in time when an origin cannot serve all.

The origin serves two requests at a time, each for 20 ms.  Clients ask for twice
as many objects as it can serve, none of which is in the cache.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from statistics import median

from varnishd import Varnishd

SERVERS, SERVICE_S = 2, 0.02
CAPACITY = SERVERS / SERVICE_S  # objects/s
LOAD, SECONDS = 2, 5
TARGET_S = 0.5
VCL = """vcl 4.1;
import sandpaper;
backend b {{ .host = "127.0.0.1"; .port = "{port}"; }}
sub vcl_init {{
	sandpaper.tenant("shop");
	sandpaper.host("shop", "shop.example");
	{target}
}}
sub vcl_recv {{ return (pass); }}
"""


@dataclass
class Answer:
    """What a client got, and when."""

    status: int
    took_s: float


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter,
                servers: asyncio.Semaphore) -> None:
    """Answer one request of varnishd's, when a server is free."""
    await reader.readuntil(b"\r\n\r\n")
    async with servers:
        await asyncio.sleep(SERVICE_S)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                 b"Connection: close\r\n\r\n")
    writer.close()


async def ask(port: int, number: int, begin: float) -> Answer:
    """Ask in time, on a connection of its own."""
    loop = asyncio.get_running_loop()
    due = begin + number / (LOAD * CAPACITY)
    await asyncio.sleep(due - loop.time())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /%d HTTP/1.1\r\nHost: shop.example\r\n"
                 b"Connection: close\r\n\r\n" % number)
    line = await reader.readline()
    took = loop.time() - due
    writer.close()
    return Answer(int(line.split()[1]), took)


async def all_answers(varnishd: Varnishd, target: str) -> list[Answer]:
    """Return the answers to SECONDS of requests."""
    servers = asyncio.Semaphore(SERVERS)
    origin = await asyncio.start_server(
        lambda r, w: serve(r, w, servers), "127.0.0.1", 0, backlog=1024)
    port = origin.sockets[0].getsockname()[1]
    async with origin:
        await asyncio.to_thread(
            varnishd.start, vcl=VCL.format(port=port, target=target))
        begin = asyncio.get_running_loop().time() + 0.1
        return await asyncio.gather(*(
            ask(varnishd.port, number, begin)
            for number in range(int(LOAD * CAPACITY * SECONDS))))


def good(answers: list[Answer]) -> float:
    """Return the answers in time, over those that the origin can serve."""
    return sum(a.status == 200 and a.took_s <= TARGET_S
               for a in answers) / (CAPACITY * SECONDS)


def test_without_a_target_all_answers_are_late(varnishd: Varnishd) -> None:
    answers = asyncio.run(all_answers(varnishd, ""))
    print(f"good: {good(answers):.2f}")
    assert all(a.status == 200 for a in answers)
    assert good(answers) < 0.5


def test_with_a_target_they_are_in_time(varnishd: Varnishd) -> None:
    answers = asyncio.run(all_answers(
        varnishd, f'sandpaper.fetch_target("shop", {TARGET_S}s);'))
    served = sorted(a.took_s for a in answers if a.status == 200)
    refused = [a.took_s for a in answers if a.status == 503]
    print(f"good: {good(answers):.2f}; served: p50 {median(served):.3f} s, "
          f"p99 {served[len(served) * 99 // 100]:.3f} s; refused: "
          f"{len(refused)}, p50 {median(refused):.3f} s")
    assert len(served) + len(refused) == len(answers)
    assert good(answers) > 0.8
    assert median(refused) < 0.1
    assert varnishd.counter("SANDPAPER.refused_fetch") == len(refused)
