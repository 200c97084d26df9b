# SPDX-License-Identifier: BSD-2-Clause
"""`fetch`: threads that wait for origins (paper, section 5.2 and appendix B).

Requests come at random times (Poisson, LAMBDA a second); a part `p` misses
and takes an exponential time with mean `1/mu` at the origin.  The paper
expects LAMBDA x p / mu workers beyond the usual.  `lent` is the mean of the
slots that are lent for a wait, looked at ten times a second, `threads` of all
of varnishd's, which starts with few of them here.  Each turn has arrivals of
its own, as one of them is not at LAMBDA a second but about so.  The control is
the rate answered under the last variant over LAMBDA.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median
from typing import Any

from .ask import Ask
from .customers import CUSTOMERS, host
from .estimate import with_interval
from .load import Group
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
from .testbed import TestbedError
from .varnish import Variant, Varnish

LAMBDA = 800.0  # requests/s
CASES = ((0.05, 0.1), (0.15, 0.1), (0.15, 0.4))  # (p, 1/mu in seconds)
SETTLE = 5  # mean times at the origin, until as many wait as will
LOOK_SECONDS = 0.1
LENT, THREADS = "SANDPAPER.lent", "MAIN.threads"
Looks = list[tuple[float, dict[str, int]]]  # when, and the gauges
FEW_THREADS = "thread_pool_min=5"  # or all of them would be there already


@dataclass(frozen=True)
class Look:
    """Means over one window."""

    lent: float
    threads: float
    rps: float
    failures: int


class Watcher(threading.Thread):
    """Looks at varnishd's gauges until it is stopped."""

    def __init__(self, varnish: Varnish, names: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self._varnish, self._names = varnish, names
        self._ended = threading.Event()
        self._error: TestbedError | None = None
        self._seen: Looks = []

    def run(self) -> None:
        try:
            while not self._ended.wait(LOOK_SECONDS):
                at = time.monotonic()
                self._seen.append((at, self._varnish.gauges(self._names)))
        except TestbedError as error:
            self._error = error

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        self.join()

    def looks(self) -> Looks:
        """Return what was seen, or raise what kept it from looking."""
        if self._error is not None:
            raise self._error
        return self._seen


def within(watched: Looks, start: float, end: float) -> list[dict[str, int]]:
    """Return the gauges of a window, which has a start and an end."""
    found = [gauges for at, gauges in watched if start <= at <= end]
    if not found:
        raise TestbedError("varnishd's gauges could not be read in a window "
                           f"of {end - start:.1f} s: use more --seconds")
    return found


def groups(miss: float, seconds: float) -> list[Group]:
    """Return those who hit and those who miss, as open loops."""
    page = CUSTOMERS["k0"]
    hits = Group("hits", host("k0"), page.path, mode="open",
                 rate=LAMBDA * (1 - miss))
    return [hits, replace(
        hits, name="misses", host="drip.example", unique=1,
        rate=LAMBDA * miss,
        path=f"/late/{page.size}/{round(seconds * 1000)}")]


@dataclass(frozen=True)
class Watched(Window):
    """A window in which varnishd's gauges are looked at."""

    gauges: Sequence[str] = ()

    def measure(
        self, rig: Rig, running: Sequence[Varnish], found: Sequence[Any]
    ) -> Look:
        """Watch it."""
        watcher = Watcher(running[0], self.gauges)
        watcher.start()
        try:
            m = self.loaded(rig, running[0], self.asked(rig, found))
        finally:
            watcher.stop()
        seen = within(watcher.looks(), m.began, m.began + m.window_s)
        return Look(mean(s.get(LENT, 0) for s in seen),
                    mean(s[THREADS] for s in seen),
                    sum(g.rps for g in m.groups.values()),
                    sum(g.failures for g in m.groups.values()))


def fetch_turn(variant: Variant, *, miss: float, seconds: float) -> Turn:
    """Return one window."""
    asked = groups(miss, seconds)
    gauges = [LENT, THREADS] if variant.parameters else [THREADS]
    return Turn([renamed(variant, variant.name, FEW_THREADS)],
                [Watched(asked, settle=SETTLE * seconds, gauges=gauges)],
                asked[:1])


def note(text: str, look: Look) -> None:
    """Print one turn's figures."""
    progress(f"  {text} lent {look.lent:.1f}, threads {look.threads:.1f}, "
             f"{look.rps:.0f}/s")


def result(
    rig: Rig, miss: float, seconds: float, variant: str,
    turns: Sequence[Look],
) -> dict[str, Any]:
    """Return one entry of `results`."""
    return {
        "variant": variant, "p_miss": miss, "fetch_s": seconds,
        "lambda": LAMBDA, "turns": len(turns),
        "expected": round(LAMBDA * miss * seconds, 1),
        **with_interval("lent", turns, lambda t: t.lent, rig.plan.seed, 1),
        "threads": round(median(t.threads for t in turns), 1),
        "rps": round(median(t.rps for t in turns), 1),
        "errors": sum(t.failures for t in turns),
    }


def part(ask: Ask, miss: float, seconds: float) -> Part:
    """Return every variant in one case."""
    case, last = f"{miss:.0%}, {seconds:g} s", ask.variants[-1].name
    return Part(
        case, of_each(ask.variants, partial(
            fetch_turn, miss=miss, seconds=seconds)), note,
        lambda rig, found: [result(rig, miss, seconds, variant, looks)
                            for variant, looks in found.items()],
        [Control(f"answered over offered, {case}, {last}", last,
                 lambda looks: [(look.rps, LAMBDA) for look in looks], case)],
        f"{miss:.0%} of {LAMBDA:.0f}/s miss for {seconds:g} s: "
        f"{LAMBDA * miss * seconds:.0f} expected to wait", whole=True,
        own_arrivals=True)


EXPERIMENT = Experiment("fetch", lambda ask: Job(
    ask, [part(ask, miss, seconds) for miss, seconds in CASES]),
    needs="slots")
