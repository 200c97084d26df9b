# SPDX-License-Identifier: BSD-2-Clause
"""`pairs`: two tenants alone and together; `alone`: what Sandpaper costs.

A tenant's normalised throughput is its throughput together over alone, under
the same varnishd (paper, section 3.2).  Fair is: equal.  The figures are
medians over turns; `ratio` is min/max of the two: of the turns' quotients,
the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from .customers import TWIN
from .estimate import (
    bootstrap,
    covers_one,
    fold,
    fold_interval,
    median_quotient,
    verdict,
)
from .lab import Lab, in_turns, progress
from .load import Interleaved, Measurement, Seen
from .varnish import Variant

FAIR_CONNECTION = 0.5  # slowest over mean, for the stretch to count


@dataclass(frozen=True)
class PairTurn:
    """One turn of a pair under one variant.

    Throughputs are of phases that took turns: a, both, b.  Latencies are of
    whole windows, so that a request that waits long is seen to wait.
    """

    phases: Interleaved
    windows: tuple[Measurement, Measurement, Measurement]

    def alone(self, name: str) -> tuple[Seen, Seen]:
        """Return a tenant alone: in its phase, and in its window."""
        i = 0 if name in self.phases.phases[0] else 2
        return self.phases.phases[i][name], self.windows[i][name]

    def together(self, name: str) -> tuple[Seen, Seen]:
        """Return a tenant beside the other one, in the same way."""
        return self.phases.phases[1][name], self.windows[1][name]

    def normalised(self, name: str) -> float:
        """Return a tenant's throughput together over alone."""
        rps = self.alone(name)[0].rps
        return self.together(name)[0].rps / rps if rps > 0 else 0.0


def pair_turn(lab: Lab, variant: Variant, *, a: str, b: str) -> PairTurn:
    """Measure a alone, both, b alone."""
    groups = [lab.tenant(a), lab.tenant(b)]
    sets = [[groups[0]], groups, [groups[1]]]
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, groups)
        phases = lab.in_phases([(varnish, wanted) for wanted in sets])
        alone_a, both, alone_b = (
            lab.measure(varnish, wanted, lab.plan.seconds / 2)
            for wanted in sets)
    return PairTurn(phases, (alone_a, both, alone_b))


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


def side_result(
    turns: Sequence[PairTurn], name: str, side: str, seed: int
) -> dict[str, Any]:
    """Return one tenant's figures; each name carries the side."""
    alone = [t.alone(name) for t in turns]
    both = [t.together(name) for t in turns]

    def mid(seen: list[tuple[Seen, Seen]], what: str, where: int) -> float:
        return round(float(median(getattr(s[where], what) for s in seen)), 6)

    low, high = bootstrap(
        turns, lambda some: median(t.together(name)[1].stretch
                                   for t in some), seed)
    return {
        f"norm_{side}": round(median(t.normalised(name) for t in turns), 4),
        f"rps_alone_{side}": mid(alone, "rps", 0),
        f"rps_{side}": mid(both, "rps", 0),
        f"p50_s_{side}": mid(both, "p50_s", 1),
        f"p99_s_{side}": mid(both, "p99_s", 1),
        f"stretch_{side}": round(mid(both, "stretch", 1), 3),
        f"stretch_ci_{side}": [round(low, 3), round(min(high, 1e9), 3)],
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
    lab: Lab, a: str, b: str, variant: str, turns: Sequence[PairTurn]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    ratio, *interval = pair_interval(turns, a, b, lab.plan.seed)
    result: dict[str, Any] = {
        "a": a, "b": b, "variant": variant, "turns": len(turns),
        "ratio": round(ratio, 4),
        "ratio_ci": [round(end, 4) for end in interval],
        "verdict": verdict((interval[0], interval[1]), lab.plan.target),
    }
    for name, side in ((a, "a"), (b, "b")):
        result |= side_result(turns, name, side, lab.plan.seed)
    result["stretch_counts"] = all(
        result[f"slowest_to_mean_{side}"] >= FAIR_CONNECTION
        for side in "ab")
    result["noise_cores"] = round(median(
        t.windows[1].foreign_s / t.windows[1].window_s for t in turns), 3)
    return result


def twin_control(lab: Lab, name: str) -> dict[str, Any]:
    """Run a customer against its twin under the last variant: fair is 1."""
    turns: list[tuple[float, float]] = []
    variant = lab.variants[-1]
    with lab.varnish(variant) as varnish:
        groups = [lab.tenant(name), lab.tenant(name + TWIN)]
        lab.load.prime(varnish, groups)
        for turn in range(lab.plan.turns):
            first = turn % 2  # to connect, in turns
            m = lab.kept(f"{name} control, turn {turn + 1}", partial(
                lab.measure, varnish, groups[first:] + groups[:first]))
            turns.append((m[groups[0].name].rps, m[groups[1].name].rps))
            lab.tick()
    ratio = median_quotient(turns)
    progress(f"control: {name} against its twin under {variant.name}: "
             f"{ratio:.3f}")
    return control(f"{name} against its twin, {variant.name}", turns,
                   lab.plan.seed)


def control(
    what: str, turns: Sequence[tuple[float, float]], seed: int
) -> dict[str, Any]:
    """Return an A/A control: a quotient that should be 1."""
    low, high = bootstrap(turns, median_quotient, seed)
    finite = min(high, 1e9)
    return {
        "what": what, "turns": len(turns),
        "ratio": round(median_quotient(turns), 4),
        "ratio_ci": [round(low, 4), round(finite, 4)],
        "covers_one": covers_one((low, high)),
    }


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


def pairs(
    lab: Lab, chosen: Sequence[tuple[str, str]], experiment: str = "pairs",
    with_control: bool = True,
) -> dict[str, Any]:
    """Run every chosen pair under every variant."""
    seed, target = lab.plan.seed, lab.plan.target

    results = []
    for number, (a, b) in enumerate(chosen, 1):
        progress(f"pair {number} of {len(chosen)}: {a} {b}")

        def resolved(
            found: dict[str, list[PairTurn]], a: str = a, b: str = b
        ) -> bool:
            _, low, high = pair_interval(
                found[lab.variants[-1].name], a, b, seed)
            return verdict((low, high), target) != "unresolved"

        found = in_turns(lab.variants, lab.plan,
                         partial(pair_turn, lab, a=a, b=b), resolved,
                         lab.counted(partial(note_pair, a, b)),
                         lab.keeper(f"{a}-{b}"))
        results += [pair_result(lab, a, b, name, turns)
                    for name, turns in found.items()]
    checked = twin_control(lab, chosen[0][0]) if with_control else {}
    return lab.report(experiment, checked, results)


@dataclass(frozen=True)
class AloneTurn:
    """One turn of one customer: phases A B B A of the two variants."""

    found: Interleaved
    name: str

    @property
    def stock(self) -> tuple[Seen, Seen]:
        """Return the first and the last phase."""
        return (self.found.phases[0][self.name],
                self.found.phases[3][self.name])

    @property
    def ours(self) -> tuple[Seen, Seen]:
        """Return the two phases between."""
        return (self.found.phases[1][self.name],
                self.found.phases[2][self.name])

    @property
    def rps(self) -> tuple[float, float]:
        """Return (ours, stock), requests/s."""
        return (sum(s.rps for s in self.ours) / 2,
                sum(s.rps for s in self.stock) / 2)


def quotient_result(
    lab: Lab, rps: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    """Return the figures of (variant, baseline) throughputs, a turn each."""
    low, high = bootstrap(rps, median_quotient, lab.plan.seed)
    return {
        "baseline": lab.variants[0].name, "variant": lab.variants[1].name,
        "turns": len(rps),
        "ratio": round(median_quotient(rps), 4),
        "ratio_ci": [round(low, 4), round(min(high, 1e9), 4)],
        "verdict": verdict((low, high), lab.plan.target),
    }


def phase_result(
    label: str, seen: Sequence[Seen], cpu_us: Sequence[float]
) -> dict[str, Any]:
    """Return the figures of one of two variants; names carry the label."""
    return {
        f"rps_{label}": round(median(s.rps for s in seen), 1),
        f"cpu_us_{label}": round(median(cpu_us), 1),
        f"errors_{label}": sum(s.failures for s in seen),
    }


def alone_result(
    lab: Lab, name: str, turns: Sequence[AloneTurn]
) -> dict[str, Any]:
    """Return one customer's entry of `results`."""
    result: dict[str, Any] = {
        "customer": name, **quotient_result(lab, [t.rps for t in turns])}
    for phase, (label, seen) in enumerate((
        ("baseline", [s for t in turns for s in t.stock]),
        ("variant", [s for t in turns for s in t.ours]),
    )):
        result |= phase_result(
            label, seen, [t.found.cpu_us[phase] for t in turns])
        result |= {
            f"p99_s_{label}": round(median(s.p99_s for s in seen), 6),
            f"slowest_to_mean_{label}":
                round(median(s.slowest_to_mean for s in seen), 3),
        }
    return result


def alone_turn(lab: Lab, name: str) -> AloneTurn:
    """Measure a customer under both variants, which run side by side."""
    group = [lab.tenant(name)]
    with (lab.varnish(lab.variants[0]) as stock,
          lab.varnish(lab.variants[1], second=True) as ours):
        for varnish in (stock, ours):
            lab.load.prime(varnish, group)
        return AloneTurn(lab.in_phases(
            [(v, group) for v in (stock, ours, ours, stock)]), name)


def alone(lab: Lab, names: list[str]) -> dict[str, Any]:
    """Compare each customer alone under the second variant and the first."""
    stock, ours = (v.name for v in lab.variants)
    results, controls = [], {}
    for name in names:
        turns: list[AloneTurn] = []
        while len(turns) < lab.plan.turns:
            turns.append(lab.kept(
                f"{name}, {ours}, turn {len(turns) + 1}",
                partial(alone_turn, lab, name)))
            us, base = turns[-1].rps
            cpu = turns[-1].found.cpu_us
            progress(
                f"  turn {len(turns)} {name} {stock} {base:8.0f}/s "
                f"{ours} {us:8.0f}/s ratio {us / base:.3f}  CPU "
                f"{cpu[0]:.1f} {cpu[1]:.1f} us")
            lab.tick()
        results.append(alone_result(lab, name, turns))
        controls[name] = control(
            f"{name} alone, {stock} against itself",
            [(t.stock[0].rps, t.stock[1].rps) for t in turns],
            lab.plan.seed)
    return lab.report("alone", controls, results)
