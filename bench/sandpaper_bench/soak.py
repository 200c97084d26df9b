# SPDX-License-Identifier: BSD-2-Clause
"""`soak`: all abuses at once, for as long as one likes.

A victim asks on while every abuse goes on beside it, in small, and an operator
changes what can be changed live.  When the load has gone, the counters have
to agree exactly: whatever arrived was completed or cancelled, and nothing
waits or runs.  Memory of the last quarter is that of the third, descriptors
are those of before, no worker process is gone, and each complete request of
the victim's was answered once.  There is no control: nothing is compared.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .abuse import DRAIN_SECONDS, GAUGES, settled
from .abuses import ABUSES, SETTLED, Abuse
from .lab import Lab, progress
from .load import Group, Seen
from .meddle import LOOK_SECONDS, Meddler
from .testbed import Testbed
from .varnish import Variant, Varnish

VICTIM = "k0"
SECONDS = 180.0
CONNECTIONS = 10  # of an abuse, at most
SLOWER = 10  # times, what comes at a rate
# Bytes, or this part: what may come and go.  In an hour medians of 45 s differ
# from the next one's by 12 MB of 640, one standard deviation.
MEMORY = (16 * 2**20, 0.05)
PATIENCE = 120.0  # seconds: counters agree only when nothing runs
DESCRIPTORS = 20  # that may come and go, beside two a fetch that goes on
# The C compiler has the core of varnishd, which is busy: it has to be quick.
# What it leaves of all abuses' VCL takes 52 kB of stack, and PCRE's takes 32.
# Memory is compared: threads that a phase of sandpaper=off needs end soon, and
# so do hit-for-miss objects, 300 a second.
PARAMETERS = ("feature=+http2", "backend_idle_timeout=1",
              "thread_pool_stack=256k",
              "thread_pool_timeout=10", "thread_pool_destroy_delay=0.01",
              "default_ttl=10",
              "cc_command=exec cc -O0 -fpic -shared -o %o %s")
COUNTED = tuple(f"SANDPAPER.{name}" for name in (
    "enqueued", "released", "completed", "cancelled", "refused", "shed",
    "waiting", "running", "lent"))


def taken(bed: Testbed) -> dict[str, Abuse]:
    """Return the abuses that can go on here and leave others alone."""
    return {name: a for name, a in ABUSES.items()
            if not a.restarts and "descriptors" not in " ".join(a.deeds)
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
class Soaked:
    """What was seen of one variant."""

    victim: Seen
    settled_s: float
    unaccounted: int
    counters: dict[str, int]
    rss: Sequence[int]
    descriptors: tuple[int, int]
    threads: int
    died: bool
    undone: int

    @property
    def grown_bytes(self) -> float:
        """Return the median of the last quarter over the third's.

        Each is longer than the deeds take: off and observe take more, up to
        100 MB for a moment, so that the most says little.  In the first half
        threads and tenants come to be.
        """
        quarter = len(self.rss) // 4
        if not quarter:
            return 0.0
        return (median(self.rss[-quarter:])
                - median(self.rss[-2 * quarter:-quarter]))

    @property
    def failed(self) -> list[str]:
        """Return the criteria that it misses, by name."""
        before, after = self.descriptors
        usual = median(self.rss) if self.rss else 0.0
        missed = {
            "died": self.died,
            "deeds": self.undone > 0,
            "lost": self.victim.lost > 0,
            "counters": self.unaccounted != 0,
            "settled": self.settled_s > SETTLED,
            "memory": self.grown_bytes > max(MEMORY[0], MEMORY[1] * usual),
            "descriptors": after - before > DESCRIPTORS,
        }
        return [name for name, is_missed in missed.items() if is_missed]


def soak_turn(lab: Lab, variant: Variant, seconds: float) -> Soaked:
    """Load one varnishd with everything."""
    abuses = taken(lab.bed)
    parts = dict.fromkeys(a.vcl for a in abuses.values())
    variant = replace(
        variant, prelude=variant.prelude + "".join(parts),
        parameters=(*variant.parameters, *PARAMETERS))
    deeds = [deed for a in abuses.values() for deed in a.deeds]
    rule = "\n".join(a.firewall for a in abuses.values() if a.firewall)
    victim = lab.tenant(VICTIM)
    with (lab.varnish(variant) as varnish,
          lab.bed.firewall("client", rule)):
        lab.load.prime(varnish, [victim])
        before = varnish.descriptors()
        with Meddler(varnish, deeds) as meddler:
            seen = lab.load.disturbed(varnish, [victim, *mixed(abuses)],
                                      seconds, DRAIN_SECONDS)
        lab.load.check([varnish])
        return calm(varnish, meddler, seen[victim.name], before)


def calm(
    varnish: Varnish, meddler: Meddler, victim: Seen, before: int
) -> Soaked:
    """Wait until varnishd has calmed down, and look at what is left."""
    took = settled(varnish, GAUGES, PATIENCE)
    counters = varnish.gauges(COUNTED)
    usual = before + 2 * counters["SANDPAPER.lent"]
    deadline = time.monotonic() + PATIENCE
    while ((after := varnish.descriptors()) > usual + DESCRIPTORS
           and time.monotonic() < deadline):
        time.sleep(LOOK_SECONDS)
    died = varnish.restarted() or varnish.panicked()
    if died:
        progress(f"  a worker process died{varnish.obituary()}")
    return Soaked(
        victim, took, unaccounted(counters), counters, meddler.rss,
        (usual, after), meddler.threads, died, len(meddler.errors))


def result(variant: str, seconds: float, found: Soaked) -> dict[str, Any]:
    """Return one entry of `results`."""
    return {
        "variant": variant, "soaked_s": seconds,
        "rps": found.victim.rps, "lost": found.victim.lost,
        "not_200": found.victim.not_200,
        **{name.partition(".")[2]: n for name, n in found.counters.items()},
        "unaccounted": found.unaccounted,
        "settled_s": round(found.settled_s, 3),
        "memory_grown_mb": round(found.grown_bytes / 2**20, 2),
        "memory_most_mb": round(max(found.rss, default=0) / 2**20, 1),
        "descriptors_before": found.descriptors[0],
        "descriptors_after": found.descriptors[1],
        "threads_most": found.threads, "died": int(found.died),
        "undone": found.undone,
        "failed": ", ".join(found.failed),
    }


def soak(lab: Lab, seconds: float) -> dict[str, Any]:
    """Soak each variant that is Sandpaper's."""
    progress("soak: everything at once, "
             f"{len(mixed(taken(lab.bed)))} kinds of load")
    results = []
    for variant in lab.variants:
        if not variant.parameters:
            continue
        found = result(variant.name, seconds,
                       soak_turn(lab, variant, seconds))
        progress(f"  {variant.name}: " + ", ".join(
            f"{key} {value}" for key, value in found.items()))
        results.append(found)
        lab.tick()
    return lab.report("soak", {}, results)
