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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean, median
from typing import Any

from .customers import CUSTOMERS, host
from .estimate import bootstrap
from .lab import Lab, in_turns, progress
from .load import Group
from .pairs import control
from .testbed import TestbedError
from .varnish import Variant, Varnish

LAMBDA = 800.0  # requests/s
CASES = ((0.05, 0.1), (0.15, 0.1), (0.15, 0.4))  # (p, 1/mu in seconds)
SETTLE = 5  # mean times at the origin, until as many wait as will
LOOK_SECONDS = 0.1
LENT, THREADS = "SANDPAPER.lent", "MAIN.threads"
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
        self._seen: list[dict[str, int]] = []

    def run(self) -> None:
        try:
            while not self._ended.wait(LOOK_SECONDS):
                self._seen.append(self._varnish.gauges(self._names))
        except TestbedError as error:
            self._error = error

    def stop(self) -> list[dict[str, int]]:
        """Return what was seen, or raise what kept it from looking."""
        self._ended.set()
        self.join()
        if self._error is not None:
            raise self._error
        return self._seen


def groups(miss: float, seconds: float) -> list[Group]:
    """Return those who hit and those who miss, as open loops."""
    page = CUSTOMERS["k0"]
    hits = Group("hits", host("k0"), page.path, mode="open",
                 rate=LAMBDA * (1 - miss))
    return [hits, replace(
        hits, name="misses", host="drip.example", unique=1,
        rate=LAMBDA * miss,
        path=f"/late/{page.size}/{round(seconds * 1000)}")]


def fetch_turn(
    lab: Lab, variant: Variant, *, miss: float, seconds: float
) -> Look:
    """Watch one window."""
    asked = groups(miss, seconds)
    names = [LENT, THREADS] if variant.parameters else [THREADS]
    variant = replace(variant, parameters=(*variant.parameters, FEW_THREADS))
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, asked[:1])
        watcher = Watcher(varnish, names)
        watcher.start()
        try:
            m = lab.load.measure(varnish, asked, lab.plan.seconds,
                                 lab.plan.warmup + SETTLE * seconds)
        finally:
            seen = watcher.stop()
    # The window is the last part of what was watched
    seen = seen[-round(lab.plan.seconds / LOOK_SECONDS):]
    return Look(mean(s.get(LENT, 0) for s in seen),
                mean(s[THREADS] for s in seen),
                sum(g.rps for g in m.groups.values()),
                sum(g.failures for g in m.groups.values()))


def note(text: str, look: Look) -> None:
    """Print one turn's figures."""
    progress(f"  {text} lent {look.lent:.1f}, threads {look.threads:.1f}, "
             f"{look.rps:.0f}/s")


def result(
    lab: Lab, miss: float, seconds: float, variant: str,
    turns: Sequence[Look],
) -> dict[str, Any]:
    """Return one entry of `results`."""
    low, high = bootstrap(
        turns, lambda some: median(t.lent for t in some), lab.plan.seed)
    return {
        "variant": variant, "p_miss": miss, "fetch_s": seconds,
        "lambda": LAMBDA, "turns": len(turns),
        "expected": round(LAMBDA * miss * seconds, 1),
        "lent": round(median(t.lent for t in turns), 1),
        "lent_ci": [round(low, 1), round(min(high, 1e9), 1)],
        "threads": round(median(t.threads for t in turns), 1),
        "rps": round(median(t.rps for t in turns), 1),
        "errors": sum(t.failures for t in turns),
    }


def fetch(lab: Lab) -> dict[str, Any]:
    """Watch every case under every variant."""
    results, controls = [], {}
    last, seed = lab.variants[-1].name, lab.load.seed
    for miss, seconds in CASES:
        expected = LAMBDA * miss * seconds
        case = f"{miss:.0%}, {seconds:g} s"

        def keep(
            turn: str, measure: Callable[[], Look], case: str = case
        ) -> Look:
            lab.load.seed += 1  # of a turn that is skipped, too
            return lab.kept(f"{case}, {turn}", measure)

        progress(f"{miss:.0%} of {LAMBDA:.0f}/s miss for {seconds:g} s: "
                 f"{expected:.0f} expected to wait")
        found = in_turns(
            lab.variants, lab.plan,
            partial(fetch_turn, lab, miss=miss, seconds=seconds),
            note=lab.counted(note), keep=keep)
        results += [result(lab, miss, seconds, name, turns)
                    for name, turns in found.items()]
        controls[case] = control(
            f"answered over offered, {case}, {last}",
            [(look.rps, LAMBDA) for look in found[last]], lab.plan.seed)
    lab.load.seed = seed
    return lab.report("fetch", controls, results)
