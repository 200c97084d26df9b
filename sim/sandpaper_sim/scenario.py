# SPDX-License-Identifier: BSD-2-Clause
"""A scenario of the user's own: a TOML file that says what serves, which
policies to compare, and who asks for what, or a trace of who asked and when.

The types of `File`, `Group` and `Tenant` say which fields there are and what
each may be. msgspec checks that; `check()` looks for fields that do not go
together. sim/scenarios/customers.toml has every field, with comments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from operator import or_
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
from msgspec import Meta, field

from . import releaser
from .declared import WEIGHT_LEAST, Declared
from .files import Wrong, reading
from .parameters import default
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

LINKS = ("blocks", "queue", "held")
OPTIONS = ("settle", "keep_debt", "cap", "closed", "rejoin", "limits")
PER_CORE = int(default("sandpaper_workers_per_core"))
# Fields of a tenant, if there is no trace
LOOP = ("connections", "rate", "think_us", "cpu_us", "link_us", "kbytes",
        "miss")


# What a field may be; a user reads the description.

def number(least: float, most: float) -> Meta:
    """Between the two."""
    said = (f"a whole number, {least} to {most}" if isinstance(least, int)
            else f"a number, {least:.10g} to {most:.10g}")
    return Meta(ge=least, le=most, description=said)


def one_of(names: Iterable[str]) -> Meta:
    """One of these names."""
    return Meta(pattern=rf"^(?:{'|'.join(map(re.escape, names))})\Z",
                description=f"one of {', '.join(names)}")


def some_of(names: Iterable[str], least: int) -> Meta:
    """A list of so many of these names, or more."""
    return Meta(min_length=least,
                description=f"a list of some of {', '.join(names)}")


Text = Annotated[str, Meta(min_length=1, description="a text in quotes, of one "
                            "character or more")]
Part = Annotated[float, number(0.0, 1.0)]
Above0 = Annotated[float, Meta(gt=0, le=1e15)]
# An integer stays one, as both are in the JSON.
Seconds = Annotated[
    Annotated[int, Meta(ge=1, le=10**6)] |
    Annotated[float, Meta(ge=0.001, le=1e6)],
    Meta(description="a number, 0.001 to 1000000")]
WarmSeconds = Annotated[
    Annotated[int, Meta(ge=0, le=10**6)] |
    Annotated[float, Meta(ge=0, le=1e6)],
    Meta(description="a number, 0 to 1000000")]


class Shape(msgspec.Struct, forbid_unknown_fields=True):
    """A distribution: exponential by its mean, or lognormal."""

    mean: Above0 | None = None
    median: Above0 | None = None
    sigma: Above0 | None = None

    def __post_init__(self) -> None:
        given = {k for k, x in msgspec.structs.asdict(self).items() if x}
        if given not in ({"mean"}, {"median", "sigma"}):
            raise ValueError(given)


Amount = Annotated[Above0 | Shape, Meta(
    description="a number above 0, { mean = .. } (exponential), or "
    "{ median = .., sigma = .. } (lognormal)")]


class Group(msgspec.Struct, forbid_unknown_fields=True):
    """A [[group]]: tenants that share as one."""

    name: Text
    weight: Annotated[float, number(
        WEIGHT_LEAST, WEIGHT_MAX / WEIGHT_ONE)] = 1.0
    reservation: Part = 0.0         # part of its dominant resource
    limit: Annotated[float, number(0.001, 1.0)] = 1.0   # 1: none


class Tenant(Group, forbid_unknown_fields=True):
    """A [[tenant]]: a closed loop, an open one, or a part of a trace."""

    group: Text | None = None
    connections: Annotated[int, number(1, 100_000)] | None = None
    rate: Annotated[float, number(0.001, 1e7)] | None = None   # requests/s
    think_us: Amount | None = None
    cpu_us: Amount | None = None    # of a core
    link_us: Amount | None = None
    kbytes: Amount | None = None
    miss: Part | None = None        # of the requests


class File(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    model: Annotated[str, one_of(("proxy", "threads"))] = "proxy"
    cores: Annotated[int, number(1, 4096)] | None = None
    workers: Annotated[int, number(1, 65535)] | None = None
    link: Annotated[str, one_of(LINKS)] | None = None
    link_bits_per_s: Annotated[float, number(1.0, 1e15)] | None = None
    fetch_ms: Amount | None = None  # of all misses
    options: Annotated[list[Annotated[str, one_of(OPTIONS)]],
                       some_of(OPTIONS, 0)] = field(
                           default_factory=lambda: list(OPTIONS))
    estimator: Annotated[str, one_of(estimators())] | None = None
    alpha: Annotated[float, number(0.001, 1.0)] | None = None
    refresh_ms: Annotated[float, number(0.0, 1e6)] = 0.0
    policies: Annotated[list[Annotated[str, one_of(policies())]],
                        some_of(policies(), 1)] = field(
                            default_factory=lambda: ["mr3-rs"])
    trace: Text | None = None
    seed: Annotated[int, number(0, 2**63 - 1)] = 1
    seconds: Seconds | None = None      # None: all of the trace
    warm_seconds: WarmSeconds = 0.0
    groups: Annotated[list[Group], Meta(description="[[group]]")] = field(
        name="group", default_factory=list)
    tenants: Annotated[list[Tenant], Meta(description="[[tenant]]")] = field(
        name="tenant", default_factory=list)


@dataclass(frozen=True)
class Serves:
    """What serves, except the policy. cores 0: a pool of threads."""

    workers: int
    cores: int = 0
    link: str = "held"
    estimator: Estimator | None = None
    options: int = releaser.ALL
    refresh: int = 0                # ns
    closing: bool = False           # slots close while the cores are busy
    spells: bool = True             # they are recorded

    def start(self, policy: str, fetch: Callable[[int], int],
              keep: bool = True) -> Server:
        """Return a server at time 0. fetch: see Proxy."""
        rel = Releaser(policy, self.workers, options=self.options,
                       estimator=self.estimator, keep=keep)
        if not self.cores:
            return ThreadPool(Environment(0), rel, self.refresh)
        return Proxy(Environment(0), rel, self.cores,
                     queue=self.link != "blocks",
                     hold=HOLD if self.link == "held" else 0,
                     refresh=self.refresh, fetch=fetch,
                     closing=self.closing, keep=self.spells)


@dataclass(frozen=True)
class Scenario:
    """A file, its trace, and all tenants of both."""

    file: File
    trace: Trace | None
    tenants: list[Tenant]
    seconds: float
    digest: str                     # of the file and its trace

    @property
    def serves(self) -> Serves:
        """What the file says of it."""
        f, alpha = self.file, self.file.alpha
        if alpha is None:
            alpha = 0.9 if f.estimator == "ewma" else 0.99
        cores = f.cores or 0
        return Serves(
            f.workers or min(PER_CORE * cores, 65535), cores,
            f.link or "held",
            Estimator(f.estimator, alpha) if f.estimator else None,
            reduce(or_, (getattr(releaser, o.upper()) for o in f.options), 0),
            round(f.refresh_ms * MS))


def costs(x: float | Shape, unit: float) -> Costs:
    """Return costs in ns. unit: ns per unit of x."""
    if not isinstance(x, Shape):
        return Constant(max(1, round(x * unit)))
    if x.mean:
        return Exponential(x.mean * unit)
    assert x.median and x.sigma
    return Lognormal(x.median * unit, x.sigma)


# What is wrong with a file

def allowed(kind: Any) -> str:  # noqa: ANN401
    """The description of a type."""
    found = [m.description for m in getattr(kind, "__metadata__", ())]
    found += map(allowed, get_args(kind))
    return next(filter(None, found), "")


def in_words(error: str, data: dict[str, Any]) -> str:
    """An error of msgspec's: the field, its value, what is allowed.

    msgspec ends it with the path, as `$.tenant[0].cpu_us.mean`."""
    path = re.search(r" - at `\$(.*)`\Z", error)
    steps = re.findall(r"\w+", path[1]) if path else []
    kind: type[msgspec.Struct] = File
    where = ""
    if len(steps) > 1 and steps[0] in ("tenant", "group"):
        table, i, *steps = steps
        kind = Tenant if table == "tenant" else Group
        where, data = f"{table} {int(i) + 1}: ", data[table][int(i)]
    names = kind.__struct_encode_fields__
    if not isinstance(data, dict):
        return f"{where}{data!r} is not allowed: use [[{table}]]"
    if not steps:
        unknown = [k for k in data if k not in names]
        return where + (
            f"{unknown[0]}: is not known: use one of {', '.join(names)}"
            if unknown else "name: is missing: add it")
    kinds = get_type_hints(kind, include_extras=True)
    of = dict(zip(names, kind.__struct_fields__, strict=True))[steps[0]]
    return (f"{where}{steps[0]}: {data[steps[0]]!r} is not allowed: use "
            f"{allowed(kinds[of])}")


def misused(f: File) -> Iterator[str]:
    """Fields outside of the [[tenant]]s that do not go together."""
    if f.model == "proxy" and not f.cores:
        yield "cores: is missing: add it"
    if f.model == "threads" and not f.workers:
        yield "workers: is missing: add it"
    for key in ("cores", "link", "link_bits_per_s", "fetch_ms"):
        if f.model == "threads" and getattr(f, key) is not None:
            yield f'{key}: works only with model = "proxy": remove it'
    if not f.trace and not f.seconds:
        yield "seconds: is missing: add it"
    if not f.trace and not f.tenants:
        yield "tenant: is missing: add [[tenant]]"
    names = [f"{kind} {x.name!r}" for kind, of in (
        ("group", f.groups), ("tenant", f.tenants)) for x in of]
    for name in names:
        if names.count(name) > 1:
            yield f"{name}: is there twice: use another name"


def refused(f: File) -> Iterator[str]:
    """What varnishd refuses. Names in a trace were not declared in a VCL."""
    declared = Declared()
    for kind, found in (("group", f.groups), ("tenant", f.tenants)):
        for i, x in enumerate(found, 1):
            name = f"tenant-{i}" if f.trace and kind == "tenant" else x.name
            if text := declared.refuses(name, x.weight, x.reservation,
                                        x.limit, group=kind == "group"):
                yield f"{kind} {i}: {x.name!r}: {text}"


def misused_loop(t: Tenant, f: File) -> Iterator[str]:
    """Fields of a [[tenant]] that do not go together."""
    given = [k for k in LOOP if getattr(t, k) is not None]
    if f.trace:
        for key in given:
            yield f"{key}: does not work with a trace: remove it"
        return
    if ("connections" in given) == ("rate" in given):
        yield ("connections: use either connections (a closed loop) or "
               "rate (requests per second, an open loop)")
    if "cpu_us" not in given:
        yield "cpu_us: is missing: add it"
    if "link_us" in given and "kbytes" in given:
        yield "kbytes: use either link_us or kbytes, not both"
    for key, needs, there in (
            ("think_us", "connections", t.connections),
            ("link_us", 'model = "proxy"', f.cores),
            ("kbytes", "link_bits_per_s", f.link_bits_per_s),
            ("miss", "fetch_ms", f.fetch_ms)):
        if key in given and not there:
            yield f"{key}: works only with {needs}: add that, or remove it"


def misused_name(t: Tenant, f: File, trace: Trace | None) -> Iterator[str]:
    """Names in a [[tenant]] that are nowhere else."""
    if t.group and t.group not in [g.name for g in f.groups]:
        yield f"group: {t.group!r} is not known: add it as a [[group]]"
    if trace and t.name not in trace.tenants:
        yield (f"name: {t.name!r} is not in the trace: use one of "
               f"{', '.join(trace.tenants[:10])}"
               f"{', ..' if len(trace.tenants) > 10 else ''}")


def check(f: File, trace: Trace | None) -> Iterator[str]:
    """All that is wrong with a file as a whole."""
    yield from misused(f)
    yield from refused(f)
    for i, t in enumerate(f.tenants, 1):
        for text in (*misused_loop(t, f), *misused_name(t, f, trace)):
            yield f"tenant {i}: {text}"


def parse(path: Path, text: str) -> File:
    """Return the fields of a TOML file. Raises Wrong."""
    try:
        data = tomllib.loads(text)
        return msgspec.convert(data, File)
    except tomllib.TOMLDecodeError as e:
        raise Wrong(f"{path}: {e}") from None
    except msgspec.ValidationError as e:
        raise Wrong(f"{path}: {in_words(str(e), data)}") from None


def lasts(f: File, trace: Trace | None) -> float:
    """Return the seconds of the file, or those of the trace and one more."""
    if f.seconds:
        return f.seconds
    assert trace                    # misused() has looked
    at = trace.rows["arrival"]
    return float(at[-1] - at[0]) / SECOND + 1


def read(path: Path) -> Scenario:
    """Return the whole file, and its trace. Raises Wrong."""
    with reading(path):
        text = path.read_text("utf-8")
    f = parse(path, text)
    trace = read_trace(path.parent / f.trace) if f.trace else None
    for wrong in check(f, trace):
        raise Wrong(f"{path}: {wrong}")
    seconds = lasts(f, trace)
    if f.warm_seconds >= seconds:
        raise Wrong(f"{path}: warm_seconds: {f.warm_seconds} is not allowed: "
                    f"use a number below {seconds:g}")
    named = {t.name for t in f.tenants}
    others = [Tenant(name) for name in trace.tenants if name not in named] \
        if trace else []
    digest = sha256(text.encode())
    if trace:
        digest.update(trace.rows.tobytes())
    return Scenario(f, trace, [*f.tenants, *others], seconds,
                    digest.hexdigest())
