# SPDX-License-Identifier: BSD-2-Clause
"""`haboob`: many clients that think, as in SEDA's thesis (Figure 39).

M. Welsh, "An Architecture for Highly Concurrent, Well-Conditioned Internet
Services" (2002), chapter 6, section 1.  FEW and MANY clients ask for
SPECweb99's static files.  A client waits THINK_S after an answer, and closes
its connection after REQUESTS.  A response time counts from when the client
begins to connect.

What is scaled, so that it fits a machine with two cores:

    files       DIRECTORIES instead of about 680, so that all are in the cache.
                In the thesis 3.31 GB are on disk, and 0.2 GB are in the cache
    the server  one core.  A request has the work of CUSTOMER, so that the
                server answers about as many requests as in the thesis.  FEW
                clients then ask for more than it can answer, as they do there
    time        --seconds, instead of 500 s
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .ask import Ask
from .estimate import with_interval
from .haboobfigures import terminal
from .load import Group, Measurement, tenant
from .rig import Rig, progress
from .runner import (
    Control,
    Experiment,
    Job,
    Part,
    Turn,
    Window,
    of_each,
    weaker,
)
from .scale import descriptors
from .specweb import files
from .varnish import Variant

FEW, MANY = 64, 1024  # clients
THINK_S = 0.02
REQUESTS = 5  # of a connection
DIRECTORIES = 25  # 128 MB
CUSTOMER = "k1"
SETTLE_S = 2.0  # besides --warmup: all clients connect at once
AGAIN = 1 / 4  # of --seconds: what the control measures
OTHERS = 1000  # descriptors of a process, besides the connections
# No request is refused: varnish.py raises stock's limit to as much
QUEUE = "sandpaper_queue_limit=20000"


@dataclass(frozen=True)
class Served:
    """What so many clients saw."""

    clients: int
    mbit_s: float
    rps: float
    mean_s: float
    p99_s: float
    max_s: float
    jain: float  # Jain's index of the clients' answers
    errors: int


@dataclass(frozen=True)
class HaboobTurn:
    """One turn under one variant."""

    served: list[Served]
    again_rps: float  # of FEW clients


def clients(number: int) -> Group:
    """Return so many clients."""
    return replace(tenant(CUSTOMER), mode="browse", conns=number,
                   think=THINK_S, per_conn=REQUESTS)


def served(found: Measurement, number: int) -> Served:
    """Return what so many clients saw in a window."""
    seen = found[CUSTOMER]
    return Served(number, seen.bytes * 8 / found.window_s / 1e6, seen.rps,
                  seen.mean_s, seen.p99_s, seen.max_s, seen.jain,
                  seen.failures)


def value(found: Sequence[Measurement]) -> HaboobTurn:
    """Return a turn of its windows."""
    return HaboobTurn(
        [served(m, n) for m, n in zip(found, (FEW, MANY), strict=False)],
        found[-1][CUSTOMER].rps)


def turn(variant: Variant) -> Turn:
    """Return FEW clients, MANY, and FEW again for a shorter time."""
    few = [clients(FEW)]
    return Turn([variant], [
        Window(few, settle=SETTLE_S),
        Window([clients(MANY)], settle=SETTLE_S),
        Window(few, AGAIN, SETTLE_S)], few, value)


def note(name: str, found: HaboobTurn) -> None:
    """Print one turn's figures."""
    progress(f"  {name} " + "; ".join(
        f"{s.clients} clients {s.mbit_s:.0f} Mbit/s, at most {s.max_s:.2f} s, "
        f"index {s.jain:.3f}" for s in found.served))


def result(
    seed: int, variant: str, turns: Sequence[HaboobTurn], at: int
) -> dict[str, Any]:
    """Return an entry of `results`: clients under a variant."""
    every = [t.served[at] for t in turns]

    def middle(field: str, digits: int) -> float:
        return float(round(median(getattr(s, field) for s in every), digits))

    return {
        "variant": variant, "clients": every[0].clients, "turns": len(turns),
        **with_interval("mbit_s", every, lambda s: s.mbit_s, seed),
        **with_interval("jain", every, lambda s: s.jain, seed, 4),
        "rps": middle("rps", 1), "mean_s": middle("mean_s", 6),
        "p99_s": middle("p99_s", 6),
        "max_s": round(max(s.max_s for s in every), 6),
        "errors": sum(s.errors for s in every),
    }


def part(ask: Ask) -> Part:
    """Return all clients under every variant."""
    last = ask.variants[-1].name

    def results(
        rig: Rig, found: Mapping[str, Sequence[HaboobTurn]]
    ) -> list[dict[str, Any]]:
        return [result(rig.plan.seed, variant, turns, at)
                for at in range(2) for variant, turns in found.items()]

    return Part(
        "clients", of_each(ask.variants, turn), note, results,
        [Control(f"{FEW} clients against themselves, {last}", last,
                 lambda turns: [(t.again_rps, t.served[0].rps)
                                for t in turns])],
        f"{FEW} and {MANY} clients", own_arrivals=True)


def lacks(_: Ask) -> str | None:
    """Return what this machine lacks."""
    wanted = MANY + OTHERS
    hard = descriptors(wanted)
    return None if hard == wanted else (
        f"{wanted} descriptors, and ulimit -Hn says {hard}")


def plan(ask: Ask) -> Job:
    """Plan all clients."""
    ask = replace(ask, variants=[weaker(v, QUEUE) if v.parameters else v
                                 for v in ask.variants])
    return Job(ask, [part(ask)], [CUSTOMER], files=tuple(files(DIRECTORIES)))


EXPERIMENT = Experiment("haboob", plan, lacks, in_all=False, turns=3,
                        seconds=60.0, text=terminal)
