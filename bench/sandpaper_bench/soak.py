# SPDX-License-Identifier: BSD-2-Clause
"""`soak`: all abuses at once, for as long as one likes.

A victim asks on while every abuse goes on beside it, in small, and an operator
changes what can be changed live.  When the load has gone, the counters have
to agree exactly: whatever arrived was completed or cancelled, and nothing
waits or runs.  Descriptors are those of before, no worker process is gone, and
each complete request of the victim's was answered once.  Sandpaper's lock was
never held for long.  There is a rest after
either half, and there are as many threads at the end as in the first, and as
much memory without their stacks: under load both come and go by more than a
leak.  There is no control: nothing is compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
HALVES = 2
CONNECTIONS = 10  # of an abuse, at most
SLOWER = 10  # times, what comes at a rate
MEMORY = 4 * 2**20  # bytes, by which what is held at rest may grow
THREADS = 10  # that there may be more at rest
REST_SECONDS = 50.0  # until threads have ended and caches are empty
# With a cache for each thread and arenas for each core, memory at rest was 66,
# 91, 101 and 107 MB after four rounds of load; without them 48, 48, 48 and 47.
# What is freed is given back at once: else 2 MB of it were still there in one of
# five rests, since the allocator looks only when somebody allocates.
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
# Memory is compared: threads that a phase of sandpaper=off needs end soon, and
# so do hit-for-miss objects, 300 a second.  Random Hosts fill the table of
# tenants in the first half, however slow the machine is.
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
class Half:
    """What was seen of one variant, in one half."""

    victim: GroupResult
    settled_s: float
    counters: dict[str, int]  # from the start on
    descriptors: tuple[int, int]  # what is usual, what there are
    rest_bytes: int  # without stacks
    rest_threads: int
    most_bytes: int
    threads: int  # at most
    died: bool
    undone: int
    holds: Holds


def grown_bytes(halves: Sequence[Half]) -> int:
    """Return by how much memory at rest has grown."""
    return halves[-1].rest_bytes - halves[0].rest_bytes


def failed(halves: Sequence[Half]) -> list[str]:
    """Return the criteria that are missed, by name."""
    missed = {
        "died": any(h.died for h in halves),
        "deeds": any(h.undone for h in halves),  # actions
        "lost": any(h.victim.lost for h in halves),
        "counters": any(unaccounted(h.counters) for h in halves),
        "settled": any(h.settled_s > SETTLED for h in halves),
        "memory": grown_bytes(halves) > MEMORY,
        "threads": (halves[-1].rest_threads - halves[0].rest_threads
                    > THREADS),
        "descriptors": any(h.descriptors[1] - h.descriptors[0] > DESCRIPTORS
                           for h in halves),
        "lock": any(h.holds.cpu_s > HOLD_SECONDS for h in halves),
    }
    return [name for name, is_missed in missed.items() if is_missed]


@dataclass(frozen=True)
class SoakTurn:
    """One varnishd with everything, and a rest, twice."""

    variant: Variant
    connections: int

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        return START + plan.seconds + HALVES * (RUN + REST_SECONDS)

    def run(self, rig: Rig) -> list[Half]:
        """Return both halves."""
        abuses = taken(rig.bed)
        parts = dict.fromkeys(a.vcl for a in abuses.values())
        variant = replace(
            self.variant, prelude=self.variant.prelude + "".join(parts),
            parameters=(*self.variant.parameters, *PARAMETERS),
            environment=ENVIRONMENT)
        actions = [action for a in abuses.values() for action in a.actions]
        rule = "\n".join(a.firewall for a in abuses.values() if a.firewall)
        victim = tenant(VICTIM, self.connections)
        halves: list[Half] = []
        with (rig.varnish(variant) as varnish,
              rig.bed.firewall("client", rule)):
            rig.load.prime(varnish, [victim])
            before = varnish.descriptors()
            varnish.cli("debug.sandpaper.lock", "on")
            while len(halves) < HALVES:
                with Faults(varnish, actions) as faults:
                    seen = rig.load.disturbed(
                        varnish, [victim, *mixed(abuses)],
                        rig.plan.seconds / HALVES, DRAIN_SECONDS)
                half = dead if varnish.restarted() else calm
                halves.append(half(varnish, faults, seen[victim.name],
                                   before))
                if halves[-1].died:
                    break
        return halves


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
) -> Half:
    """Return a half in which a worker process died: no more is known."""
    progress(f"  a worker process died{varnish.obituary()}")
    return Half(victim, 0.0, dict.fromkeys(COUNTED, 0), (before, before), 0,
                0, faults.rss_bytes, faults.threads, True, len(faults.errors),
                Holds(0, 0.0, "", 0.0, 0.0))


def calm(
    varnish: Varnish, faults: Faults, victim: GroupResult, before: int
) -> Half:
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
    return Half(
        victim, took, counters, (usual, after), rest,
        threads, faults.rss_bytes, faults.threads, died,
        len(faults.errors), held)


def result(
    variant: str, seconds: float, halves: Sequence[Half]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    end = halves[-1]
    return {
        "variant": variant, "soaked_s": seconds * len(halves) / HALVES,
        "rps": round(mean(h.victim.rps for h in halves), 3),
        "lost": sum(h.victim.lost for h in halves),
        "not_200": sum(h.victim.not_200 for h in halves),
        **{name.partition(".")[2]: n for name, n in end.counters.items()},
        "unaccounted": max((unaccounted(h.counters) for h in halves),
                           key=abs),
        "settled_s": round(max(h.settled_s for h in halves), 3),
        "memory_rest_mb": round(end.rest_bytes / 2**20, 1),
        "memory_grown_mb": round(grown_bytes(halves) / 2**20, 1),
        "memory_most_mb": round(
            max(h.most_bytes for h in halves) / 2**20, 1),
        "descriptors_before": end.descriptors[0],
        "descriptors_after": end.descriptors[1],
        "held_us": round(end.holds.cpu_s * 1e6, 1),
        "held_longest_us": round(end.holds.longest_s * 1e6, 1),
        "held_by": end.holds.by,
        "held_wall_us": round(end.holds.wall_s * 1e6, 1),
        "threads_rest": end.rest_threads,
        "threads_most": max(h.threads for h in halves),
        "died": int(any(h.died for h in halves)),
        "undone": sum(h.undone for h in halves),
        "failed": ", ".join(failed(halves)),
    }


def plan(ask: Ask) -> Job:
    """Plan each variant that is Sandpaper's, once."""
    ours = [v for v in ask.variants if v.parameters]

    def note(turn: str, halves: Sequence[Half]) -> None:
        missed = ", ".join(failed(halves))
        progress(f"  {turn} " + (f"failed: {missed}" if missed else "passed"))

    return Job(ask, [Part(
        "", of_each(ours, lambda v: SoakTurn(v, ask.plan.connections)), note,
        lambda rig, found: [result(variant, rig.plan.seconds, halves)
                            for variant, (halves,) in found.items()],
        title="soak: everything at once, "
        f"{len(mixed(taken(ask.bed)))} kinds of load", times=1, whole=True)])


EXPERIMENT = Experiment("soak", plan, in_all=False, seconds=180.0,
                        needs="counters")
