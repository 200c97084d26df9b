# SPDX-License-Identifier: BSD-2-Clause
"""A scenario of the user's own: a TOML file that says what serves, who asks for
what, and which policies to compare; or a trace, CSV or the log of a varnishd,
that says who asked for what and when. sim/README.md has an example.

All that is wrong in a file is said in one line: file, line, field, allowed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from . import traces
from .figure import Context, Figure, Result, table
from .metrics import p99
from .releaser import WEIGHT_MAX, WEIGHT_ONE, Estimator, policies
from .server import MS, SECOND, Server, pool, proxy
from .workload import (
    Constant,
    Costs,
    Exponential,
    Lognormal,
    closed,
    generator,
    poisson,
    stream,
    trace,
)

US = 1000                       # ns
REQUIRED = object()


class Wrong(Exception):
    """What is wrong with a file, in one line."""


class Source:
    """A TOML file, and where in it a field is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_text()
            self.data = tomllib.loads(self.text)
        except OSError as e:
            raise Wrong(f"{path}: {e.strerror}") from None
        except UnicodeDecodeError:
            raise Wrong(f"{path}: not UTF-8") from None
        except tomllib.TOMLDecodeError as e:
            raise Wrong(f"{path}: {e}") from None

    def line(self, block: int, key: str) -> int:
        """Of a key in the block-th [[tenant]], or before the first (0)."""
        at = first = 0
        for n, text in enumerate(self.text.splitlines(), 1):
            if re.match(r"\s*\[\[\s*tenant\s*\]\]", text):
                at += 1
                first = n if at == block else first
            elif at == block and re.match(rf"\s*\"?{key}\"?\s*=", text):
                return n
        return first or 1


class Fields:
    """The fields of a table, taken one by one; what is left is unknown."""

    def __init__(self, source: Source, block: int,
                 fields: dict[str, Any]) -> None:
        self.source, self.block, self.fields = source, block, dict(fields)
        self.known: list[str] = []

    def fail(self, key: str, text: str) -> NoReturn:
        """About a field."""
        raise Wrong(f"{self.source.path}:{self.source.line(self.block, key)}: "
                    f"{key}: {text}")

    def take(self, key: str, default: Any) -> Any:  # noqa: ANN401
        """A field's value; REQUIRED: it has to be there."""
        self.known.append(key)
        if key not in self.fields and default is REQUIRED:
            self.fail(key, "is missing")
        return self.fields.pop(key, default)

    def number(self, key: str, least: float, most: float,
               default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """Between the two, a whole number if these are."""
        x = self.take(key, default)
        if x is None:
            return x
        whole = isinstance(least, int)
        if isinstance(x, bool) or not isinstance(x, int if whole else
                                                 (int, float)) or \
                not least <= x <= most:
            self.fail(key, f"{x!r}: a {'whole ' if whole else ''}number, "
                      f"{least:g} to {most:g}")
        return x

    def choice(self, key: str, of: list[str],
               default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """One of these."""
        x = self.take(key, default)
        if x is not None and x not in of:
            self.fail(key, f"{x!r}: one of {', '.join(of)}")
        return x

    def flag(self, key: str) -> bool:
        """True or false."""
        x = self.take(key, False)
        if not isinstance(x, bool):
            self.fail(key, f"{x!r}: true or false")
        return x

    def text(self, key: str, default: Any = REQUIRED) -> Any:  # noqa: ANN401
        """A string that is not empty."""
        x = self.take(key, default)
        if x is not None and (not isinstance(x, str) or not x):
            self.fail(key, f"{x!r}: a text")
        return x

    def costs(self, key: str, default: Any = REQUIRED,  # noqa: ANN401
              ) -> Costs | None:
        """Microseconds: a number, or a distribution."""
        x = self.take(key, default)
        if x is None:
            return None
        if isinstance(x, (int, float)) and not isinstance(x, bool) and x > 0:
            return Constant(max(1, round(x * US)))
        allowed = ("a number above 0, { mean = .. } (exponential), or "
                   "{ median = .., sigma = .. } (lognormal)")
        if not isinstance(x, dict) or not all(
                isinstance(v, (int, float)) and not isinstance(v, bool) and
                v > 0 for v in x.values()):
            self.fail(key, f"{x!r}: {allowed}")
        if set(x) == {"mean"}:
            return Exponential(x["mean"] * US)
        if set(x) == {"median", "sigma"}:
            return Lognormal(x["median"] * US, x["sigma"])
        self.fail(key, f"{x!r}: {allowed}")

    def end(self) -> None:
        """Nothing else may be there."""
        for key in self.fields:
            self.fail(key, f"unknown; there are {', '.join(self.known)}")


@dataclass(frozen=True)
class Asker:
    """A tenant: a closed loop, an open one, or a part of a trace."""

    name: str
    weight: float = 1.0
    connections: int | None = None
    rate: float | None = None       # requests/s
    cpu: Costs | None = None
    net: Costs | None = None
    think: Costs | None = None


@dataclass(frozen=True)
class Scenario:
    """What a file says."""

    model: str
    workers: int
    cores: int
    queue: bool
    policies: list[str]
    estimator: Estimator | None
    refresh: int                    # ns
    seconds: float
    warm: float                     # s
    askers: list[Asker]
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)


def read_asker(f: Fields, traced: bool) -> Asker:
    """A [[tenant]]."""
    name = f.text("name")
    weight = float(f.number("weight", 1 / WEIGHT_ONE,
                            float(WEIGHT_MAX // WEIGHT_ONE), 1.0))
    if traced:
        f.end()
        return Asker(name, weight)
    connections = f.number("connections", 1, 100_000, None)
    rate = f.number("rate", 0.001, 1e7, None)
    if (connections is None) == (rate is None):
        f.fail("connections", "say either connections (a closed loop) or "
               "rate (requests a second, an open loop)")
    cpu, net = f.costs("cpu_us"), f.costs("net_us", None)
    think = f.costs("think_us", None)
    if think and rate:
        f.fail("think_us", "only a closed loop thinks")
    f.end()
    return Asker(name, weight, connections, rate, cpu, net, think)


def read_askers(source: Source, traced: bool) -> list[Asker]:
    """All [[tenant]]s, each name once."""
    blocks = source.data.pop("tenant", [])
    if not isinstance(blocks, list) or \
            not all(isinstance(b, dict) for b in blocks):
        raise Wrong(f"{source.path}:{source.line(0, 'tenant')}: tenant: "
                    "write [[tenant]]")
    askers: list[Asker] = []
    for i, block in enumerate(blocks, 1):
        f = Fields(source, i, block)
        asker = read_asker(f, traced)
        if any(a.name == asker.name for a in askers):
            f.fail("name", f"{asker.name!r}: there is one already")
        askers.append(asker)
    if not askers and not traced:
        raise Wrong(f"{source.path}:1: tenant: is missing")
    return askers


def read_policies(f: Fields) -> list[str]:
    """Some of the library's."""
    known, names = list(policies()), f.take("policies", ["mr3-rs"])
    if not isinstance(names, list) or not names:
        f.fail("policies", f"{names!r}: a list of {', '.join(known)}")
    for name in names:
        if name not in known:
            f.fail("policies", f"{name!r}: one of {', '.join(known)}")
    return names


def read_estimator(f: Fields) -> Estimator | None:
    """None: the policy's own, or Sandpaper's."""
    name = f.choice("estimator", ["ewma", "decaying-max", "last", "oracle"],
                    None)
    alpha = f.number("alpha", 0.0, 1.0, 0.9 if name == "ewma" else 0.99)
    return Estimator(name, alpha) if name else None


def read(path: Path) -> Scenario:
    """The whole file; Wrong."""
    source = Source(path)
    file = source.data.get("trace")
    askers = read_askers(source, file is not None)
    f = Fields(source, 0, source.data)
    model = f.choice("model", ["proxy", "threads"], "proxy")
    found: dict[str, Any] = {
        "model": model, "workers": f.number("workers", 1, 65535),
        "cores": f.number("cores", 1, 4096) if model == "proxy" else 0,
        "queue": f.flag("queue") if model == "proxy" else False,
        "policies": read_policies(f), "estimator": read_estimator(f),
        "refresh": round(f.number("refresh_ms", 0.0, 1e6, 0.0) * MS)}
    if (file := f.text("trace", None)) is not None:
        rows = read_trace(f, path.parent / file)
        found["rows"], askers = traces.number(rows, askers, Asker)
        last = rows[-1].time / SECOND
        found["seconds"] = f.number("seconds", 0.001, 1e6, last + 1.0)
    else:
        found["seconds"] = f.number("seconds", 0.001, 1e6)
    found["warm"] = f.number("warm_seconds", 0.0,
                             float(found["seconds"]), 0.0)
    f.end()
    return Scenario(**found, askers=askers)


def read_trace(f: Fields, path: Path) -> list[traces.Row]:
    """The file that `trace` names."""
    try:
        return traces.read(path)
    except traces.Wrong as e:
        raise Wrong(str(e)) from None


def build(s: Scenario, policy: str, seed: int) -> Server:
    """What serves, and all who ask."""
    if s.model == "threads":
        server: Server = pool(policy, s.workers, refresh=s.refresh,
                              estimator=s.estimator)
    else:
        server = proxy(policy, s.workers, s.cores, queue=s.queue,
                       refresh=s.refresh, estimator=s.estimator)
    for a in s.askers:
        ask(server, server.tenant(a.weight), a, seed)
    trace(server, s.rows)
    return server


def ask(server: Server, tenant: int, a: Asker, seed: int) -> None:
    """Its loop, if it has one."""
    def draw(costs: Costs | None, what: str) -> Iterator[int] | None:
        return stream(costs, generator(seed, "scenario", a.name, what)) \
            if costs else None
    cpu, net = draw(a.cpu, "cpu"), draw(a.net, "net")
    if cpu is None:
        return
    if a.connections:
        closed(server, tenant, a.connections, cpu, net,
               draw(a.think, "think"))
    elif a.rate:
        poisson(server, tenant, a.rate, cpu,
                generator(seed, "scenario", a.name, "arrivals"), net)


def simulate(path: str, policy: str, seed: int) -> dict[str, Any]:
    """What each tenant got after the warm-up, under a policy."""
    s = read(Path(path))
    server = build(s, policy, seed)
    server.run(int(s.seconds * SECOND))
    rows = server.releaser.records()
    rows = rows[rows["end"] >= s.warm * SECOND]
    past = s.seconds - s.warm
    found = []
    for i, a in enumerate(s.askers):
        mine = rows[rows["tenant"] == i]
        took = mine["end"] - mine["arrival"]
        used = {r: float(mine[r].sum()) for r in ("cpu", "net")}
        st = server.releaser.stat(i)
        found.append({
            "tenant": a.name, "weight": a.weight,
            "requests_per_s": len(mine) / past,
            "cpu_share": used["cpu"] / SECOND / past,
            "net_share": used["net"] / SECOND / past,
            "mean_ms": float(took.mean()) / MS if len(mine) else None,
            "p99_ms": p99(took) / MS if len(mine) else None,
            "waiting_at_end": st["waiting"]})
    return {"policy": policy, "tenants": found}


SHOWN = 20                      # tenants in the table


def run_file(path: Path, c: Context) -> Result:
    """All of its policies."""
    s = read(path)
    found = c.map(simulate, [(str(path.absolute()), p, c.seed)
                             for p in s.policies])
    lines: list[str] = []
    for r in found:
        # By what they used most of.
        most = sorted(r["tenants"], key=lambda t: -max(
            t["cpu_share"], t["net_share"]))
        lines += [r["policy"], *table(
            ("tenant", "requests/s", "cpu", "link", "mean (ms)", "p99 (ms)",
             "still waiting"),
            [(t["tenant"], t["requests_per_s"], t["cpu_share"],
              t["net_share"], t["mean_ms"], t["p99_ms"], t["waiting_at_end"])
             for t in most[:SHOWN]])]
        if len(most) > SHOWN:
            lines.append(f"and {len(most) - SHOWN} more: --json has all")
    return Result({"scenario": path.name, "model": s.model,
                   "workers": s.workers, "cores": s.cores,
                   "seconds": s.seconds, "warm_s": s.warm}, found, {}, lines)


def plot(figure: Any, data: dict[str, Any]) -> None:  # noqa: ANN401
    """p99 of each tenant, by policy."""
    axes = figure.subplots()
    wide = 0.8 / len(data["results"])
    for k, r in enumerate(data["results"]):
        some = r["tenants"][:SHOWN]
        axes.bar(np.arange(len(some)) + k * wide,
                 [t["p99_ms"] or np.nan for t in some], wide,
                 label=r["policy"])
    axes.set_xticks(np.arange(len(some)) + 0.4,
                    [t["tenant"] for t in some], rotation=30, ha="right")
    axes.set(yscale="log", ylabel="p99 latency (ms)")
    axes.legend()


def figure(path: Path) -> Figure:
    """A scenario, as a figure."""
    return Figure(path.name, "a scenario", lambda c: run_file(path, c), plot)
