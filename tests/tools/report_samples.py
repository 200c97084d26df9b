# SPDX-License-Identifier: BSD-2-Clause
"""Results of every experiment, small, made by the experiments' own functions.

No varnishd runs: turns are made of figures, and what the testbed says of
itself is made up.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from sandpaper_bench import (
    compress,
    fetch,
    haboob,
    loadcheck,
    overload,
    overloadcases,
    policies,
    table1,
    utilization,
)
from sandpaper_bench.abuse import AbuseTurn, abuse_result
from sandpaper_bench.abuses import ABUSES
from sandpaper_bench.alone import AloneTurn, alone_result
from sandpaper_bench.estimate import control
from sandpaper_bench.latency import LatencyTurn, latency_result
from sandpaper_bench.load import GroupResult, Interleaved, Measurement
from sandpaper_bench.costing import Costed
from sandpaper_bench.pairs import PairTurn, pair_result
from sandpaper_bench.parts import Beside, PartsTurn, parts_result
from sandpaper_bench.publishers import PUBLISHERS, Publishers
from sandpaper_bench.rig import Plan, Rig, dump
from sandpaper_bench.scale import NAME, scale_result
from sandpaper_bench.soak import COUNTED, PHASES, Holds, Phase
from sandpaper_bench.soak import result as soak_result
from sandpaper_bench.testbed import Testbed
from sandpaper_bench.timeline import Line, result
from sandpaper_bench.varnish import Variant

Report = dict[str, Any]

TURNS = range(4)
VARIANTS = ("stock", "sandpaper")
GOOD, BAD = (1.0, 1.01, 0.99, 1.0), (1.2, 1.21, 1.22, 1.23)


class SampleBed:
    """A testbed that is not there."""

    mode = "namespaces"
    shaped = True
    proxy_cores: ClassVar = [0]
    load_cores: ClassVar = [1, 2]
    cores: ClassVar = {0, 1, 2}

    def describe(self) -> dict[str, object]:
        """Return what a real one says of itself."""
        return {
            "mode": self.mode, "cpu": "a CPU <of 3 & more>", "cores": 4,
            "nice": -10, "kernel": "6.1", "proxy_cores": [0],
            "load_cores": [1, 2], "link_bits_per_second": 1.25e9,
            "congestion_control": "reno", "load_average_at_start": 0.5}


class SampleVariant(Variant):
    """A varnishd that is not installed."""

    def version(self) -> str:
        """Return what a real one says of itself."""
        return "varnish-7.7.0"


class SampleRig(Rig):
    """A rig that measures nothing."""

    def __init__(self) -> None:
        self.bed = cast("Testbed", SampleBed())
        self.plan = Plan(seconds=2, turns=len(TURNS))
        self.variants = [
            SampleVariant("stock", Path()),
            SampleVariant("sandpaper", Path(), ("sandpaper=on",))]
        self.unit_us = 4.5
        self.publishers = cast("Publishers", SimpleNamespace(
            items=dict.fromkeys(PUBLISHERS, 100), readers=Path))
        self.begin([])


def seen(rps: float, p99_s: float = 0.02, slowest: int = 90) -> GroupResult:
    """Return what a group of 100 connections saw."""
    return GroupResult("it", 100, rps, p99_s / 2, p99_s, 2 * p99_s, 0, 0, 0,
                       1, slowest, 110, 100.0, 9, 9, [])


def pair_turns(variant: str) -> list[PairTurn]:
    """Return turns in which stock favours C3."""
    found = []
    for n in TURNS:
        a, b = (500, 900) if variant == "stock" else (600, 590)
        sets = [{"C1": seen(1000 + n)},
                {"C1": seen(a + n, 0.15), "C3": seen(b - n, 0.11)},
                {"C3": seen(1000 - n)}]
        windows = [Costed(Measurement(2.0, 1.0, 0.1, 0.0, s), {})
                   for s in sets]
        found.append(PairTurn(
            Interleaved(2.0, 0.0, sets, [400.0] * 3, {}),
            (windows[0], windows[1], windows[2])))
    return found


def pair_results(rig: Rig) -> list[Report]:
    """Return the pair C1 and C3 under both variants."""
    return [pair_result(rig, "C1", "C3", v, pair_turns(v)) for v in VARIANTS]


def alone_turn(name: str, n: int) -> AloneTurn:
    """Return a turn of a customer, which loses a little."""
    return AloneTurn(Interleaved(
        2.0, 0.0, [{name: seen(rps)} for rps in (1000, 985, 990, 1000 + n)],
        [400.0, 405.0], {}), name)


def table1_turn(name: str) -> list[table1.Sample]:
    """Return windows in which a request took what the paper says, or so."""
    p = PUBLISHERS[name]
    return [table1.Sample(8.2 * p.cpu_us + n, 8 * p.link_us, p.size, 0)
            for n in range(2)]


def utilization_turn(
    name: str, clients: Sequence[int], rps: float = 1000
) -> dict[int, Measurement]:
    """Return windows with each number of connections."""
    return {n: Measurement(2.0, 0.4 + n / 50, 0.1, 0.0,
                           {name: seen(rps * n / (n + 9))}) for n in clients}


def policies_turn() -> tuple[Measurement, Measurement]:
    """Return two windows in which all had the same part."""
    ms = [policies.SMALL_MS, *policies.costs_ms()]
    m = Measurement(2.0, 1.9, 0.1, 0.0, {
        g.name: seen(90 / cost)
        for g, cost in zip(policies.groups(), ms, strict=True)})
    return m, m


def look(lent: float, n: int = 0) -> fetch.Look:
    """Return a turn in which so many slots were lent."""
    return fetch.Look(lent + n, 20 + lent, 795 + n, 0)


def scale_turn(n: int) -> Interleaved:
    """Return a turn of many tenants, which lose a little."""
    return Interleaved(
        2.0, 0.0, [{NAME: seen(1000)}, {NAME: seen(980 + n)}],
        [40.0, 41.0], {})


def latency_turn(p99: float, n: int) -> LatencyTurn:
    """Return a turn of open loops in which C1 had that p99."""
    return LatencyTurn(
        {"C1": 1000.0, "C3": 900.0}, {"C1": seen(800), "C3": seen(700)},
        seen(800), {"C1": seen(400, p99), "C3": seen(350, 0.04 + n / 1000)})


def parts_turn(p99: float, cpu: float | None, n: int) -> PartsTurn:
    """Return a turn beside many connections with that p99 and CPU time."""
    none, few = Beside(1e-3, 5e-3, 0, cpu and 40.0, 0), Beside(
        1e-3, 6e-3, 0, cpu and 41.0, 200)
    return PartsTurn(1000.0, none, few, none,
                     Beside(1e-3, p99 + n * 1e-4, 0, cpu, 5000))


def overload_turn(good: float) -> overloadcases.OverloadTurn:
    """Return a turn in which so much of the capacity was good."""
    saw = overloadcases.Offer(5.0, good, 0.8, 0.0, 0.8, 0.01, 0.02, 3.0, 12.0,
                         1e-5, 0.1, 0)
    return overloadcases.OverloadTurn(1000.0, 1000.0, {
        "load 5": saw,
        "step": overloadcases.Changed(saw, [good], [1.0], [0.2, 0.1],
                                 [0.1, 0.0]),
        "beside open": overloadcases.Beside(0.98, 0.0, 0.02, 0.04, 0.05,
                                       saw)})


def haboob_turn(longest: float, jain: float) -> haboob.HaboobTurn:
    """Return a turn in which many clients had these figures."""
    return haboob.HaboobTurn([
        haboob.Served(64, 190.0, 1600.0, 0.02, 0.05, 0.1, 0.999, 0),
        haboob.Served(1024, 200.0, 1700.0, 0.6, 0.8, longest, jain, 0)],
        1600.0)


def compress_turn(
    rate: float, kb: float = 100.0, cpu_s: float = 1.0
) -> list[Measurement]:
    """Return two windows with so many requests/s, of so many kB."""
    name = compress.TENANT.name
    return [Measurement(2.0, cpu_s, 0.1, 0.0, {name: replace(
        seen(rate), name=name, bytes=round(2 * rate * kb * 1000))})] * 2


def compress_results(rig: Rig, auto: Sequence[float]) -> list[Report]:
    """Return the results of all links; plain always has 1000 requests/s.

    `auto` has so many times as much with each link.
    """
    found = []
    for rate_bps, times in zip(compress.RATES, auto, strict=True):
        turns = {name: [compress_turn(1000 * x, kb) for _ in TURNS]
                 for name, x, kb in (
                     ("plain", 1.0, 100), ("compressed", 0.8, 44),
                     ("auto", times, 60))}
        found += compress.results(rig, rate_bps, turns)
    return found


def check_turn(p99: float) -> loadcheck.CheckTurn:
    """Return a turn in which vegeta saw that p99, and ours 20 ms."""
    ours = overloadcases.Offer(2.0, 0.9, 0.55, 0.0, 0.0, 0.01, 0.02, 3.0,
                               None, 1e-5, 0.1, 0)
    return loadcheck.CheckTurn(1000.0, 1000.0, {"load 2": loadcheck.Both(
        [ours] * 2, [replace(ours, p99_s=p99, goodput=0.92)] * 2)})


def line(kept: int, phases: int) -> Line:
    """Return a time line; what counts is its second phase."""
    static = ([100] * 20 + [kept] * 20 + [100] * 40)[:20 * phases]
    return Line(static, [static], phases, 1.0)


def abuse_turn(rps: float, n: int) -> AbuseTurn:
    """Return a turn in which the victim kept so many requests/s."""
    return AbuseTurn([seen(1000), seen(1000 + n)], [seen(rps), seen(rps)],
                     ([seen(100)], [seen(100, 2e-2)]), [], 1000, 0, 4096, 0.1,
                     9)


def against_itself(name: str, quotients: Sequence[float]) -> Report:
    """Return a control with these quotients."""
    return control(f"{name} against itself", [(q, 1.0) for q in quotients], 1)


def tenants(rig: Rig) -> dict[str, list[Report]]:
    """Return the results of experiments with a tenant or two."""
    alone = [alone_result(rig, name, *rig.variants, [
        alone_turn(name, n) for n in TURNS])
             for name in ("C1", "k0")]
    latencies = {v: [latency_turn(p99, n) for n in TURNS]
                 for v, p99 in zip(VARIANTS, (0.9, 0.05), strict=True)}
    return {
        **{name: pair_results(rig)
           for name in ("pairs", "random-pairs", "quick", "rate-unknown",
                        "rate-wrong")},
        "alone": alone,
        "overhead": [{"setting": setting} | r | {"variant": setting}
                     for setting in ("off", "sampled") for r in alone],
        "workers": [
            {"slots": n, "connections": c}
            | pair_result(rig, "C1", "C3", f"{n} slots", pair_turns(v))
            for c in (25, 100)
            for n, v in ((10, "sandpaper"), (100, "stock"))],
        "table1": [table1.result(rig, name, v, table1_turn(name))
                   for name in PUBLISHERS for v in VARIANTS],
        "latency": [
            latency_result(rig, a, b, v, turns)
            for v, turns in latencies.items()
            for a, b in (("C1", "C3"), ("C3", "C1"))],
        "parts": [
            parts_result(rig, "k0", v, [parts_turn(p99, cpu, n)
                                        for n in TURNS])
            for v, p99, cpu in (("stock", 0.9, None),
                                ("sandpaper", 8e-3, 42.0))],
        **{name: [result(rig, phase, 1, v, [line(kept, 3) for _ in TURNS])
                  for v, kept in zip(VARIANTS, (40, 98), strict=True)]
           for name, phase in (("content-change", "larger page"),
                               ("flash-crowd", "2 x connections"))},
    }


def machines(rig: Rig) -> dict[str, list[Report]]:
    """Return the results of experiments with more than that."""
    phase = Phase(seen(900), 0.1, dict.fromkeys(COUNTED, 0), (30, 31), 1 << 26,
                218, 1 << 29, 300, died=False, undone=0,
                holds=Holds(9, 4e-4, "spd_dispatch", 4e-5, 2e-4))
    return {
        "utilization": [
            utilization.result("C1", v, n, 2, [m for _ in TURNS])
            for v, rps in (("stock", 2000), ("sandpaper", 1980), ("mr3", 900))
            for n, m in utilization_turn("C1", (1, 10, 100), rps).items()],
        "policies": [
            policies.result(rig, name, [policies_turn() for _ in TURNS])
            for name in ("mr3-rs", "2dfqe")],
        "overload": [
            overload.result(1, case, v, [overload_turn(good) for _ in TURNS])
            for case in ("load 5", "step", "beside open")
            for v, good in (("stock", 0.01), ("time", 0.9))],
        "haboob": [
            haboob.result(1, v, [haboob_turn(*figures) for _ in TURNS], at)
            for at in range(2)
            for v, figures in zip(VARIANTS, ((9.0, 0.92), (0.9, 0.998)),
                                  strict=True)],
        "compress": compress_results(rig, (1.6, 0.95, 0.98)),
        "load-check": [
            loadcheck.result(1, "time", "load 2", [check_turn(0.019)
                                                   for _ in TURNS])],
        "fetch": [
            fetch.result(rig, miss, seconds, v, [
                look(share * fetch.LAMBDA * miss * seconds, n)
                for n in TURNS])
            for miss, seconds in fetch.CASES
            for v, share in zip(VARIANTS, (0, 1), strict=True)],
        "scale": [scale_result(rig, many, *rig.variants, [
            scale_turn(n) for n in TURNS])
                  for many in (1, 200)],
        **{name: [abuse_result(rig, name, "k0", v,
                               [abuse_turn(rps, n) for n in TURNS])
                  for v, rps in zip(VARIANTS, (300, 960), strict=True)]
           for name in ABUSES},
        "soak": [soak_result("sandpaper", 3600, [phase] * PHASES)],
        "of-tomorrow": [{"customer": "C1", "cpu_us": 39.9, "list": [1]}],
    }


@functools.cache
def reports() -> dict[str, Report]:
    """Return each experiment's report, with a good control."""
    rig = SampleRig()
    return {name: rig.report(name, against_itself(name, GOOD), found)
            for name, found in (tenants(rig) | machines(rig)).items()}


def samples(invalid: str = "") -> dict[str, Report]:
    """Return each experiment's report; one may have a bad control."""
    found = copy.deepcopy(reports())
    if invalid:
        found[invalid] |= {"valid": False,
                           "control": against_itself(invalid, BAD)}
    return found


def save(folder: Path, invalid: str = "") -> None:
    """Write each as the experiments do."""
    for name, report in samples(invalid).items():
        (folder / f"{name}.json").write_text(dump(report))
