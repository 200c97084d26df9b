# SPDX-License-Identifier: BSD-2-Clause
"""Overload control before the simulated proxy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpaper_sim.figures import overload
from sandpaper_sim.overload import Clients, Front, Gate, best, controllers
from sandpaper_sim.releaser import Releaser
from sandpaper_sim.server import MS, SECOND, Environment
from sandpaper_sim.workload import generator

SEED = 3


@given(st.floats(1, 40), st.floats(0, 0.9))
def test_the_best_goodput_leaves_just_enough_for_refusals(
        load: float, refusal: float) -> None:
    good = best(load, refusal)
    if good > 0:
        assert good + (load - good) * refusal == pytest.approx(1)
    else:
        assert load * refusal >= 1


def test_a_controller_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="'cake' is not known: use one of "
                       "limit, codel, seda, "):
        Gate("cake", SECOND, MS, 4)


@pytest.mark.parametrize("controller", controllers())
def test_each_request_is_served_or_refused(controller: str) -> None:
    env = Environment(0)
    front = Front(env, Releaser("mr3-rs", 4), 2, refusal=1000)
    asked = []
    tenant = front.gated(Gate(controller, SECOND // 10, 20 * MS, 4))

    def cost(now: int) -> int:
        asked.append(now)
        return MS

    def rate(now: int) -> float:
        return 3000 if now < SECOND else 0

    Clients(front, tenant, rate, 3000, cost, generator(SEED))
    front.run(20 * SECOND)
    rows = front.outcomes()
    assert sorted(rows["arrival"]) == asked
    assert (~rows["served"]).any()


def test_while_the_oldest_is_late_the_newest_goes_first() -> None:
    gate = Gate("limit", 10, 0, 0, newest=True)
    for now in (1, 2, 3, 4):
        assert gate.admit(now)
    assert gate.released(11) == 1       # in time
    assert gate.released(13) == 4       # 2 is late
    assert gate.admit(14)
    assert gate.released(14) == 14
    assert gate.released(14) == 3
    assert gate.released(14) == 2


def test_a_refused_client_asks_so_often() -> None:
    env = Environment(0)
    front = Front(env, Releaser("mr3-rs", 1), 1, refusal=1000)
    asked = []
    tenant = front.gated(Gate("time", MS, MS, 0))

    def cost(now: int) -> int:
        asked.append(now)
        return SECOND

    Clients(front, tenant, lambda now: 2000 if now < 5 * MS else 0, 2000,
            cost, generator(SEED), retry=lambda: 10 * MS, tries=3)
    front.run(SECOND // 2)
    first = [at for at in asked if at < 5 * MS]
    served = int(front.releaser.stat(tenant)["running"]
                 + front.releaser.stat(tenant)["waiting"])
    assert len(first) > 3
    assert len(asked) == served + 3 * (len(first) - served)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["0.8 x", "3 x", "10 x", "step up",
                                  "step down", "retries at once",
                                  "retries after 1 to 4 s",
                                  "5 x, neighbour"])
def test_time_is_near_the_best(name: str, seed: int) -> None:
    found = overload.simulate(name, "time", seed)
    assert found["of_best"] > 0.95
    assert found["p99_ms"] < 500
    assert found.get("neighbour_of_fair", 1) > 0.97
    if name in {"0.8 x", "step down"}:
        assert found["refused"] < 0.001


def test_a_slow_origin_is_no_overload() -> None:
    assert overload.simulate("slow origin", "time", SEED)["refused"] == 0


def test_without_control_no_answer_is_in_time() -> None:
    assert overload.simulate("10 x", "limit", SEED)["of_best"] < 0.1
