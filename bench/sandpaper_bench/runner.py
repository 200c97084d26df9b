# SPDX-License-Identifier: BSD-2-Clause
"""One runner for all experiments.  An experiment is data:

    Experiment   its name, what it needs, and how it is planned
    Job          its parts, with the options that were given
    Part         turns that are compared, one of each variant; what their
                 figures are, and their control
    Turn         windows under one varnishd, or two side by side
    Window       one run of the load generator; Phases take turns in one

The planned time is the sum of the windows that are run and of the starts of
varnishd.  Variants take turns
in the order A B B A, so that a machine that slowly gets faster favours none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from .ask import Ask
from .estimate import control
from .journal import Journal
from .load import PHASE_SECONDS, Group, Measurement
from .rig import Plan, Rig, progress
from .specweb import File
from .table import table
from .varnish import Variant, Varnish

# Seconds, measured on two cores
START = 2.0  # a varnishd, until its pages are in the cache, and its end
RUN = 0.05  # a load generator, beyond its window

SECONDS = 4.5
TURNS = 5

Found = dict[str, list[Any]]  # the values of a part's turns, by variant
Report = dict[str, Any]  # JSON


@dataclass(frozen=True)
class Window:
    """One run of the load generator under one of the turn's varnishds.

    The groups may depend on what the turn's windows before found.
    """

    groups: Sequence[Group] | Callable[[Sequence[Any]], Sequence[Group]]
    share: float = 1.0  # the part of --seconds that it measures
    settle: float = 0.0  # seconds of load before it, besides --warmup

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        return plan.warmup + self.settle + self.share * plan.seconds + RUN

    def asked(self, rig: Rig, found: Sequence[Any]) -> list[Group]:
        """Return the groups, now that they are known."""
        groups = self.groups(found) if callable(self.groups) else self.groups
        return rig.dressed(groups)

    def measure(
        self, rig: Rig, running: Sequence[Varnish], found: Sequence[Any]
    ) -> Any:
        """Measure it; `found` is of the windows before."""
        return self.loaded(rig, running[0], self.asked(rig, found))

    def loaded(
        self, rig: Rig, varnish: Varnish, groups: list[Group]
    ) -> Measurement:
        """Measure these groups for as long as it takes."""
        return rig.measure(varnish, groups, self.share * rig.plan.seconds,
                           warmup=rig.plan.warmup + self.settle)


@dataclass(frozen=True)
class Phases:
    """Phases that take turns in one run, each with its own connections."""

    phases: Sequence[tuple[int, Sequence[Group]]]  # which varnishd, groups
    settle: float = 0.0  # seconds of load before it, besides --warmup
    length: float = PHASE_SECONDS

    def seconds(self, plan: Plan) -> float:
        """Return how long they take, rounded up to whole turns."""
        turn = len(self.phases) * self.length
        return RUN + turn * sum(
            math.ceil(round(seconds / turn, 6))
            for seconds in (plan.warmup + self.settle, plan.seconds))

    def asked(
        self, rig: Rig, running: Sequence[Varnish]
    ) -> list[tuple[Varnish, list[Group]]]:
        """Return the phases with their varnishd."""
        return [(running[n], rig.dressed(g)) for n, g in self.phases]

    def measure(
        self, rig: Rig, running: Sequence[Varnish], _found: Sequence[Any]
    ) -> Any:
        """Measure them."""
        return rig.in_phases(self.asked(rig, running), (),
                             rig.plan.warmup + self.settle, self.length)


@dataclass(frozen=True)
class Control:
    """A quotient that should be 1: what is the same, measured twice.

    The quotients are a numerator and a denominator for each turn.
    """

    what: str
    variant: str  # "" in a part without variants
    quotients: Callable[[list[Any]], Sequence[tuple[float, float]]]
    key: str = ""  # if a job has several: what `part` of a claim names

    def report(self, found: Found, seed: int) -> Report:
        """Return its JSON."""
        checked = control(self.what, self.quotients(found[self.variant]),
                          seed)
        return {self.key: checked} if self.key else checked


class Measurable(Protocol):
    """What is measured once in a turn."""

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""

    def run(self, rig: Rig) -> Any:
        """Return the value of the turn."""


def first(found: Sequence[Any]) -> Any:
    """Return what the only window found."""
    return found[0]


@dataclass(frozen=True)
class Turn:
    """Windows under one varnishd, or two side by side.

    `value` makes one value of what the windows found: numbers, texts, lists,
    dicts, or a dataclass of this package, for the journal.  `primed` are groups
    whose pages are fetched once at first.  The windows of a turn `before`,
    under other varnishds, come first, also in `value`.
    """

    servers: Sequence[Variant]
    windows: Sequence[Window | Phases]
    primed: Sequence[Group] = ()
    value: Callable[[list[Any]], Any] = first
    before: Turn | None = None

    def seconds(self, plan: Plan) -> float:
        """Return how long it takes."""
        return (START * len(self.servers)
                + sum(w.seconds(plan) for w in self.windows)
                + (self.before.seconds(plan) if self.before else 0.0))

    def run(self, rig: Rig) -> Any:
        """Return the value."""
        return self.value(self.measure(rig))

    def measure(self, rig: Rig) -> list[Any]:
        """Return what each window found."""
        before = self.before.measure(rig) if self.before else []
        found: list[Any] = []
        with ExitStack() as stack:
            names = [group.name for group in self.primed]
            running = [
                stack.enter_context(rig.varnish(v, bool(n), described=names))
                for n, v in enumerate(self.servers)]
            if self.primed:
                for varnish in running:
                    rig.load.prime(varnish, rig.dressed(self.primed))
            for window in self.windows:
                found.append(window.measure(rig, running, found))
        return before + found


@dataclass(frozen=True)
class Part:
    """Turns that are compared, by the name of the variant.

    A part without variants has one turn, whose name is "".  `note` prints a
    line after each turn.
    """

    name: str  # in the journal
    turns: Mapping[str, Measurable]
    note: Callable[[str, Any], None] = lambda _turn, _value: None
    results: Callable[[Rig, Found], list[Report]] = lambda _rig, _found: []
    controls: Sequence[Control] = ()
    title: str = ""
    times: int = 0  # turns of each variant; 0: --turns
    whole: bool = False  # the journal keeps only whole turns
    own_arrivals: bool = False  # each turn has random numbers of its own
    resolved: Callable[[Found], bool] = lambda _: True

    def schedule(self, plan: Plan) -> list[float]:
        """Return the seconds of each turn."""
        return [turn.seconds(plan) for number in range(
            1, 1 + (self.times or plan.turns))
            for _, turn in self.order(number)]

    def order(self, number: int) -> list[tuple[str, Measurable]]:
        """Return all variants in the order of this turn: A B, then B A."""
        turns = list(self.turns.items())
        return turns if number % 2 else turns[::-1]

    def wants_more(self, plan: Plan, number: int, found: Found) -> bool:
        """After so many turns of each variant: go on?"""
        if number < (self.times or plan.turns):
            return True
        return number < plan.max_turns and not self.resolved(found)

    def run(self, rig: Rig) -> Found:
        """Take the turns."""
        if self.title:
            progress(self.title)
        found: Found = {name: [] for name in self.turns}
        number = 0
        while self.wants_more(rig.plan, number, found):
            number += 1
            order = self.order(number)
            if number > (self.times or rig.plan.turns):
                rig.turns.add([t.seconds(rig.plan) for _, t in order])
            for name, turn in order:
                rig.load.seed += self.own_arrivals
                words = (self.name, name, f"turn {number}")
                value = rig.kept(", ".join(filter(None, words)),
                                 partial(turn.run, rig), self.whole)
                found[name].append(value)
                self.note(f"turn {number}" + (f" {name:<9}" if name else ""),
                          value)
                rig.tick()
        return found


@dataclass(frozen=True)
class Job:
    """An experiment that can run, with the options that were given."""

    ask: Ask
    parts: Sequence[Part]
    customers: Sequence[str] = ()
    cores: Sequence[int] | None = None  # varnishd's, if not as usual
    files: Sequence[File] = ()  # that groups of mode browse ask for
    pages: Mapping[str, bytes] = field(default_factory=dict)  # by path
    sleeps: bool = False  # the load never spins

    def __post_init__(self) -> None:
        keys = [c.key for part in self.parts for c in part.controls]
        assert len({*keys}) == len(keys) and (
            "" not in keys or len(keys) == 1), f"a control needs a key: {keys}"

    @property
    def name(self) -> str:
        """Return the experiment's name."""
        return self.ask.name

    @property
    def schedule(self) -> list[float]:
        """Return the seconds of each turn."""
        return [s for p in self.parts for s in p.schedule(self.ask.plan)]

    @property
    def seconds(self) -> float:
        """Return how long it takes, undisturbed."""
        return sum(self.schedule)

    def run(self, rig: Rig, journal: Journal | None = None) -> Report:
        """Take all turns that the journal has not; return the report."""
        rig.variants, rig.plan = [*self.ask.variants], self.ask.plan
        rig.prepare(self.customers)
        rig.serve(self.files)
        rig.publish(self.pages)
        rig.begin(self.schedule, journal)
        cores, seed = rig.bed.proxy_cores, rig.load.seed
        rig.bed.proxy_cores = cores if self.cores is None else [*self.cores]
        rig.bed.sleeps = self.sleeps
        controls: Report = {}
        results: list[Report] = []
        try:
            for part in self.parts:
                found = part.run(rig)
                results += part.results(rig, found)
                for checked in part.controls:
                    controls |= checked.report(found, rig.plan.seed)
            return rig.report(self.name, controls, results)
        finally:
            rig.bed.proxy_cores, rig.load.seed = cores, seed
            rig.bed.sleeps = False


@dataclass(frozen=True)
class Experiment:
    """What can be asked for on the command line."""

    name: str
    plan: Callable[[Ask], Job]
    lacks: Callable[[Ask], str | None] = lambda _: None  # on this machine
    in_all: bool = True
    in_quick: bool = True  # and in a quick `all`
    turns: int = TURNS
    seconds: float = SECONDS
    compares_two: bool = False  # exactly two variants must be given
    needs: str = ""  # if it needs Sandpaper: what stock has not, in words
    text: Callable[[Report], str] = table


def of_each(
    variants: Sequence[Variant], turn: Callable[[Variant], Measurable]
) -> dict[str, Measurable]:
    """Return each variant's turn by its name."""
    return {v.name: turn(v) for v in variants}


def weaker(variant: Variant, *parameters: str) -> Variant:
    """Return a variant with more parameters; its own are stronger."""
    return replace(variant, parameters=(*parameters, *variant.parameters))


def renamed(variant: Variant, name: str, *parameters: str) -> Variant:
    """Return a variant with another name and more parameters."""
    return replace(variant, name=name,
                   parameters=(*variant.parameters, *parameters))
