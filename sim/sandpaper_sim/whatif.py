# SPDX-License-Identifier: BSD-2-Clause
"""Replay the log of a varnishd under other settings: what would each tenant
have got, and how long would its requests have waited?

Without options the replay has the default settings. A difference to the log is
then the error of the replay, or comes from settings that the log does not have:
weights, limits, groups and the policy. FILE is the text or the binary file of
varnishlog, or a trace whose name ends in .csv; - is the text on stdin."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from _sandpaper_glue import lib

from .figure import table
from .files import Wrong
from .parameters import default
from .play import known, whole
from .recorded import capacities, step_of
from .releaser import COST_MAX, Records
from .replay import (
    Plan,
    add_tenant_arguments,
    check,
    from_zero,
    plan_of,
    replayed,
)
from .report import SHOWN, more
from .scenario import PER_CORE
from .server import DRAIN, SECOND
from .tenantsfile import Tenants
from .trace import Trace, read_csv
from .varnishlog import read_log

PROGRAM = "sandpaper-replay"
MTU, HEADER = (                 # bytes
    int(default("sandpaper_mtu")), int(default("sandpaper_header")))
RATE = re.compile(r"(\d+(?:\.\d+)?)([kMG]?)")
SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
RATE_LEAST, RATE_MOST = 10**4, 10**13   # bits/s, of sandpaper_nic_rate
# What a log cannot say of another run
UNKNOWN = (
    "what clients would have done. The arrivals of an open loop are those of "
    "the log.\n  Those of a closed loop come earlier or later, with the "
    "answers. Nobody gives up.",
    "what refused requests would have cost. The replay refuses none.",
    "which weights and limits were in force. Give them, too.",
)


def fail(text: str) -> NoReturn:
    """What is wrong, and status 2."""
    for line in text.splitlines():
        print(f"{PROGRAM}: {line}", file=sys.stderr)
    raise SystemExit(2)


class Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        """What is wrong with the arguments."""
        fail(message)


def rate(text: str) -> int:
    """A type of argparse's: bits/s, as sandpaper_nic_rate."""
    found = RATE.fullmatch(text)
    bits = round(float(found[1]) * SUFFIXES[found[2]]) if found else 0
    if not RATE_LEAST <= bits <= RATE_MOST:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not allowed: use bits/s, 10k to 10000G")
    return bits


def arguments(argv: list[str]) -> argparse.Namespace:
    """Of the command."""
    p = Parser(prog=PROGRAM, description=__doc__,
               formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", metavar="FILE", type=Path, help="the log")
    p.add_argument("--policy", metavar="NAME", default="mr3-rs",
                   help="the policy (default %(default)s)")
    p.add_argument("--tenants", type=Path, action="append", default=[],
                   metavar="FILE", help="weights, limits and groups of a file "
                   "of tenants; a log with Hosts also gets its map from Host "
                   "to tenant. Repeat the option for several files")
    add_tenant_arguments(p)
    p.add_argument("--cores", type=whole(1, 4096), metavar="N",
                   help="cores (default: those of the log)")
    p.add_argument("--workers-per-core", type=whole(1, 65535), metavar="N",
                   default=PER_CORE, help="slots per core, as in "
                   "sandpaper_workers_per_core (default %(default)s)")
    p.add_argument("--net-rate", type=rate, metavar="RATE",
                   help="the rate of net in bits/s, as in sandpaper_nic_rate: "
                   "100M, 10G (default: that of the log)")
    p.add_argument("--log-cores", type=whole(1, 4096), metavar="N",
                   help="cores of the machine that wrote the log (default: as "
                   "many as the busiest ten seconds need). Give it if they "
                   "were never all busy")
    p.add_argument("--json", action="store_true",
                   help="print JSON in place of the table")
    p.add_argument("--varnishlog", metavar="PROGRAM", default="",
                   help="the program that reads a binary log (default: "
                   "varnishlog in PATH, or the one that was built here)")
    return p.parse_args(argv)


# What is replayed

@dataclass(frozen=True)
class Log:
    """A log, and what is known of the machine that wrote it."""

    trace: Trace
    cores: int
    cores_from: str


def read(a: argparse.Namespace, tenants: Tenants | None) -> Trace:
    """The requests, of the tenants that the files name; Wrong."""
    if a.file.suffix == ".csv":
        return read_csv(a.file)
    return read_log(a.file, a.varnishlog, tenants.tenant if tenants else None)


def log_of(a: argparse.Namespace, trace: Trace, plan: Plan) -> Log:
    """The cores are those of the option, or as many as were busy."""
    if a.log_cores:
        return Log(trace, a.log_cores, "--log-cores")
    return Log(trace, plan.serves.cores, "the busiest ten seconds: use "
               "--log-cores if there were more")


def at_rate(rows: Records, bits: int) -> Records:
    """With other times on net, as varnishd charges them at this rate."""
    if rows["bytes"].min() < 0:
        raise Wrong("--net-rate: a trace in CSV has no bytes: use a log")
    sizes, which = np.unique(rows["bytes"], return_inverse=True)
    times = [min(lib.COST_Net(n, bits * DRAIN // 100, MTU, HEADER), COST_MAX)
             for n in sizes.tolist()]
    rows = rows.copy()
    rows["net"] = np.array(times, np.int64)[which]
    return rows


def with_files(plan: Plan, trace: Trace, tenants: Tenants) -> Plan:
    """What the files say, except for what the options say."""
    entries = {e.name: e for e in tenants}
    of = {n: e for n in trace.tenants
          if (e := entries.get(n) or tenants.each(n))}
    groups = {n: e.group for n, e in of.items() if e.group}
    of |= {g: entries[g] for g in groups.values()}
    return replace(
        plan, groups=groups,
        weights={n: e.weight for n, e in of.items()} | plan.weights,
        reservations={n: e.reservation for n, e in of.items()
                      if e.reservation} | plan.reservations,
        limits={n: e.limit for n, e in of.items() if e.limit} | plan.limits)


def planned(a: argparse.Namespace, trace: Trace,
            tenants: Tenants | None) -> tuple[Log, Plan]:
    """The log, and what to do with it; Wrong."""
    said = argparse.Namespace(
        **vars(a) | {"cores": a.log_cores, "workers": None, "link": "held",
                     "capacity": [], "warm": 0.0})
    groups = {e.group for e in tenants} if tenants else set()
    plan = plan_of(said, trace, groups)
    log = log_of(a, trace, plan)
    rows, end = from_zero(trace.rows)
    if rows["end"].max() >= 0:
        step = step_of(rows, end)
        plan = replace(plan, step=step, capacities=tuple(map(tuple, capacities(
            rows, log.cores, end, step, plan.capacity).tolist())))
    if tenants:
        plan = with_files(plan, trace, tenants)
    cores = a.cores or log.cores
    slots = min(cores * a.workers_per_core, 65535)
    plan = replace(plan, serves=replace(
        plan.serves, workers=slots, cores=cores, closing=True, spells=False))
    check(plan, trace)
    return log, plan


# What comes out

def figures(of: dict[str, Any]) -> dict[str, Any]:
    """A tenant's, as varnishd names them."""
    return {"requests": of["requests"], "cpu_part": of["cpu_share"],
            "net_part": of["link_share"], **{
                f"wait_{k}_s": None if of[f"wait_{k}_ms"] is None
                else of[f"wait_{k}_ms"] / 1000
                for k in ("mean", "p50", "p99")}}


def result(a: argparse.Namespace, log: Log, plan: Plan,
           files: Tenants | None) -> dict[str, Any]:
    """The whole replay, as --json prints it."""
    trace = log.trace
    again = replace(trace, rows=at_rate(trace.rows, a.net_rate)) \
        if a.net_rate else trace
    found = replayed(again, plan, a.policy, recorded=trace, cores=log.cores)
    at = trace.rows["arrival"]
    return {
        "log": {"file": str(a.file), "requests": len(trace.rows),
                "left_out": trace.left_out, "undone": trace.undone,
                "hosts": trace.hosts,
                "seconds": float(at[-1] - at[0]) / SECOND,
                "cores": log.cores, "cores_from": log.cores_from,
                "cpu_capacity": plan.capacity[0],
                "net_capacity": plan.capacity[1]},
        "replay": {"policy": a.policy, "cores": plan.serves.cores,
                   "slots": plan.serves.workers, "net_rate_bps": a.net_rate,
                   "not_in_files": [n for n in trace.tenants if files
                                    and n not in plan.weights]},
        "tenants": sorted(({
            "tenant": t["tenant"], "group": plan.groups.get(t["tenant"]),
            "weight": t["weight"], "loop": t["loop"],
            "log": figures(t["recorded"]) if "recorded" in t else None,
            "replay": figures(t["predicted"]) | {
                "waiting_at_end": t["waiting_at_end"]},
            } for t in found["tenants"]),
            key=lambda t: -(t["log"] or t["replay"])["cpu_part"]),
        "cannot_know": UNKNOWN}


HEAD = ("tenant", "weight", "", "requests", "cpu %", "net %", "wait mean ms",
        "p50 ms", "p99 ms")


def lines_of(tenants: list[dict[str, Any]]) -> list[str]:
    """The table: two lines for each tenant."""
    def numbers(x: dict[str, Any]) -> tuple[object, ...]:
        return (x["requests"], 100 * x["cpu_part"], 100 * x["net_part"], *(
            None if x[k] is None else 1000 * x[k]
            for k in ("wait_mean_s", "wait_p50_s", "wait_p99_s")))

    rows: list[tuple[object, ...]] = []
    for t in tenants[:SHOWN]:
        first: tuple[object, ...] = (t["tenant"], t["weight"])
        if t["log"]:
            rows.append((*first, "log", *numbers(t["log"])))
            first = ("", "")
        rows.append((*first, "replay", *numbers(t["replay"])))
    return [*table(HEAD, rows), *more(tenants)]


def notes(r: dict[str, Any]) -> list[str]:
    """What else to know of a log and its replay."""
    log, again = r["log"], r["replay"]
    lines = []
    if log["left_out"]:
        lines.append(f"requests that are left out: {log['left_out']}. Their "
                     "begin or end is not in the log")
    if log["undone"]:
        lines.append(f"requests without a Sandpaper record: {log['undone']}. "
                     "They were refused, or not done yet")
    if again["not_in_files"]:
        names = again["not_in_files"]
        lines.append(
            f"tenants that are not in the file: {len(names)}. They have weight "
            f"1: {', '.join(names[:SHOWN])}")
    waiting = sum(t["replay"]["waiting_at_end"] for t in r["tenants"])
    if waiting:
        lines.append(f"requests that still wait at the end of the replay: "
                     f"{waiting}. They do not count")
    return lines


def text_of(r: dict[str, Any], *, files: bool) -> list[str]:
    """All that is printed."""
    log, again = r["log"], r["replay"]
    rate = f", net {again['net_rate_bps']} bits/s" if again["net_rate_bps"] \
        else ""
    closed = [t["tenant"] for t in r["tenants"] if t["loop"] == "closed"]
    lines = [
        f"log: {log['seconds']:.1f} s, tenants {len(r['tenants'])}, requests "
        f"{log['requests']}, cores {log['cores']} (from {log['cores_from']})",
        f"     requests could use {log['cpu_capacity']:.3f} of cpu and "
        f"{log['net_capacity']:.3f} of net",
        f"replay: {again['policy']}, cores {again['cores']}, slots "
        f"{again['slots']}{rate}"]
    if files and not log["hosts"]:
        lines.append("the log has no Hosts: each request keeps its tenant, and "
                     "the file gives weights, limits and groups")
    lines += ["", *lines_of(r["tenants"]), "", *notes(r)]
    lines.append("closed loops (a request comes when the one before is "
                 f"answered): {', '.join(closed[:SHOWN]) or 'none'}"
                 + ("" if len(closed) <= SHOWN else ", .."))
    lines.append("A replay cannot know:")
    return lines + [f"- {text}" for text in UNKNOWN]


def run(a: argparse.Namespace) -> None:
    """Read, replay, print; Wrong."""
    known([a.policy])
    files = Tenants(a.tenants) if a.tenants else None
    log, plan = planned(a, read(a, files), files)
    found = result(a, log, plan, files)
    print(json.dumps(found, indent=1) if a.json
          else "\n".join(text_of(found, files=bool(files))))


def main(argv: list[str] | None = None) -> None:
    """The command."""
    a = arguments(sys.argv[1:] if argv is None else argv)
    try:
        run(a)
        sys.stdout.flush()
    except Wrong as e:
        fail(str(e))
    except BrokenPipeError:         # of `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        raise SystemExit(130) from None

