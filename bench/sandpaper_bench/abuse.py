# SPDX-License-Identifier: BSD-2-Clause
"""What one tenant keeps while another misbehaves, or an operator interferes.

A victim is measured alone and beside each kind of abuse (abuses.py).  Abuse
that takes next to no CPU time goes on all the time under one of two varnishds
that run side by side, and the victim's phases take turns between them; what
is greedy is measured after the victim alone, under the same varnishd; what is
done once is done under load, and the victim measured after it.

`kept` is its throughput beside over alone; `fair` what it could claim.  p99 is
of an open loop of QUICK_CONNECTIONS at half of what is fair, the median of
QUICK_WINDOWS, which take turns with as many alone: one stall of 10 ms that is
the machine's is the p99 of a second.  When the load has gone, everything that
is counted has to be back at zero within a second (`settled_s`), each complete
request of the victim's answered once (`lost`), no worker process gone
(`died`), and the threads within their bound.  The control is the victim alone,
measured twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from .abuses import (
    ABUSES,
    POOLS,
    SETTLED,
    SPARE_THREADS,
    Abuse,
)
from .ask import Ask
from .estimate import (
    MIN_TURNS,
    bootstrap,
    median_quotient,
    rounded,
    verdict,
)
from .faults import Faults, waits
from .load import Group, GroupResult, Load, WorkerDied, tenant
from .rig import Plan, Rig, progress
from .runner import (
    START,
    Control,
    Experiment,
    Job,
    Part,
    Phases,
    Window,
    of_each,
)
from .testbed import TestbedError
from .varnish import Variant, Varnish, listed

QUICK_CONNECTIONS = 20
QUICK_LOAD = 0.5  # of what is fair
QUICK_WINDOWS = 3  # of the open loop, alone and beside each
QUICK_PART = 0.45  # of the planned length, so that both phases of flips fit
PROOF = 10  # seconds in which a Host is answered, until it is a tenant
PROOF_PATIENCE = 10.0  # seconds
DRAIN_SECONDS = 10.0  # at most, for what is still owed at the end of a window
SETTLE_SECONDS = 10.0  # after which varnishd is no longer waited for
GAUGES = ("SANDPAPER.waiting", "SANDPAPER.running", "SANDPAPER.ready")
# These go into `all`, the others are for `abuse`
IN_ALL = ("slow-readers", "random-hosts")
FLOOD_RPS = 4000.0  # of a flood, beside its victim, on two cores
LENT = "SANDPAPER.lent"
STOCK_GAUGES = ("MAIN.thread_queue_len",)
Sides = tuple[list[GroupResult], list[GroupResult]]  # windows alone, and beside


@dataclass(frozen=True)
class AbuseTurn:
    """One turn under one variant: the victim, and what the abuse did."""

    alone: list[GroupResult]
    beside: list[GroupResult]
    quick: Sides  # the open loop
    meanwhile: list[GroupResult]  # the victim in windows that are not measured
    abusive_requests: int
    abusive_errors: int
    grown_bytes: int
    settled_s: float
    threads: int
    died: bool = False
    undone: int = 0  # actions

    @property
    def rps(self) -> tuple[float, float]:
        """Return the victim's (beside, alone), requests/s."""
        return (median(s.rps for s in self.beside),
                median(s.rps for s in self.alone))

    @property
    def p99_s(self) -> tuple[float, float]:
        """Return the victim's p99 (beside, alone), seconds."""
        alone, beside = (median(s.p99_s for s in of) for of in self.quick)
        return beside, alone

    @property
    def lost(self) -> int:
        """Return the victim's requests that were not answered once."""
        return sum(s.lost + s.not_200
                   for s in (*self.beside, *self.quick[1], *self.meanwhile))


def dead_turn(victim: Group) -> AbuseTurn:
    """Return what is to be said of a varnishd that died."""
    nothing = GroupResult(victim.name, victim.conns, 0.0, 0.0, 0.0, 0.0, 0, 0,
                          0, 0, 0, 0, 0.0, 0, 0, [])
    return AbuseTurn([nothing] * 2, [nothing], ([nothing], [nothing]), [],
                     0, 0, 0, SETTLE_SECONDS, 0, died=True)


def settled(
    varnish: Varnish, names: Sequence[str], patience: float = SETTLE_SECONDS
) -> float:
    """Wait until all these gauges are zero; return the seconds it took."""
    start = time.monotonic()
    while (took := time.monotonic() - start) < patience:
        if not any(varnish.gauges(names).values()):
            return took
    return patience


def prove(load: Load, varnish: Varnish, group: Group) -> None:
    """Have answers for the group's Host until it is a tenant of its own.

    The clock of new Hosts jumps, as nothing but time lies between.
    """
    for _ in range(PROOF):
        load.prime(varnish, [group])
        varnish.cli("debug.sandpaper.age", "1")
    deadline = time.monotonic() + PROOF_PATIENCE
    while not is_proven(varnish, group.host):
        if time.monotonic() > deadline:
            raise TestbedError(f"{group.host} is no tenant of its own: "
                               + varnish.cli("sandpaper.list"))
        time.sleep(0.05)
    # Right after a start all Hosts that last are proven: that is over.
    varnish.cli("debug.sandpaper.age", "60")


def is_proven(varnish: Varnish, name: str) -> bool:
    """Is the Host a tenant, and not new?"""
    found = listed(varnish).get(name)
    return found is not None and "group" not in found


def abused(variant: Variant, kind: Abuse) -> Variant:
    """Return the variant with what an abuse needs."""
    return replace(
        variant, prelude=variant.prelude + kind.vcl,
        parameters=(*variant.parameters, *kind.parameters))


class Case:
    """One turn of one kind of abuse under one variant."""

    def __init__(
        self, rig: Rig, abuse: Abuse, victim: Group, variant: Variant,
        flood: int = 0,
    ) -> None:
        self.rig, self.abuse, self.victim = rig, abuse, victim
        self.flood = flood if abuse.flood else 0
        ours = bool(variant.parameters)
        self.actions = [d for d in abuse.actions
                      if ours or "sandpaper" not in d]
        self.gauges: Sequence[str] = STOCK_GAUGES
        if ours:
            self.gauges = GAUGES if abuse.lasts else (*GAUGES, LENT)
        self.variant = abused(variant, abuse)
        self._faults: list[Faults] = []
        self._abusers: list[GroupResult] = []

    def turn(self) -> AbuseTurn:
        """Measure one turn."""
        try:
            with self.rig.bed.firewall("client", self.abuse.firewall):
                if self.abuse.after:
                    return self._after()
                return self._greedy() if self.abuse.greedy else self._side()
        except WorkerDied as error:
            progress(f"  {error}")
            return dead_turn(self.victim)

    def _prime(self, varnish: Varnish) -> None:
        self.rig.load.prime(varnish, [self.victim])
        if self.abuse.new and "sandpaper=on" in self.variant.parameters:
            prove(self.rig.load, varnish, self.victim)
        if self.abuse.prime:
            self.rig.load.prime(varnish, [
                Group(g.name, g.host, g.path) for g in self.abuse.groups])

    def _quick(self, rps: float) -> Group:
        """Return the victim as an open loop."""
        return replace(self.victim, mode="open", conns=QUICK_CONNECTIONS,
                       rate=max(1.0, rps * self.abuse.fair * QUICK_LOAD))

    def _measure(
        self, varnish: Varnish, victim: Group, *others: Group
    ) -> dict[str, GroupResult]:
        """Measure a window, part of one if open; wait for what is owed."""
        part = QUICK_PART if victim.mode == "open" else 1.0
        return self.rig.measure(
            varnish, [victim, *others], self.rig.plan.seconds * part,
            DRAIN_SECONDS).groups

    def _alone(self, varnish: Varnish, victim: Group) -> GroupResult:
        """Measure a window of the victim alone."""
        return self._measure(varnish, victim)[victim.name]

    def _beside(self, varnish: Varnish, victim: Group) -> GroupResult:
        """Measure a window of the victim while it is abused."""
        with self._with_faults(varnish):
            seen = self._measure(varnish, victim, *self.abuse.groups)
        found = seen.pop(victim.name)
        self._abusers += seen.values()
        return found

    def _with_faults(self, varnish: Varnish) -> Faults:
        """Do the actions, as a context."""
        self._faults.append(Faults(
            varnish, self.actions, self.abuse.once or self.abuse.after))
        return self._faults[-1]

    def _open_loops(
        self, open_loop: Group, quiet: Varnish, noisy: Varnish
    ) -> Sides:
        """Measure the open loop alone and beside, in turns A B B A."""
        found: Sides = ([], [])
        measure = ((self._alone, quiet), (self._beside, noisy))
        for n in range(2 * QUICK_WINDOWS):
            side = (n + 1) // 2 % 2
            window, varnish = measure[side]
            found[side].append(window(varnish, open_loop))
        return found

    def _found(
        self, varnish: Varnish, rss: int, alone: Sequence[GroupResult],
        beside: Sequence[GroupResult], quick: Sides,
        meanwhile: Sequence[GroupResult] = (),
    ) -> AbuseTurn:
        """Wait until varnishd has calmed down; return the turn."""
        took = settled(varnish, self.gauges)
        return AbuseTurn(
            list(alone), list(beside), quick, list(meanwhile),
            sum(s.sent_in_all for s in self._abusers),
            sum(s.errors for s in self._abusers),
            varnish.rss_bytes() - rss, took,
            max(m.threads for m in self._faults), varnish.panicked(),
            sum(len(m.errors) for m in self._faults))

    def _side(self) -> AbuseTurn:
        """Measure the victim under two varnishds; one has the abuser, too."""
        name = self.victim.name
        with (self.rig.varnish(self.variant) as quiet,
              self.rig.varnish(self.variant, second=True) as noisy):
            for varnish in (quiet, noisy):
                self._prime(varnish)
            rss = noisy.rss_bytes()
            with self._with_faults(noisy):
                found = self.rig.in_phases(
                    [(v, [self.victim]) for v in (quiet, noisy, noisy, quiet)],
                    [replace(g, to=noisy.proxy.listen)
                     for g in self.abuse.groups])
            self._abusers += found.always.values()
            seen = [phase[name] for phase in found.phases]
            open_loop = self._quick((seen[0].rps + seen[3].rps) / 2)
            quick = self._open_loops(open_loop, quiet, noisy)
            return self._found(
                noisy, rss, [seen[0], seen[3]], seen[1:3], quick)

    def _closed(self, varnish: Varnish) -> tuple[list[GroupResult], Group]:
        """Measure the victim alone; return that, and its open loop."""
        self._prime(varnish)
        found = [self._alone(varnish, self.victim) for _ in range(2)]
        return found, self._quick(median(s.rps for s in found))

    def _greedy(self) -> AbuseTurn:
        """Measure the victim alone, then beside the abuser."""
        groups = self.abuse.groups
        with self.rig.varnish(self.variant) as varnish:
            alone, open_loop = self._closed(varnish)
            if self.flood:
                # What as many connections take with one Host is not its
                self._measure(varnish, self.victim, *(
                    replace(g, random_host=0) for g in groups))
            rss = varnish.rss_bytes()
            beside: list[GroupResult] = []
            while not beside or self.flood > sum(
                    s.sent_in_all for s in self._abusers):
                beside.append(self._beside(varnish, self.victim))
                last = (beside[-1], *self._abusers[-len(groups):])
                if not any(s.rps for s in last):
                    raise TestbedError(
                        f"{self.variant.name}: no request was answered")
            quick = self._open_loops(open_loop, varnish, varnish)
            return self._found(varnish, rss, alone, beside, quick)

    def _after(self) -> AbuseTurn:
        """Measure the victim alone, do it under load, and measure again."""
        plan = self.rig.plan
        with self.rig.varnish(self.variant) as varnish:
            alone, open_loop = self._closed(varnish)
            before = [self._alone(varnish, open_loop)
                      for _ in range(QUICK_WINDOWS)]
            rss = varnish.rss_bytes()
            with self._with_faults(varnish):
                during = self.rig.load.disturbed(
                    varnish, [self.victim, *self.abuse.groups],
                    plan.warmup + plan.seconds + waits(self.actions),
                    DRAIN_SECONDS)
            self.rig.load.check([varnish])
            victim = during.pop(self.victim.name)
            self._abusers += during.values()
            if self.abuse.restarts:
                self._prime(varnish)  # its cache was empty, too
            beside = [self._alone(varnish, self.victim)]
            after = [self._alone(varnish, open_loop)
                     for _ in range(QUICK_WINDOWS)]
            return self._found(
                varnish, rss, alone, beside, (before, after),
                [] if self.abuse.restarts else [victim])


@dataclass(frozen=True)
class CaseTurn:
    """One turn of a kind of abuse under one variant.

    `seconds` adds up what Case does; test_experiments.py compares the two.
    """

    abuse: Abuse
    victim: Group
    variant: Variant
    flood: int

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        window = Window([]).seconds(plan)
        quick = 2 * QUICK_WINDOWS * Window([], QUICK_PART).seconds(plan)
        if self.abuse.flood:
            sent = FLOOD_RPS * (plan.seconds + plan.warmup)
            return (START + (3 + math.ceil(self.flood / sent)) * window
                    + quick)
        if self.abuse.greedy or self.abuse.after:
            return (START + (3 + self.abuse.after) * window + quick
                    + waits(self.abuse.actions))
        return 2 * START + Phases([(0, [])] * 4).seconds(plan) + quick

    def run(self, rig: Rig) -> AbuseTurn:
        """Measure it."""
        victim, = rig.dressed([self.victim])
        return Case(rig, self.abuse, victim, self.variant, self.flood).turn()


def note_abuse(turn: str, found: AbuseTurn) -> None:
    """Print one turn's figures."""
    beside, alone = found.rps
    progress(
        f"  {turn} alone {alone:8.0f}/s abused {beside:8.0f}/s  "
        f"{median_quotient([found.rps]):.3f}  p99 {found.p99_s[1] * 1e3:.1f} "
        f"-> {found.p99_s[0] * 1e3:.1f} ms  memory "
        f"{found.grown_bytes / 2**20:+.1f} MB  settled {found.settled_s:.2f} "
        f"s  lost {found.lost}" + ("  DIED" if found.died else ""))


def failed(abuse: Abuse, r: dict[str, Any]) -> list[str]:
    """Return the criteria that a result misses, by name."""
    missed = {
        "kept": r["kept"] < abuse.kept * r["fair"],
        "p99": r["p99_times"] > abuse.times and not abuse.fifo,
        "settled": r["settled_s"] > SETTLED,
        "lost": r["lost"] > 0,
        "died": r["died"] > 0,
        "deeds": r["undone"] > 0,  # actions
        "threads": abuse.threads > 0 and r["threads_most"] > (
            POOLS * abuse.threads + SPARE_THREADS),
        "memory": 0 < abuse.memory_mb < r["memory_grown_mb"],
    }
    return [name for name, is_missed in missed.items() if is_missed]


def abuse_result(
    rig: Rig, name: str, victim: str, variant: str,
    turns: Sequence[AbuseTurn],
) -> dict[str, Any]:
    """Return one entry of `results`."""
    rps, p99 = [t.rps for t in turns], [t.p99_s for t in turns]
    interval = bootstrap(rps, median_quotient, rig.plan.seed)
    times = bootstrap(p99, median_quotient, rig.plan.seed)
    fair, kept = ABUSES[name].fair, ABUSES[name].kept
    found: dict[str, Any] = {
        "abuse": name, "victim": victim, "variant": variant,
        "turns": len(turns), "fair": round(fair, 4),
        "kept": round(median_quotient(rps), 4),
        "kept_ci": rounded(interval, 4),
        "verdict": verdict(interval, kept * fair),
        "rps_alone": round(median(r[1] for r in rps), 1),
        "rps_beside": round(median(r[0] for r in rps), 1),
        "p99_s_alone": round(median(p[1] for p in p99), 6),
        "p99_s_beside": round(median(p[0] for p in p99), 6),
        "p99_times": round(median_quotient(p99), 3),
        "p99_times_ci": rounded(times, 3),
        "settled_s": round(max(t.settled_s for t in turns), 3),
        "lost": sum(t.lost for t in turns),
        "died": sum(t.died for t in turns),
        "undone": sum(t.undone for t in turns),
        "threads_most": max(t.threads for t in turns),
        "abusive_requests": min(t.abusive_requests for t in turns),
        "abusive_errors": sum(t.abusive_errors for t in turns),
        "memory_grown_mb": round(
            max(t.grown_bytes for t in turns) / 2**20, 2),
    }
    return found | {"failed": ", ".join(failed(ABUSES[name], found))}


def lacks(ask: Ask) -> str | None:
    """Return what this testbed lacks."""
    abuse = ABUSES[ask.name]
    if abuse.runs_on(ask.bed):
        return None
    return f"{abuse.needs}: run it as root, on one machine"


def plan(ask: Ask) -> Job:
    """Plan one kind of abuse under every variant."""
    name, victim, abuse = ask.name, ask.victim(), ABUSES[ask.name]
    group = tenant(victim, ask.plan.connections)

    controls = [Control(
        f"{victim} alone against itself, {v.name}", v.name, lambda turns: [
            (t.alone[0].rps, t.alone[1].rps) for t in turns], v.name)
        for v in ask.variants]
    return Job(ask, [Part(
        name, of_each(ask.variants, lambda v: CaseTurn(
            abuse, group, v, ask.args.flood)), note_abuse,
        lambda rig, found: [abuse_result(rig, name, victim, variant, turns)
                            for variant, turns in found.items()],
        controls, f"{name}: throughput that {victim} keeps",
        # One turn of a flood has as many windows as others have turns
        min(ask.plan.turns, MIN_TURNS) if abuse.flood else 0, whole=True)],
        [victim])


EXPERIMENTS = [
    Experiment(name, plan, lacks, in_all=name in IN_ALL,
               in_quick=not abuse.flood) for name, abuse in ABUSES.items()]
