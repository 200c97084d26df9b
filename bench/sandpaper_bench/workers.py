# SPDX-License-Identifier: BSD-2-Clause
"""`workers`: fairness against pool size and clients (paper, Figure 4).

A scheduler decides among those who wait.  The more workers there are, the
fewer wait, until the pool holds every client's request and the kernel's
schedulers decide instead.  min/max of normalised throughput for a CPU-bound
and a link-bound tenant, by slots a core and connections a tenant.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .ask import Ask
from .pairs import note_pair, pair_result, pair_turn, twin_control
from .runner import Experiment, Job, Part, of_each, renamed

PARAMETER = "sandpaper_workers_per_core"
CLIENTS = (25, 100)


def plan(ask: Ask) -> Job:
    """Plan the pair with each number of slots, for each of CLIENTS."""
    (a, b), slots = ask.pairs(1)[0], ask.sizes("slots")
    variants = {n: renamed(ask.ours, f"{n} slots", f"{PARAMETER}={n}")
                for n in slots}

    def part(clients: int) -> Part:
        return Part(
            f"{clients} connections", of_each(
                [*variants.values()],
                partial(pair_turn, a=a, b=b,
                        plan=replace(ask.plan, connections=clients))),
            partial(note_pair, a, b), lambda rig, found: [
                {"slots": n, "connections": clients}
                | pair_result(rig, a, b, v.name, found[v.name])
                for n, v in variants.items()],
            title=f"{a} {b}, {clients} connections each")

    return Job(ask, [*map(part, CLIENTS), twin_control(ask, a)], (a, b))


EXPERIMENT = Experiment("workers", plan, in_quick=False, needs="slots")
