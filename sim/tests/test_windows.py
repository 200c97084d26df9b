# SPDX-License-Identifier: BSD-2-Clause
"""A child's window, by one rule after another, and what a header says."""

from __future__ import annotations

import pytest

from sandpaper_sim.server import MS, SECOND
from sandpaper_sim.windows import (
    FIRST,
    FORGET,
    LEAST,
    MOST,
    NONE,
    PRICE_MOST,
    Rule,
    Window,
    price_of,
)

RTT = 20 * MS
HALVE = Rule("halve")


@pytest.mark.parametrize(("values", "price"), [
    (["0.25"], 0.25), (["0"], 0.0), ([" 3 "], 3.0),
    (["1e300"], PRICE_MOST), (["inf"], PRICE_MOST),
    (["-1"], None), (["-inf"], None), (["NaN"], None), ([""], None),
    (["cheap"], None), (["1,2"], None), (["1", "1"], None), ([], None)])
def test_what_a_header_says(values: list[str], price: float | None) -> None:
    assert price_of(values) == price


@pytest.mark.parametrize("what", [
    {"keep": -0.1}, {"keep": 1.1}, {"add": 65}, {"up": 2}, {"gain": -1}])
def test_constants_that_are_not_allowed(what: dict[str, float]) -> None:
    name, = what
    with pytest.raises(ValueError, match=f"{name} .* is not allowed: use 0 "):
        Rule("price", **what)


def trip(w: Window, now: int, price: float | None = None,
         refused: int = 0) -> int:
    """Fill the window; all is answered a round trip later, some with 429."""
    n = 0
    while w.may(now):
        w.sent(now)
        n += 1
    for k in range(n):
        if k < refused:
            w.refused(now + RTT, now, price)
        else:
            w.answered(now + RTT, now, price)
    assert w.under_way == 0
    return n


def fast(rule: Rule, size: float) -> Window:
    """A window that no longer doubles."""
    w = Window(rule)
    w._slow, w._sent, w.size = False, 0, size
    return w


def test_without_a_rule_there_is_no_limit() -> None:
    w = Window(NONE)
    for _ in range(10_000):
        assert w.may(0)
        w.sent(0)


def test_a_window_has_room_for_so_many() -> None:
    for size in (1.0, 4.0, 4.9):
        assert trip(fast(HALVE, size), SECOND) == int(size)


def test_it_doubles_until_a_refusal_and_is_cut_once_a_round_trip() -> None:
    w = Window(HALVE)
    w.sent(0)
    for _ in range(3):
        w.sent(0)
    for _ in range(4):
        w.answered(RTT, 0, None)
    assert FIRST < w.size <= 2 * FIRST
    w.size = 8.0
    for _ in range(8):
        w.sent(RTT)
    for _ in range(3):
        w.refused(2 * RTT, RTT, None)
    assert w.size == 4
    w.sent(3 * RTT)
    w.refused(4 * RTT, 3 * RTT, None)
    assert w.size == 2


def test_a_full_window_grows_by_one_a_round_trip() -> None:
    w = fast(HALVE, 10.0)
    for k in range(10):
        w.sent(k)
    for k in range(10):
        w.answered(RTT + k, k, None)
        w.sent(RTT + k)
    assert w.size == pytest.approx(11, abs=0.1)


def test_a_window_that_is_not_full_does_not_grow() -> None:
    w = fast(HALVE, 10.0)
    for n in range(50):
        w.sent(n * RTT)
        w.answered((n + 1) * RTT, n * RTT, None)
    assert w.size == 10


def test_it_rests_where_the_price_takes_what_it_adds() -> None:
    for cost in (1, 4):
        w, now = fast(Rule("price", add=1, gain=1), 20.0), 0
        for _ in range(4000):
            while w.may(now):
                w.sent(now)
            w.answered(now + RTT, now, 0.1 * cost)
            now += RTT
        assert w.size == pytest.approx(10 / cost, rel=0.01)


def test_a_rule_without_a_gain_has_no_use_for_a_price() -> None:
    halve, price = fast(HALVE, 10.0), fast(Rule("price", gain=1.0), 10.0)
    for w in (halve, price):
        trip(w, 0, 5.0)
    assert halve.size >= 10 > price.size
    assert (halve.price(RTT), price.price(RTT)) == (0, 5)


def test_a_price_comes_before_a_refusal() -> None:
    sizes = []
    for price in (0.0, 1.0):
        w = Window(Rule("price", gain=1.0))
        trip(w, 0, price)
        w.size = 10.0
        while w.may(RTT):
            w.sent(RTT)
        for _ in range(10):
            w.answered(2 * RTT, RTT, None)
            while w.may(2 * RTT):
                w.sent(2 * RTT)
        sizes.append(w.size)
    # After a price it no longer doubles
    assert sizes == [pytest.approx(20), pytest.approx(11, abs=0.1)]


def test_it_grows_by_a_part_of_itself_only_at_price_0() -> None:
    sizes = []
    for price in (0.0, 0.001):
        w = fast(Rule("price", add=1, up=0.5, gain=1e-3), 10.0)
        for _ in range(10):
            w.sent(SECOND)
        w.answered(SECOND + RTT, SECOND, price)
        sizes.append(w.size)
    assert sizes == [pytest.approx(10.6), pytest.approx(10.1)]


def test_a_price_is_forgotten() -> None:
    w = fast(Rule("price", gain=1.0), 10.0)
    trip(w, 0, 2.0)
    assert w.price(RTT + FORGET - 1) == 2
    assert w.price(RTT + FORGET) == 0
    assert w.size != FIRST
    w.sent(2 * FORGET)
    assert w.size == FIRST


@pytest.mark.parametrize("price", [0.0, PRICE_MOST])
def test_it_stays_in_bounds(price: float) -> None:
    w, now = Window(Rule("price", add=8, gain=1.0)), 0
    for _ in range(2000):
        trip(w, now, price)
        now += RTT
        assert LEAST <= w.size <= MOST


def test_below_one_a_request_goes_each_few_round_trips() -> None:
    w = fast(HALVE, 0.25)
    w._rtt = RTT
    w.sent(SECOND)
    w.lost(SECOND, SECOND)
    w.size = 0.25
    assert not w.may(SECOND + 4 * RTT - 1)
    assert w.may(SECOND + 4 * RTT)


def test_answers_that_do_not_come_cut_it_to_the_least() -> None:
    w = Window(HALVE)
    for n in range(1, 20):
        w.sent(n * SECOND)
        w.lost((n + 1) * SECOND - 1, n * SECOND)
    assert (w.size, w.under_way) == (LEAST, 0)
