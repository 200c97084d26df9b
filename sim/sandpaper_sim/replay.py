# SPDX-License-Identifier: BSD-2-Clause
"""sim/run replay FILE: what would a policy or weights have done with the
traffic that a varnishd has logged, or a CSV trace holds? Recorded beside
predicted. Which tenants react to their answers, and what the server can do, is
taken from what is recorded: see recorded.py. whatif.py is the same for an
operator."""

from __future__ import annotations

import argparse
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from . import report, workload
from .declared import WEIGHT_LEAST, Declared
from .figure import Context, Figure, Result, in_steps, table
from .files import Wrong
from .files import replace as replace_file
from .metrics import Floats, Ints, p99
from .play import known, whole
from .recorded import Closed, Loop, Near, capacity, cores_of, loop_of
from .releaser import COST_MAX, WEIGHT_MAX, WEIGHT_ONE, Records
from .report import SHOWN, bars, more
from .scenario import LINKS, PER_CORE, Serves
from .server import SECOND, Proxy, Server
from .trace import Trace, write_csv
from .varnishlog import read

SUMMARY = "FILE: the traffic of a log or trace, with other policies or weights"
BLOCK = 65536                   # requests that are turned into Python's numbers


# Running

@dataclass(frozen=True)
class Plan:
    """What to do with a trace."""

    serves: Serves
    capacity: tuple[float, float] = (1.0, 1.0)
    warm: float = 0.0               # s
    weights: dict[str, float] = field(default_factory=dict)
    reservations: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)    # 0: as recorded
    open: tuple[str, ...] = ()
    groups: dict[str, str] = field(default_factory=dict)    # of a tenant
    # Of each step, ns, if it is not the same in all
    capacities: tuple[tuple[float, float], ...] = ()
    step: int = SECOND

    def parts(self) -> Floats:
        """By what costs are divided in each step: capacity, an array (n, 2).

        Without CPU, if the cores' own speed has it: see Asking.pace()."""
        if not self.capacities:
            return np.array((self.capacity,))
        return np.array([(1.0, link) for _, link in self.capacities])

    def part(self, at: Ints) -> Floats:
        """The same at times, ns."""
        all_ = self.parts()
        return all_[np.minimum(at // self.step, len(all_) - 1)]


def from_zero(rows: Records) -> tuple[Records, int]:
    """With the first arrival at 0, and when the last one ended.

    A second after the last arrival, if ends are not known."""
    rows = rows.copy()
    begin = rows["arrival"][0]
    rows["arrival"] -= begin
    if rows["end"].max() < 0:
        return rows, int(rows["arrival"][-1]) + SECOND
    rows["start"] -= begin
    rows["end"] -= begin
    return rows, int(rows["end"].max())


def costs_of(rows: Records, plan: Plan, at: Ints) -> Ints:
    """Processing times on CPU and link if they arrive then: (n, 2), ns."""
    times = np.column_stack((rows["cpu"] / plan.serves.cores, rows["net"]))
    return np.clip(np.rint(times / plan.part(at)), (1, 0), COST_MAX).astype(
        np.int64)


def loop(name: str, mine: Records, plan: Plan, end: int) -> Loop:
    """A tenant's, as recorded or as is said."""
    if plan.closed.get(name):
        return Loop(True, [0] * plan.closed[name], [], [])
    say = False if name in plan.open else True if name in plan.closed \
        else None
    found = loop_of(mine, say)
    # One that still waits for an answer at the end has not left.
    stays = end - p99(mine["end"] - mine["arrival"])
    return replace(found, leaves=[t for t in found.leaves if t < stays])


class Asking:
    """All who ask a server: an open loop's requests, and closed loops."""

    def __init__(self, trace: Trace, rows: Records, plan: Plan, policy: str,
                 end: int) -> None:
        # Requests of one tenant are released in order: so are its fetches.
        self.fetches: list[deque[int]] = [deque() for _ in trace.tenants]
        self.plan = plan
        self.server = plan.serves.start(
            policy, lambda i: self.fetches[i].popleft())
        self.closed: list[bool] = []
        for i, (name, mine) in enumerate(zip(
                trace.tenants, by_tenant(rows, len(trace.tenants)),
                strict=True)):
            self.declare(name)
            found = loop(name, mine, plan, end)
            self.closed.append(found.closed)
            if found.closed:
                Closed(self.server, i, self.costs(i, mine), found)
        self.join(trace.tenants)
        for k, (cpu, _) in enumerate(plan.capacities):
            self.pace(k * plan.step, cpu)
        is_open = ~np.array(self.closed)
        workload.trace(self.server, self.coming(rows[is_open[rows["tenant"]]]))

    def declare(self, name: str) -> int:
        """A tenant or a group."""
        plan = self.plan
        return self.server.tenant(
            plan.weights.get(name, 1.0), plan.reservations.get(name, 0.0),
            plan.limits.get(name, 0.0))

    def pace(self, at: int, part: float) -> None:
        """Other work leaves this part of the cores from then on."""
        assert isinstance(self.server, Proxy)
        cores = self.server.cores
        self.server.at(at, lambda: cores.pace(part))

    def join(self, tenants: list[str]) -> None:
        """Members join their groups, which follow the tenants."""
        groups: dict[str, int] = {}
        for i, name in enumerate(tenants):
            if group := self.plan.groups.get(name):
                if group not in groups:
                    groups[group] = self.declare(group)
                self.server.releaser.set_group(i, groups[group], 0)

    def costs(self, tenant: int,
              mine: Records) -> Callable[[int], tuple[int, int]]:
        """Of a closed loop's next request, by when it comes."""
        near, plan = Near(mine["arrival"]), self.plan
        cpu, net = mine["cpu"] / plan.serves.cores, mine["net"]
        fetch, fetches = mine["fetch"], self.fetches[tenant]
        parts = plan.parts().tolist()
        last, step = len(parts) - 1, plan.step

        def cost(now: int) -> tuple[int, int]:
            i, part = near(now), parts[min(now // step, last)]
            fetches.append(fetch.item(i))
            return (min(max(1, round(cpu.item(i) / part[0])), COST_MAX),
                    min(round(net.item(i) / part[1]), COST_MAX))
        return cost

    def coming(self, rows: Records) -> Iterator[tuple[int, int, int, int]]:
        """An open loop's requests, as they come."""
        for begin in range(0, len(rows), BLOCK):
            some = rows[begin:begin + BLOCK]
            times = costs_of(some, self.plan, some["arrival"])
            for at, tenant, fetch, (cpu, net) in zip(
                    some["arrival"].tolist(), some["tenant"].tolist(),
                    some["fetch"].tolist(), times.tolist(), strict=True):
                self.fetches[tenant].append(fetch)
                yield at, tenant, cpu, net


def by_tenant(rows: Records, n: int) -> list[Records]:
    """Each tenant's rows, in the same order."""
    rows = rows[np.argsort(rows["tenant"], kind="stable")]
    cuts = np.searchsorted(rows["tenant"], np.arange(n + 1))
    return [rows[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def predicted(server: Server, plan: Plan) -> Records:
    """What has ended, at what it cost before capacity was heeded."""
    rows = server.releaser.records()
    parts = plan.part(rows["arrival"])
    for i, name in enumerate(report.NAMES):
        rows[name] = np.rint(rows[name] * parts[:, i])
    return rows


def as_recorded(rows: Records, cores: int) -> Records:
    """With processing times, as predictions have."""
    rows = rows.copy()
    rows["cpu"] //= cores
    return rows


def replayed(trace: Trace, plan: Plan, policy: str, *,
             recorded: Trace | None = None,
             cores: int = 0) -> dict[str, Any]:
    """Each tenant, recorded and predicted.

    recorded, cores: of the record, if others are replayed."""
    rows, end = from_zero(trace.rows)
    asking = Asking(trace, rows, plan, policy, end)
    in_steps(asking.server.run, end + 1, f"replaying with {policy}")
    n = len(trace.tenants)
    got = {"predicted": by_tenant(predicted(asking.server, plan), n)}
    if rows["end"].max() >= 0:
        if recorded and recorded is not trace:
            rows, _ = from_zero(recorded.rows)
        got["recorded"] = by_tenant(
            as_recorded(rows, cores or plan.serves.cores), n)
    begin = round(plan.warm * SECOND)
    stat = asking.server.releaser.stat
    return {"policy": policy, "tenants": [{
        "tenant": name, "weight": plan.weights.get(name, 1.0),
        "loop": "closed" if asking.closed[i] else "open",
        "waiting_at_end": stat(i)["waiting"],
        **{what: report.tenant(x[i], 1, begin, end)
           for what, x in got.items()}}
        for i, name in enumerate(trace.tenants)]}


def simulate(path: str, _digest: str, plan: Plan,
             policy: str) -> dict[str, Any]:
    """The same of a file. The digest, of what it says, is for --keep."""
    return replayed(read(Path(path)), plan, policy)


# The command

COLUMNS = {"requests_per_s": "requests/s", "share": "share",
           "wait_p50_ms": "wait p50 (ms)", "wait_p99_ms": "p99 (ms)"}


def lines_of(r: dict[str, Any]) -> list[str]:
    """A policy's table, those with the largest shares first."""
    most = sorted(r["tenants"], key=lambda t: -t["predicted"]["share"])
    whats = [w for w in ("recorded", "predicted") if w in most[0]]
    head = [h if w == whats[0] else w for h in COLUMNS.values()
            for w in whats]
    return [r["policy"] + (": recorded, predicted" if len(whats) > 1
                           else ""), *table(
        ("tenant", "weight", "loop", *head),
        [(t["tenant"], t["weight"], t["loop"],
          *(t[w][c] for c in COLUMNS for w in whats))
         for t in most[:SHOWN]]), *more(most)]


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """Shares, recorded and by policy."""
    axes = figure.subplots()
    first = data["results"][0]["tenants"]
    series = [("recorded", [t["recorded"]["share"] for t in first])] \
        if "recorded" in first[0] else []
    bars(axes, [t["tenant"] for t in first], series + [
        (r["policy"], [t["predicted"]["share"] for t in r["tenants"]])
        for r in data["results"]])
    axes.set(ylabel="share of the dominant resource")


def pairs(p: argparse.ArgumentParser, option: str, what: str, least: float,
          most: float, text: str) -> None:
    """An option that takes NAME=number, as often as one likes."""
    def pair(text: str) -> tuple[str, float]:
        name, _, number = text.rpartition("=")
        try:
            x = float(number)
        except ValueError:
            x = math.nan
        if not (name and least <= x <= most):
            raise argparse.ArgumentTypeError(
                f"'{text}' is not allowed: use NAME={what}, {least:g} to "
                f"{most:g}")
        return name, x
    p.add_argument(option, type=pair, action="append", default=[],
                   metavar=f"NAME={what}", help=text)


def add_tenant_arguments(p: argparse.ArgumentParser) -> None:
    """What can be said of a tenant."""
    pairs(p, "--weight", "W", WEIGHT_LEAST, WEIGHT_MAX / WEIGHT_ONE,
          "weight of the tenant NAME (default 1)")
    pairs(p, "--reservation", "PART", 0, 1,
          "the least that the tenant gets, a part of its dominant resource")
    pairs(p, "--limit", "PART", 0.001, 1,
          "the most that the tenant gets, a part of its dominant resource")
    p.add_argument("--closed", action="append", default=[],
                   metavar="NAME[=CONNECTIONS]",
                   help="the tenant is a closed loop: it sends a request "
                   "when the one before is answered")
    p.add_argument("--open", action="append", default=[], metavar="NAME",
                   help="the tenant is an open loop: it sends requests at the "
                   "recorded times")


def add_arguments(p: argparse.ArgumentParser) -> None:
    """Of `sim/run replay`."""
    p.add_argument("file", metavar="FILE", type=Path,
                   help="the log of a varnishd with Sandpaper, or a trace "
                   "whose name ends in .csv")
    p.add_argument("--policy", action="append", metavar="NAME",
                   help="a policy to simulate (default mr3-rs); repeat the "
                   "option to compare several")
    add_tenant_arguments(p)
    pairs(p, "--capacity", "PART", 0.01, 100,
          "capacity of cpu or link, instead of the one in the log")
    p.add_argument("--cores", type=whole(1, 65535), metavar="N",
                   help="cores (default: as many as the busiest ten seconds "
                   "need)")
    p.add_argument("--workers", type=whole(1, 65535), metavar="N",
                   help=f"slots (default: {PER_CORE} per core)")
    p.add_argument("--link", choices=LINKS, default="held",
                   help="how the link is modelled (default %(default)s)")
    p.add_argument("--warm", type=float, default=0.0, metavar="SECONDS",
                   help="leave out the first SECONDS of the results")
    p.add_argument("--trace", type=Path, metavar="FILE",
                   help="write the requests to FILE, as CSV")


def connections(said: list[str]) -> dict[str, int]:
    """Of --closed; 0: as many as recorded. Wrong."""
    found = {}
    for text in said:
        name, equals, number = text.rpartition("=") if "=" in text \
            else (text, "", "0")
        if equals and not (number.isdecimal() and 1 <= int(number) <= 10**5):
            raise Wrong(f"--closed {text} is not allowed: use NAME, or "
                        "NAME=CONNECTIONS with 1 to 100000")
        found[name] = int(number)
    return found


def check(plan: Plan, trace: Trace) -> None:
    """Wrong, if varnishd refuses what the options say of a tenant.

    Its name may be one that a VCL cannot declare: it comes from a trace.
    """
    declared = Declared()
    said = {*plan.weights, *plan.reservations, *plan.limits}
    groups = set(plan.groups.values())
    for i, name in enumerate(n for n in (*trace.tenants, *sorted(groups))
                             if n in said):
        if text := declared.refuses(
                f"tenant-{i}", plan.weights.get(name, 1.0),
                plan.reservations.get(name, 0.0), plan.limits.get(name, 1.0),
                group=name in groups):
            raise Wrong(f"tenant {name}: {text}")


def plan_of(a: argparse.Namespace, trace: Trace,
            groups: Collection[str] = ()) -> Plan:
    """What the arguments say; Wrong. groups: that they may name, too."""
    closed = connections(a.closed)
    for option, names in (
            ("weight", dict(a.weight)), ("reservation", dict(a.reservation)),
            ("limit", dict(a.limit)), ("closed", closed), ("open", a.open)):
        for name in names:
            if name not in trace.tenants and name not in groups:
                raise Wrong(f"--{option} {name}: the file has no such "
                            "tenant: use one of "
                            f"{', '.join(trace.tenants[:SHOWN])}")
    for name in a.open:
        if name in closed:
            raise Wrong(f"--open {name}: --closed names it, too: remove one")
    if any(not n for n in closed.values()) and \
            trace.rows["connection"].max() < 0:
        raise Wrong("--closed: the file has no connections: use "
                    "NAME=CONNECTIONS")
    rows, end = from_zero(trace.rows)
    if not 0 <= a.warm * SECOND < end:
        raise Wrong(f"--warm {a.warm:g} is not allowed: use 0 to less than "
                    f"{end / SECOND:g} seconds")
    cores = a.cores or cores_of(rows)
    part = dict(zip(report.SAID, capacity(rows, cores, end), strict=True)) \
        if rows["end"].max() >= 0 else dict.fromkeys(report.SAID, 1.0)
    for name, x in a.capacity:
        if name not in part:
            raise Wrong(f"--capacity {name} is not known: use cpu or link")
        part[name] = x
    return Plan(Serves(a.workers or PER_CORE * cores, cores, a.link),
                (part["cpu"], part["link"]), a.warm, dict(a.weight),
                dict(a.reservation), dict(a.limit), closed, tuple(a.open))


def heading(trace: Trace, plan: Plan) -> list[str]:
    """What is assumed."""
    s, (cpu, link) = plan.serves, plan.capacity
    left = f", {trace.left_out} left out: their begin is missing" \
        if trace.left_out else ""
    lines = [f"requests {len(trace.rows)}{left}; cores {s.cores}, workers "
             f"{s.workers}, capacity of CPU {cpu:.3f}, link {link:.3f}"]
    if trace.rows["connection"].max() < 0 and not plan.closed:
        lines.append("the file has no connections: all loops are open, "
                     "except those that --closed names")
    return lines


def figure(a: argparse.Namespace) -> Figure:
    """The replay, as a figure; Wrong."""
    trace = read(a.file)
    plan = plan_of(a, trace)
    check(plan, trace)
    names = known(a.policy) or ["mr3-rs"]
    digest = sha256(trace.rows.tobytes()).hexdigest()
    if a.trace:
        replace_file(a.trace, lambda new: write_csv(trace, Path(new)))

    def run(c: Context) -> Result:
        found = c.map(simulate, [(str(a.file), digest, plan, p)
                                 for p in names])
        return Result({"file": a.file.name, **asdict(plan)}, found, {},
                      heading(trace, plan) +
                      [x for r in found for x in lines_of(r)])

    return Figure("replay", a.file.name, run, plot)
