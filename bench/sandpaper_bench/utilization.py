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

from .lab import Lab, in_turns, progress
from .load import Measurement
from .pairs import control
from .testbed import Testbed
from .varnish import Variant

POLICY = "sandpaper_policy=mr3"
CORES = 2  # at least


def with_mr3(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants and, after them, the last with policy mr3."""
    ours = [v for v in variants if v.parameters]
    return [*variants, replace(ours[-1], name="mr3", parameters=(
        *ours[-1].parameters, POLICY))]


def own_cores(bed: Testbed) -> list[int]:
    """Return the planned cores of varnishd; all, if those are too few."""
    planned = bed.proxy_cores
    return planned if len(planned) >= CORES else sorted(bed.cores)


def turn(
    lab: Lab, variant: Variant, *, name: str, clients: Sequence[int]
) -> dict[int, Measurement]:
    """Measure the tenant with each number of connections."""
    found = {}
    with lab.varnish(variant) as varnish:
        group = lab.tenant(name)
        lab.load.prime(varnish, [group])
        for conns in clients:
            found[conns] = lab.measure(
                varnish, [replace(group, conns=conns)])
    return found


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


def itself(lab: Lab, name: str, conns: int) -> dict[str, Any]:
    """Run the control, with so many connections."""
    variant = lab.variants[0]
    turns: list[tuple[float, float]] = []
    while len(turns) < lab.plan.turns:
        first, second = (
            lab.kept(
                f"{conns} control, turn {len(turns) + 1}, {which}",
                partial(turn, lab, variant, name=name, clients=[conns])
            )[conns][name].rps for which in ("first", "second"))
        turns.append((second, first))
        lab.tick()
    return control(f"{variant.name} against itself, {conns} connections",
                   turns, lab.plan.seed)


def utilization(
    lab: Lab, name: str, clients: Sequence[int]
) -> dict[str, Any]:
    """Run each variant with each number of connections."""
    bed, planned = lab.bed, lab.bed.proxy_cores
    cores = own_cores(bed)
    beside = sorted(set(cores) & set(bed.load_cores))
    if beside:
        progress(f"  varnishd on cores {cores}, the load on "
                 f"{bed.load_cores}")
    lab.variants = with_mr3(lab.variants)
    bed.proxy_cores = cores
    try:
        found = in_turns(
            lab.variants, lab.plan,
            partial(turn, lab, name=name, clients=clients),
            note=lab.counted(partial(note, name)), keep=lab.keeper(name))
        checked = itself(lab, name, max(clients))
    finally:
        bed.proxy_cores = planned
    return lab.report("utilization", checked, [
        result(name, variant, conns, len(cores), [t[conns] for t in turns])
        | {"load_beside": bool(beside)}
        for variant, turns in found.items() for conns in clients])
