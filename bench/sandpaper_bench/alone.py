# SPDX-License-Identifier: BSD-2-Clause
"""`alone`: what Sandpaper costs a tenant that has no neighbour.

Two varnishds run side by side, and the tenant's phases take turns between
them.  `ratio` is throughput under the second over that under the first: of
the turns' quotients, the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from .ask import Ask
from .customers import CUSTOMERS
from .estimate import bootstrap, median_quotient, rounded, verdict
from .load import GroupResult, Interleaved, tenant
from .rig import Rig, progress
from .runner import Control, Experiment, Job, Part, Phases, Turn
from .varnish import Variant


@dataclass(frozen=True)
class AloneTurn:
    """One turn of one customer: phases A B B A of the two variants."""

    found: Interleaved
    name: str

    @property
    def stock(self) -> tuple[GroupResult, GroupResult]:
        """Return the first and the last phase."""
        return (self.found.phases[0][self.name],
                self.found.phases[3][self.name])

    @property
    def ours(self) -> tuple[GroupResult, GroupResult]:
        """Return the two phases between."""
        return (self.found.phases[1][self.name],
                self.found.phases[2][self.name])

    @property
    def rps(self) -> tuple[float, float]:
        """Return (ours, stock), requests/s."""
        return (sum(s.rps for s in self.ours) / 2,
                sum(s.rps for s in self.stock) / 2)


def quotient_result(
    rig: Rig, base: Variant, ours: Variant,
    rps: Sequence[tuple[float, float]],
) -> dict[str, Any]:
    """Return the figures of (ours, base) throughputs, a turn each."""
    interval = bootstrap(rps, median_quotient, rig.plan.seed)
    return {
        "baseline": base.name, "variant": ours.name,
        "turns": len(rps),
        "ratio": round(median_quotient(rps), 4),
        "ratio_ci": rounded(interval, 4),
        "verdict": verdict(interval, rig.plan.target),
    }


def phase_result(
    label: str, seen: Sequence[GroupResult], cpu_us: Sequence[float]
) -> dict[str, Any]:
    """Return the figures of one of two variants; names carry the label."""
    return {
        f"rps_{label}": round(median(s.rps for s in seen), 1),
        f"cpu_us_{label}": round(median(cpu_us), 1),
        f"errors_{label}": sum(s.failures for s in seen),
    }


def alone_result(
    rig: Rig, name: str, base: Variant, ours: Variant,
    turns: Sequence[AloneTurn],
) -> dict[str, Any]:
    """Return one customer's entry of `results`."""
    result: dict[str, Any] = {
        "customer": name,
        **quotient_result(rig, base, ours, [t.rps for t in turns])}
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


def alone_part(
    ask: Ask, name: str, ours: Variant, setting: str = ""
) -> Part:
    """Return a customer under two variants, which run side by side.

    The control is the first of them against itself.
    """
    base, group = ask.variants[0], [tenant(name, ask.plan.connections)]
    case, told = (f"{name}, {setting}", f", with {setting}"
                  ) if setting else (name, "")
    more = {"setting": setting} if setting else {}

    def note(turn: str, found: AloneTurn) -> None:
        (us, them), cpu = found.rps, found.found.cpu_us
        progress(f"  {turn} {name} {base.name} {them:8.0f}/s {ours.name} "
                 f"{us:8.0f}/s ratio {us / them if them else 0:.3f}  "
                 f"CPU {cpu[0]:.1f} {cpu[1]:.1f} us")

    return Part(
        f"{name}, {ours.name}", {"": Turn(
            [base, ours], [Phases([(n, group) for n in (0, 1, 1, 0)])], group,
            lambda found: AloneTurn(found[0], name))}, note,
        lambda rig, found: [more | alone_result(
            rig, name, base, ours, found[""])],
        [Control(f"{name} alone, {base.name} against itself{told}", "",
                 lambda turns: [(t.stock[0].rps, t.stock[1].rps)
                                for t in turns], case)])


def plan_alone(ask: Ask) -> Job:
    """Plan each customer alone under the second variant and the first."""
    names = ask.customers(lambda: [*CUSTOMERS])
    return Job(ask, [alone_part(ask, name, ask.variants[1])
                     for name in names], names)


# A part of `overhead`, so it is not in `all`
EXPERIMENT = Experiment("alone", plan_alone, in_all=False, compares_two=True)
