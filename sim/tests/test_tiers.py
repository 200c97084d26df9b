# SPDX-License-Identifier: BSD-2-Clause
"""Two tiers: what becomes of requests, and what parents and children do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sandpaper_sim import tiercases
from sandpaper_sim.figures import tiers_goals, tiers_judge, tiers_sweep
from sandpaper_sim.server import MS, SECOND, Environment
from sandpaper_sim.tiers import (
    CORES,
    FORWARD,
    HERE,
    KINDS,
    LOST,
    REFUSAL,
    SERVED,
    STALE,
    THERE,
    Child,
    Parent,
    Server,
    Tenant,
    Tiers,
    Wire,
    arrivals,
    simulate,
)
from sandpaper_sim.windows import FORGET, NONE, Rule
from sandpaper_sim.workload import generator

SEED = 3
HALVE = Rule("halve", add=0.5)
PRICE = Rule("price", add=0.5, gain=1)


def even(load: float, stale: float = 0.0) -> list[Tenant]:
    """Two tenants; requests of the second cost four times as much."""
    return [Tenant(c * MS, lambda _: load / 2, load / 2, stale)
            for c in (1, 4)]


def test_a_wire_delays_and_keeps_the_order() -> None:
    env, came = Environment(0), []
    wire = Wire(env, 5, lambda x: came.append((env.now, x)))
    for at in (0, 2, 2, 9):
        env.run(at) if at > env.now else None
        wire.send(at)
    env.run(100)
    assert came == [(5, 0), (7, 2), (7, 2), (14, 9)]


def test_arrivals_have_the_load_and_the_cost() -> None:
    t = Tenant(MS, lambda s: 2.0 if s < 5 else 0.5, 2.0, stale=0.25)
    rows = arrivals(t, 10 * SECOND, generator(SEED))
    early = [cpu for at, cpu, _ in rows if at < 5 * SECOND]
    late = [cpu for at, cpu, _ in rows if at >= 5 * SECOND]
    assert sum(early) == pytest.approx(10 * SECOND, rel=0.05)
    assert sum(late) == pytest.approx(2.5 * SECOND, rel=0.1)
    assert np.mean([s for _, _, s in rows]) == pytest.approx(0.25, abs=0.02)
    assert [at for at, _, _ in rows] == sorted(at for at, _, _ in rows)


@pytest.mark.parametrize("rule", [NONE, HALVE, PRICE])
@pytest.mark.parametrize("kind", ["", *KINDS])
def test_each_request_has_one_end(rule: Rule, kind: str) -> None:
    until, tenants = 4 * SECOND, even(3, stale=0.5)
    for t in tenants:
        assert t.load(0) == 1.5
    quiet = [Tenant(t.cost, lambda s: 1.5 if s < 2 else 0, t.most, t.stale)
             for t in tenants]
    tiers = Tiers(quiet, [Parent(price=kind)], 2, 20 * MS)
    rows = simulate(tiers, rule, until, SEED)
    asked = [(at, tenant, cpu, stale) for at, tenant, _, cpu, stale
             in tiers.requests(until, SEED)]
    assert sorted(zip(rows["arrival"].tolist(), rows["tenant"].tolist(),
                      rows["cpu"].tolist(), rows["stale"].tolist(),
                      strict=True)) == asked
    assert set(rows["what"][rows["stale"]]) <= {SERVED, STALE}
    assert set(rows["what"][~rows["stale"]]) <= {SERVED, HERE, THERE}
    assert (rows["parent"][np.isin(rows["what"], (SERVED, THERE))] == 0).all()
    assert ((rows["end"] - rows["arrival"])[rows["parent"] == 0]
            >= 20 * MS).all()
    if rule is NONE:
        assert (rows["parent"] == 0).all()


def test_equal_seeds_give_equal_results() -> None:
    tiers = Tiers(even(2), [Parent()], 2, MS)
    first, second, other = (simulate(tiers, PRICE, SECOND, s)
                            for s in (SEED, SEED, SEED + 1))
    assert (first == second).all()
    assert len(first) != len(other) or (first != other).any()


def test_windows_leave_the_parent_little_to_refuse() -> None:
    refused = {}
    for name, rule in (("none", NONE), ("halve", HALVE), ("price", PRICE)):
        rows = simulate(Tiers(even(3), [Parent(price="own")], 2, 20 * MS),
                        rule, 4 * SECOND, SEED)
        refused[name] = int(tiercases.refused(rows).sum())
        assert tiercases.goodput(rows) > 0.9 * 4 * SECOND
    assert refused["price"] < refused["halve"] < refused["none"] / 10


def test_the_price_of_a_parent() -> None:
    env = Environment(0)
    kinds = {kind: Server(env, Parent(price=kind), 2, REFUSAL)
             for kind in ("", *KINDS)}
    children = [Child(env, [s], 2, NONE, 2) for s in kinds.values()]
    # The first requests are for the estimates
    for requests, until in ((10, 500 * MS), (60, 560 * MS)):
        assert [s.price(0) for s in kinds.values()] == [None, 0, 0, 0]
        for child in children:
            for _ in range(requests):
                child.ask(0, MS, False)
                child.ask(1, 4 * MS, False)
        env.run(until)
    cost, square, own = (kinds[k] for k in KINDS)
    assert cost.price(1) > cost.price(0) > 0
    quotient = cost.price(1) / cost.prices.congestion(env.now)
    assert square.price(1) == pytest.approx(
        quotient**2 * square.prices.congestion(env.now))
    assert own.price(1) > 0


def test_a_price_that_is_not_known() -> None:
    with pytest.raises(ValueError, match="price 'net' is not known: use one "
                       "of cost, square, own"):
        Parent(price="net")


def test_a_child_takes_the_cheaper_parent_then_the_emptier() -> None:
    env = Environment(0)
    servers = [Server(env, Parent(), 1, REFUSAL) for _ in range(2)]
    child = Child(env, servers, 1, PRICE, 2 * MS)
    first, second = child.windows[0]
    child.ask(0, MS, False)
    child.ask(0, MS, False)
    assert (first.under_way, second.under_way) == (1, 1)
    first.sent(0)
    first.answered(0, 0, 2.0)
    for _ in range(2):
        child.ask(0, MS, False)
    assert (first.under_way, second.under_way) == (1, 3)
    for _ in range(40):
        child.ask(0, MS, False)
    assert not first.may(0) and not second.may(0)
    assert {a[3] for a in child.answers} == {HERE}


def test_a_bad_header_is_logged_once_and_forgotten() -> None:
    env = Environment(0)
    child = Child(env, [Server(env, Parent(), 1, REFUSAL)], 1, PRICE, MS)
    for values, price in ((["NaN"], None), (["1"], 1.0), (["1", "2"], None)):
        assert child._read(0, values) == price
    assert child.log == [(0, 0)]
    env.run(FORGET - 1)
    assert child._read(0, ["-1"]) is None
    assert len(child.log) == 1
    env.run(2 * FORGET)
    assert child._read(0, ["-1"]) is None
    assert [at for at, _ in child.log] == [0, 2 * FORGET]


@pytest.mark.parametrize("name", tiers_goals.LIES)
def test_a_parent_that_lies(name: str) -> None:
    """Its price does no harm to the other one."""
    parents = [Parent(price="own"),
               Parent(price="own", says=tiers_goals.LIES[name])]
    rows = simulate(Tiers(even(4), parents, 2, 20 * MS), PRICE, 4 * SECOND,
                    SEED)
    rows = rows[rows["end"] >= SECOND]
    honest, liar = (tiercases.goodput(rows[rows["parent"] == p])
                    / (3 * SECOND) for p in (0, 1))
    assert honest > 0.9
    assert liar < 0.1 if name == "huge" else liar > 0.9


def test_a_parent_that_vanishes_and_returns() -> None:
    parents = [Parent(price="own", gone=(SECOND, 2 * SECOND))]
    rows = simulate(Tiers(even(2), parents, 2, 20 * MS), PRICE, 6 * SECOND,
                    SEED)
    lost = rows[rows["what"] == LOST]
    assert 0 < len(lost) < 200
    assert ((lost["end"] - lost["arrival"]) >= SECOND).all()
    said = rows["end"][rows["what"] == SERVED] - 10 * MS
    assert not ((said >= SECOND) & (said < 2 * SECOND)).any()
    late = rows[rows["arrival"] > 4 * SECOND]
    assert not (late["what"] == LOST).any()
    assert tiercases.goodput(late) > 0.9 * (2 * SECOND - 50 * MS)


def test_work_is_the_cpu_time_of_both_tiers() -> None:
    rows = np.zeros(5, [("what", "i4"), ("parent", "i4")])
    rows["what"] = SERVED, STALE, STALE, HERE, THERE
    rows["parent"] = 0, 0, -1, -1, 0
    both = 2 * (FORWARD + 2) * REFUSAL / CORES
    assert tiercases.work(rows, REFUSAL, here=False) == both
    assert tiercases.work(rows, REFUSAL) == both + REFUSAL / CORES


def test_what_a_perfect_rule_would_do() -> None:
    case = tiercases.steady(3, tiercases.FEW, 20)
    good, work = tiercases.perfect(case)
    assert good == pytest.approx(1)
    # Two of three requests are refused. A mean request costs 1 / mean(1 / c)
    each = np.mean([1 / (c * MS) for c in tiercases.COSTS])
    assert work == pytest.approx(2 * each * REFUSAL / CORES)
    good, work = tiercases.perfect(tiercases.step(tiercases.FEW, 20))
    assert good == pytest.approx(0.75, abs=0.002)
    assert work == pytest.approx(each * REFUSAL / CORES, rel=0.01)


def test_an_interval_has_its_median() -> None:
    low, middle, high = tiercases.interval([1, 2, 3, 4, 100])
    assert 1 <= low <= middle == 3 <= high <= 100
    assert tiercases.interval([2, 2]) == (2, 2, 2)


def test_the_rule_of_the_decision() -> None:
    def decides(good: float, work: float) -> bool:
        return tiers_judge.decision([good] * 20, [work] * 20)
    assert decides(1.06, 1) and decides(1, 1.05)
    assert not decides(1.04, 1.04) and not decides(1.2, 0.9)
    assert not decides(0.94, 1.2)
    # The interval decides, not the median
    assert not tiers_judge.decision([0.9, 1.06, 1.2] * 7, [1.0] * 21)


def test_quotients_are_of_one_seed_s_cases() -> None:
    def row(rule: str, good: float, work: float) -> dict[str, object]:
        return {"rule": rule, "seed": 1, "case": "a", "group": "g",
                "rtt_ms": 1, "good": good, "work": work, "work_there": work}
    case, = tiers_judge.by_rule([row("none", 1, 10), row("halve", 2, 5),
                                 row("price", 4, 2.5)])
    found = tiers_judge.quotients([case], 1)
    assert found["goodput"] == pytest.approx(2)
    assert found["work"] == pytest.approx(0.75 / 0.5)


def test_settling_is_after_the_last_bad_bin() -> None:
    bins = 30
    none = [{"good": [0] * bins, "there": [100] * bins}]
    good = [tiers_goals.BIN] * bins
    good[11] = 0
    there = [0] * bins
    assert tiers_goals.settling([{"good": good, "there": there}],
                                none) == pytest.approx(0.4)
    there[13] = 30
    assert tiers_goals.settling([{"good": good, "there": there}],
                                none) == pytest.approx(0.8)


@pytest.mark.parametrize("name", ["judge", "goals", "sweep"])
def test_figures(name: str, run: Callable[..., dict],
                 tmp_path: Path) -> None:
    plot = tmp_path / "a.svg"
    data = run(f"tiers-{name}", "--quick", "--plot", str(plot))
    assert plot.read_text().startswith("<?xml")
    assert data["paper"]["judgements"]
    assert all(set(j) == {"paper", "found", "agrees"}
               for j in data["paper"]["judgements"])


def test_the_judge_and_the_sweep_have_other_seeds() -> None:
    assert tiers_sweep.FROM > tiers_judge.SEEDS
    assert (tiers_judge.HALVE, "") in tiers_sweep.ALL
    assert (tiers_judge.PRICE, tiers_judge.KIND) in tiers_sweep.ALL
