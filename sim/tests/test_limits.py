# SPDX-License-Identifier: BSD-2-Clause
"""Reservations, limits and the link's hold, on the simulated servers."""

from __future__ import annotations

import pytest

from sandpaper_sim.releaser import HOLD, KNOWN, Releaser
from sandpaper_sim.server import (
    DRAIN,
    MS,
    SECOND,
    US,
    Proxy,
    Server,
    pool,
    proxy,
)
from sandpaper_sim.workload import Constant, closed, generator, stream, trace


def ask(server: Server, connections: int, cpu: int, net: int = 0) -> int:
    """A closed loop; costs in us."""
    tenant = server.tenant()
    closed(server, tenant, connections,
           stream(Constant(cpu * US), generator(1)),
           stream(Constant(net * US), generator(1)))
    return tenant


def parts(server: Server, resource: str, end: int) -> list[float]:
    """Of a resource, by tenant."""
    server.run(end)
    rows = server.releaser.records()
    return [float(rows[resource][rows["tenant"] == i].sum()) / end
            for i in range(server.releaser.tenants)]


def test_a_limit_holds_though_slots_are_free() -> None:
    """Alone, a tenant gets its limit, and the server wakes up for it."""
    server = pool("mr3-rs", 1)
    server.releaser.set_limits(ask(server, 4, 100), 0, 0.25, 0)
    assert parts(server, "cpu", 2 * SECOND) == \
        [pytest.approx(0.25, rel=0.01)]


@pytest.mark.parametrize("policy", ["mr3-rs", "wfq", "2dfqe"])
def test_a_reservation_comes_first(policy: str) -> None:
    """Of ten equal tenants, one has half reserved, beside the others."""
    server = pool(policy, 1)
    for _ in range(10):
        ask(server, 4, 100)
    server.releaser.set_limits(0, 0.5, 0, 0)
    got = parts(server, "cpu", 2 * SECOND)
    assert got[0] == pytest.approx(0.5, rel=0.02)
    assert got[1:] == pytest.approx([0.5 / 9] * 9, rel=0.03)


@pytest.mark.parametrize("policy", ["mr3-rs", "wfq", "2dfqe", "drr"])
def test_a_group_has_one_share(policy: str) -> None:
    """Two members, of weights 3 and 1, beside a tenant without group."""
    server = pool(policy, 1)
    for _ in range(3):
        ask(server, 4, 100)
    server.releaser.set_weight(0, 3)
    group = server.tenant()
    for member in range(2):
        server.releaser.set_group(member, group, 0)
    assert parts(server, "cpu", 2 * SECOND)[:3] == pytest.approx(
        [0.375, 0.125, 0.5], rel=0.02)


def held(hold: int) -> Proxy:
    server = proxy("mr3-rs", 20, 2, queue=True, hold=hold)
    # HOLD is 20 responses: both still wait when these are under way.
    ask(server, 90, 10, 100)
    ask(server, 30, 10, 100)
    return server


def test_the_hold_is_what_makes_the_link_fair() -> None:
    """Without it all wait in the link's own queue: three to one."""
    assert parts(held(0), "net", SECOND) == \
        pytest.approx([3 / 4, 1 / 4], rel=0.02)
    assert parts(held(HOLD), "net", SECOND) == \
        pytest.approx([DRAIN / 200] * 2, rel=0.02)


def test_the_hold_leaves_the_cpu_alone() -> None:
    """Who needs the link most is held; the rest of the CPU is another's."""
    server = held(HOLD)
    ask(server, 60, 100, 1)
    net = 0.05 * DRAIN / 100
    assert parts(server, "cpu", SECOND) == \
        pytest.approx([net, net, 1 - 2 * net], rel=0.02)


def test_what_a_tenant_is_charged_for() -> None:
    """Requests that need the CPU or the link, and one tenant of them."""
    charged = []
    for paper in (True, False):
        server = proxy("mr3-rs", 1, 1, paper=paper)
        tenant = server.tenant()
        trace(server, [(k * MS, tenant, *((100 * US, 200 * US) if k % 2 else
                                          (300 * US, 100 * US)))
                       for k in range(200)])
        server.run(SECOND)
        charged.append(server.releaser.stat(tenant)["charged"])
    assert charged == [100 * (300 + 200) * US, 100 * (300 + 100) * US]


def test_what_is_known_of_a_request_behind_a_limit() -> None:
    """The estimate is that of the first that waits, when it is released."""
    releaser = Releaser("mr3-rs", 1, estimator=KNOWN)
    tenant = releaser.tenant()
    releaser.set_limits(tenant, 0, 0.5, 0)
    costs = [MS, 2 * MS, 4 * MS]
    for cost in costs:
        releaser.enqueue(tenant, cost, 0, 0)
    charged = []
    for now in (0, SECOND, 2 * SECOND):
        request = releaser.dequeue(0, now)
        charged.append(releaser.answer.charge)
        releaser.complete(request, now)
    assert charged == costs
