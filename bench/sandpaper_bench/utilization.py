# SPDX-License-Identifier: BSD-2-Clause
"""`utilization`: what end-to-end synchronisation leaves idle (paper, Fig. 6).

One tenant's throughput and varnishd's part of its cores, by connections, for
each variant and for Sandpaper with policy `mr3`, which releases a turn only
when the one before has begun service on the link.  With one core nothing can
stand idle beside it: varnishd gets two at least, if need be those of the load,
and `load_beside` says so.  The control is the first variant against itself,
each with a varnishd of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

from .ask import Ask
from .load import Measurement, tenant
from .rig import progress
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
from .testbed import Testbed
from .varnish import Variant

POLICY = "sandpaper_policy=mr3"
CORES = 2  # at least


def own_cores(bed: Testbed) -> list[int]:
    """Return the planned cores of varnishd; all, if those are too few."""
    planned = bed.proxy_cores
    return planned if len(planned) >= CORES else sorted(bed.cores)


def turn(variant: Variant, *, name: str, clients: Sequence[int]) -> Turn:
    """Return the tenant with each number of connections."""
    return Turn([variant], [Window([tenant(name, n)]) for n in clients],
                [tenant(name)],
                lambda found: dict(zip(clients, found, strict=True)))


def busy(m: Measurement, cores: int) -> float:
    """Return varnishd's part of its cores."""
    return m.cpu_s / (m.window_s * cores)


def note(name: str, text: str, found: dict[int, Measurement]) -> None:
    """Print one turn's figures."""
    progress(f"  {text} " + ", ".join(
        f"{conns}: {m[name].rps:.0f}/s" for conns, m in found.items()))


def result(
    name: str, variant: str, conns: int, cores: int,
    turns: Sequence[Measurement],
) -> dict[str, Any]:
    """Return one entry of `results`."""
    return {
        "customer": name, "variant": variant, "connections": conns,
        "turns": len(turns), "cores": cores,
        "rps": round(median(m[name].rps for m in turns), 1),
        "busy": round(median(busy(m, cores) for m in turns), 3),
        "cpu_us": round(median(m.cpu_us_per_request for m in turns), 1),
        "p99_s": round(median(m[name].p99_s for m in turns), 6),
        "errors": sum(m[name].failures for m in turns),
    }


def itself(variant: Variant, name: str, conns: int) -> Part:
    """Return a variant against itself, each time under a new varnishd."""
    once = turn(variant, name=name, clients=[conns])
    both = replace(once, before=once, value=lambda found: (
        found[1][name].rps, found[0][name].rps))

    return Part(f"{conns} control", {"": both}, controls=[Control(
        f"{variant.name} against itself, {conns} connections", "", list)])


def lacks(ask: Ask) -> str | None:
    """Return what this machine lacks."""
    cores = own_cores(ask.bed)
    return None if len(cores) >= CORES else f"{CORES} cores, not {cores}"


def plan(ask: Ask) -> Job:
    """Plan each variant with each number of connections."""
    name = ask.customers(ask.realistic)[0]
    clients = ask.sizes("clients")
    first, cores = ask.variants[0], own_cores(ask.bed)
    ask = replace(ask, variants=[*ask.variants,
                                 renamed(ask.ours, "mr3", POLICY)])
    beside = bool(set(cores) & set(ask.bed.load_cores))
    part = Part(
        name, of_each(ask.variants, partial(turn, name=name, clients=clients)),
        partial(note, name), lambda _rig, found: [
            result(name, variant, conns, len(cores), [t[conns] for t in turns])
            | {"load_beside": beside}
            for variant, turns in found.items() for conns in clients],
        title=f"  varnishd on cores {cores}, the load on {ask.bed.load_cores}"
        if beside else "")
    return Job(ask, [part, itself(first, name, max(clients))], [name], cores)


EXPERIMENT = Experiment("utilization", plan, lacks, in_quick=False,
                        needs="policies")
