# SPDX-License-Identifier: BSD-2-Clause
"""The command line: sandpaper-bench EXPERIMENT [--json FILE] .."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .abuse import ABUSES, abuse
from .customers import CUSTOMERS, MADE_UP_PAIRS, PAIRS, tenant_map
from .fetch import fetch
from .lab import Lab, Plan, dump, progress
from .latency import latency
from .overhead import overhead
from .pairs import alone, pairs
from .reaper import Reaper
from .scale import scale
from .table import table
from .table1 import table1
from .testbed import BENCH, BUILD, Testbed, TestbedError, parse_cores
from .timeline import content_change, flash_crowd
from .utilization import utilization
from .varnish import Variant
from .vmod import SERIES
from .workers import workers

ALL = "all"
EXPERIMENTS = [ALL, "table1", "pairs", "alone", "overhead", "workers",
               "utilization", "latency", "scale", "content-change",
               "flash-crowd", "fetch", *ABUSES, "rate-unknown", "rate-wrong"]
MAPPED = "random-hosts"  # the experiment that needs a tenant map
STOCK = "stock"
SWITCHES = {"sandpaper": "on", "off": "off", "observe": "observe"}


def as_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs as --pairs takes them."""
    return ",".join("-".join(pair) for pair in pairs)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    build = BENCH.parent / "build"
    p = argparse.ArgumentParser(
        prog="sandpaper-bench",
        description="Measure how fairly one varnishd serves its tenants.")
    p.add_argument("experiment", choices=EXPERIMENTS)
    p.add_argument("--json", type=Path, metavar="FILE",
                   help="write the results there as JSON; for all: a folder")
    p.add_argument("--quick", action="store_true",
                   help="fewer pairs and customers, short turns")
    p.add_argument("--pairs", metavar="A-B,..",
                   help=f"pairs of customers (default {as_text(PAIRS)}; for "
                   f"another Varnish than {SERIES} {as_text(MADE_UP_PAIRS)})")
    p.add_argument("--customers", metavar="A,..",
                   default=",".join(CUSTOMERS),
                   help="for alone and overhead; the first for utilization "
                   "(default %(default)s)")
    p.add_argument("--tenants", default="1,10,100,200,1000,2000",
                   metavar="N,..",
                   help="for scale, 10 connections each, as far as ulimit "
                   "-Hn allows (default %(default)s)")
    p.add_argument("--clients", default="1,2,5,10,20,50,100", metavar="N,..",
                   help="for utilization, connections (default %(default)s)")
    p.add_argument("--slots", default="5,10,20,50,100", metavar="N,..",
                   help="for workers, a core (default %(default)s)")
    p.add_argument("--victim", default="k0", metavar="A",
                   help="for abuse (default %(default)s)")
    p.add_argument("--flood", type=int, default=1_000_000, metavar="N",
                   help="requests of random-hosts (default %(default)s)")
    p.add_argument("--stock", type=Path, default=build / "stock-7.7" / "root",
                   metavar="DIR", help="where stock Varnish is installed")
    p.add_argument("--sandpaper", type=Path, default=build / "7.7" / "root",
                   metavar="DIR", help="where Sandpaper is installed")
    p.add_argument("--variants", default="stock,sandpaper", metavar="A,..",
                   help="of stock, sandpaper, off, observe (the last two: "
                   "Sandpaper's varnishd, switched); default %(default)s")
    p.add_argument("--param", action="append", default=[], metavar="P=V",
                   help="varnishd -p for all variants but stock")
    p.add_argument("--prelude", type=Path, metavar="FILE",
                   help="VCL for all variants but stock: imports, vcl_init")
    p.add_argument("--seconds", type=float, default=6, metavar="S",
                   help="per measurement (default %(default)s)")
    p.add_argument("--warmup", type=float, default=1, metavar="S",
                   help="before each (default %(default)s)")
    p.add_argument("--turns", type=int, default=5, metavar="N",
                   help="of all variants (default %(default)s)")
    p.add_argument("--max-turns", type=int, default=0, metavar="N",
                   help="go on so far while a verdict is unresolved")
    p.add_argument("--target", type=float, default=0.90, metavar="R",
                   help="the ratio claimed (default %(default)s)")
    p.add_argument("--connections", type=int, default=100, metavar="N",
                   help="per tenant (default %(default)s)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--load", choices=["loadgen", "wrk"], default="loadgen")
    p.add_argument("--rate", type=float, default=1.25e9, metavar="BITS/S",
                   help="of the client-facing link (default %(default)g)")
    p.add_argument("--cc", default="reno", metavar="NAME",
                   help="TCP congestion control (default %(default)s)")
    p.add_argument("--proxy-cores", default="0", metavar="LIST")
    p.add_argument("--load-cores", metavar="LIST",
                   help="default: all the others")
    p.add_argument("--loopback", action="store_true",
                   help="no namespaces, no shaping, even if allowed")
    p.add_argument("--unit-us", type=float, metavar="US",
                   help="cost of a unit of VCL work, instead of measuring")
    p.add_argument("--nice", type=int, default=-10, metavar="N",
                   help="priority of everything started, where allowed, as "
                   "other work may share the machine (default %(default)s)")
    return p


def nic_rate(experiment: str, rate: float, shaped: bool) -> tuple[str, ...]:
    """Return what Sandpaper is told of the link's rate, if anything."""
    if not shaped or experiment == "rate-unknown":
        return ("sandpaper_nic_rate=0",)
    factor = 2 if experiment == "rate-wrong" else 1
    return (f"sandpaper_nic_rate={round(rate * factor / 1e6)}M",)


def make_variants(
    args: argparse.Namespace, shaped: bool
) -> list[Variant]:
    """Return the variants that the user asked for."""
    prelude = tenant_map() if args.experiment == MAPPED else ""
    if args.prelude:
        prelude = args.prelude.read_text()
    found = []
    for name in args.variants.split(","):
        if name == STOCK:
            found.append(Variant(STOCK, args.stock.resolve()))
        elif name in SWITCHES:
            found.append(Variant(
                name, args.sandpaper.resolve(),
                (f"sandpaper={SWITCHES[name]}",
                 *nic_rate(args.experiment, args.rate, shaped),
                 *args.param), prelude))
        else:
            raise TestbedError(f"no variant {name}: there are stock "
                               + " ".join(SWITCHES))
    return found


def make_bed(args: argparse.Namespace, reaper: Reaper) -> Testbed:
    """Return the testbed, not yet up."""
    allowed = os.sched_getaffinity(0)
    proxy = parse_cores(args.proxy_cores)
    load = (parse_cores(args.load_cores) if args.load_cores
            else sorted(allowed - set(proxy)) or proxy)
    if not set(proxy + load) <= allowed:
        raise TestbedError(f"cores {proxy + load}: this process may use "
                           f"{sorted(allowed)}")
    bed = Testbed(reaper, proxy, load, args.rate, args.cc, args.loopback)
    progress(f"testbed: {bed.mode}"
             + ("" if bed.shaped else " (no shaping: NIC-bound tenants are "
                "CPU-bound here; run as root for the real thing)")
             + f", varnishd on cores {proxy}, load on {load}")
    return bed


def make_lab(args: argparse.Namespace, reaper: Reaper) -> Lab:
    """Return the laboratory that the arguments describe."""
    bed = make_bed(args, reaper)
    plan = Plan(args.seconds, args.warmup, args.turns, args.max_turns,
                args.connections, args.target, args.seed)
    return Lab(bed, reaper, make_variants(args, bed.shaped), plan,
               args.load == "wrk", args.unit_us)


def chosen_pairs(text: str) -> list[tuple[str, str]]:
    """Parse "c1-c3,c3-c4"."""
    found = []
    for item in text.split(","):
        a, dash, b = item.partition("-")
        if not dash or a == b:
            raise TestbedError(f"'{item}' is no pair such as c1-c3")
        found.append((a, b))
    return found


def wanted_pairs(
    text: str | None, lab: Lab
) -> Sequence[tuple[str, str]]:
    """Return the pairs that --pairs names, or those that can run here."""
    if text is not None:
        return chosen_pairs(text)
    return PAIRS if lab.has_publishers else MADE_UP_PAIRS


def chosen_sizes(option: str, text: str) -> list[int]:
    """Parse "1,10,100"."""
    sizes = [int(n) if n.isdigit() else 0 for n in text.split(",")]
    if min(sizes) < 1:
        raise TestbedError(f"{option} '{text}' is no list of numbers from 1, "
                           "such as 1,10,100")
    return sizes


def shorten(args: argparse.Namespace) -> None:
    """Take less of everything: ten minutes instead of an hour or two."""
    args.seconds, args.turns = min(args.seconds, 2.0), min(args.turns, 3)
    args.pairs, args.customers = "c1-c3,k0-k1", "c1,k0"
    args.tenants, args.slots = "1,200", "10,100"
    args.clients = "1,10,100"
    args.flood = min(args.flood, 100_000)


def experiment(
    name: str, args: argparse.Namespace, lab: Lab
) -> dict[str, Any]:
    """Run one experiment; return its report."""
    args.experiment = name
    lab.variants = make_variants(args, lab.bed.shaped)
    lab.prepare([])  # C1 to C4's VCL only where they are named
    if name == "table1":
        return table1(lab)
    if name == "alone":
        return alone(lab, args.customers.split(","))
    if name == "overhead":
        return overhead(lab, args.customers.split(","))
    if name == "utilization":
        return utilization(lab, args.customers.split(",")[0],
                           chosen_sizes("--clients", args.clients))
    if name == "fetch":
        return fetch(lab)
    if name == "workers":
        return workers(lab, wanted_pairs(args.pairs, lab)[0],
                       chosen_sizes("--slots", args.slots))
    if name == "latency":
        return latency(lab, wanted_pairs(args.pairs, lab))
    if name == "content-change":
        return content_change(lab)
    if name == "flash-crowd":
        return flash_crowd(lab)
    if name == "scale":
        return scale(lab, chosen_sizes("--tenants", args.tenants))
    if name in ABUSES:
        return abuse(lab, name, args.victim, args.flood)
    return pairs(lab, wanted_pairs(args.pairs, lab), name)


def finish(report: dict[str, Any], path: Path | None) -> None:
    """Print the report's table and write its JSON."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump(report))
    print(table(report), flush=True)


def run_all(args: argparse.Namespace, lab: Lab) -> None:
    """Run every experiment, one after the other."""
    folder = args.json or BUILD
    for name in EXPERIMENTS[1:]:
        if name == "table1" and not lab.has_publishers:
            continue
        print(f"\n== {name}", flush=True)
        finish(experiment(name, args, lab), folder / f"{name}.json")
    print(f"\nThe figures are in {folder}/*.json")


def main(argv: list[str] | None = None) -> int:
    """Run one experiment, or all; return the exit status."""
    args = parser().parse_args(argv)
    if args.quick:
        shorten(args)
    reaper = Reaper(args.nice)
    try:
        lab = make_lab(args, reaper)
        if args.experiment == ALL:
            run_all(args, lab)
        else:
            finish(experiment(args.experiment, args, lab), args.json)
    except TestbedError as error:
        print(f"sandpaper-bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        reaper.close()
    return 0
