# SPDX-License-Identifier: BSD-2-Clause
"""By how much each tenant's counters grew from one answer to the next.

A counter of varnishd begins at 0 when the worker process begins, and when an
idle tenant was forgotten and comes back.  What is counted here never shrinks.

What a tenant uses counts under one label: the tenant's name if the map names
it; else the name of its group if the map names that; else (unmapped).  This
last one is the growth of varnishd's sums without that of the others, so the
labels together are the sums.  Tenants that come and go between two answers,
or that were removed, are in it.  In the interval in which a tenant leaves the
map, it still counts under its name.

Only so many tenants have a label of their own: a line of the map can name all
Hosts below a domain, and clients invent Hosts.

The sums are older than the tenants by the time that an answer takes.  `owed`
keeps the difference, so it does not add up.

Somebody may set the clock.  What came between two answers is of the seconds
before the second one, as long as a clock says that nobody can set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from .poll import Answer, Lost

MOST = 20_000
FAR = 3.0  # seconds that a clock may be wrong by
BACK = 300.0  # seconds: a clock that is set back by less stands still
UNMAPPED = "(unmapped)"
OWN = ("(unknown)", "(other)", "(none)")  # tenants of Sandpaper, no groups

Numbers = list[float]


class Seen(NamedTuple):
    """A tenant in the last answer."""

    label: str | None  # None: (unmapped)
    raw: tuple[Any, ...]  # its counters, and its waits if they are asked for


@dataclass
class Step:
    """What came between two answers."""

    began: float  # Unix time: of the last answer, or of the worker process
    ended: float
    left: float  # Unix time of the last answer, by the clock of then
    set_by: float  # seconds that the clock was set by, or 0
    grown: dict[str, Numbers]  # by label
    waits: dict[str, list[int]]  # by label, without (unmapped)
    unseen: list[tuple[float, float]]  # Unix times: lost with a process


@dataclass
class Growth:
    """The counters of all tenants, as they were."""

    keys: Sequence[str]
    histogram: str = ""  # the key of counts that belong together
    most: int = MOST  # tenants with a label of their own
    labels: set[str] = field(default_factory=set)  # theirs
    started: float | None = None
    at: float = 0  # Unix time of the last answer; it stands still at times
    clocks: tuple[float, float] | None = None  # then: Unix time, boot_s
    tenants: dict[str, Seen] = field(default_factory=dict)
    sums: Numbers = field(default_factory=list)
    owed: Numbers = field(default_factory=list)
    # For what is lost with a process
    alive: bool = True  # it was, when last looked at
    looked: float = 0  # Unix time
    unseen: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make what is used for each tenant."""
        assert len(self.keys) > 1
        self._counters = itemgetter(*self.keys)
        self._get = itemgetter(
            *self.keys, *([self.histogram] if self.histogram else []))

    def lost(self, lost: Lost) -> None:
        """Note a look without an answer."""
        if self.started is None or not lost.gone:
            return
        if self.alive:
            self.unseen.append((self.looked, lost.at))
        self.alive, self.looked = False, lost.at

    def add(self, answer: Answer) -> Step | None:
        """Take an answer; return what came since the last one, if any."""
        first, anew = self.started is None, self.started != answer.started
        sums = list(self._counters(answer.whole["sums"]))
        step = self._since(answer)
        now = step.ended
        if anew and not first:
            self.unseen.append((self.looked, min(now, answer.started)))
            step.unseen = [(a, b) for a, b in self.unseen if b > a]
            step.began = min(now, max(step.began, answer.started))
        before, self.tenants = self.tenants, self._labelled(answer.rows)
        if not first:
            self._tenants_grow({} if anew else before, before, step)
            self._rest_grows(sums, anew, step)
        else:
            self.owed = [0] * len(self.keys)
        self.started, self.at, self.sums = answer.started, now, sums
        self.clocks = answer.at, answer.boot_s
        self.alive, self.looked, self.unseen = True, now, []
        return None if first else step

    def _since(self, answer: Answer) -> Step:
        """Return the time from the last answer to this one.

        If the clock is set back a little, no time passes until it is there
        again.  So the files of hours that are over stay as they are.
        """
        now = answer.at
        if self.clocks is None:  # of an exporter before, if there was one
            passed = max(0, now - self.at)
            set_by = min(0, now - self.at)
        else:
            passed = answer.boot_s - self.clocks[1]
            set_by = now - self.clocks[0] - passed
        if abs(set_by) <= FAR:
            set_by = 0
        began = now - max(0, passed) if set_by else self.at
        if 0 < self.at - now <= BACK:
            began = now = self.at
        return Step(began, now, self.at, set_by, {}, {}, [])

    def _labelled(self, rows: Sequence[dict[str, Any]]) -> dict[str, Seen]:
        """Return the tenants with their labels, and without the groups."""
        groups = {r["tenant"] for r in rows if r["mapped"] and is_group(r)}
        get = self._get
        return {r["tenant"]: Seen(self._label(r, groups), get(r))
                for r in rows if not is_group(r)}

    def _label(self, row: dict[str, Any], groups: set[str]) -> str | None:
        """Return a tenant's label.  It keeps one of its own for ever."""
        name: str = row["tenant"]
        if row["mapped"]:
            if name not in self.labels and len(self.labels) < self.most:
                self.labels.add(name)
            if name in self.labels:
                return name
        group: str | None = row.get("group")
        return group if group in groups else None

    def _tenants_grow(self, before: dict[str, Seen],
                      labels: dict[str, Seen], step: Step) -> None:
        """Count what tenants with a label have used."""
        n = len(self.keys)
        for name, (label, raw) in self.tenants.items():
            old = before.get(name)
            if old is not None and old.raw == raw:
                continue
            was = labels.get(name)
            name_of = label or (was.label if was is not None else None)
            if name_of is None:
                continue
            grown = difference(raw[:n], old.raw[:n] if old else ())
            add(step.grown.setdefault(name_of, [0] * n), grown)
            if self.histogram:
                waits = difference(raw[n], old.raw[n] if old else ())
                add(step.waits.setdefault(name_of, [0] * len(waits)), waits)

    def _rest_grows(self, sums: Numbers, anew: bool, step: Step) -> None:
        """Count what all others have used."""
        nothing: Numbers = [0] * len(sums)
        before = nothing if anew else self.sums
        if anew:
            self.owed = nothing[:]
        rest = []
        for i, value in enumerate(sums):
            self.owed[i] += max(0, value - before[i]) - sum(
                g[i] for g in step.grown.values())
            rest.append(max(0, self.owed[i]))
            self.owed[i] -= rest[i]
        step.grown[UNMAPPED] = rest


def is_group(row: dict[str, Any]) -> bool:
    """Are this row's counters those of others?  An empty group has none."""
    name: str = row["tenant"]
    return name.startswith("(") and name not in OWN


def difference(new: Sequence[float], old: Sequence[float]) -> list[Any]:
    """Return by how much counters grew; if a count shrank, all began again.

    Times are no counts: one may be corrected.
    """
    if len(old) != len(new):
        return list(new)
    grown = [a - b for a, b in zip(new, old, strict=True)]
    if min(grown) < 0:
        if any(g < 0 and isinstance(g, int) for g in grown):
            return list(new)
        return [max(0, g) for g in grown]
    return grown


def add(total: list[Any], grown: Sequence[float]) -> None:
    """Add to counters."""
    for i, value in enumerate(grown):
        total[i] += value
