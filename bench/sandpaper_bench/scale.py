# SPDX-License-Identifier: BSD-2-Clause
"""`scale`: what many tenants cost (paper, section 6.4).

1 to 2000 tenants with CONNECTIONS connections each ask for the no-op's page,
under both variants side by side: two phases that take turns, so that each
varnishd has just these connections.  `ratio` is throughput over the
baseline's: of the turns' quotients, the median.  Phases are shorter than
thousands of connections wait, so that latencies would say nothing.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Sequence
from typing import Any

from .alone import phase_result, quotient_result
from .ask import Ask
from .customers import CUSTOMERS
from .load import PHASE_SECONDS, Group, Interleaved
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Phases, Turn, renamed
from .testbed import TestbedError
from .varnish import Variant

CONNECTIONS = 10  # a tenant
SPARE_FILES = 100  # of a process, beside the connections
NAME = "many"
CONNECT_RATE = 2500  # connections/s, and misses, at least
# In a phase each connection asks several times; more connections need longer
BRISK = 1000  # connections for which the usual length is enough


def group(tenants: int) -> Group:
    """Return all tenants' connections; each is a Host of its own."""
    return Group(NAME, f"{NAME}.example", CUSTOMERS["k0"].path,
                 conns=tenants * CONNECTIONS, hosts=tenants)


def phase_seconds(tenants: int) -> float:
    """Return the length of a phase with so many tenants."""
    return PHASE_SECONDS * max(1.0, tenants * CONNECTIONS / BRISK)


def descriptors(wanted: int) -> int:
    """Return how many of these a process may have, raised where allowed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= wanted:
        return wanted
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
        return wanted
    return hard


def possible(sizes: Sequence[int]) -> list[int]:
    """Return the sizes, the largest ones as far as descriptors go.

    The load generator has two phases' connections, a varnishd has half.
    """
    hard = descriptors(2 * max(sizes) * CONNECTIONS + SPARE_FILES)
    most = (hard - SPARE_FILES) // (2 * CONNECTIONS)
    if most < 1:
        raise TestbedError(f"ulimit -Hn is {hard}: raise it to at least "
                           f"{2 * CONNECTIONS + SPARE_FILES}")
    if max(sizes) > most:
        progress(f"ulimit -Hn is {hard}: it allows {most} tenants")
    return list(dict.fromkeys(min(n, most) for n in sizes))


def patient(variant: Variant) -> Variant:
    """Return the variant, keeping connections through others' phases."""
    return renamed(variant, variant.name, "timeout_idle=60")


def scale_turn(a: Variant, b: Variant, tenants: int) -> Turn:
    """Return so many tenants under two variants, side by side."""
    groups = [group(tenants)]
    return Turn([patient(a), patient(b)], [Phases(
        [(0, groups), (1, groups)], 2 * groups[0].conns / CONNECT_RATE,
        phase_seconds(tenants))])


def quotient(found: Interleaved) -> tuple[float, float]:
    """Return (second, first) variant's throughput, requests/s."""
    return found.phases[1][NAME].rps, found.phases[0][NAME].rps


def scale_result(
    rig: Rig, tenants: int, base: Variant, ours: Variant,
    turns: Sequence[Interleaved],
) -> dict[str, Any]:
    """Return one number of tenants' entry of `results`."""
    result: dict[str, Any] = {
        "tenants": tenants, "connections": tenants * CONNECTIONS,
        **quotient_result(rig, base, ours, [quotient(t) for t in turns])}
    for phase, label in enumerate(("baseline", "variant")):
        result |= phase_result(
            label, [t.phases[phase][NAME] for t in turns],
            [t.cpu_us[phase] for t in turns])
    return result


def part(tenants: int, base: Variant, ours: Variant) -> Part:
    """Return both variants with so many tenants."""
    def note(turn: str, found: Interleaved) -> None:
        us, them = quotient(found)
        progress(f"  {turn} {tenants} tenants {base.name} {them:8.0f}/s "
                 f"{ours.name} {us:8.0f}/s ratio "
                 f"{us / them if them else 0:.3f}")

    return Part(
        f"{tenants} tenants", {"": scale_turn(base, ours, tenants)}, note,
        lambda rig, found: [scale_result(rig, tenants, base, ours,
                                         found[""])])


def itself(tenants: int, base: Variant) -> Part:
    """Return the first variant against itself."""
    return Part(
        f"{tenants} tenants, control", {"": scale_turn(base, base, tenants)},
        controls=[Control(f"{tenants} tenants, {base.name} against itself",
                          "", lambda turns: [*map(quotient, turns)])])


def plan(ask: Ask) -> Job:
    """Plan each number of tenants."""
    sizes = possible(ask.sizes("tenants"))
    base, ours = ask.variants
    return Job(ask, [*(part(n, base, ours) for n in sizes),
                     itself(sizes[0], base)])


EXPERIMENT = Experiment("scale", plan, compares_two=True)
