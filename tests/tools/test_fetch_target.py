# SPDX-License-Identifier: BSD-2-Clause
"""A fetch target keeps answers in time when an origin cannot serve all.

The origin serves two requests at a time, each for 100 ms.  Clients ask for
twice as many objects as it can serve, none of which is in the cache.  An origin
that answers with 503 at once is not fast.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median

from varnishd import Varnishd

SERVERS, SERVICE_S = 2, 0.1
CAPACITY = SERVERS / SERVICE_S  # objects/s
LOAD, SECONDS = 2, 15
TARGET_S = 2.5
REFUSALS, CLIENTS = 4000, 3  # of the origin; fewer than always may wait
BURST, MOST = 200, 60  # the last of MOST fetches would wait for 3 s
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


@dataclass
class Origin:
    """Where varnishd fetches."""

    servers: asyncio.Semaphore
    refuses: bool = False
    port: int = 0
    busy_s: float = 0.0  # of all servers

    async def serve(self, reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter) -> None:
        """Answer one request of varnishd's, when a server is free."""
        await reader.readuntil(b"\r\n\r\n")
        status = b"503 No" if self.refuses else b"200 OK"
        if not self.refuses:
            loop = asyncio.get_running_loop()
            async with self.servers:
                began = loop.time()
                await asyncio.sleep(SERVICE_S)
                self.busy_s += loop.time() - began
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n"
                     b"Connection: close\r\n\r\n")
        writer.close()


@asynccontextmanager
async def started(varnishd: Varnishd, target: str) -> AsyncIterator[Origin]:
    """Start an origin, and varnishd in front of it."""
    origin = Origin(asyncio.Semaphore(SERVERS))
    server = await asyncio.start_server(
        origin.serve, "127.0.0.1", 0, backlog=1024)
    origin.port = server.sockets[0].getsockname()[1]
    async with server:
        await asyncio.to_thread(varnishd.start, vcl=VCL.format(
            port=origin.port, target=target))
        yield origin


async def ask(port: int, number: int, due: float) -> Answer:
    """Ask in time, on a connection of its own."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(due - loop.time())
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /%d HTTP/1.1\r\nHost: shop.example\r\n"
                 b"Connection: close\r\n\r\n" % number)
    line = await reader.readline()
    took = loop.time() - due
    writer.close()
    return Answer(int(line.split()[1]), took)


async def overload(port: int) -> list[Answer]:
    """Return the answers to SECONDS of requests."""
    begin = asyncio.get_running_loop().time() + 0.1
    return await asyncio.gather(*(
        ask(port, number, begin + number / (LOAD * CAPACITY))
        for number in range(int(LOAD * CAPACITY * SECONDS))))


async def all_answers(varnishd: Varnishd, target: str
                      ) -> tuple[list[Answer], float]:
    """Return the answers of an origin that is overloaded, and its work."""
    async with started(varnishd, target) as origin:
        return await overload(varnishd.port), origin.busy_s


async def burst_after_refusals(varnishd: Varnishd, target: str) -> int:
    """Return how many fetches of a burst begin, after the origin refused."""
    async def refusals() -> None:
        for number in range(REFUSALS // CLIENTS):
            assert (await ask(varnishd.port, number, 0)).status == 503

    async with started(varnishd, target) as origin:
        await overload(varnishd.port)
        before = varnishd.counter("SANDPAPER.refused_fetch")
        origin.refuses = True
        await asyncio.gather(*(refusals() for _ in range(CLIENTS)))
        assert varnishd.counter("SANDPAPER.refused_fetch") == before
        origin.refuses = False
        await asyncio.gather(*(ask(varnishd.port, n, 0)
                               for n in range(BURST)))
        return BURST + before - varnishd.counter("SANDPAPER.refused_fetch")


def good(answers: list[Answer]) -> float:
    """Return how much of what the origin served was in time."""
    served = [a.took_s for a in answers if a.status == 200]
    return sum(took <= TARGET_S for took in served) / len(served)


def test_without_a_target_all_answers_are_late(varnishd: Varnishd) -> None:
    answers, _ = asyncio.run(all_answers(varnishd, ""))
    print(f"good: {good(answers):.2f}")
    assert all(a.status == 200 for a in answers)
    assert good(answers) < 0.5


def test_with_a_target_they_are_in_time(varnishd: Varnishd) -> None:
    answers, busy_s = asyncio.run(all_answers(
        varnishd, f'sandpaper.fetch_target("shop", {TARGET_S}s);'))
    served = sorted(a.took_s for a in answers if a.status == 200)
    refused = [a.took_s for a in answers if a.status == 503]
    print(f"good: {good(answers):.2f}; busy: {busy_s:.1f} s; served: p50 "
          f"{median(served):.3f} s, p99 {served[len(served) * 99 // 100]:.3f} s; refused: "
          f"{len(refused)}, p50 {median(refused):.3f} s")
    assert len(served) + len(refused) == len(answers)
    # On a slow machine the origin serves fewer, but is as busy
    assert good(answers) > 0.8
    assert busy_s > 0.8 * SERVERS * SECONDS
    assert median(refused) < 0.1
    assert varnishd.counter("SANDPAPER.refused_fetch") == len(refused)


def test_an_origin_that_refuses_is_not_fast(varnishd: Varnishd) -> None:
    begun = asyncio.run(burst_after_refusals(
        varnishd, f'sandpaper.fetch_target("shop", {TARGET_S}s);'))
    print(f"{begun} of {BURST} fetches began")
    assert 4 <= begun < MOST
