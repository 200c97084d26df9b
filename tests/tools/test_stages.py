# SPDX-License-Identifier: BSD-2-Clause
"""The profile of the stages, against the model of SEDA's thesis.

M. Welsh's thesis (2002), chapter 4, section 1: a stage is an M/M/m queue.  Here
the servers are m slots.  Requests come at random times, and sleep for random
times with a slot.  The profile has the waits of the log.  They are at least
those of a queue with m servers that has the same requests.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from itertools import accumulate
from statistics import mean

import pytest

from varnishd import Varnishd

REQUESTS = 300
SERVICE_S = 0.02  # mean
LOAD = 0.8
SLEEPS = """vcl 4.1;
import std;
import vtc;
backend none none;
sub vcl_recv {
	vtc.sleep(std.duration(req.http.X-Sleep, 0s));
	return (synth(204));
}
"""


def waits(comes: list[float], takes: list[float], servers: int) -> list[float]:
    """Return how long each waits for one of the servers, s."""
    free = [0.0] * servers
    found = []
    for come, take in zip(comes, takes, strict=True):
        begin = max(come, heapq.heappop(free))
        heapq.heappush(free, begin + take)
        found.append(begin - come)
    return found


def requests(varnishd: Varnishd) -> list[tuple[float, float, float]]:
    """Return when each was enqueued, released, and answered, in order, s."""
    found: dict[str, dict[str, float]] = {}
    for line in varnishd.log("-i", "Timestamp"):
        vxid, _, _, event, at, *_ = line.split()
        found.setdefault(vxid, {})[event] = float(at)
    return sorted((r["Enqueue:"], r["Release:"], r["Resp:"])
                  for r in found.values() if "Resp:" in r)


async def ask(port: int, at: float, sleep: float) -> None:
    """Ask at this time of the loop, on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    loop = asyncio.get_running_loop()
    await asyncio.sleep(at - loop.time())
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                 b"X-Sleep: %.6fs\r\n\r\n" % sleep)
    assert (await reader.read()).startswith(b"HTTP/1.1 204 ")
    writer.close()


async def ask_all(port: int, comes: list[float], takes: list[float]) -> None:
    """Ask at all these times."""
    begin = asyncio.get_running_loop().time() + 1
    async with asyncio.TaskGroup() as tasks:
        for come, take in zip(comes, takes, strict=True):
            tasks.create_task(ask(port, begin + come, take))


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_the_wait_for_a_slot_is_that_of_a_queue(
        varnishd: Varnishd, slots: int) -> None:
    rng = random.Random(slots)
    takes = [rng.expovariate(1 / SERVICE_S) for _ in range(REQUESTS)]
    comes = list(accumulate(rng.expovariate(slots * LOAD / SERVICE_S)
                            for _ in range(REQUESTS)))
    varnishd.start(f"sandpaper_cores={slots}", "sandpaper_workers_per_core=1",
                   "timeout_idle=60", vcl=SLEEPS)
    asyncio.run(ask_all(varnishd.port, comes, takes))
    varnishd.await_counter("SANDPAPER.run_done", REQUESTS, REQUESTS)
    seen = requests(varnishd)
    assert len(seen) == REQUESTS
    waited = mean(release - enqueue for enqueue, release, _ in seen)
    expected = mean(waits([enqueue for enqueue, _, _ in seen],
                          [end - release for _, release, end in seen], slots))
    found, ran = (varnishd.counter(f"SANDPAPER.{name}") / REQUESTS * 1e-9
                  for name in ("run_wait_ns", "run_ns"))
    print(f"{slots} slots: waits {found * 1e3:.1f} ms, expected "
          f"{expected * 1e3:.1f} ms; ran {ran * 1e3:.1f} ms, slept "
          f"{mean(takes) * 1e3:.1f} ms")
    assert found == pytest.approx(waited, abs=1e-4)
    assert found >= 0.95 * expected > 0.01
    assert 0.9 * mean(takes) <= ran <= mean(
        end - release for _, release, end in seen)
