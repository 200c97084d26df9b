# SPDX-License-Identifier: BSD-2-Clause
"""The cases of `overload`: what is asked, and what is made of the answers.

overload.py says what the cases are, and what the results say of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from statistics import mean

from .customers import TWIN
from .latency import offered
from .load import Group, GroupResult, Measurement, tenant
from .rig import Plan, Rig
from .runner import RUN, Turn, Window
from .varnish import Variant, Varnish

RETRY_AFTER_S = 2  # at most
DRAIN_S = 10.0  # at most, until all requests of a window are answered

LOADS = (0.5, 0.8, 1.0, 2.0, 3.0, 5.0, 10.0)  # times the capacity
CHEAP_LOADS = (2.0, 5.0, 8.0)
FAIR = 0.9  # of half of the machine: what an open neighbour asks for
# Of a closed neighbour: with half of the machine its queue is too short to be
# refused
FEW = 5
USUAL, MUCH = 1.0, 5.0  # loads in competition with a neighbour
LEAST, MIDDLE, MOST = 0.5, 3.0, 10.0  # loads that change
STEP_S, HALF_PERIOD_S, PERIODS = 3.0, 1.0, 4
RETRIES, RETRIED_LOAD = 3, 2.0
EVERY = 2
SETTLE_S = 1.0  # besides --warmup: until a queue is as long as it gets
# Until all clients that ask again do so
RETRY_SETTLE_S = float(RETRIES * RETRY_AFTER_S)

SLICE_S = 0.1
AROUND = 5  # slices whose mean tells if goodput is near the possible
NEAR = 0.9
SECOND = 10  # slices


@dataclass(frozen=True)
class Asking:
    """A tenant that asks for too much, and how its clients wait.

    A closed loop has 10 connections: its queue is too short to be refused.  An
    open loop has so many that most requests find one at once.  A request that
    finds none in `patience_s` is not sent.
    """

    name: str  # a page of 1 kB, and work
    connections: int  # of an open loop
    target_s: float
    patience_s: float


# A request takes 1 ms, and a refusal about 0.02 of that.
DEAR = Asking("p1000w1000n10", 2000, 0.5, 0.5)
# A request takes 0.13 ms, and a refusal at least a sixth of that.  At 5 times
# the capacity nearly all CPU time goes into refusals.
CHEAP = Asking("p1000w100n10", 16_000, 0.1, 0.02)
TENANT = DEAR.name
TWIN_OF = TENANT + TWIN
CASE_CHEAP = "cheap"
TARGET = "sandpaper_target"


@dataclass(frozen=True)
class Drained(Window):
    """A window; requests that wait at its end are answered after it."""

    length: float = 0.0  # seconds that it measures; 0: by --seconds

    def _measured(self, plan: Plan) -> float:
        return self.length or self.share * plan.seconds

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        return plan.warmup + self.settle + self._measured(plan) + RUN

    def loaded(
        self, rig: Rig, varnish: Varnish, groups: list[Group]
    ) -> Measurement:
        """Measure these groups."""
        return rig.measure(varnish, groups, self._measured(rig.plan), DRAIN_S,
                           rig.plan.warmup + self.settle)


@dataclass(frozen=True)
class Alone(Drained):
    """A closed loop without a target: some controllers would refuse a part."""

    target: str = ""  # a value of sandpaper_target; "": there is none

    def loaded(
        self, rig: Rig, varnish: Varnish, groups: list[Group]
    ) -> Measurement:
        """Measure these groups; then the target is in force again."""
        if not self.target:
            return super().loaded(rig, varnish, groups)
        varnish.cli("param.set", TARGET, "0")
        found = super().loaded(rig, varnish, groups)
        varnish.cli("param.set", TARGET, self.target)
        return found


def ok_rps(seen: GroupResult, window_s: float) -> float:
    """Return the answers 200 a second, good or late."""
    return max(0.0, seen.rps - seen.not_200 / window_s)


@dataclass(frozen=True)
class Offer:
    """What an open loop at one load saw.  Parts are of what it asked for."""

    load: float
    goodput: float  # over the capacity
    refused: float  # part
    retried: float  # requests that were asked again, for each one
    given_up: float  # part
    p50_s: float
    p99_s: float
    connects: float  # a second
    cpu_us_refusal: float | None
    behind_s: float
    noise_cores: float  # see README.md
    errors: int


def capacity(alone: Sequence[Measurement], who: Asking = DEAR) -> float:
    """Return requests/s of the tenant's closed loops, at least 1."""
    return max(mean(ok_rps(m[who.name], m.window_s) for m in alone), 1.0)


def offer(load: float, found: Measurement, alone: Sequence[Measurement],
          who: Asking = DEAR) -> Offer:
    """Return what the tenant saw; `alone` are its closed loops.

    CPU time of refusals is that of the window, without what the answers 200
    took: as much as in the closed loop.  It is known if refusals are many.
    """
    seen, most = found[who.name], capacity(alone, who)
    served = ok_rps(seen, found.window_s) * found.window_s
    asked = max(seen.due + seen.retried, 1)
    left_us = found.cpu_s * 1e6 - served * mean(
        m.cpu_us_per_request for m in alone)
    return Offer(
        load, seen.good / found.window_s / most,
        seen.refused / asked, seen.retried / max(seen.due, 1),
        seen.given_up / max(seen.due, 1), seen.p50_s, seen.p99_s,
        seen.connects / found.window_s,
        left_us / seen.refused if seen.refused > served / 2 else None,
        seen.behind_s, found.foreign_s / found.window_s, seen.errors)


@dataclass(frozen=True)
class Beside:
    """A neighbour of one kind, and the tenant at MUCH."""

    kept: float  # the neighbour's answers 200 over what is fair
    refused: float  # part of the neighbour's answers
    p99_s_alone: float
    p99_s_usual: float  # in competition with USUAL
    p99_s_much: float
    tenant: Offer  # goodput is over half of the capacity

    @property
    def times(self) -> float:
        """Return the neighbour's p99 over that beside USUAL."""
        return self.p99_s_much / max(self.p99_s_usual, 1e-9)


@dataclass(frozen=True)
class Changed:
    """Goodput while the load changes, in slices of SLICE_S.

    `goods` and `possible` are over the capacity.
    """

    offer: Offer
    goods: list[float]
    possible: list[float]
    # After each change, see recovery(): near the possible, and near the goodput
    # of the last second before the next change
    until_s: list[float]
    own_s: list[float]

    @property
    def goodput(self) -> float:
        """Return good answers over those that are possible."""
        return sum(self.goods) / max(sum(self.possible), 1e-9)


Seen = Offer | Beside | Changed


@dataclass(frozen=True)
class OverloadTurn:
    """One turn of a case under one variant; `found` is by name of a row."""

    capacity_rps: float
    again_rps: float  # at the end
    found: dict[str, Seen]


def open_loop(rps: float, who: Asking = DEAR) -> Group:
    """Return the tenant that asks for so much, whatever the answers do."""
    return replace(offered(tenant(who.name), rps), conns=who.connections,
                   target=who.target_s, patience=who.patience_s)


def latest(found: Sequence[Measurement], who: Asking = DEAR) -> float:
    """Return the capacity that was measured last; see turn_of()."""
    at = (len(found) - 1) // (EVERY + 1) * (EVERY + 1)
    return capacity(found[at:at + 1], who)


def at_load(
    load: float, who: Asking = DEAR
) -> Callable[[Sequence[Measurement]], list[Group]]:
    """Return groups of a window: the tenant at this load."""
    return lambda found: [open_loop(load * latest(found, who), who)]


@dataclass(frozen=True)
class Loaded:
    """A window, and the tenant's closed loops before and after it."""

    window: Measurement
    alone: Sequence[Measurement]


def turn_of(
    variant: Variant, windows: Sequence[Window],
    value: Callable[[list[Loaded]], Mapping[str, Seen]], who: Asking = DEAR,
) -> Turn:
    """Return a turn of these windows, and of closed loops among them.

    A closed loop is before every EVERY windows, and at the end.
    """
    targets = [value for name, _, value in (
        parameter.partition("=") for parameter in variant.parameters)
        if name == TARGET]
    closed = Alone([tenant(who.name)], 1 / 2, target="".join(targets[-1:]))
    every: list[Window] = []
    for number, window in enumerate(windows):
        every += [window] if number % EVERY else [closed, window]

    def made(found: list[Measurement]) -> OverloadTurn:
        last, loaded = len(found) - 1, []
        for at in range(0, last, EVERY + 1):
            after = min(at + EVERY + 1, last)
            loaded += [Loaded(window, [found[at], found[after]])
                       for window in found[at + 1:after]]
        return OverloadTurn(
            capacity(found[:1], who), capacity(found[-1:], who),
            dict(value(loaded)))

    return Turn([variant], [*every, closed],
                [tenant(who.name), tenant(who.name + TWIN)], made)


def each_load(
    variant: Variant, who: Asking, loads: Sequence[float], name: str
) -> Turn:
    """Return each load alone; a row is NAME LOAD."""
    return turn_of(
        variant,
        [Drained(at_load(load, who), settle=SETTLE_S) for load in loads],
        lambda found: {
            f"{name} {load:g}": offer(load, seen.window, seen.alone, who)
            for load, seen in zip(loads, found, strict=True)}, who)


def loads_turn(variant: Variant, _plan: Plan) -> Turn:
    """Return each load alone."""
    return each_load(variant, DEAR, LOADS, "load")


def cheap_turn(variant: Variant, _plan: Plan) -> Turn:
    """Return requests that come faster than they can be refused."""
    return each_load(with_target(variant, CHEAP.target_s), CHEAP, CHEAP_LOADS,
                     CASE_CHEAP)


def target_of(seconds: float) -> str:
    """Return the parameter that sets a target."""
    return f"{TARGET}={seconds:g}"


def controller_of(name: str) -> str:
    """Return the parameter that sets a controller."""
    return f"sandpaper_overload={name}"


def with_target(variant: Variant, seconds: float) -> Variant:
    """Return a controller's variant with this target instead of DEAR's.

    A target that --param sets comes later, and stays.
    """
    found, controller = [*variant.parameters], controller_of(variant.name)
    if controller in found:
        at = found.index(target_of(DEAR.target_s), found.index(controller))
        found[at] = target_of(seconds)
    return replace(variant, parameters=tuple(found))


def quiet(found: Sequence[Measurement]) -> list[Group]:
    """Return a neighbour that asks for less than its fair share."""
    rps = FAIR / 2 * capacity(found[:1])  # the same in each window
    return [replace(offered(tenant(TWIN_OF), rps), conns=DEAR.connections)]


def greedy(_found: Sequence[Measurement]) -> list[Group]:
    """Return a neighbour that asks for all it can have."""
    return [replace(tenant(TWIN_OF), conns=FEW)]


def beside(found: Sequence[Loaded]) -> Beside:
    """Return a neighbour's windows: alone, beside USUAL, beside MUCH.

    What an open loop asks for is fair, and half of what a closed one has alone.
    """
    alone, usual, much = (seen.window for seen in found)
    fair = (much[TWIN_OF].due / much.window_s
            or ok_rps(alone[TWIN_OF], alone.window_s) / 2 or 1e-9)
    saw = offer(MUCH, much, found[-1].alone)
    return Beside(
        ok_rps(much[TWIN_OF], much.window_s) / fair,
        much[TWIN_OF].refused / max(much[TWIN_OF].rps * much.window_s, 1),
        alone[TWIN_OF].p99_s, usual[TWIN_OF].p99_s, much[TWIN_OF].p99_s,
        replace(saw, goodput=2 * saw.goodput, cpu_us_refusal=None))


def neighbours_turn(variant: Variant, _plan: Plan) -> Turn:
    """Return neighbours of both kinds."""
    def both(
        kind: Callable[[Sequence[Measurement]], list[Group]], load: float,
        found: Sequence[Measurement],
    ) -> list[Group]:
        return at_load(load)(found) + kind(found)

    return turn_of(variant, [
        Drained(groups, settle=SETTLE_S) for kind in (quiet, greedy)
        for groups in (kind, partial(both, kind, USUAL),
                       partial(both, kind, MUCH))],
        lambda found: {"beside open": beside(found[:3]),
                       "beside closed": beside(found[3:])})


def steps(begin: float, parts: Sequence[tuple[float, float]], rps: float
          ) -> str:
    """Return loadgen's steps: each part has a load and seconds."""
    starts = accumulate((s for _, s in parts), initial=0.0)
    return "/".join(f"{0.0 if at == 0 else begin + at:g}:{load * rps:.3f}"
                    for at, (load, _) in zip(starts, parts, strict=False))


def changing(
    parts: Sequence[tuple[float, float]], begin: float
) -> Callable[[Sequence[Measurement]], list[Group]]:
    """Return groups of a window that begins at this second of the run."""
    def groups(found: Sequence[Measurement]) -> list[Group]:
        rps = latest(found)
        return [replace(open_loop(rps), steps=steps(begin, parts, rps))]
    return groups


def recovery(goods: Sequence[float], possible: Sequence[float], since: int,
             until: int) -> float:
    """Return seconds from slice `since` until goodput is near the possible.

    That is when AROUND slices have NEAR of what they could have.  If that is
    not so before slice `until`, all the seconds until then.
    """
    for at in range(since, until - AROUND + 1):
        some = slice(at, at + AROUND)
        if sum(goods[some]) >= NEAR * sum(possible[some]):
            return (at - since) * SLICE_S
    return (until - since) * SLICE_S


def changed(found: Loaded, parts: Sequence[tuple[float, float]]) -> Changed:
    """Return what a window saw in which the load changed.

    What is possible in a slice is all that was due, or the capacity.  Requests
    that waited from before may make it more.
    """
    seen = found.window[TENANT]
    most = capacity(found.alone) * SLICE_S
    whole = round(sum(s for _, s in parts) / SLICE_S)
    goods = [good / most for good in seen.good_slices[:whole]]
    possible = [min(due / most, 1.0) for due in seen.due_slices[:whole]]
    last = [round(at / SLICE_S) for at in accumulate(s for _, s in parts)]
    load = sum(load * s for load, s in parts) / sum(s for _, s in parts)
    phases = list(zip(last, last[1:], strict=False))
    return Changed(
        offer(load, found.window, found.alone), goods, possible,
        [recovery(goods, possible, a, b) for a, b in phases],
        [recovery(goods, [sum(goods[b - SECOND:b]) / SECOND] * whole, a, b)
         for a, b in phases])


STEP = [(LEAST, STEP_S), (MOST, STEP_S), (LEAST, STEP_S)]
SQUARE = [(LEAST, HALF_PERIOD_S), (MIDDLE, HALF_PERIOD_S)] * PERIODS


def changes_turn(variant: Variant, plan: Plan) -> Turn:
    """Return a step and a square wave."""
    shapes = {"step": STEP, "square": SQUARE}
    return turn_of(
        variant, [Drained(changing(parts, plan.warmup),
                          length=sum(s for _, s in parts))
                  for parts in shapes.values()],
        lambda found: {
            name: changed(seen, parts) for (name, parts), seen
            in zip(shapes.items(), found, strict=True)})


def retries_turn(variant: Variant, _plan: Plan) -> Turn:
    """Return clients that ask again after Retry-After, and at once."""
    kinds = {"retry after": 1, "retry at once": 0}

    def groups(regard: int, found: Sequence[Measurement]) -> list[Group]:
        return [replace(at_load(RETRIED_LOAD)(found)[0], retries=RETRIES,
                        regard=regard)]

    return turn_of(
        variant, [Drained(partial(groups, regard), settle=RETRY_SETTLE_S)
                  for regard in kinds.values()],
        lambda found: {
            name: offer(RETRIED_LOAD, seen.window, seen.alone)
            for name, seen in zip(kinds, found, strict=True)})


CASES = {"loads": loads_turn, "neighbours": neighbours_turn,
         "changes": changes_turn, "retries": retries_turn,
         CASE_CHEAP: cheap_turn}
