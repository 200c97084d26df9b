# SPDX-License-Identifier: BSD-2-Clause
"""The experiment `overload`: what it asks for, and what it says of it."""

from __future__ import annotations

import json
import re
import unittest
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sandpaper_bench.load import Group, GroupResult, Measurement
from sandpaper_bench.overload import goodput, lacks, result
from sandpaper_bench.overloadcases import (
    CHEAP,
    LOADS,
    TENANT,
    TWIN_OF,
    Beside,
    Changed,
    Drained,
    Loaded,
    Offer,
    OverloadTurn,
    beside,
    changed,
    cheap_turn,
    latest,
    loads_turn,
    offer,
    ok_rps,
    recovery,
    retries_turn,
    steps,
)
from sandpaper_bench.rig import Plan
from sandpaper_bench.testbed import TestbedError
from test_experiments import Rehearsal, plan

WINDOW_S = 2.0
SEEN = GroupResult("it", 100, 0.0, 0.01, 0.02, 0.03, 0, 0, 0, 0, 0, 0, 0.0, 0,
                   0, [])


def window(cpu_s: float = 2.0, **groups: dict[str, Any]) -> Measurement:
    """Return a window of the tenant, and of its twin."""
    names = {"tenant": TENANT, "twin": TWIN_OF}
    return Measurement(WINDOW_S, cpu_s, 0.5, 0.0, {
        names[g]: replace(SEEN, **found) for g, found in groups.items()})


def cheap_window(found: dict[str, Any]) -> Measurement:
    """Return a window of the tenant with cheap requests."""
    return Measurement(WINDOW_S, 2.0, 0.5, 0.0,
                       {CHEAP.name: replace(SEEN, **found)})


ALONE = window(tenant={"rps": 1000.0})  # 1 ms of CPU for each
BOTH = [window(1.8, tenant={"rps": 900.0}),  # its mean is that
        window(2.2, tenant={"rps": 1100.0})]


class Offers(unittest.TestCase):
    """One load."""

    def test_parts_of_what_was_asked_for(self) -> None:
        found = offer(2.0, window(tenant={
            "rps": 3000.0, "not_200": 4200, "good": 1500, "refused": 4000,
            "due": 4000, "retried": 2000, "given_up": 1000, "connects": 6,
            "errors": 5}), BOTH)
        self.assertEqual(found.goodput, 0.75)
        self.assertAlmostEqual(found.refused, 4000 / 6000)
        self.assertEqual((found.retried, found.given_up), (0.5, 0.25))
        self.assertEqual((found.connects, found.errors), (3.0, 5))
        self.assertEqual(found.noise_cores, 0.25)

    def test_the_capacity_is_of_answers_200(self) -> None:
        seen = replace(SEEN, rps=1000.0, not_200=400)
        self.assertEqual(ok_rps(seen, WINDOW_S), 800.0)
        alone = window(tenant={"rps": 1000.0, "not_200": 400})
        self.assertEqual(offer(1.0, window(tenant={"good": 800}),
                               [alone]).goodput, 0.5)

    def test_cpu_time_of_refusals_is_what_is_left(self) -> None:
        # 1500 answers 200 took 1.5 of 2 s, and 5000 refusals 0.5 s
        many = {"rps": 3250.0, "not_200": 5000, "refused": 5000}
        found = offer(3.0, window(tenant=many), BOTH)
        assert found.cpu_us_refusal is not None
        self.assertAlmostEqual(found.cpu_us_refusal, 100.0)
        few = {"rps": 1000.0, "not_200": 200, "refused": 200}
        self.assertIsNone(offer(1.0, window(tenant=few),
                                BOTH).cpu_us_refusal)


class Turns(unittest.TestCase):
    """What a turn makes of its windows."""

    def test_the_capacity_is_that_of_the_closed_loops_around(self) -> None:
        turn = loads_turn(plan("overload").ask.variants[0], Plan())
        closed = [n for n, w in enumerate(turn.windows)
                  if isinstance(w, Drained) and not callable(w.groups)]
        self.assertEqual(closed, [0, 3, 6, 9, 11])
        rps = dict(zip(closed, (1000.0, 800.0, 600.0, 400.0, 200.0),
                       strict=True))
        found = turn.value([
            window(tenant={"rps": rps[n]} if n in rps else {"good": 1800})
            for n in range(len(turn.windows))])
        self.assertEqual((found.capacity_rps, found.again_rps),
                         (1000.0, 200.0))
        self.assertEqual([*found.found], [f"load {n:g}" for n in LOADS])
        self.assertEqual(
            [round(o.goodput, 3) for o in found.found.values()],
            [round(900 / n, 3) for n in (900, 900, 700, 700, 500, 500, 300)])

    def test_the_load_is_of_the_last_closed_loop(self) -> None:
        found = [window(tenant={"rps": 100.0 * n}) for n in range(1, 12)]
        self.assertEqual([latest(found[:n]) for n in (1, 2, 4, 5, 7, 10)],
                         [100.0, 100.0, 400.0, 400.0, 700.0, 1000.0])


class Neighbours(unittest.TestCase):
    """The tenant in competition with its twin."""

    def test_what_is_fair(self) -> None:
        much = {"rps": 450.0, "good": 600}
        quiet = [
            window(twin={"rps": 440.0, "p99_s": 0.05}),
            window(tenant={}, twin={"rps": 450.0, "p99_s": 0.1}),
            window(tenant=much, twin={"rps": 400.0, "not_200": 80,
                                      "refused": 80, "p99_s": 0.3,
                                      "due": 900})]
        found = beside([Loaded(w, BOTH) for w in quiet])
        self.assertAlmostEqual(found.kept, 360 / 450)
        self.assertAlmostEqual(found.times, 3.0)
        self.assertEqual((found.p99_s_alone, found.refused), (0.05, 0.1))
        self.assertAlmostEqual(found.tenant.goodput, 0.6)  # of half
        greedy = [window(twin={"rps": 1000.0}), quiet[1],
                  window(tenant=much, twin={"rps": 480.0})]
        found = beside([Loaded(w, BOTH) for w in greedy])
        self.assertAlmostEqual(found.kept, 480 / 500)


class Changes(unittest.TestCase):
    """A load that changes."""

    def test_what_a_variant_has_at_last_may_be_less_than_possible(self) -> None:
        parts = [(0.5, 1.0), (5.0, 1.5), (0.5, 1.0)]
        due = [50] * 10 + [500] * 15 + [50] * 10
        good = [50] * 10 + [0] * 4 + [60] * 11 + [50] * 10
        found = changed(Loaded(window(tenant={
            "due_slices": due, "good_slices": good}), BOTH), parts)
        self.assertAlmostEqual(found.until_s[0], 1.5)
        self.assertAlmostEqual(found.own_s[0], 0.4)

    def test_steps_begin_after_the_warmup(self) -> None:
        self.assertEqual(steps(1.5, [(0.5, 3.0), (10.0, 2.0), (0.5, 3.0)],
                               800.0), "0:400.000/4.5:8000.000/6.5:400.000")

    def test_a_recovery_is_when_several_slices_are_near(self) -> None:
        possible = [1.0] * 20
        for goods, since, seconds in (
                ([1.0] * 20, 0, 0.0), ([0.0] * 20, 0, 2.0),
                ([0.0] * 7 + [0.95] * 13, 0, 0.7),
                ([0.0] * 7 + [0.85] * 13, 0, 2.0),
                ([0.0] * 7 + [0.95] * 13, 5, 0.2),
                ([0.0] * 16 + [1.0] * 4, 0, 2.0)):
            self.assertAlmostEqual(
                recovery(goods, possible, since, 20), seconds)

    def test_what_is_possible_is_what_was_due_or_the_capacity(self) -> None:
        parts = [(0.5, 1.0), (5.0, 1.0), (0.5, 1.0)]
        # Of 100 in a slice; after the step up nothing is good for 0.3 s
        due = [50] * 10 + [500] * 10 + [50] * 10 + [7]
        good = [50] * 10 + [0] * 3 + [100] * 7 + [50] * 10 + [7]
        found = changed(Loaded(window(tenant={
            "due_slices": due, "good_slices": good, "due": 6000,
            "good": 1700}), BOTH), parts)
        self.assertEqual(found.possible, [0.5] * 10 + [1.0] * 10 + [0.5] * 10)
        self.assertEqual(found.goods[9:14], [0.5, 0.0, 0.0, 0.0, 1.0])
        self.assertAlmostEqual(found.until_s[0], 0.3)
        self.assertAlmostEqual(found.until_s[1], 0.0)
        self.assertAlmostEqual(found.goodput, 17 / 20)
        self.assertEqual(found.offer.load, 2.0)


class Results(unittest.TestCase):
    """What the JSON says."""

    SAW = Offer(5.0, 0.9, 0.8, 0.0, 0.8, 0.01, 0.02, 3.0, 12.0, 1e-5,
                0.1, 0)

    def row(self, value: Any) -> dict[str, Any]:  # noqa: ANN401
        row = result(1, "step", "time", [
            OverloadTurn(1000.0, 990.0, {"step": value})] * 3)
        json.dumps(row, allow_nan=False)
        return row

    def test_a_load(self) -> None:
        row = self.row(self.SAW)
        self.assertEqual((row["goodput"], row["refused"], row["load"]),
                         (0.9, 0.8, 5.0))
        self.assertEqual((row["cpu_us_refusal"], row["kept"], row["up_s"]),
                         (12.0, None, None))

    def test_a_neighbour(self) -> None:
        row = self.row(Beside(0.95, 0.07, 0.1, 0.24, 0.3, self.SAW))
        self.assertEqual((row["kept"], row["times"], row["goodput"]),
                         (0.95, 1.25, 0.9))
        self.assertEqual(row["refused_neighbour"], 0.07)
        self.assertEqual(
            [row[f"p99_s_{beside}"] for beside in ("alone", "usual", "much")],
            [0.1, 0.24, 0.3])

    def test_a_change(self) -> None:
        value = Changed(self.SAW, [0.1, 0.2, 0.6], [0.5, 0.5, 0.5],
                        [0.4, 0.1], [0.3, 0.2])
        self.assertAlmostEqual(goodput(value), 0.6)
        row = self.row(value)
        self.assertEqual((row["goodput"], row["up_s"], row["down_s"]),
                         (0.6, 0.4, 0.1))
        self.assertEqual((row["up_own_s"], row["down_own_s"]), (0.3, 0.2))
        self.assertEqual(row["series"], {"goods": [0.1, 0.2, 0.6],
                                         "possible": [0.5, 0.5, 0.5]})


class Plans(unittest.TestCase):
    """What is asked for."""

    def specs(self, case: str) -> list[str]:
        rig = Rehearsal()
        rig.run(plan("overload", "--cases", case, "--controllers", "time",
                     "--variants", "sandpaper", "--turns", "1"))
        return [" ".join(groups) for _, _, groups in rig.load.asked]

    def test_loads_are_times_the_capacity(self) -> None:
        specs = self.specs("loads")
        opened = [s for s in specs if "mode=open" in s]
        rates = [float(re.findall(r"rate=([\d.]+)", s)[0]) for s in opened]
        self.assertEqual(rates, [load * 1000.0 for load in LOADS])
        for spec in opened:
            self.assertIn("mode=open,conns=2000,", spec)
            self.assertIn("target=0.5", spec)
            self.assertIn("patience=0.5", spec)
        self.assertIn("mode=closed,conns=10,", specs[0])
        turn = loads_turn(plan("overload").ask.variants[0], Plan())
        self.assertEqual({w.settle for w in turn.windows}, {0.0, 1.0})
        self.assertEqual(specs[0], specs[-1])

    def test_neighbours(self) -> None:
        specs = [s for s in self.specs("neighbours") if "-twin," in s]
        self.assertEqual([re.findall(r"mode=(\w+).*?rate=([\d.]+)", s)
                          for s in specs], [
            [("open", "450.0")],
            [("open", "1000.0"), ("open", "450.0")],
            [("open", "5000.0"), ("open", "450.0")], [("closed", "0")],
            [("open", "1000.0"), ("closed", "0")],
            [("open", "5000.0"), ("closed", "0")]])
        self.assertIn("-twin.example,path=/bytes/1000,mode=closed,conns=5,",
                      specs[3])

    def test_changes(self) -> None:
        step, square = self.specs("changes")[1:-1]
        self.assertIn("steps=0:500.000/4:10000.000/7:500.000,", step)
        self.assertIn("steps=0:500.000/2:3000.000/3:500.000/4:3000.000/5:",
                      square)

    def test_retries(self) -> None:
        after, at_once = self.specs("retries")[1:-1]
        self.assertIn("rate=2000.0", after)
        self.assertIn("retries=3,regard=1", after)
        self.assertIn("retries=3,regard=0", at_once)

    def test_cheap_requests(self) -> None:
        specs = self.specs("cheap")
        opened = [s for s in specs if "mode=open" in s]
        self.assertEqual([re.findall(r"rate=([\d.]+)", s) for s in opened],
                         [["2000.0"], ["5000.0"], ["8000.0"]])
        for spec in opened:
            self.assertIn("name=p1000w100n10,host=p1000w100n10-main.", spec)
            self.assertIn("conns=16000,", spec)
            self.assertIn("target=0.1,", spec)
            self.assertIn("patience=0.02,", spec)
        for spec in (s for s in specs if s not in opened):
            self.assertIn("host=p1000w100n10-main.example,path=/bytes/1000,"
                          "mode=closed,conns=10,", spec)

    def test_what_cheap_requests_saw(self) -> None:
        turn = cheap_turn(plan("overload").ask.variants[0], Plan())
        closed = {"rps": 8000.0}
        found = turn.value([cheap_window(seen) for seen in (
            closed, {"good": 8000}, {"good": 6400}, closed, {"good": 4000},
            closed)])
        self.assertEqual(
            {name: offer.goodput for name, offer in found.found.items()},
            {"cheap 2": 0.5, "cheap 5": 0.4, "cheap 8": 0.25})

    def test_the_customers_are_those_of_the_cases(self) -> None:
        for cases, names in (("loads", [TENANT]), ("cheap", [CHEAP.name]),
                             ("changes,cheap", [TENANT, CHEAP.name])):
            self.assertEqual([*plan("overload", "--cases", cases).customers],
                             names)

    def test_cheap_requests_have_a_target_of_their_own(self) -> None:
        ask = plan("overload", "--controllers", "none,time", "--param",
                   "sandpaper_target=0.5").ask
        targets = [[p for p in cheap_turn(v, Plan()).servers[0].parameters
                    if "target" in p] for v in ask.variants]
        # Not what --param sets, which stays the last one
        self.assertEqual(targets, [
            [], ["sandpaper_target=0.5"],
            ["sandpaper_target=0.1", "sandpaper_target=0.5"]])

    def test_clients_that_ask_again_have_time_to_do_so(self) -> None:
        windows = retries_turn(plan("overload").ask.variants[0],
                               Plan()).windows
        self.assertEqual([w.settle for w in windows], [0.0, 6.0, 6.0, 0.0])

    def test_each_controller_is_a_variant(self) -> None:
        found = plan("overload", "--controllers", "none,seda", "--param",
                     "sandpaper_target=0.3").ask.variants
        self.assertEqual([v.name for v in found],
                         ["stock", "sandpaper", "seda"])
        self.assertEqual(found[0].parameters, ("timeout_idle=60",))
        self.assertNotIn("sandpaper_overload",
                         " ".join(found[1].parameters))
        ours = found[2].parameters
        self.assertIn("sandpaper_overload=seda", ours)
        self.assertIn("sandpaper=on", ours)
        # varnishd takes the last value of a parameter
        self.assertLess(ours.index("sandpaper_target=0.5"),
                        ours.index("sandpaper_target=0.3"))

    def test_what_is_wrong_is_named(self) -> None:
        with self.assertRaisesRegex(TestbedError, "--cases steps is not known"
                                    ": use some of loads neighbours"):
            plan("overload", "--cases", "steps")
        with self.assertRaisesRegex(TestbedError, "--controllers names time "
                                    "2 times"):
            plan("overload", "--controllers", "time,time")
        for cases, wanted in (("loads", 3000), ("loads,cheap", 17000),
                              ("cheap", 17000)):
            ask = plan("overload", "--cases", cases).ask
            self.assertIsNone(lacks(ask))
            with patch("sandpaper_bench.overload.descriptors",
                       return_value=999):
                self.assertEqual(lacks(ask), f"{wanted} descriptors, and "
                                 "ulimit -Hn says 999")

    def test_a_window_ends_when_all_is_answered(self) -> None:
        rig, window = Rehearsal(), Drained([Group("a", "b")], length=3.0)
        rig.plan = Plan(seconds=9.0, warmup=2.0)
        with patch.object(rig, "measure") as measure:
            window.measure(rig, [None], [])  # type: ignore[list-item]
        _, _, seconds, drain, warmup = measure.call_args.args
        self.assertEqual((seconds, drain, warmup), (3.0, 10.0, 2.0))
