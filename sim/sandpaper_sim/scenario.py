# SPDX-License-Identifier: BSD-2-Clause
"""A scenario of the user's own: a TOML file that says what serves, which
policies to compare, and who asks for what, or a trace of who asked and when.

sim/scenarios/customers.toml has every field, with comments. play.py runs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from typing import Any

from . import releaser
from .fields import REQUIRED, Fields, Source, is_number
from .releaser import (
    HOLD,
    WEIGHT_MAX,
    WEIGHT_ONE,
    Estimator,
    Releaser,
    estimators,
    policies,
)
from .server import MS, SECOND, Environment, Proxy, Server, ThreadPool
from .trace import Trace
from .varnishlog import read as read_trace
from .workload import Constant, Costs, Exponential, Lognormal

US = 1000                       # ns
LINKS = ("blocks", "queue", "held")
OPTIONS = ("settle", "keep_debt", "cap", "closed", "rejoin", "limits")
PER_CORE = 10                   # workers, as in varnishd


@dataclass(frozen=True)
class Group:
    """Tenants that share as one."""

    name: str
    weight: float = 1.0
    reservation: float = 0.0        # part of its dominant resource
    limit: float = 0.0


@dataclass(frozen=True)
class Asker:
    """A tenant: a closed loop, an open one, or a part of a trace."""

    name: str
    weight: float = 1.0
    reservation: float = 0.0        # part of its dominant resource
    limit: float = 0.0
    group: str | None = None
    connections: int | None = None
    rate: float | None = None       # requests/s
    cpu: Costs | None = None        # of a core
    net: Costs | None = None
    think: Costs | None = None
    miss: float = 0.0


@dataclass(frozen=True)
class Serves:
    """What serves, but for the policy. cores 0: a pool of threads."""

    workers: int
    cores: int = 0
    link: str = "held"
    estimator: Estimator | None = None
    options: int = releaser.ALL
    refresh: int = 0                # ns

    def start(self, policy: str, fetch: Callable[[int], int],
              keep: bool = True) -> Server:
        """One, at time 0. fetch: see Proxy."""
        rel = Releaser(policy, self.workers, options=self.options,
                       estimator=self.estimator, keep=keep)
        if not self.cores:
            return ThreadPool(Environment(0), rel, self.refresh)
        return Proxy(Environment(0), rel, self.cores,
                     queue=self.link != "blocks",
                     hold=HOLD if self.link == "held" else 0,
                     refresh=self.refresh, fetch=fetch)


@dataclass(frozen=True)
class Scenario:
    """What a file says."""

    serves: Serves
    policies: list[str]
    seed: int
    seconds: float
    warm: float                     # s
    bits: float | None              # of the link, 1/s
    fetch: Costs | None             # of all misses
    trace: Trace | None
    groups: list[Group]
    askers: list[Asker]
    digest: str                     # of the file and its trace


# Reading

ALLOWED = ("use a number above 0, { mean = .. } (exponential), or "
           "{ median = .., sigma = .. } (lognormal)")


def read_costs(f: Fields, key: str, unit: float,
               default: Any = REQUIRED) -> Costs | None:  # noqa: ANN401
    """A number of units, each in ns, or a distribution."""
    x = f.take(key, default)
    if x is None:
        return None
    of = x if isinstance(x, dict) else {"": x}
    if all(is_number(v) and v > 0 for v in of.values()):
        if set(of) == {""}:
            return Constant(max(1, round(x * unit)))
        if set(of) == {"mean"}:
            return Exponential(of["mean"] * unit)
        if set(of) == {"median", "sigma"}:
            return Lognormal(of["median"] * unit, of["sigma"])
    f.fail(key, f"{x!r} is not allowed: {ALLOWED}")


def read_link(f: Fields, bits: float | None) -> Costs | None:
    """What a request needs of the link: time, or bytes at so many bits/s."""
    net = read_costs(f, "link_us", US, None)
    if bits is None:
        return net
    size = read_costs(f, "kbytes", 8e12 / bits, None)
    if net and size:
        f.fail("kbytes", "use either link_us or kbytes, not both")
    return net or size


def read_loop(f: Fields, s: Scenario) -> dict[str, Any]:
    """How a tenant asks, and for what."""
    connections = f.number("connections", 1, 100_000, None)
    rate = f.number("rate", 0.001, 1e7, None)
    if (connections is None) == (rate is None):
        f.fail("connections", "use either connections (a closed loop) or "
               "rate (requests per second, an open loop)")
    think = read_costs(f, "think_us", US, None)
    if think and rate:
        f.fail("think_us", "works only with connections: remove it, or "
               "remove rate")
    return {"connections": connections, "rate": rate, "think": think,
            "cpu": read_costs(f, "cpu_us", US),
            "net": read_link(f, s.bits) if s.serves.cores else None,
            "miss": f.number("miss", 0.0, 1.0, 0.0) if s.fetch else 0.0}


def read_part(f: Fields) -> dict[str, float]:
    """What a tenant or a group has of what there is."""
    found = {"weight": float(f.number(
        "weight", 1 / WEIGHT_ONE, float(WEIGHT_MAX // WEIGHT_ONE), 1.0))}
    for key in ("reservation", "limit"):
        found[key] = f.number(key, 0.0, 1.0, 0.0)
    return found


def read_group(f: Fields, s: Scenario) -> Group:
    """A [[group]]."""
    name = f.text("name")
    if any(g.name == name for g in s.groups):
        f.fail("name", f"{name!r} is there already: use another name")
    found = read_part(f)
    f.end()
    return Group(name, **found)


def read_asker(f: Fields, s: Scenario) -> Asker:
    """A [[tenant]]."""
    name = f.text("name")
    if any(a.name == name for a in s.askers):
        f.fail("name", f"{name!r} is there already: use another name")
    if s.trace and name not in s.trace.tenants:
        f.fail("name", f"{name!r} is not in the trace: use one of "
               f"{', '.join(s.trace.tenants[:10])}"
               f"{', ..' if len(s.trace.tenants) > 10 else ''}")
    found = read_part(f)
    group = f.choice("group", [g.name for g in s.groups], None)
    loop = {} if s.trace else read_loop(f, s)
    f.end()
    return Asker(name, group=group, **found, **loop)


def blocks(source: Source, key: str) -> list[Fields]:
    """All [[key]]s."""
    found = source.data.get(key, [])
    if not isinstance(found, list) or \
            not all(isinstance(b, dict) for b in found):
        Fields(source, {}).fail(key, "is not a list of tables: write "
                                     f"[[{key}]]")
    return [Fields(source, block, key, i) for i, block in enumerate(found)]


def read_askers(source: Source, s: Scenario) -> Scenario:
    """With all [[tenant]]s, and those of the trace that it does not name."""
    for f in blocks(source, "group"):
        s = replace(s, groups=[*s.groups, read_group(f, s)])
    for f in blocks(source, "tenant"):
        s = replace(s, askers=[*s.askers, read_asker(f, s)])
    if s.trace:
        named = {a.name for a in s.askers}
        s = replace(s, askers=s.askers + [
            Asker(name) for name in s.trace.tenants if name not in named])
    if not s.askers:
        Fields(source, {}).fail("tenant", "is missing: add [[tenant]]")
    return s


def read_estimator(f: Fields) -> Estimator | None:
    """None: the policy's own, or Sandpaper's."""
    name = f.choice("estimator", estimators(), None)
    alpha = f.number("alpha", 0.0, 1.0, 0.9 if name == "ewma" else 0.99)
    return Estimator(name, alpha) if name else None


def read_serves(f: Fields) -> Serves:
    """What serves."""
    proxied = f.choice("model", ["proxy", "threads"], "proxy") == "proxy"
    cores = f.number("cores", 1, 4096) if proxied else 0
    chosen = f.choices("options", list(OPTIONS), list(OPTIONS))
    return Serves(
        f.number("workers", 1, 65535,
                 min(PER_CORE * cores, 65535) if proxied else REQUIRED),
        cores, f.choice("link", list(LINKS), "held") if proxied else "blocks",
        read_estimator(f),
        reduce(or_, (getattr(releaser, o.upper()) for o in chosen), 0),
        round(f.number("refresh_ms", 0.0, 1e6, 0.0) * MS))


def read_policies(f: Fields) -> list[str]:
    """Some of the library's."""
    known = list(policies())
    names = f.choices("policies", known, ["mr3-rs"])
    if not names:
        f.fail("policies", "[] is not allowed: use some of "
               f"{', '.join(known)}")
    return names


def read_time(f: Fields, trace: Trace | None) -> tuple[float, float]:
    """How long, and how much of it does not count, s.

    A trace's, if it is not said: one second more."""
    if trace is None:
        seconds = f.number("seconds", 0.001, 1e6)
    else:
        at = trace.rows["arrival"]
        seconds = f.number("seconds", 0.001, 1e6,
                           float(at[-1] - at[0]) / SECOND + 1)
    warm = f.number("warm_seconds", 0.0, 1e6, 0.0)
    if warm >= seconds:
        f.fail("warm_seconds", f"{warm} is not allowed: use a number below "
               f"{seconds:g}")
    return seconds, warm


def read(path: Path) -> Scenario:
    """The whole file, and its trace; Wrong."""
    source = Source(path)
    f = Fields(source, {k: v for k, v in source.data.items()
                        if k not in ("group", "tenant")})
    serves = read_serves(f)
    names = read_policies(f)
    bits = fetch = None
    if serves.cores:
        bits = f.number("link_bits_per_s", 1.0, 1e15, None)
        fetch = read_costs(f, "fetch_ms", MS, None)
    file = f.text("trace", None)
    trace = read_trace(path.parent / file) if file else None
    digest = sha256(source.text.encode())
    if trace:
        digest.update(trace.rows.tobytes())
    seconds, warm = read_time(f, trace)
    seed = f.number("seed", 0, 2**63, 1)
    f.end()
    return read_askers(source, Scenario(
        serves, names, seed, seconds, warm, bits, fetch, trace, [], [],
        digest.hexdigest()))
