# SPDX-License-Identifier: BSD-2-Clause
"""What one tenant keeps while another misbehaves.

A victim is measured alone and beside each kind of abuse.  Abuse that takes
next to no CPU time goes on all the time under one of two varnishds that run
side by side, and the victim's phases take turns between them; a flood is
measured after the victim alone, under the same varnishd.  `kept` is its
throughput beside over alone; `fair` is what it could claim: all of it where
the abuser uses next to no CPU or link, half of it against a flood, which is a
tenant like any other.  The control is the victim alone, measured twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .customers import BIG
from .estimate import MIN_TURNS, bootstrap, median_quotient, verdict
from .lab import Lab, Plan, in_turns, progress
from .load import Group, Seen
from .pairs import control
from .testbed import TestbedError
from .varnish import Variant

KEPT = 0.9  # of the fair share


@dataclass(frozen=True)
class Abuse:
    """A kind of misbehaviour; a flood goes on until it has sent enough."""

    group: Group
    fair: float
    prime: bool = True
    flood: bool = False


ABUSES = {
    # Clients that ask for 10 MB and never read.
    "slow-readers": Abuse(
        Group("abuser", "big.example", f"/bytes/{BIG}", "stall", conns=40),
        fair=1.0),
    # An origin that sends 2 bytes/s, asked for a new page by each request.
    "drip-origin": Abuse(
        Group("abuser", "drip.example", "/drip/1000/2", conns=100,
              unique=1),
        fair=1.0, prime=False),
    # One connection at a time asks for 10 MB, reads 1 KB and resets.
    "resets": Abuse(
        Group("abuser", "big.example", f"/bytes/{BIG}", "reset", conns=1,
              rate=15),
        fair=1.0),
    # Every request names a Host never seen before, a million in all.
    "random-hosts": Abuse(
        Group("abuser", "unknown.example", "/", conns=100, random_host=1),
        fair=0.5, prime=False, flood=True),
}


@dataclass(frozen=True)
class AbuseTurn:
    """One turn under one variant: the victim, and what the abuse did."""

    alone: list[Seen]
    beside: list[Seen]
    abusive_requests: int
    abusive_errors: int
    grown_bytes: int

    @property
    def rps(self) -> tuple[float, float]:
        """Return the victim's (beside, alone), requests/s."""
        return (median(s.rps for s in self.beside),
                median(s.rps for s in self.alone))

    @property
    def p99_s(self) -> tuple[float, float]:
        """Return the victim's p99 (beside, alone), seconds."""
        return (median(s.p99_s for s in self.beside),
                median(s.p99_s for s in self.alone))


def abuse_turn(
    lab: Lab, variant: Variant, abuse: Abuse, victim: Group
) -> AbuseTurn:
    """Measure the victim under two varnishds; one has the abuser, too."""
    with (lab.varnish(variant) as quiet,
          lab.varnish(variant, second=True) as abused):
        for varnish in (quiet, abused):
            lab.load.prime(varnish, [victim])
        if abuse.prime:
            lab.load.prime(abused, [Group(
                abuse.group.name, abuse.group.host, abuse.group.path)])
        rss = abused.rss_bytes()
        found = lab.in_phases(
            [(v, [victim]) for v in (quiet, abused, abused, quiet)],
            [replace(abuse.group, to=abused.proxy.listen)])
        grown = abused.rss_bytes() - rss
    seen = [phase[victim.name] for phase in found.phases]
    abuser = found.always[abuse.group.name]
    return AbuseTurn([seen[0], seen[3]], seen[1:3], abuser.sent_in_all,
                     abuser.errors, grown)


def flood_turn(
    lab: Lab, variant: Variant, abuse: Abuse, victim: Group, flood: int
) -> AbuseTurn:
    """Measure the victim alone, then beside a flood of so many requests."""
    with lab.varnish(variant) as varnish:
        lab.load.prime(varnish, [victim])
        alone = [lab.measure(varnish, [victim])[victim.name]
                 for _ in range(2)]
        # What the same connections take with one Host is not the flood's
        lab.measure(varnish, [victim, replace(abuse.group, random_host=0)])
        rss = varnish.rss_bytes()
        beside: list[Seen] = []
        requests = errors = 0
        while requests < flood:
            seen = lab.measure(varnish, [victim, abuse.group])
            beside.append(seen[victim.name])
            if not beside[-1].rps and not seen[abuse.group.name].rps:
                raise TestbedError(f"{variant.name}: nothing was served")
            requests += seen[abuse.group.name].sent_in_all
            errors += seen[abuse.group.name].errors
        return AbuseTurn(alone, beside, requests, errors,
                         varnish.rss_bytes() - rss)


def flood_plan(plan: Plan) -> Plan:
    """Return the plan of a flood: one turn has as many windows as others."""
    return replace(plan, turns=min(plan.turns, MIN_TURNS))


def note_abuse(turn: str, found: AbuseTurn) -> None:
    """Print one turn's figures."""
    beside, alone = found.rps
    progress(
        f"  {turn} alone {alone:8.0f}/s beside {beside:8.0f}/s  "
        f"{beside / alone:.3f}  p99 {found.p99_s[1] * 1e3:.1f} -> "
        f"{found.p99_s[0] * 1e3:.1f} ms  memory "
        f"+{found.grown_bytes / 2**20:.1f} MB")


def abuse_result(
    lab: Lab, name: str, victim: str, variant: str,
    turns: Sequence[AbuseTurn],
) -> dict[str, Any]:
    """Return one entry of `results`."""
    rps = [t.rps for t in turns]
    interval = bootstrap(rps, median_quotient, lab.plan.seed)
    fair = ABUSES[name].fair
    return {
        "abuse": name, "victim": victim, "variant": variant,
        "turns": len(turns), "fair": fair,
        "kept": round(median_quotient(rps), 4),
        "kept_ci": [round(interval[0], 4), round(min(interval[1], 1e9), 4)],
        "verdict": verdict(interval, KEPT * fair),
        "rps_alone": round(median(r[1] for r in rps), 1),
        "rps_beside": round(median(r[0] for r in rps), 1),
        "p99_s_alone": round(median(t.p99_s[1] for t in turns), 6),
        "p99_s_beside": round(median(t.p99_s[0] for t in turns), 6),
        "errors": sum(s.failures for t in turns for s in t.beside),
        "abusive_requests": min(t.abusive_requests for t in turns),
        "abusive_errors": sum(t.abusive_errors for t in turns),
        "memory_grown_mb": round(
            max(t.grown_bytes for t in turns) / 2**20, 2),
    }


def abuse(
    lab: Lab, name: str, victim: str, flood: int
) -> dict[str, Any]:
    """Run one kind of abuse under every variant."""
    progress(f"{name}: what {victim} keeps")
    kind, tenant = ABUSES[name], lab.tenant(victim)
    plan = flood_plan(lab.plan) if kind.flood else lab.plan

    def turn(variant: Variant) -> AbuseTurn:
        if kind.flood:
            return flood_turn(lab, variant, kind, tenant, flood)
        return abuse_turn(lab, variant, kind, tenant)

    found = in_turns(lab.variants, plan, turn, note=lab.counted(note_abuse))
    controls = {
        variant: control(
            f"{victim} alone against itself, {variant}",
            [(t.alone[0].rps, t.alone[1].rps) for t in turns], lab.plan.seed)
        for variant, turns in found.items()}
    return lab.report(name, controls, [
        abuse_result(lab, name, victim, variant, turns)
        for variant, turns in found.items()])
