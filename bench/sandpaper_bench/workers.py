# SPDX-License-Identifier: BSD-2-Clause
"""`workers`: fairness against pool size and clients (paper, Figure 4).

A scheduler decides among those who wait.  The more workers there are, the
fewer wait, until the pool holds every client's request and the kernel's
schedulers decide instead.  min/max of normalised throughput for a CPU-bound
and a link-bound tenant, by slots a core and connections a tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from .lab import Lab, in_turns, progress
from .pairs import (
    note_pair,
    pair_result,
    pair_turn,
    twin_control,
)
from .varnish import Variant

PARAMETER = "sandpaper_workers_per_core"
CLIENTS = (25, 100)


def with_slots(variant: Variant, slots: int) -> Variant:
    """Return the variant with so many slots a core."""
    return replace(variant, name=f"{slots} slots", parameters=(
        *variant.parameters, f"{PARAMETER}={slots}"))


def workers(
    lab: Lab, pair: tuple[str, str], slots: Sequence[int]
) -> dict[str, Any]:
    """Run the pair with each number of slots, for each of CLIENTS."""
    a, b = pair
    ours = [v for v in lab.variants if v.parameters]
    variants = [with_slots(ours[-1], n) for n in slots]
    planned = lab.plan.connections
    results = []
    try:
        for clients in CLIENTS:
            progress(f"{a} {b}, {clients} connections each")
            lab.plan.connections = clients
            found = in_turns(variants, lab.plan,
                             partial(pair_turn, lab, a=a, b=b),
                             note=lab.counted(partial(note_pair, a, b)),
                             keep=lab.keeper(f"{clients} connections"))
            results += [
                {"slots": n, "connections": clients}
                | pair_result(lab, a, b, v.name, found[v.name])
                for n, v in zip(slots, variants, strict=True)]
    finally:
        lab.plan.connections = planned
    return lab.report("workers", twin_control(lab, a), results)
