# SPDX-License-Identifier: BSD-2-Clause
"""sim/run scenario FILE: what each tenant gets, under each policy."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from . import releaser, report, workload
from .figure import Context, Figure, Result, in_steps, table
from .files import Wrong
from .report import SHOWN, bars, more
from .scenario import Scenario, Shape, Tenant, costs, read
from .server import MS, SECOND, US, Server
from .trace import Trace
from .workload import generator, stream

SUMMARY = "FILE: your own tenants, server and policies (TOML)"

Drawn = Iterator[int]           # ns


def per_core(core: Drawn, cores: int) -> Drawn:
    """Processing times: a core's over the number of cores, if any."""
    return (max(1, c // cores) for c in core) if cores > 1 else core


def misses(s: Scenario, a: Tenant, seed: int) -> Drawn:
    """A tenant's fetches; 0: a hit."""
    assert s.file.fetch_ms is not None
    draw = generator(seed, "scenario", a.name, "miss")
    delays = stream(costs(s.file.fetch_ms, MS),
                    generator(seed, "scenario", a.name, "fetch"))
    while True:
        yield next(delays) if draw.random() < (a.miss or 0) else 0


def ask(server: Server, tenant: int, s: Scenario, a: Tenant,
        seed: int) -> None:
    """A tenant's loop."""
    def rng(what: str) -> np.random.Generator:
        return generator(seed, "scenario", a.name, what)

    def drawn(of: float | Shape | None, unit: float,
              what: str) -> Drawn | None:
        return stream(costs(of, unit), rng(what)) if of else None

    assert a.cpu_us
    cpu = per_core(stream(costs(a.cpu_us, US), rng("cpu")), s.serves.cores)
    net = drawn(a.link_us, US, "net")
    if s.file.link_bits_per_s:
        net = net or drawn(a.kbytes, 8e12 / s.file.link_bits_per_s, "net")
    if a.rate:
        workload.poisson(server, tenant, a.rate, cpu, rng("arrivals"), net)
    elif a.connections:
        workload.closed(server, tenant, a.connections, cpu, net,
                        drawn(a.think_us, US, "think"))


def rows_of(trace: Trace, cores: int) -> list[tuple[int, int, int, int]]:
    """For workload.trace(), from 0 on. cores 0: threads, without a link."""
    rows = trace.rows
    cpu = np.maximum(rows["cpu"] // max(cores, 1), 1)
    net = rows["net"] if cores else np.zeros_like(cpu)
    return list(zip((rows["arrival"] - rows["arrival"][0]).tolist(),
                    rows["tenant"].tolist(), cpu.tolist(), net.tolist(),
                    strict=True))


def ask_trace(server: Server, s: Scenario, trace: Trace) -> list[Drawn]:
    """All requests of a trace, and each tenant's fetches."""
    number = {a.name: i for i, a in enumerate(s.tenants)}
    of = [number[name] for name in trace.tenants]
    workload.trace(server, [
        (at, of[tenant], *costs) for at, tenant, *costs in rows_of(
            trace, s.serves.cores)])
    return [iter(trace.of(trace.tenants.index(a.name))["fetch"].tolist())
            for a in s.tenants]


def start(s: Scenario, policy: str, seed: int) -> Server:
    """What serves, and all who ask."""
    # Requests of one tenant are released in order: so are its fetches.
    fetches: list[Drawn] = []
    server = s.serves.start(policy, lambda tenant: next(fetches[tenant]))
    for a in s.tenants:
        tenant = server.tenant(a.weight, a.reservation, a.limit)
        if s.trace is None:
            ask(server, tenant, s, a, seed)
            fetches.append(misses(s, a, seed) if a.miss else repeat(0))
    if s.trace is not None:
        fetches += ask_trace(server, s, s.trace)
    for g in s.file.groups:
        group = server.tenant(g.weight, g.reservation, g.limit)
        for i, a in enumerate(s.tenants):
            if a.group == g.name:
                server.releaser.set_group(i, group, 0)
    return server


def simulate(path: str, _digest: str, policy: str,
             seed: int) -> dict[str, Any]:
    """What each tenant got after the warm-up, under a policy.

    The digest, of what the file says, is there for --keep."""
    s = read(Path(path))
    server = start(s, policy, seed)
    begin, end = round(s.file.warm_seconds * SECOND), round(s.seconds * SECOND)
    in_steps(server.run, end + 1, policy)
    rows = server.releaser.records()
    # GPS of one level only
    lags = None if s.file.groups else report.lags(
        server, [a.weight for a in s.tenants], begin, end)
    capacity = 1 if s.serves.cores else s.serves.workers
    return {"policy": policy, "tenants": [{
        "tenant": a.name, "weight": a.weight,
        **report.tenant(rows[rows["tenant"] == i], capacity, begin, end),
        "lag_sd_ms": lags[i] / MS if lags else None,
        "waiting_at_end": server.releaser.stat(i)["waiting"],
        } for i, a in enumerate(s.tenants)]}


# The command

COLUMNS = {"requests_per_s": "requests/s", "dominant": "most of",
           "share": "share", "wait_p50_ms": "wait p50 (ms)",
           "wait_p99_ms": "p99", "latency_p50_ms": "latency p50 (ms)",
           "latency_p99_ms": "p99", "lag_sd_ms": "lag sd (ms)",
           "waiting_at_end": "waiting"}


def lines_of(r: dict[str, Any]) -> list[str]:
    """A policy's table, those with the largest shares first."""
    most = sorted(r["tenants"], key=lambda t: -t["share"])
    return [r["policy"], *table(
        ("tenant", *COLUMNS.values()),
        [(t["tenant"], *(t[c] for c in COLUMNS))
         for t in most[:SHOWN]]), *more(most)]


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """p99 of each tenant, by policy."""
    axes = figure.subplots()
    bars(axes, [t["tenant"] for t in data["results"][0]["tenants"]], [
        (r["policy"], [t["latency_p99_ms"] or np.nan for t in r["tenants"]])
        for r in data["results"]])
    axes.set(yscale="log", ylabel="p99 latency (ms)")


def add_arguments(p: argparse.ArgumentParser) -> None:
    """Of `sim/run scenario`."""
    p.add_argument("file", metavar="FILE", type=Path,
                   help="the scenario, a TOML file: sim/scenarios/"
                   "customers.toml is an example")
    p.add_argument("--policy", action="append", metavar="NAME",
                   help="a policy to simulate, instead of the file's; repeat "
                   "the option to compare several")


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type of argparse's: a whole number between the two."""
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def number(text: str) -> int:
        if not (text.isdecimal() and least <= int(text)
                and (most is None or int(text) <= most)):
            raise argparse.ArgumentTypeError(
                f"'{text}' is not allowed: use a whole number, {allowed}")
        return int(text)
    return number


def known(names: list[str] | None) -> list[str]:
    """Policies that the library has; Wrong."""
    try:
        return [releaser.policy(name).name for name in names or []]
    except ValueError as e:
        raise Wrong(f"--policy: {e}") from None


def figure(a: argparse.Namespace) -> Figure:
    """The scenario, as a figure; Wrong."""
    s = read(a.file)
    names = known(a.policy) or s.file.policies
    if a.seed is None:
        a.seed = s.file.seed

    def run(c: Context) -> Result:
        found = c.map(simulate, [(str(a.file), s.digest, p, c.seed)
                                 for p in names])
        return Result(
            {"scenario": a.file.name, "workers": s.serves.workers,
             "cores": s.serves.cores, "seconds": s.seconds,
             "warm_s": s.file.warm_seconds},
            found, {}, [x for r in found for x in lines_of(r)])

    return Figure("scenario", a.file.name, run, plot)
