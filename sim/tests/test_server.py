# SPDX-License-Identifier: BSD-2-Clause
"""The models against theory. Seeds are fixed: a test gives the same numbers
each time, and the margins are those of so many requests."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np
import pytest

from sandpaper_sim import metrics, theory
from sandpaper_sim.releaser import CPU, KNOWN, NET, Estimator, Records
from sandpaper_sim.server import MS, SECOND, US, Proxy, pool, proxy
from sandpaper_sim.workload import (
    Constant,
    Costs,
    Exponential,
    Lognormal,
    closed,
    generator,
    poisson,
    stream,
    trace,
)


def open_loop(server: Proxy, rate: float, costs: Costs) -> Records:
    """60,000 requests of one tenant."""
    poisson(server, server.tenant(), rate,
            stream(costs, generator(1, "costs")), generator(1, "arrivals"))
    server.run(int(60_000 / rate * SECOND))
    return server.releaser.records()


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (2, 1.6), (8, 7.2)])
def test_wait_of_mmc(servers: int, load: float) -> None:
    server = pool("fifo", servers)
    rows = open_loop(server, load * 1000, Exponential(1 * MS))
    wait = float((rows["start"] - rows["arrival"]).mean()) / MS
    assert wait == pytest.approx(
        theory.mmc_wait(load, 1.0, servers), rel=0.05)


@pytest.mark.parametrize("costs", [
    Exponential(1 * MS), Constant(1 * MS),
    Lognormal(1 * MS / np.exp(0.5), 1.0)], ids=["M", "D", "lognormal"])
@pytest.mark.parametrize(("cores", "load"), [(1, 0.6), (4, 3.0)])
def test_sharing_depends_on_the_mean_alone(
        costs: Costs, cores: int, load: float) -> None:
    """M/G/1 and M/G/c under processor sharing."""
    server = proxy("fifo", 10_000, cores)
    # Processing time is a core's time over C.
    per_core = Scaled(costs, cores)
    rows = open_loop(server, load * 1000, per_core)
    response = float((rows["end"] - rows["arrival"]).mean()) / MS
    assert response == pytest.approx(
        theory.sharing_response(load, 1.0, cores), rel=0.05)


class Scaled:
    """Costs over a number."""

    def __init__(self, costs: Costs, by: int) -> None:
        self.costs, self.by = costs, by

    def draw(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.maximum(self.costs.draw(rng, n) // self.by, 1)


def arrivals(n: int) -> list[tuple[int, int, int, int]]:
    rng = generator(3, "recursion")
    times = np.cumsum(rng.integers(0, 400, n)).tolist()
    costs = Lognormal(500, 1.5).draw(rng, n).tolist()
    return [(t, int(rng.integers(5)), c, 0)
            for t, c in zip(times, costs, strict=True)]


@pytest.mark.parametrize("threads", [1, 3, 16])
def test_fifo_is_the_recursion(threads: int) -> None:
    """Kiefer and Wolfowitz: a request starts when it is there and the first
    thread is free. To the ns."""
    rows = arrivals(5000)
    server = pool("fifo", threads)
    for _ in range(5):
        server.tenant()
    trace(server, rows)
    server.run(60 * SECOND)
    free = [0] * threads
    heapify(free)
    expected = []
    for t, tenant, cost, _ in rows:
        start = max(t, free[0])
        heapreplace(free, start + cost)
        expected.append((t, start, start + cost, tenant))
    got = server.releaser.records()
    assert sorted(zip(*(got[k].tolist() for k in (
        "arrival", "start", "end", "tenant")), strict=True)) == \
        sorted(expected)


def test_sharing_by_hand() -> None:
    """Two cores, three jobs of 6, 6 and 12 us of a core from 0 on: each gets
    2/3 of a core; at 9 two are done, the last one needs 6 more."""
    server = proxy("fifo", 8, 2)
    for _ in range(3):
        server.tenant()
    trace(server, [(0, 0, 3 * US, 0), (0, 1, 3 * US, 0), (0, 2, 6 * US, 0)])
    server.run(MS)
    assert server.releaser.records()["end"].tolist() == \
        [9 * US, 9 * US, 15 * US]


@pytest.mark.parametrize(("queue", "ends"), [
    # One worker: it blocks until its response is sent, or goes on.
    (False, [3, 6, 9]), (True, [3, 5, 7])])
def test_the_link_blocks_or_has_a_queue(queue: bool, ends: list[int]) -> None:
    server = proxy("fifo", 1, 1, queue=queue)
    server.tenant()
    trace(server, [(0, 0, 1 * US, 2 * US)] * 3)
    server.run(MS)
    assert server.releaser.records()["end"].tolist() == \
        [e * US for e in ends]


def test_a_fetch_lends_its_slot() -> None:
    """One worker, two requests of 2 us, the first one waits for 10 us after
    1: the other one runs meanwhile."""
    delays = iter([10 * US, 0])
    server = proxy("fifo", 1, 1, fetch=lambda _: next(delays))
    server.tenant()
    trace(server, [(0, 0, 2 * US, 0)] * 2)
    server.run(MS)
    assert server.releaser.records()["end"].tolist() == [3 * US, 12 * US]
    assert max(n for _, n in server.fetches) == 1
    assert server.fetches[-1] == (11 * US, 0)


def test_who_comes_back_runs_above_w() -> None:
    """Slots are retaken at once, and nothing is released until fewer than W
    run."""
    delays = iter([2 * US, 0, 0])
    server = proxy("fifo", 1, 4, fetch=lambda _: next(delays))
    server.tenant()
    trace(server, [(0, 0, 1 * US, 0), (0, 0, 2 * US, 0), (0, 0, 1 * US, 0)])
    server.run(MS)
    rows = server.releaser.records()
    # A core's time is 4, 8 and 4 us. The first is back at 4 beside the
    # second, and ends at 6; the second one at 10, then the third may go.
    assert rows["end"].tolist() == [6 * US, 10 * US, 14 * US]


def test_dominant_service_adds_up() -> None:
    """What two tenants get of both resources is what was served."""
    server = proxy("mr3-rs", 6, 2, estimator=KNOWN)
    for cpu, net in ((200, 50), (70, 150)):
        tenant = server.tenant()
        closed(server, tenant, 8, stream(Constant(cpu * US), generator(1)),
               stream(Constant(net * US), generator(1)))
    server.run(100 * MS)
    at = metrics.changes(server)
    rows = server.releaser.records()
    for tenant in (0, 1):
        mine = rows[rows["tenant"] == tenant]
        for resource, name in ((CPU, "cpu"), (NET, "net")):
            got = metrics.dominant_service(server, tenant, resource, at)
            assert (np.diff(got) >= -1e-6).all()
            # At most the six that run are not done.
            assert 0 <= got[-1] - mine[name].sum() <= 6 * 200 * US
    link = sum(metrics.dominant_service(server, t, NET, at) for t in (0, 1))
    assert (np.diff(link) <= np.diff(at) + 1e-6).all()


@pytest.mark.parametrize("policy", ["2dfqe", "mr3-rs"])
def test_equal_seeds_give_equal_results(policy: str) -> None:
    def once() -> Records:
        server = pool(policy, 4, refresh=10 * MS)
        for i in range(5):
            closed(server, server.tenant(), 3,
                   stream(Lognormal(MS, 2), generator(9, "again", i)))
        server.run(SECOND)
        return server.releaser.records()
    assert once().tolist() == once().tolist()


def test_refresh_charges_what_runs() -> None:
    """A request thought to cost 1 ms is charged what it has cost so far."""
    server = pool("2dfq", 1, refresh=10 * MS,
                  estimator=Estimator("ewma", 0.9))
    tenant = server.tenant()
    trace(server, [(0, tenant, 1 * MS, 0), (1, tenant, 100 * MS, 0)])
    server.run(45 * MS)
    assert server.releaser.stat(tenant)["charged"] == 1 * MS + 39 * MS
