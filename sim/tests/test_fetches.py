# SPDX-License-Identifier: BSD-2-Clause
"""Origins that are slow, and the limit of fetches in front of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sandpaper_sim.fetches import (
    ANSWERED,
    BACKGROUND,
    FAILED,
    FETCH,
    MISS,
    REFUSED,
    Cache,
    Controlled,
    Fixed,
    Origin,
    arrivals,
)
from sandpaper_sim.figures import fetches
from sandpaper_sim.releaser import Releaser
from sandpaper_sim.server import MS, SECOND, Environment
from sandpaper_sim.workload import generator

SEED = 3
TARGET = SECOND // 2


def asked(origin: Origin, env: Environment, at: list[int]
          ) -> list[tuple[int, bool]]:
    """Ask at these times: when each fetch ended, and if with an answer."""
    found: list[tuple[int, bool]] = []

    def then(answer: bool) -> None:
        found.append((env.now, answer))

    for time in at:
        arrive(env, time, lambda: origin.ask(then))
    env.run()
    return found


def arrive(env: Environment, time: int, what: Callable[[], object]) -> None:
    env.timeout(time).callbacks.append(lambda _: what())


def test_an_origin_serves_so_many_at_a_time_in_order() -> None:
    env = Environment(0)
    times = iter([10, 30, 10, 10])
    origin = Origin(env, 2, times.__next__)
    assert asked(origin, env, [0, 0, 0, 25]) == [
        (10, True), (20, True), (30, True), (35, True)]


def test_an_origin_that_is_slower() -> None:
    env = Environment(0)
    origin = Origin(env, 1, lambda: 10,
                    slower=lambda now: 4 if now >= 10 else 1)
    assert asked(origin, env, [0, 0, 60]) == [
        (10, True), (50, True), (100, True)]


def test_when_an_origin_dies_all_fails_and_then_it_serves_again() -> None:
    env = Environment(0)
    origin = Origin(env, 1, lambda: 10,
                    fails=lambda now: 3 if 15 <= now < 20 else 0)
    arrive(env, 15, origin.die)
    assert asked(origin, env, [0, 0, 5, 17, 20, 21]) == [
        (10, True), (18, False), (18, False), (20, False), (30, True),
        (40, True)]


def test_a_fixed_limit_has_half_for_the_background() -> None:
    fixed = Fixed(4)
    assert [fixed.begins(0, background=True) for _ in range(3)] == [
        True, True, False]
    assert [fixed.begins(0, background=False) for _ in range(3)] == [
        True, True, False]
    fixed.ended(0, 0, failed=True)
    assert fixed.begins(0, background=False)


def test_each_miss_is_answered_or_has_failed_or_is_refused() -> None:
    env = Environment(0)
    cache = Cache(env, Releaser("mr3-rs", 4), 2)
    origin = Origin(env, 1, lambda: 10 * MS,
                    fails=lambda now: MS if 2 <= now / SECOND < 3 else 0)
    tenant = cache.site(Controlled(TARGET), origin)
    cache.at(2 * SECOND, origin.die)
    sent = []

    def ask() -> None:
        sent.append(env.now)
        cache.submit(tenant, MS // 10)

    arrivals(env, lambda now: 500 if now < 5 * SECOND else 0, 500,
             generator(SEED), ask)
    cache.run(20 * SECOND)
    rows = cache.rows()
    assert set(rows["outcome"]) == {ANSWERED, FAILED, REFUSED}
    assert len(rows) == len(sent) == len(cache.releaser.records())
    assert cache.fetching == 0
    assert (rows["end"][rows["outcome"] == REFUSED]
            == rows["begin"][rows["outcome"] == REFUSED]).all()


def test_a_fetch_in_the_background_has_no_request() -> None:
    env = Environment(0)
    cache = Cache(env, Releaser("mr3-rs", 4), 2)
    tenant = cache.site(Fixed(2), Origin(env, 9, lambda: MS))
    assert cache.fetch(tenant, BACKGROUND)
    assert not cache.fetch(tenant, BACKGROUND)
    assert cache.fetch(tenant, MISS)
    assert cache.most == 2
    env.run()
    assert list(cache.rows()["outcome"]) == [REFUSED, ANSWERED, ANSWERED]
    assert cache.fetching == 0


def test_quick_failures_do_not_lift_the_limit() -> None:
    gate = Controlled(TARGET)
    gate.state.limit = 10
    for failed, limit in ((True, 10), (False, 11)):
        for now in range(SECOND, SECOND + 10):
            assert gate.begins(now, background=False)
            gate.ended(now + MS, MS, failed=failed)
        assert gate.state.limit == pytest.approx(limit, abs=0.1)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [
    "2 x", "5 x, 16 servers", "2 x, background 2 x", "2 x, long polls",
    "2 x, dead, then fast", "2 x, hangs, then fast", "0.8 x, fast again"])
def test_the_target_keeps_nearly_all_good_answers(
        name: str, seed: int) -> None:
    found = fetches.simulate(name, "target", seed)
    assert found["of_possible"] > 0.9
    assert found["p99_ms"] < 600
    assert fetches.simulate(name, "none", seed)["of_possible"] < 0.3


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["0.5 x", "10 x, serves all",
                                  "0.5 x, long polls"])
def test_an_origin_that_is_well_refuses_nothing(name: str, seed: int) -> None:
    assert fetches.simulate(name, "target", seed)["refused"] == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_times_that_vary_do_not_stop_an_origin_that_serves_all(
        seed: int) -> None:
    """A limit that fell by three tenths refused 0.87 here."""
    found = fetches.simulate("10 x, serves all, times vary", "target", seed)
    assert found["refused"] < 0.1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_target_of_three_times_the_mean_refuses_nearly_nothing(
        seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fetches.SERVERS, "varies",
                        (fetches.EVERYBODY, TARGET // 3))
    found = fetches.simulate("1 x, serves all, times vary", "target", seed)
    assert found["refused"] < 0.01


def test_an_answer_is_good_until_the_target() -> None:
    rows = np.array([(5, 5 + TARGET, 0, MISS, ANSWERED),
                     (5, 6 + TARGET, 0, MISS, ANSWERED),
                     (5, 6, 0, MISS, FAILED)], FETCH)
    assert list(fetches.good(rows)["end"]) == [5 + TARGET]


def test_a_slow_origin_can_serve_less() -> None:
    found = fetches.simulate("0.8 x, 4 times slower", "fixed-8", SEED)
    assert 0.7 < found["of_possible"] <= 1.1


def test_long_polls_wait_long_and_use_no_server() -> None:
    found = fetches.simulate("0.5 x, long polls", "none", SEED)
    assert found["most"] > 20
    assert found["of_possible"] > 0.95


def test_a_death_empties_the_queue() -> None:
    found = fetches.simulate("2 x, dead, then fast", "none", SEED)
    assert found["of_possible"] > 0.03


def test_a_neighbour_is_not_hurt() -> None:
    alone, other = (fetches.simulate(name, "target", SEED)
                    for name in ("neighbour alone", "10 x, neighbour"))
    assert other["neighbour_p99_ms"] < 1.05 * alone["neighbour_p99_ms"]
    assert other["neighbour_refused"] == 0


def test_the_interval_of_a_median() -> None:
    assert fetches.interval(list(range(20, 0, -1))) == [6, 15]
    assert fetches.interval([7]) == [7, 7]


def test_the_best_fixed_limit_is_chosen() -> None:
    def row(variant: str, good: float) -> dict:
        return {"case": "a", "variant": variant, "of_possible": good}

    none, target, fixed = fetches.chosen([
        row("none", 0), row("target", .9), row("fixed-8", .95),
        row("fixed-8", .75), row("fixed-16", .8), row("fixed-16", .8),
        row("fixed-24", .99), row("fixed-24", .9)], "a")
    assert (none["variant"], target["variant"]) == ("none", "target")
    assert (fixed["variant"], fixed["limit"]) == ("fixed", 24)
    assert fixed["of_possible"] == pytest.approx(.945)


@pytest.mark.parametrize(("worst", "agrees"), [(.96, True), (.94, False)])
def test_a_verdict_is_about_the_worst_case(worst: float, agrees: bool) -> None:
    rows = [{"case": "a", "variant": "target", "of_possible": 1, "refused": 0},
            {"case": "b", "variant": "target", "of_possible": worst,
             "refused": 1 - worst}]
    j = fetches.Judge(rows)
    assert j.least("good", .95, ["a", "b"]) == {
        "paper": "good: at least 0.95",
        "found": f"at least {worst:.3f} (b)", "agrees": agrees}
    assert j.most("refused", .05, ["a", "b"], "refused")["agrees"] == agrees
