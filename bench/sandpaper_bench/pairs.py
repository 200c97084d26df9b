# SPDX-License-Identifier: BSD-2-Clause
"""`pairs`: two tenants alone and together; `alone`: what Sandpaper costs.

A tenant's normalised throughput is its throughput together over alone, under
the same varnishd (paper, section 3.2).  Fair is: equal.  The figures are
medians over turns; `ratio` is min/max of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from .customers import CUSTOMERS
from .estimate import (
    bootstrap,
    fold,
    fold_interval,
    ratio_of_medians,
    verdict,
)
from .lab import Lab, in_turns, progress
from .load import Measurement, Seen
from .testbed import TestbedError
from .varnish import Variant

FAIR_CONNECTION = 0.5  # slowest over mean, for the stretch to count


@dataclass(frozen=True)
class PairTurn:
    """One turn of a pair under one variant."""

    a: Seen
    b: Seen
    both: Measurement
    together_a: Seen
    together_b: Seen


def quotient(turns: Sequence[PairTurn]) -> float:
    """Return a's normalised throughput over b's, of medians."""
    return norm(turns, "a") / (norm(turns, "b") or float("inf"))


def norm(turns: Sequence[PairTurn], side: str) -> float:
    """Return the normalised throughput of side "a" or "b"."""
    return ratio_of_medians([
        (t.together_a.rps, t.a.rps) if side == "a"
        else (t.together_b.rps, t.b.rps)
        for t in turns])


def pair_turn(
    lab: Lab, variant: Variant, *, a: str, b: str, fresh: bool
) -> PairTurn:
    """Measure a alone, both, b alone; `fresh`: a new varnishd for each."""
    groups = [lab.tenant(a), lab.tenant(b)]
    sets = [[groups[0]], groups, [groups[1]]]
    found: list[Measurement] = []
    while len(found) < len(sets):
        with lab.varnish(variant) as varnish:
            lab.load.prime(varnish, groups)
            for wanted in sets[len(found):]:
                found.append(lab.measure(varnish, wanted))
                if fresh:
                    break
    return PairTurn(found[0][a], found[2][b], found[1],
                    found[1][a], found[1][b])


def pair_interval(
    turns: Sequence[PairTurn], seed: int
) -> tuple[float, float]:
    """Return the 95 % interval of min/max."""
    return fold_interval(*bootstrap(turns, quotient, seed))


def side_result(turns: Sequence[PairTurn], side: str) -> dict[str, float]:
    """Return one tenant's figures; each name carries the side."""
    alone = [getattr(t, side) for t in turns]
    both = [getattr(t, f"together_{side}") for t in turns]

    def mid(seen: list[Seen], what: str) -> float:
        return round(float(median(getattr(s, what) for s in seen)), 6)

    return {
        f"norm_{side}": round(norm(turns, side), 4),
        f"rps_alone_{side}": mid(alone, "rps"),
        f"rps_{side}": mid(both, "rps"),
        f"p50_s_{side}": mid(both, "p50_s"),
        f"p99_s_{side}": mid(both, "p99_s"),
        f"stretch_{side}": round(mid(both, "stretch"), 3),
        f"stretch_alone_{side}": round(mid(alone, "stretch"), 3),
        f"slowest_to_mean_{side}": round(mid(both, "slowest_to_mean"), 3),
        f"slowest_to_fastest_{side}":
            round(mid(both, "slowest_to_fastest"), 3),
        f"slowest_to_mean_alone_{side}":
            round(mid(alone, "slowest_to_mean"), 3),
        f"errors_{side}": sum(s.failures for s in both + alone),
    }


def pair_result(
    lab: Lab, a: str, b: str, variant: str, turns: Sequence[PairTurn]
) -> dict[str, Any]:
    """Return one entry of `results`."""
    interval = pair_interval(turns, lab.plan.seed)
    result: dict[str, Any] = {
        "a": a, "b": b, "variant": variant, "turns": len(turns),
        "ratio": round(fold(quotient(turns)), 4),
        "ratio_ci": [round(end, 4) for end in interval],
        "verdict": verdict(interval, lab.plan.target),
    }
    result |= side_result(turns, "a") | side_result(turns, "b")
    result["stretch_counts"] = all(
        result[f"slowest_to_mean_{side}"] >= FAIR_CONNECTION
        for side in "ab")
    result["noise_cores"] = round(median(
        t.both.foreign_s / t.both.window_s for t in turns), 3)
    return result


def twin_control(lab: Lab, name: str) -> dict[str, Any]:
    """Run a customer against its twin under the first variant: fair is 1."""
    turns: list[tuple[float, float]] = []
    variant = lab.variants[0]
    with lab.varnish(variant) as varnish:
        groups = [lab.tenant(name), lab.tenant(name, twin=True)]
        lab.load.prime(varnish, groups)
        for _ in range(lab.plan.turns):
            m = lab.measure(varnish, groups)
            turns.append((m[groups[0].name].rps, m[groups[1].name].rps))
    ratio = ratio_of_medians(turns)
    progress(f"control: {name} against its twin under {variant.name}: "
             f"{ratio:.3f}")
    return control(f"{name} against its twin, {variant.name}", turns,
                   lab.plan.seed)


def control(
    what: str, turns: Sequence[tuple[float, float]], seed: int
) -> dict[str, Any]:
    """Return an A/A control: a quotient that should be 1."""
    low, high = bootstrap(turns, ratio_of_medians, seed)
    finite = min(high, 1e9)
    return {
        "what": what, "turns": len(turns),
        "ratio": round(ratio_of_medians(turns), 4),
        "ratio_ci": [round(low, 4), round(finite, 4)],
        "covers_one": low <= 1 <= high,
    }


def note_pair(turn: str, found: PairTurn) -> None:
    """Print one turn's figures."""
    one = [found]
    progress(
        f"  {turn} {found.a.name} {found.a.rps:7.0f} -> "
        f"{found.together_a.rps:7.0f}/s  {found.b.name} "
        f"{found.b.rps:7.0f} -> {found.together_b.rps:7.0f}/s  "
        f"min/max {fold(quotient(one)):.2f}  stretch "
        f"{found.together_a.stretch:.1f} {found.together_b.stretch:.1f}")


def check_names(names: Sequence[str]) -> None:
    """A customer that does not exist is the user's mistake."""
    for name in names:
        if name not in CUSTOMERS:
            raise TestbedError(f"no customer {name}: there are "
                               + " ".join(CUSTOMERS))


def pairs(
    lab: Lab, chosen: list[tuple[str, str]], experiment: str = "pairs",
    fresh: bool = False, with_control: bool = True,
) -> dict[str, Any]:
    """Run every chosen pair under every variant."""
    check_names([name for pair in chosen for name in pair])
    seed, target = lab.plan.seed, lab.plan.target

    def resolved(found: dict[str, list[PairTurn]]) -> bool:
        return verdict(pair_interval(found[lab.variants[-1].name], seed),
                       target) != "unresolved"

    results = []
    for number, (a, b) in enumerate(chosen, 1):
        progress(f"pair {number} of {len(chosen)}: {a} {b}")
        found = in_turns(
            lab.variants, lab.plan,
            partial(pair_turn, lab, a=a, b=b, fresh=fresh), resolved,
            note_pair)
        results += [pair_result(lab, a, b, name, turns)
                    for name, turns in found.items()]
    checked = twin_control(lab, chosen[0][0]) if with_control else {}
    return lab.report(experiment, checked, results)


def alone_block(
    lab: Lab, variant: Variant, names: list[str]
) -> dict[str, Measurement]:
    """Measure each customer alone under one varnishd."""
    with lab.varnish(variant) as varnish:
        groups = {name: lab.tenant(name) for name in names}
        lab.load.prime(varnish, list(groups.values()))
        return {name: lab.measure(varnish, [group])
                for name, group in groups.items()}


@dataclass(frozen=True)
class AloneTurn:
    """One turn A B B A of one customer."""

    stock: tuple[Measurement, Measurement]
    ours: tuple[Measurement, Measurement]

    def rps(self, name: str) -> tuple[float, float]:
        """Return (ours, stock), requests/s."""
        return (sum(m[name].rps for m in self.ours) / 2,
                sum(m[name].rps for m in self.stock) / 2)


def alone_result(
    lab: Lab, name: str, turns: Sequence[AloneTurn]
) -> dict[str, Any]:
    """Return one customer's entry of `results`."""
    rps = [t.rps(name) for t in turns]
    interval = bootstrap(rps, ratio_of_medians, lab.plan.seed)
    result: dict[str, Any] = {
        "customer": name, "baseline": lab.variants[0].name,
        "variant": lab.variants[1].name, "turns": len(turns),
        "ratio": round(ratio_of_medians(rps), 4),
        "ratio_ci": [round(interval[0], 4), round(min(interval[1], 1e9), 4)],
        "verdict": verdict(interval, lab.plan.target),
    }
    for label, blocks in (
        ("baseline", [m for t in turns for m in t.stock]),
        ("variant", [m for t in turns for m in t.ours]),
    ):
        seen = [m[name] for m in blocks]
        result |= {
            f"rps_{label}": round(median(s.rps for s in seen), 1),
            f"cpu_us_{label}":
                round(median(m.cpu_us_per_request for m in blocks), 1),
            f"p99_s_{label}": round(median(s.p99_s for s in seen), 6),
            f"stretch_{label}": round(median(s.stretch for s in seen), 3),
            f"slowest_to_mean_{label}":
                round(median(s.slowest_to_mean for s in seen), 3),
            f"slowest_to_fastest_{label}":
                round(median(s.slowest_to_fastest for s in seen), 3),
            f"noise_cores_{label}":
                round(median(m.foreign_s / m.window_s for m in blocks), 3),
            f"errors_{label}": sum(s.failures for s in seen),
        }
    return result


def alone(lab: Lab, names: list[str]) -> dict[str, Any]:
    """Compare each customer alone under the second variant and the first."""
    check_names(names)
    if len(lab.variants) != 2:
        raise TestbedError("alone compares two variants: --variants a,b")
    stock, ours = lab.variants
    turns: dict[str, list[AloneTurn]] = {name: [] for name in names}
    for number in range(lab.plan.turns):
        blocks = [alone_block(lab, v, names)
                  for v in (stock, ours, ours, stock)]
        for name in names:
            one = [block[name] for block in blocks]
            turn = AloneTurn((one[0], one[3]), (one[1], one[2]))
            turns[name].append(turn)
            us, base = turn.rps(name)
            progress(
                f"  turn {number + 1} {name} {stock.name} {base:8.0f}/s "
                f"{ours.name} {us:8.0f}/s ratio {us / base:.3f}  CPU "
                f"{one[0].cpu_us_per_request:.1f} "
                f"{one[1].cpu_us_per_request:.1f} us")
    controls = {
        name: control(
            f"{name} alone, {stock.name} against itself",
            [(t.stock[0][name].rps, t.stock[1][name].rps) for t in of_name],
            lab.plan.seed)
        for name, of_name in turns.items()}
    return lab.report("alone", controls, [
        alone_result(lab, name, of_name) for name, of_name in turns.items()])
