# SPDX-License-Identifier: BSD-2-Clause
"""`pairs`: two tenants alone and together.

A tenant's normalised throughput is its throughput together over alone, under
the same varnishd (paper, section 3.2).  Fair is: equal.  The figures are
medians over turns; `ratio` is min/max of the median quotient of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from .ask import Ask, named
from .costing import Costed, Costing
from .customers import NOOP_US, TWIN, drawn, own
from .estimate import (
    bootstrap,
    fold,
    fold_interval,
    median_quotient,
    verdict,
    with_interval,
)
from .load import (
    PHASE_SECONDS,
    GroupResult,
    Interleaved,
    Measurement,
    tenant,
)
from .publishers import link_bytes
from .rig import Plan, Rig, progress
from .runner import (
    Control,
    Experiment,
    Found,
    Job,
    Part,
    Phases,
    Turn,
    Window,
    first,
    of_each,
)
from .varnish import Variant

FAIR_CONNECTION = 0.5  # slowest over mean, for the stretch to count
RANDOM_PAIRS = 10
ROUNDS = 5  # a connection's requests in a phase, about
NET_US_PER_BYTE = 0.01  # of a request, roughly: 0.8 Gbit/s


@dataclass(frozen=True)
class PairTurn:
    """One turn of a pair under one variant.

    Throughputs are of phases that took turns: a, both, b.  Latencies are of
    whole windows, so that a request that waits long is seen to wait.
    """

    phases: Interleaved
    windows: tuple[Costed, Costed, Costed]

    def alone(self, name: str) -> tuple[GroupResult, GroupResult]:
        """Return a tenant alone: in its phase, and in its window."""
        i = 0 if name in self.phases.phases[0] else 2
        return self.phases.phases[i][name], self.windows[i].window[name]

    def together(self, name: str) -> tuple[GroupResult, GroupResult]:
        """Return a tenant beside the other one, in the same way."""
        return self.phases.phases[1][name], self.windows[1].window[name]

    def cpu_us(self, name: str) -> tuple[float, float]:
        """Return CPU us a request together and alone; 0: none was served."""
        first, both, last = (w.cpu_us for w in self.windows)
        return both.get(name, 0.0), {**last, **first}.get(name, 0.0)

    def normalised(self, name: str) -> float:
        """Return a tenant's throughput together over alone."""
        rps = self.alone(name)[0].rps
        return self.together(name)[0].rps / rps if rps > 0 else 0.0


def round_seconds(*names: str) -> float:
    """Return how long it takes until each connection has its answer, roughly.

    It counts customers that a user describes.  The others count as 0: they are
    fast enough for the usual phases.
    """
    return sum(
        c.connections * (c.work_us + NOOP_US + c.size * NET_US_PER_BYTE) / 1e6
        for c in map(own, names) if c is not None)


def pair_turn(variant: Variant, *, a: str, b: str, plan: Plan) -> Turn:
    """Return a alone, both, b alone: as phases, and as windows.

    In a phase each connection asks several times, and what a phase leaves
    behind is done before the next one counts.
    """
    of_a, of_b = (tenant(name, plan.connections) for name in (a, b))
    sets, each = ([of_a], [of_a, of_b], [of_b]), round_seconds(a, b)
    share = max(1 / 2, ROUNDS * each / plan.seconds)
    return Turn(
        [variant], [Phases([(0, groups) for groups in sets],
                           length=max(PHASE_SECONDS, ROUNDS * each)),
                    *(Costing(groups, share, each) for groups in sets)],
        [of_a, of_b],
        lambda found: PairTurn(found[0], (found[1], found[2], found[3])))


def pair_interval(
    turns: Sequence[PairTurn], a: str, b: str, seed: int
) -> tuple[float, float, float]:
    """Return min/max and its 95 % interval.

    Each turn's own quotient counts, since the machine may be another one in
    the next turn; of those, the median.
    """
    def quotient(some: Sequence[PairTurn]) -> float:
        return median(t.normalised(a) / (t.normalised(b) or float("inf"))
                      for t in some)

    return (fold(quotient(turns)),
            *fold_interval(*bootstrap(turns, quotient, seed)))


def windows_ratio(turns: Sequence[PairTurn], a: str, b: str) -> float:
    """Return min/max of normalised throughput in whole windows."""
    def kept(turn: PairTurn, name: str) -> float:
        return turn.together(name)[1].rps / max(turn.alone(name)[1].rps, 1e-9)

    return round(fold(median_quotient(
        [(kept(t, a), kept(t, b)) for t in turns])), 4)


def cost_result(
    rig: Rig, turns: Sequence[PairTurn], a: str, b: str
) -> dict[str, Any]:
    """Return what requests cost in company, and what that takes of the ratio.

    `ratio_windows` is min/max in whole windows.  For `ratio_at_cost` the
    throughput of a tenant that is bound by cpu is multiplied by its CPU time a
    request together over alone.  Costs are None under stock, which has none.
    """
    found: dict[str, Any] = {
        f"{key}_{side}": None for side in "ab"
        for key in ("cpu_us", "cpu_us_alone", "dearer", "bound_by")
    } | {"ratio_windows": windows_ratio(turns, a, b), "ratio_at_cost": None}
    if not turns[0].windows[0].cpu_us:
        return found
    kept: dict[str, list[float]] = {}
    cores = len(rig.bed.proxy_cores)
    for name, side in ((a, "a"), (b, "b")):
        costs = [t.cpu_us(name) for t in turns]
        both, alone = (median(c) for c in zip(*costs, strict=True))
        window = turns[0].windows[1].window
        data = link_bytes(window[name].bytes_in(window.window_s))
        net_us = 8e6 * data / rig.bed.rate_bps if rig.bed.shaped else 0.0
        bound = "net" if net_us > alone / cores else "cpu"
        kept[name] = [
            t.together(name)[1].rps / max(t.alone(name)[1].rps, 1e-9)
            * (c / max(d, 1e-9) if bound == "cpu" else 1.0)
            for t, (c, d) in zip(turns, costs, strict=True)]
        found |= {f"cpu_us_{side}": round(both, 1),
                  f"cpu_us_alone_{side}": round(alone, 1),
                  f"dearer_{side}": round(median_quotient(costs), 3),
                  f"bound_by_{side}": bound}
    return found | {"ratio_at_cost": round(fold(median_quotient(
        [*zip(kept[a], kept[b], strict=True)])), 4)}


def side_result(
    turns: Sequence[PairTurn], name: str, side: str, seed: int
) -> dict[str, Any]:
    """Return one tenant's figures; each name carries the side."""
    alone = [t.alone(name) for t in turns]
    both = [t.together(name) for t in turns]

    def mid(
        seen: list[tuple[GroupResult, GroupResult]], what: str, where: int
    ) -> float:
        return round(float(median(getattr(s[where], what) for s in seen)), 6)

    stretch = with_interval(
        "stretch", turns, lambda t: t.together(name)[1].stretch, seed)
    return {
        f"norm_{side}": round(median(t.normalised(name) for t in turns), 4),
        f"rps_alone_{side}": mid(alone, "rps", 0),
        f"rps_{side}": mid(both, "rps", 0),
        f"p50_s_{side}": mid(both, "p50_s", 1),
        f"p99_s_{side}": mid(both, "p99_s", 1),
        **{f"{key}_{side}": value for key, value in stretch.items()},
        f"stretch_alone_{side}": round(mid(alone, "stretch", 1), 3),
        f"slowest_to_mean_{side}": round(mid(both, "slowest_to_mean", 1), 3),
        f"slowest_to_fastest_{side}":
            round(mid(both, "slowest_to_fastest", 1), 3),
        f"slowest_to_mean_alone_{side}":
            round(mid(alone, "slowest_to_mean", 1), 3),
        f"errors_{side}": sum(s.failures for seen in both + alone
                              for s in seen),
    }


def pair_result(
    rig: Rig, a: str, b: str, variant: str, turns: Sequence[PairTurn]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    ratio, *interval = pair_interval(turns, a, b, rig.plan.seed)
    result: dict[str, Any] = {
        "a": a, "b": b, "variant": variant, "turns": len(turns),
        "ratio": round(ratio, 4),
        "ratio_ci": [round(end, 4) for end in interval],
        "verdict": verdict((interval[0], interval[1]), rig.plan.target),
    }
    for name, side in ((a, "a"), (b, "b")):
        result |= side_result(turns, name, side, rig.plan.seed)
    result |= cost_result(rig, turns, a, b)
    result["stretch_counts"] = all(
        result[f"slowest_to_mean_{side}"] >= FAIR_CONNECTION
        for side in "ab")
    result["noise_cores"] = round(median(
        t.windows[1].window.foreign_s / t.windows[1].window.window_s
        for t in turns), 3)
    return result


def twin_control(ask: Ask, name: str) -> Part:
    """Return a customer beside its twin under the last variant: fair is 1.

    They take turns in who connects first.
    """
    variant, twin = ask.variants[-1], name + TWIN
    groups = [tenant(n, ask.plan.connections) for n in (name, twin)]
    windows = [Window(groups[::-1] if n % 2 else groups)
               for n in range(ask.plan.turns)]

    def value(found: list[Measurement]) -> list[tuple[float, float]]:
        return [(m[name].rps, m[twin].rps) for m in found]

    def note(_turn: str, turns: list[tuple[float, float]]) -> None:
        progress(f"control: {name} against its twin under {variant.name}: "
                 f"{median_quotient(turns):.3f}")

    return Part(
        f"{name} control", {"": Turn([variant], windows, groups, value)},
        note, controls=[Control(f"{name} against its twin, {variant.name}",
                                "", first)], times=1)


def note_pair(a: str, b: str, turn: str, found: PairTurn) -> None:
    """Print one turn's figures."""
    text = f"  {turn}"
    for name in (a, b):
        text += (f" {name} {found.alone(name)[0].rps:7.0f} -> "
                 f"{found.together(name)[0].rps:7.0f}/s ")
    progress(
        f"{text} min/max {pair_interval([found], a, b, 0)[0]:.2f}  stretch "
        f"{found.together(a)[1].stretch:.1f} "
        f"{found.together(b)[1].stretch:.1f}")


def pair_part(ask: Ask, a: str, b: str, title: str) -> Part:
    """Return a pair under every variant."""
    plan, last = ask.plan, ask.variants[-1].name

    def resolved(found: Found) -> bool:
        _, low, high = pair_interval(found[last], a, b, plan.seed)
        return verdict((low, high), plan.target) != "unresolved"

    return Part(
        f"{a}-{b}", of_each(ask.variants, partial(
            pair_turn, a=a, b=b, plan=plan)),
        partial(note_pair, a, b),
        lambda rig, found: [pair_result(rig, a, b, variant, turns)
                            for variant, turns in found.items()],
        title=title, resolved=resolved)


def pair_parts(ask: Ask, chosen: Sequence[tuple[str, str]]) -> list[Part]:
    """Return every chosen pair under every variant."""
    return [pair_part(ask, a, b, f"pair {n} of {len(chosen)}: {a} {b}")
            for n, (a, b) in enumerate(chosen, 1)]


def plan_pairs(ask: Ask, chosen: Sequence[tuple[str, str]]) -> Job:
    """Plan the pairs, and a control of the first customer."""
    return Job(ask, [*pair_parts(ask, chosen),
                     twin_control(ask, chosen[0][0])], named(chosen))


PAIRS = Experiment("pairs", lambda ask: plan_pairs(ask, ask.pairs()))
RANDOM = Experiment(
    "random-pairs",
    lambda ask: plan_pairs(ask, drawn(ask.plan.seed, RANDOM_PAIRS)),
    in_all=False)
RATES = [Experiment(name, lambda ask: plan_pairs(ask, ask.pairs(1)),
                    in_quick=False) for name in ("rate-unknown", "rate-wrong")]
