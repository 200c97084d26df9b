# SPDX-License-Identifier: BSD-2-Clause
"""`soak`: all abuses at once, for as long as one likes.

A victim asks on while every abuse goes on beside it, in small, and an operator
changes what can be changed live.  When the load has gone, the counters have
to agree exactly: whatever arrived was completed or cancelled, and nothing
waits or runs.  Descriptors are those of before, no worker process is gone, and
each complete request of the victim's was answered once.  Sandpaper's lock was
never held for long.  There is a rest after each of three phases.  Under load
threads and memory come and go by more than a leak.  So the rests are compared:
there may be no more threads, and memory without their stacks may not grow from
each rest to the next.  A leak grows each time, and what grows once is none.
There is no control.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean
from typing import Any

from .abuse import DRAIN_SECONDS, GAUGES, settled
from .abuses import ABUSES, SETTLED, Abuse
from .ask import Ask
from .faults import LOOK_SECONDS, Faults
from .load import Group, GroupResult, tenant
from .rig import Plan, Rig, progress
from .runner import RUN, START, Experiment, Job, Part, of_each
from .testbed import Testbed
from .varnish import Variant, Varnish

VICTIM = "k0"
PHASES = 3
CONNECTIONS = 10  # of an abuse, at most
SLOWER = 10  # times, what comes at a rate
MEMORY = 2 * 2**20  # bytes, by which it may grow from each rest to the next
THREADS = 10  # by which their number at rest may grow
REST_SECONDS = 50.0  # until threads have ended and caches are empty
# With a cache for each thread and arenas for each core, memory at rest was 66,
# 91, 101 and 107 MB after four rounds of load; without them 48, 48, 48 and 47.
# What is freed is given back at once, since it is not held any more.
ENVIRONMENT = ("MALLOC_CONF=tcache:false,narenas:1,"
               "dirty_decay_ms:0,muzzy_decay_ms:0",)
PATIENCE = 120.0  # seconds: counters agree only when nothing runs
# Of CPU time, that 99.99 % of the lock's holds may take.  The longest says
# little: a CPU clock counts interrupts.  One process that measured every 0.8 us
# of its own saw 334 us once, and more than 100 us 19 times a second.
HOLD_SECONDS = 100e-6
DESCRIPTORS = 20  # that may come and go, beside two a fetch that goes on
# The C compiler has the core of varnishd, which is busy: it has to be quick.
# What it leaves of all abuses' VCL takes 52 kB of stack, and PCRE's takes 32.
# Memory is compared: threads that sandpaper=off needs for a while end soon, and
# so do hit-for-miss objects, 300 a second.  Random Hosts fill the table of
# tenants in the first phase, however slow the machine is.
PARAMETERS = ("feature=+http2", "backend_idle_timeout=1",
              "thread_pool_stack=256k",
              "thread_pool_timeout=10", "thread_pool_destroy_delay=0.01",
              "default_ttl=10", "sandpaper_tenants_max=1000",
              "cc_command=exec cc -O0 -fpic -shared -o %o %s")
COUNTED = tuple(f"SANDPAPER.{name}" for name in (
    "enqueued", "released", "completed", "cancelled", "refused", "shed",
    "waiting", "running", "lent"))


def taken(bed: Testbed) -> dict[str, Abuse]:
    """Return the abuses that can go on here and leave others alone."""
    return {name: a for name, a in ABUSES.items()
            if not a.restarts and "descriptors" not in " ".join(a.actions)
            and a.runs_on(bed)}


def mixed(abuses: dict[str, Abuse]) -> list[Group]:
    """Return the groups of all, small ones."""
    return [
        replace(g, name=f"{name} {number}", conns=min(g.conns, CONNECTIONS),
                rate=g.rate / SLOWER if g.mode in ("open", "connect")
                else g.rate)
        for name, a in abuses.items() for number, g in enumerate(a.groups)]


def unaccounted(counters: dict[str, int]) -> int:
    """Return how many requests arrived and are not accounted for."""
    c = {name.partition(".")[2]: n for name, n in counters.items()}
    return (c["enqueued"] - c["completed"] - c["cancelled"] - c["waiting"]
            - c["running"] - c["lent"])


@dataclass(frozen=True)
class Holds:
    """How long Sandpaper's lock was held, since the start."""

    number: int
    longest_s: float  # on the holder's CPU clock
    by: str  # the function that held it
    cpu_s: float  # 99.99 % were not longer
    wall_s: float  # the same on the wall clock


def holds(said: str) -> Holds:
    """Return what `debug.sandpaper.lock` said."""
    cpu, wall = re.findall(r"(\d+) holds, the longest ([\d.]+) us by (\w+), "
                           r"99.99 % up to ([\d.]+) us", said)
    return Holds(int(cpu[0]), float(cpu[1]) / 1e6, cpu[2],
                 float(cpu[3]) / 1e6, float(wall[3]) / 1e6)


@dataclass(frozen=True)
class Phase:
    """What was seen of one variant, in one phase."""

    victim: GroupResult
    settled_s: float
    counters: dict[str, int]  # from the start on
    descriptors: tuple[int, int]  # what is usual, what there are
    rest_bytes: int  # without stacks
    rest_threads: int
    most_bytes: int
    most_threads: int
    died: bool
    undone: int
    holds: Holds


def grown_bytes(phases: Sequence[Phase]) -> int:
    """Return the smallest growth of memory from a rest to the next."""
    return min((b.rest_bytes - a.rest_bytes for a, b in pairwise(phases)),
               default=0)


def failed(phases: Sequence[Phase]) -> list[str]:
    """Return the criteria that are missed, by name."""
    missed = {
        "died": any(p.died for p in phases),
        "deeds": any(p.undone for p in phases),  # actions
        "lost": any(p.victim.lost for p in phases),
        "counters": any(unaccounted(p.counters) for p in phases),
        "settled": any(p.settled_s > SETTLED for p in phases),
        "memory": grown_bytes(phases) > MEMORY,
        "threads": (phases[-1].rest_threads - phases[0].rest_threads
                    > THREADS),
        "descriptors": any(p.descriptors[1] - p.descriptors[0] > DESCRIPTORS
                           for p in phases),
        "lock": any(p.holds.cpu_s > HOLD_SECONDS for p in phases),
    }
    return [name for name, is_missed in missed.items() if is_missed]


@dataclass(frozen=True)
class SoakTurn:
    """One varnishd with everything, and a rest, twice."""

    variant: Variant
    connections: int

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        return START + plan.seconds + PHASES * (RUN + REST_SECONDS)

    def run(self, rig: Rig) -> list[Phase]:
        """Return all phases."""
        abuses = taken(rig.bed)
        parts = dict.fromkeys(a.vcl for a in abuses.values())
        variant = replace(
            self.variant, prelude=self.variant.prelude + "".join(parts),
            parameters=(*self.variant.parameters, *PARAMETERS),
            environment=ENVIRONMENT)
        actions = [action for a in abuses.values() for action in a.actions]
        rule = "\n".join(a.firewall for a in abuses.values() if a.firewall)
        victim = tenant(VICTIM, self.connections)
        phases: list[Phase] = []
        with (rig.varnish(variant) as varnish,
              rig.bed.firewall("client", rule)):
            rig.load.prime(varnish, [victim])
            before = varnish.descriptors()
            varnish.cli("debug.sandpaper.lock", "on")
            while len(phases) < PHASES:
                with Faults(varnish, actions) as faults:
                    seen = rig.load.disturbed(
                        varnish, [victim, *mixed(abuses)],
                        rig.plan.seconds / PHASES, DRAIN_SECONDS)
                look = dead if varnish.restarted() else calm
                phases.append(look(varnish, faults, seen[victim.name],
                                   before))
                if phases[-1].died:
                    break
        return phases


def counted(varnish: Varnish) -> dict[str, int]:
    """Return counters that were the same twice.

    They are read one by one, and a fetch that goes on may end meanwhile.
    """
    deadline = time.monotonic() + PATIENCE
    before: dict[str, int] = {}
    counters = varnish.gauges(COUNTED)
    while counters != before and time.monotonic() < deadline:
        before, counters = counters, varnish.gauges(COUNTED)
    return counters


def dead(
    varnish: Varnish, faults: Faults, victim: GroupResult, before: int
) -> Phase:
    """Return a phase in which a worker process died: no more is known."""
    progress(f"  a worker process died{varnish.obituary()}")
    return Phase(
        victim, 0.0, dict.fromkeys(COUNTED, 0), (before, before), 0, 0,
        faults.rss_bytes, faults.threads, True, len(faults.errors),
        Holds(0, 0.0, "", 0.0, 0.0))


def calm(
    varnish: Varnish, faults: Faults, victim: GroupResult, before: int
) -> Phase:
    """Wait until varnishd has calmed down, and look at what is left."""
    took = settled(varnish, GAUGES, PATIENCE)
    held = holds(varnish.cli("debug.sandpaper.lock"))
    time.sleep(REST_SECONDS)
    if varnish.restarted():
        return dead(varnish, faults, victim, before)
    rest, threads = varnish.heap_bytes(), varnish.threads()
    counters = counted(varnish)
    usual = before + 2 * counters["SANDPAPER.lent"]
    deadline = time.monotonic() + PATIENCE
    while ((after := varnish.descriptors()) > usual + DESCRIPTORS
           and time.monotonic() < deadline):
        time.sleep(LOOK_SECONDS)
    died = varnish.panicked()
    if died:
        progress(f"  a worker process died{varnish.obituary()}")
    if victim.lost:
        progress(f"  {victim.name}: {victim.errors} errors (the first: "
                 f"{victim.first_error or 'none'}), {victim.unanswered} "
                 f"without an answer, {victim.extra} answers too many")
    return Phase(
        victim, took, counters, (usual, after), rest, threads,
        faults.rss_bytes, faults.threads, died, len(faults.errors), held)


def result(
    variant: str, seconds: float, phases: Sequence[Phase]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    end = phases[-1]
    return {
        "variant": variant, "soaked_s": seconds * len(phases) / PHASES,
        "rps": round(mean(p.victim.rps for p in phases), 3),
        "lost": sum(p.victim.lost for p in phases),
        "not_200": sum(p.victim.not_200 for p in phases),
        **{name.partition(".")[2]: n for name, n in end.counters.items()},
        "unaccounted": max((unaccounted(p.counters) for p in phases),
                           key=abs),
        "settled_s": round(max(p.settled_s for p in phases), 3),
        "memory_rest_mb": round(end.rest_bytes / 2**20, 1),
        "memory_grown_mb": round(grown_bytes(phases) / 2**20, 1),
        "memory_most_mb": round(
            max(p.most_bytes for p in phases) / 2**20, 1),
        "descriptors_before": end.descriptors[0],
        "descriptors_after": end.descriptors[1],
        "held_us": round(end.holds.cpu_s * 1e6, 1),
        "held_longest_us": round(end.holds.longest_s * 1e6, 1),
        "held_by": end.holds.by,
        "held_wall_us": round(end.holds.wall_s * 1e6, 1),
        "threads_rest": end.rest_threads,
        "threads_most": max(p.most_threads for p in phases),
        "died": int(any(p.died for p in phases)),
        "undone": sum(p.undone for p in phases),
        "failed": ", ".join(failed(phases)),
    }


def plan(ask: Ask) -> Job:
    """Plan each variant that is Sandpaper's, once."""
    ours = [v for v in ask.variants if v.parameters]

    def note(turn: str, phases: Sequence[Phase]) -> None:
        missed = ", ".join(failed(phases))
        progress(f"  {turn} " + (f"failed: {missed}" if missed else "passed"))

    return Job(ask, [Part(
        "", of_each(ours, lambda v: SoakTurn(v, ask.plan.connections)), note,
        lambda rig, found: [result(variant, rig.plan.seconds, phases)
                            for variant, (phases,) in found.items()],
        title="soak: everything at once, "
        f"{len(mixed(taken(ask.bed)))} kinds of load", times=1, whole=True)])


EXPERIMENT = Experiment("soak", plan, in_all=False, seconds=180.0,
                        needs="counters")
