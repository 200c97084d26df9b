# SPDX-License-Identifier: BSD-2-Clause
"""The rig: the testbed, origin and variants, ready for experiments."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from . import vegeta
from .customers import (
    CALIBRATION,
    PAGE_SIZES,
    PROBE_UNITS,
    all_own,
    host,
    publisher,
    units_of,
    vcl,
)
from .journal import Journal
from .load import (
    PHASE_SECONDS,
    Group,
    Interleaved,
    Load,
    Measurement,
    tenant,
)
from .nginx import NGINX, Nginx
from .origin import Origin, page
from .pedigree import DIRTY, code
from .progress import Progress
from .publishers import Publishers
from .reaper import Reaper
from .specweb import File
from .testbed import Testbed, TestbedError
from .varnish import Variant, Varnish, check_parameters
from .work import with_work

T = TypeVar("T")
W = TypeVar("W", Measurement, Interleaved)

CALIBRATION_RUNS = 3
CALIBRATION_SECONDS = 0.7
STOLEN = 0.02  # of the testbed's cores
STOLEN_WINDOWS = 3


@dataclass
class Plan:
    """How long and how often to measure."""

    seconds: float = 6.0
    warmup: float = 1.0
    turns: int = 5
    max_turns: int = 0
    connections: int = 100
    target: float = 0.90
    seed: int = 1


def progress(text: str) -> None:
    """Say on stderr what is going on."""
    print(text, file=sys.stderr, flush=True)


class Rig:
    """Everything an experiment uses."""

    unit_us = _lua_us = 1.0
    _paths = Path()

    def __init__(
        self, bed: Testbed, reaper: Reaper, variants: list[Variant],
        plan: Plan, wrk: bool = False, unit_us: float | None = None,
        lua_us: float | None = None,
    ) -> None:
        self.bed, self.variants, self.plan = bed, variants, plan
        self._reaper = reaper
        self.begin([])
        for variant in variants:
            _ = variant.program
        bed.ready()
        for variant in variants:
            bed.check(bed.proxies[0].role, variant.program)
            if variant.parameters:
                check_parameters(variant, bed, bed.proxies[0].role)
        self.load = Load(bed, reaper, plan.seed, wrk)
        self._origin = Origin(bed, reaper)
        for size in PAGE_SIZES:
            self._origin.put(f"bytes/{size}", page(size))
        self.publishers: Publishers | None = None
        self._serves_publishers = False
        self.unit_us = unit_us or self._calibrate(self._varnish)
        for variant in variants:
            if variant.name == NGINX:
                self._lua_us = lua_us or self._calibrate(variant)

    @property
    def _varnish(self) -> Variant:
        """Return the first variant that is a Varnish."""
        for variant in self.variants:
            if variant.name != NGINX:
                return variant
        raise TestbedError(f"{NGINX} is only for a comparison: use "
                           f"--variants {NGINX},stock")

    def prepare(self, names: Sequence[str]) -> None:
        """Get ready what only these customers need."""
        for size in {c.size for c in all_own(names).values()}:
            self._origin.put(f"bytes/{size}", page(size))
        self._serves_publishers = any(map(publisher, names))
        if self._serves_publishers and self.publishers is None:
            self.publishers = Publishers(
                self.bed, self._reaper, self._origin,
                {v.root for v in self.variants}, self.unit_us)

    def serve(self, files: Sequence[File]) -> None:
        """Have the origin serve these files.

        Groups of mode browse ask for them, by their weights.
        """
        if not files:
            return
        for file in files:
            self._origin.put(file.path, page(file.size))
        self._paths = self._for_client("paths", "".join(
            f"{file.weight:.9f} /{file.path}\n" for file in files))

    def publish(self, pages: Mapping[str, bytes]) -> None:
        """Have the origin serve these pages, too, by path without a "/"."""
        for path, body in pages.items():
            self._origin.put(path, body)

    def headers(self, name: str, text: str) -> Path:
        """Return a file of headers for the groups of that name."""
        return self._for_client(f"{name}.headers", text)

    def _for_client(self, name: str, text: str) -> Path:
        """Write a file that the load generator reads."""
        path = self._origin.folder / name
        path.write_text(text)
        self.bed.bring("client", path)
        return path

    def begin(
        self, schedule: Sequence[float], journal: Journal | None = None
    ) -> None:
        """An experiment begins; its turns take so many seconds each."""
        self.turns = Progress(schedule)
        self.journal = journal or Journal()
        self.disturbed = 0  # windows measured again
        units = {"unit_us": self.unit_us}
        if any(v.name == NGINX for v in self.variants):
            units["lua_us"] = self._lua_us
        self.journal.begin(units)

    def kept(
        self, turn: str, measure: Callable[[], T], whole: bool = False
    ) -> T:
        """Return a turn from the journal, or measure it and write it there."""
        if self.journal.has(turn):
            self.turns.skip()
        return self.journal.turn(turn, measure, whole,
                                 lambda: self.disturbed)

    def tick(self) -> None:
        """A turn is done: say how many are left."""
        progress(self.turns.tick())

    def varnish(
        self, variant: Variant, second: bool = False,
        described: Sequence[str] = (),
    ) -> Varnish:
        """Return a server of `variant`, to be entered as a context.

        Two may run at the same time, on the same cores, each with a link
        of its own.  Of customers that a user describes it has only those that
        are named: much work takes long to compile.
        """
        proxy, prelude = self.bed.proxies[second], variant.prelude
        own = all_own(described)
        if variant.name == NGINX:
            return Nginx(variant, self.bed, self._reaper,
                         units_of(own, self._lua_us), proxy)
        if self._serves_publishers and self.publishers is not None:
            prelude += self.publishers.vcl(variant.root)
        return Varnish(variant, self.bed, self._reaper,
                       vcl(proxy, units_of(own, self.unit_us),
                           with_work(prelude, self.unit_us)), proxy)

    def measure(
        self, varnish: Varnish, groups: list[Group], seconds: float,
        drain: float = 0.0, warmup: float | None = None,
    ) -> Measurement:
        """Measure one window."""
        return self.journal.window(lambda: self._undisturbed(
            lambda: self.load.measure(
                varnish, groups, seconds,
                self.plan.warmup if warmup is None else warmup, drain)))

    def attack(
        self, varnish: Varnish, group: Group, seconds: float, warmup: float
    ) -> Measurement:
        """Measure one window of vegeta."""
        return self.journal.window(lambda: self._undisturbed(
            lambda: vegeta.measure(self.load, self.bed, self._reaper, varnish,
                                   group, seconds, warmup)))

    def in_phases(
        self, phases: Sequence[tuple[Varnish, list[Group]]],
        always: Sequence[Group] = (), warmup: float | None = None,
        length: float = PHASE_SECONDS, seconds: float | None = None,
    ) -> Interleaved:
        """Measure phases that take turns, by default for the planned length."""
        return self.journal.window(lambda: self._undisturbed(
            lambda: self.load.in_phases(
                phases,
                self.plan.seconds if seconds is None else seconds,
                self.plan.warmup if warmup is None else warmup, always,
                length)))

    def _undisturbed(self, measure: Callable[[], W]) -> W:
        """Measure again while a hypervisor takes the cores away.

        A window in which it took more than STOLEN of them says nothing of
        us: without the load's core a cheap tenant's queue runs dry.  The
        least disturbed of STOLEN_WINDOWS counts.
        """
        found: list[W] = []
        while len(found) < STOLEN_WINDOWS:
            found.append(measure())
            limit = found[-1].window_s * len(self.bed.cores) * STOLEN
            if found[-1].stolen_s <= limit:
                break
            self.disturbed += 1
        return min(found, key=lambda m: m.stolen_s)

    def dressed(self, groups: Sequence[Group]) -> list[Group]:
        """Return the groups with their readers' headers, and their files."""
        found = []
        for group in groups:
            if group.mode == "browse":
                group = replace(group, paths=str(self._paths))
            base = publisher(group.name)
            if base is not None:
                assert self.publishers is not None
                group = replace(
                    group, headers=str(self.publishers.readers(base)))
            found.append(group)
        return found

    def tenant(self, name: str) -> Group:
        """Return a customer's group with the planned connections."""
        return self.dressed([tenant(name, self.plan.connections)])[0]

    def _calibrate(self, variant: Variant) -> float:
        """Measure what a unit of work costs now, in microseconds."""
        probe = Group(CALIBRATION, host(CALIBRATION), "/bytes/1000", conns=8)
        idle = replace(tenant("k0"), conns=8)
        bare = replace(variant, parameters=(), prelude="")
        units, idles = [], []
        with self.varnish(bare) as varnish:
            self.load.prime(varnish, [probe, idle])
            for _ in range(CALIBRATION_RUNS):
                dear, cheap = (
                    self.load.measure(varnish, [g], CALIBRATION_SECONDS, 0.2)
                    .cpu_us_per_request for g in (probe, idle))
                units.append((dear - cheap) / PROBE_UNITS)
                idles.append(cheap)
        unit = median(units)
        if unit <= 0:
            raise TestbedError("the calibration failed, as a request with work "
                               "took no longer than one without: use "
                               "--unit-us")
        progress(f"calibration: a unit of work takes {variant.name} "
                 f"{unit:.2f} us, a no-op request {median(idles):.1f} us of "
                 "CPU")
        return unit

    def report(
        self, experiment: str, control: dict[str, Any],
        results: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """Return the experiment's JSON object, its raw turns last.

        It is valid if what is the same measured the same: each control is
        valid (estimate.py has the rule).
        """
        source = self.journal.about.get("source") or code()
        return {
            "experiment": experiment,
            "date": self.journal.began[:10],
            "commit": source["commit"],
            "dirty": source["dirty"],
            "code": source["code"],
            "command": self.journal.about.get("command"),
            "options": self.journal.head.get("options"),
            "began": self.journal.began,
            "runs": self.journal.runs,
            "seconds": round(self.journal.seconds, 1),
            "machine": self.bed.describe() | {
                "unit_us": round(self.unit_us, 3),
                "variants": {v.name: list(v.parameters)
                             for v in self.variants},
                "source": commit_text(source),
                "versions": {v.name: v.version() for v in self.variants}},
            "seed": self.plan.seed,
            "plan": dict(vars(self.plan)),
            "windows_disturbed": self.journal.disturbed,
            "valid": all(c["covers_one"] for c in controls(control)),
            "control": control,
            "results": results,
            "windows": self.journal.turns,
        }


def controls(control: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an experiment's controls: one, or one for each part."""
    return [control] if "what" in control else list(control.values())


def commit_text(source: dict[str, Any]) -> str | None:
    """Return a commit as text; it says if files were changed."""
    if source["commit"] is None:
        return None
    return f"{source['commit']}{DIRTY if source['dirty'] else ''}"


def dump(report: dict[str, Any]) -> str:
    """Return the report as JSON text, a line for each window or turn."""
    raw = report.get("windows", [])
    lines = ",\n  ".join(json.dumps(w, allow_nan=False) for w in raw)
    text = json.dumps(report | {"windows": []} if raw else report, indent=1,
                      allow_nan=False)
    if raw:
        text = text.replace('"windows": []', f'"windows": [\n  {lines}\n ]')
    return text + "\n"
