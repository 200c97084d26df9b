# SPDX-License-Identifier: BSD-2-Clause
"""`policies`: a small tenant beside dear ones, under one policy or another.

2DFQ's case (sections 1 and 6), live: as many tenants as a core has slots, whose
requests take 1 ms to 1 s of CPU, could have every slot at once, and a tenant
whose requests take SMALL_MS would wait for the dearest of them.  All ask
for all there is; fair is an equal part of the core for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from .ask import Ask, check_once
from .estimate import bootstrap, rounded
from .load import Group, Measurement
from .rig import Rig, progress
from .runner import (
    Control,
    Experiment,
    Job,
    Part,
    Turn,
    Window,
    of_each,
    renamed,
)
from .varnish import Variant
from .vmod import NEEDED, build_vmod

PARAMETER = "sandpaper_policy"
SLOTS = 10  # a core, Sandpaper's default
DEAREST_MS = 1000
SMALL, SMALL_MS = "small", 1
CONNECTIONS = 4  # each
LONGER = 4  # times the planned window: a dear request takes a second
WINDOWS = 3  # a turn; in the first one costs are not known yet

VCL = """import std;
import customers from "{vmod}";

sub vcl_recv {{
	if (req.http.host ~ "^[a-z]+[0-9]+\\.policies\\.example$") {{
		customers.burn(std.duration(
		    regsub(req.http.host, "^[a-z]+([0-9]+).*", "\\1ms"), 0s));
		return (synth(200));
	}}
}}
"""


def costs_ms() -> list[int]:
    """Return the dear tenants' CPU milliseconds a request, evenly in log."""
    return [round(DEAREST_MS ** (n / (SLOTS - 1))) for n in range(SLOTS)]


def group(name: str, ms: int) -> Group:
    """Return a tenant whose requests take so long."""
    return Group(name, f"{name}{ms}.policies.example", conns=CONNECTIONS)


def groups() -> list[Group]:
    """Return the small tenant and the dear ones."""
    return [group(SMALL, SMALL_MS),
            *(replace(group("dear", ms), name=f"dear {ms} ms")
              for ms in costs_ms())]


def with_policy(variant: Variant, policy: str) -> Variant:
    """Return the variant with a policy, and what the tenants do."""
    _ = variant.program  # an error if it is not there
    return replace(renamed(variant, policy, f"{PARAMETER}={policy}"),
                   prelude=variant.prelude
                   + VCL.format(vmod=build_vmod(variant.root)))


def turn(variant: Variant) -> Turn:
    """Return all tenants together, twice, once their costs are known."""
    return Turn([variant], [Window(groups(), LONGER)] * WINDOWS,
                value=lambda found: tuple(found[1:]))


def parts(m: Measurement) -> list[float]:
    """Return each tenant's part of all work that was done."""
    ms = [SMALL_MS, *costs_ms()]
    work = [m[g.name].rps * cost
            for g, cost in zip(groups(), ms, strict=True)]
    return [w / (sum(work) or 1.0) for w in work]


def note(text: str, found: tuple[Measurement, Measurement]) -> None:
    """Print one turn's figures."""
    progress(f"  {text}" + "".join(
        f" small p99 {m[SMALL].p99_s * 1e3:.1f} ms, part {parts(m)[0]:.3f} "
        for m in found))


def result(
    rig: Rig, policy: str, turns: Sequence[tuple[Measurement, Measurement]]
) -> dict[str, Any]:
    """Return one policy's entry of `results`."""
    windows = [m for pair in turns for m in pair]
    small = [m[SMALL] for m in windows]
    interval = bootstrap(
        turns, lambda some: median(m[SMALL].p99_s for t in some for m in t),
        rig.plan.seed)
    return {
        "policy": policy, "turns": len(turns),
        "rps": round(median(s.rps for s in small), 1),
        "p50_s": round(median(s.p50_s for s in small), 6),
        "p99_s": round(median(s.p99_s for s in small), 6),
        "p99_ci_s": rounded(interval, 6),
        "max_s": round(max(s.max_s for s in small), 6),
        "parts": [round(median(p), 4) for p in zip(
            *map(parts, windows), strict=True)],
        "errors": sum(g.failures for m in windows
                      for g in m.groups.values()),
    }


def lacks(ask: Ask) -> str | None:
    """Return what the VMOD of the tenants lacks here."""
    if ask.serves_publishers():
        return None
    return f"bench/vmod_customers, and that needs Varnish {NEEDED}"


def plan(ask: Ask) -> Job:
    """Plan each policy."""
    names = ask.args.policies.split(",")
    check_once("--policies", names)
    return Job(ask, [Part(
        "policies",
        of_each([with_policy(ask.ours, name) for name in names], turn), note,
        lambda rig, found: [result(rig, name, turns)
                            for name, turns in found.items()],
        [Control(f"the small tenant's p99 under {names[0]}, against itself",
                 names[0], lambda turns: [(second[SMALL].p99_s,
                                           first[SMALL].p99_s)
                                          for first, second in turns])],
        whole=True)])


# It compares what is ours, so it is not in `all`
EXPERIMENT = Experiment("policies", plan, lacks, in_all=False,
                        needs="policies")
