# SPDX-License-Identifier: BSD-2-Clause
"""What enters the cache, with an origin and many requests."""

from __future__ import annotations

import json
import random
import resource
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from common import TIMEOUT, until
from pages import Origin
from sandpaper_bench.cacheprograms import compiled
from sandpaper_bench.testbed import free_port

from varnishd import Varnishd

STORE = 10_000_000  # bytes of storage
SMALL, HUGE = 8_000, 300_000  # bytes
HOT = 900  # small objects: all of them fit

# Every object of this size is in the sample
EXACT_SIZE = 1 << 20  # bytes
EXACT_HOT = 120  # objects
EXACT_STORE = 150_000_000  # bytes of storage
VCL = """vcl 4.1;
import sandpaper;
backend origin {{ .host = "127.0.0.1"; .port = "{port}"; }}
sub vcl_init {{
	sandpaper.tenant("shop");
	sandpaper.host("shop", "t0.example");
	sandpaper.tenant("scan");
	sandpaper.host("scan", "t1.example");
}}
sub vcl_backend_response {{
	set beresp.do_stream = bereq.url !~ "whole";
}}
sub vcl_hit {{
	set req.http.X-Cache = "hit";
}}
sub vcl_miss {{
	set req.http.X-Cache = "miss";
}}
sub vcl_deliver {{
	set resp.http.X-Cache = req.http.X-Cache;
}}
"""


def start(varnishd: Varnishd, port: int, *parameters: str,
          store: int = STORE) -> None:
    """Start a varnishd with little storage before an origin."""
    varnishd.start(*parameters, vcl=VCL.format(port=port),
                   arguments=["-s", f"malloc,{store}"])


def hot_and_huge(number: int, seed: int) -> Iterator[tuple[int, int]]:
    """Return requests for hot small objects, and for huge ones, each once."""
    draw = random.Random(seed)
    for n in range(number):
        if draw.random() < .04:
            yield 10**6 * seed + n, HUGE
        else:
            yield draw.randrange(HOT), SMALL


def hot_and_scan(number: int, seed: int) -> Iterator[tuple[int, int]]:
    """Return requests of a shop for hot objects; 70 % are of a scan."""
    draw = random.Random(seed)
    for n in range(number):
        if n % 10 in {0, 3, 6}:
            yield draw.randrange(EXACT_HOT), EXACT_SIZE
        else:
            yield 1 << 48 | 10**6 * seed + n, EXACT_SIZE


def write_trace(path: Path, requests: Iterable[tuple[int, int]]) -> None:
    """Write requests, each with its object and its size."""
    with path.open("wb") as f:
        for n, (name, size) in enumerate(requests):
            f.write(struct.pack("<IQIq", n, name, size, -1))


class Replay:
    """The programs of bench/cache: an origin, and a client."""

    def __init__(self, folder: Path, varnishd: Varnishd) -> None:
        self.folder, self.varnishd = folder, varnishd
        self.replay = compiled("replay", folder)
        self.port = free_port()
        self.origin = subprocess.Popen(
            [compiled("origin", folder), "127.0.0.1", str(self.port)],
            stdout=subprocess.PIPE, text=True)
        assert self.origin.stdout
        assert self.origin.stdout.readline() == "ready\n"

    def end(self) -> None:
        self.origin.terminate()
        self.origin.wait(TIMEOUT)

    def run(self, number: int, seed: int,
            make: Callable[[int, int], Iterable[tuple[int, int]]]
            = hot_and_huge, connections: int = 4) -> float:
        """Send so many requests; return which part of them were hits."""
        trace = self.folder / "trace"
        write_trace(trace, make(number, seed))
        said = subprocess.run(
            [self.replay, "--connections", str(connections), "127.0.0.1",
             str(self.varnishd.port), trace], check=True, text=True,
            stdout=subprocess.PIPE)
        hits: float = json.loads(said.stdout)["objects"]
        return hits


@pytest.fixture
def replay(tmp_path: Path, varnishd: Varnishd) -> Iterator[Replay]:
    found = Replay(tmp_path, varnishd)
    try:
        yield found
    finally:
        found.end()


def tuned(varnishd: Varnishd, windows: int) -> dict[str, Any]:
    """Return what sandpaper.cache says when so many windows have ended."""
    until(lambda: varnishd.cache()["windows"] >= windows,
          f"not {windows} windows")
    return varnishd.cache()


def asked(varnishd: Varnishd, tenant: str) -> int:
    """Return the requests of a tenant that are counted."""
    found = varnishd.cache(tenant)
    number: int = found["hits"] + found["misses"]
    return number


def test_small_objects_stay_and_huge_ones_do_not(
        varnishd: Varnishd, replay: Replay) -> None:
    start(varnishd, replay.port, "sandpaper_admission=on",
          "sandpaper_admission_delta=10000")
    replay.run(60_000, 1)
    state = tuned(varnishd, 3)
    assert state["c"] < HUGE
    assert state["measured"] > state["measured_all"]
    replay.run(5_000, 5)  # evicts what is too large now and came before
    # 4 % are for huge objects
    assert replay.run(5_000, 2) > .92
    until(lambda: asked(varnishd, "shop") == 70_000)
    shop = varnishd.cache("shop")
    assert shop["evicted_by"] == "-"
    assert shop["evicted_own"] > 0
    # More memory gives more hits (test_curve says how many)
    curve = [point["hits"] for point in shop["curve"]]
    assert curve == sorted(curve)
    assert curve[0] < curve[-1]
    assert curve[-1] > .5


def test_observe_admits_all_and_says_what_on_would_gain(
        varnishd: Varnishd, replay: Replay) -> None:
    start(varnishd, replay.port, "sandpaper_admission_delta=10000")
    replay.run(60_000, 1)
    state = tuned(varnishd, 3)
    assert state["admission"] == "observe"
    assert state["sizes"] == []
    gain = state["measured"] - state["measured_all"]
    assert gain > .05
    # It is about what "on" gains
    before = replay.run(20_000, 2)
    varnishd.cli("param.set sandpaper_admission on")
    replay.run(20_000, 3)
    assert replay.run(20_000, 4) > before + gain / 2


def shop_hits(varnishd: Varnishd, replay: Replay, number: int,
              seed: int) -> float:
    """Send so many requests; return which part of the shop's were hits."""
    before = varnishd.cache("shop")
    sent = [n for n, _ in hot_and_scan(number, seed) if n < EXACT_HOT]
    replay.run(number, seed, hot_and_scan, connections=1)
    until(lambda: asked(varnishd, "shop")
          == before["hits"] + before["misses"] + len(sent))
    hits: int = varnishd.cache("shop")["hits"] - before["hits"]
    return hits / len(sent)


def test_what_fair_shares_would_gain_is_shown_before(
        varnishd: Varnishd, replay: Replay) -> None:
    start(varnishd, replay.port, "sandpaper_admission_delta=10000",
          "lru_interval=0", store=EXACT_STORE)
    shop_hits(varnishd, replay, 8_500, 1)
    before = shop_hits(varnishd, replay, 4_000, 2)
    tuned(varnishd, 1)
    shop = varnishd.cache("shop")
    now, = [point["hits"] for point in shop["curve"]
            if point["bytes"] == shop["cached_bytes"]]
    assert abs(now - before) < .05
    assert abs(shop["fair_bytes"] / (EXACT_STORE / 2) - 1) < .05
    assert shop["fair_gain"] > .1
    assert abs(varnishd.cache("scan")["fair_gain"]) < .02
    varnishd.cli("param.set sandpaper_memory on")
    shop_hits(varnishd, replay, 4_000, 3)
    after = shop_hits(varnishd, replay, 4_000, 4)
    assert abs(now + shop["fair_gain"] - after) < .05


def page_faults(process: int) -> int:
    """Return how many pages the kernel gave to a process."""
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rsplit(")", 1)[1].split()[7])


@pytest.mark.parametrize("name", ["streams", "whole"])
def test_a_crowd_gets_an_object_that_does_not_enter_from_one_fetch(
        varnishd: Varnishd, pages: Origin, name: str) -> None:
    url = f"/2000000/{name}"
    start(varnishd, pages.server_port, "sandpaper_admission=on",
          "sandpaper_admission_c=1b", "thread_pool_max=500")
    pages.go.clear()
    failed: list[BaseException] = []
    heads = threading.Semaphore(0)

    def ask() -> None:
        try:
            client = HTTPConnection("127.0.0.1", varnishd.port,
                                    timeout=TIMEOUT)
            client.request("GET", url,
                           headers={"Host": "t0.example"})
            answer = client.getresponse()
            heads.release()
            assert (answer.status, len(answer.read())) == (200, 2_000_000)
        except BaseException as e:  # noqa: BLE001
            failed.append(e)

    crowd = [threading.Thread(target=ask) for _ in range(100)]
    for thread in crowd:
        thread.start()
    # All clients have the first half, or wait for the whole
    if name == "streams":
        for _ in crowd:
            assert heads.acquire(timeout=TIMEOUT)
    else:
        varnishd.await_counter("MAIN.busy_sleep", len(crowd) - 1)
    pages.go.set()
    for thread in crowd:
        thread.join()
    assert failed == []
    assert pages.asked[url] == 1


def test_the_memory_of_a_large_object_is_used_again(
        varnishd: Varnishd, pages: Origin) -> None:
    size, number = 9_000_000, 60
    start(varnishd, pages.server_port, "sandpaper_admission=on",
          "sandpaper_admission_c=1b", store=20 * size)
    client = HTTPConnection("127.0.0.1", varnishd.port, timeout=TIMEOUT)

    def get(n: int) -> None:
        client.request("GET", f"/{size}/{n}", headers={"Host": "t0.example"})
        assert len(client.getresponse().read()) == size

    get(0)
    before = page_faults(varnishd.worker())
    for n in range(number):
        get(1 + n)
    faults = page_faults(varnishd.worker()) - before
    assert faults < number * size / resource.getpagesize() / 4
