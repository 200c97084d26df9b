# SPDX-License-Identifier: BSD-2-Clause
"""`overload`: what a tenant gets that asks for more than it can have.

A tenant is an open loop at several times its capacity.  An answer is good if
its status is 200 and it comes within the target from when its request was due.
A request takes about 1 ms of CPU, in the case `cheap` 0.13 ms.  The cases:

    loads       each load alone: good answers over capacity
    neighbours  the tenant in competition with its twin.  The twin is an open
                loop at FAIR of half of the machine, then a closed loop
    changes     a step to MOST and back, and a square wave
    retries     refused clients ask again, after Retry-After or at once
    cheap       requests that come faster than they can be refused

The capacity is that of a closed loop without a target.  It is measured before
and after every EVERY windows: a machine's speed changes.  Each variant is
Sandpaper with another controller of overload.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from .ask import Ask, check_once
from .estimate import with_interval
from .nginx import NGINX
from .overloadcases import (
    CASE_CHEAP,
    CASES,
    CHEAP,
    DEAR,
    RETRY_AFTER_S,
    Asking,
    Beside,
    Changed,
    Offer,
    OverloadTurn,
    Seen,
    controller_of,
    target_of,
)
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, of_each, weaker
from .scale import descriptors
from .testbed import TestbedError
from .varnish import Variant

NONE = "none"  # no controller: Sandpaper as it is
# Clients keep idle connections, and so does varnishd.  --param can change what
# a variant has.
KEEP = "timeout_idle=60"
OURS = (target_of(DEAR.target_s),
        f"sandpaper_retry_after={RETRY_AFTER_S}")
OTHERS = 1000  # descriptors of a process, besides the connections


def note(turn: str, found: OverloadTurn) -> None:
    """Print one turn's figures."""
    said = [f"  {turn} capacity {found.capacity_rps:.0f}/s"]
    for name, value in found.found.items():
        text = f"{name}: {goodput(value):.2f}"
        if isinstance(value, Beside):
            text += f", kept {value.kept:.2f}, times {value.times:.2f}"
        said.append(text)
    progress("; ".join(said))


def of(value: Seen) -> Offer:
    """Return what the tenant saw."""
    if isinstance(value, Beside):
        return value.tenant
    return value.offer if isinstance(value, Changed) else value


def goodput(value: Seen) -> float:
    """Return the tenant's goodput over what is its own."""
    return value.goodput if isinstance(value, Changed) else of(value).goodput


def result(
    seed: int, name: str, variant: str, turns: Sequence[OverloadTurn]
) -> dict[str, Any]:
    """Return an entry of `results`: a case under a variant."""
    values = [t.found[name] for t in turns]
    offers = [of(value) for value in values]

    def middle(field: str, digits: int) -> float | None:
        found = [x for o in offers if (x := getattr(o, field)) is not None]
        return round(median(found), digits) if found else None

    row: dict[str, Any] = {
        "case": name, "variant": variant, "turns": len(turns),
        "load": offers[0].load,
        "capacity_rps": round(median(t.capacity_rps for t in turns), 1),
        **with_interval("goodput", values, goodput, seed),
        **{field: middle(field, digits) for field, digits in (
            ("refused", 4), ("retried", 4), ("given_up", 4), ("p50_s", 6),
            ("p99_s", 6), ("connects", 1), ("cpu_us_refusal", 1),
            ("behind_s", 6), ("noise_cores", 3))},
        "errors": sum(o.errors for o in offers),
        "kept": None, "kept_ci": None, "times": None, "times_ci": None,
        "refused_neighbour": None,
        "p99_s_alone": None, "p99_s_usual": None, "p99_s_much": None,
        "up_s": None, "down_s": None, "up_own_s": None, "down_own_s": None,
    }
    if neighbours := [v for v in values if isinstance(v, Beside)]:
        row |= with_interval("kept", neighbours, lambda v: v.kept, seed)
        row |= with_interval("times", neighbours, lambda v: v.times, seed)
        row["refused_neighbour"] = round(
            median(v.refused for v in neighbours), 4)
        for field in ("p99_s_alone", "p99_s_usual", "p99_s_much"):
            row[field] = round(
                median(getattr(v, field) for v in neighbours), 6)
    if changes := [v for v in values if isinstance(v, Changed)]:
        row["series"] = {
            "goods": medians([v.goods for v in changes]),
            "possible": medians([v.possible for v in changes])}
        if name == "step":
            row["up_s"], row["down_s"] = medians([v.until_s for v in changes])
            row["up_own_s"], row["down_own_s"] = medians(
                [v.own_s for v in changes])
    return row


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each column."""
    return [round(median(column), 3) for column in zip(*rows, strict=True)]


def part(ask: Ask, name: str) -> Part:
    """Return a case under every variant."""
    last = ask.variants[-1].name

    def results(rig: Rig, found: dict[str, Any]) -> list[dict[str, Any]]:
        cases = next(iter(found.values()))[0].found
        return [result(rig.plan.seed, case, variant, turns) for case in cases
                for variant, turns in found.items()]

    return Part(
        name, of_each(ask.variants, lambda v: CASES[name](v, ask.plan)), note,
        results, [Control(
            f"capacity against itself, {name}, {last}", last,
            lambda turns: [(t.again_rps, t.capacity_rps) for t in turns],
            name)], f"{name}: {len(ask.variants)} variants", own_arrivals=True)


def with_controllers(ask: Ask) -> list[Variant]:
    """Return the variants: Sandpaper once with each controller."""
    names = ask.args.controllers.split(",")
    check_once("--controllers", names)
    found: list[Variant] = []
    for variant in ask.variants:
        if variant.name == NGINX:
            found.append(variant)
        elif variant.name != "sandpaper":
            found.append(weaker(variant, KEEP))
        else:
            found += [weaker(variant, KEEP) if name == NONE else replace(
                weaker(variant, KEEP, controller_of(name), *OURS),
                name=name) for name in names]
    return found


def tenants(ask: Ask) -> list[Asking]:
    """Return the tenants of the chosen cases."""
    return list(dict.fromkeys(
        CHEAP if name == CASE_CHEAP else DEAR
        for name in ask.args.cases.split(",")))


def lacks(ask: Ask) -> str | None:
    """Return what this machine lacks."""
    wanted = max(who.connections for who in tenants(ask)) + OTHERS
    hard = descriptors(wanted)
    return None if hard == wanted else (
        f"{wanted} descriptors, and ulimit -Hn says {hard}")


def plan(ask: Ask) -> Job:
    """Plan the chosen cases."""
    names = ask.args.cases.split(",")
    check_once("--cases", names)
    for name in names:
        if name not in CASES:
            raise TestbedError(f"--cases {name} is not known: use some of "
                               + " ".join(CASES))
    ask = replace(ask, variants=with_controllers(ask))
    return Job(ask, [part(ask, name) for name in names],
               [who.name for who in tenants(ask)])


# It compares what is ours, so it is not in `all`
EXPERIMENT = Experiment("overload", plan, lacks, in_all=False, turns=3,
                        seconds=3.0)
