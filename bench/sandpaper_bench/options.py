# SPDX-License-Identifier: BSD-2-Clause
"""The options of sandpaper-bench, and what an experiment gets of them.

A wrong value is an error here, before anything starts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from .abuses import ABUSES
from .ask import Ask
from .command import number
from .customers import MADE_UP_PAIRS, PAIRS
from .experiments import EXPERIMENTS
from .reaper import NICE
from .rig import Plan
from .runner import SECONDS, TURNS, Experiment
from .scale import CONNECTIONS
from .testbed import BENCH, RATE_BPS, Testbed, TestbedError
from .variants import make_variants
from .vmod import NEEDED

ALL, ABUSE, REPORT, SOAK, QUICK = "all", "abuse", "report", "soak", "quick"
BUILT = BENCH.parent / "build"
# --quick: at most
QUICK_SECONDS, QUICK_TURNS, QUICK_WARMUP, QUICK_FLOOD = 2.0, 3, 0.3, 10_000


class Parser(argparse.ArgumentParser):
    """A parser that ends with one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong."""
        self.exit(2, f"{self.prog}: {message} (--help shows all)\n")


def as_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs as --pairs takes them."""
    return ",".join("-".join(pair) for pair in pairs)


def experiment(name: str) -> str:
    """Return the name of what to run; argparse's type of it."""
    known = [*EXPERIMENTS, ALL, ABUSE, REPORT]
    if name in known:
        return name
    near = get_close_matches(name, known, n=1)
    raise argparse.ArgumentTypeError(
        f"there is no experiment '{name}': " + (
            f"did you mean {near[0]}?" if near
            else "use quick, pairs, all or report, for example"))


def usual(field: str, default: float) -> str:
    """Return an option's default, and those of other experiments."""
    others = [f"; {value:g} for {e.name}" for e in EXPERIMENTS.values()
              if (value := getattr(e, field)) != default]
    return f"default {default:g}" + "".join(others)


def what_to_run(p: Parser) -> None:
    """Add what is measured, and where the results go."""
    p.add_argument("experiment", metavar="EXPERIMENT", type=experiment,
                   help="what to run: quick (two pairs of tenants), all, "
                   "abuse (all abuses one by one), soak (most abuses at "
                   "once), report (write the page from "
                   "earlier results), or one of " + ", ".join(
                       n for n in EXPERIMENTS if n not in (SOAK, QUICK)))
    p.add_argument("--json", type=Path, metavar="FOLDER",
                   help="write the results to FOLDER/EXPERIMENT.json, and each "
                   "window at its end to FOLDER/EXPERIMENT.windows.jsonl. "
                   "After an interruption the same command continues (default "
                   "with all, abuse and report: build/bench; with others: "
                   "nothing is written)")
    p.add_argument("--anew", action="store_true",
                   help="do not continue: measure again what --json has")
    p.add_argument("--record", nargs="?", const="", metavar="NAME",
                   help="also write each result to bench/results/NAME.json, "
                   "for the figures in the documentation (default NAME: the "
                   "experiment's; with all and abuse, EXPERIMENT-NAME; NAME "
                   "names the files of --json, too)")
    p.add_argument("--quick", action="store_true",
                   help="measure each for a shorter time; with all, also fewer "
                   "pairs and customers")


def of_some(p: Parser) -> None:
    """Add the options of some experiments."""
    p.add_argument("--pairs", metavar="A-B,..",
                   help="pairs of customers to measure (default "
                   f"{as_text(PAIRS)}; if Varnish is not {NEEDED}: "
                   f"{as_text(MADE_UP_PAIRS)}); experiments other than pairs "
                   "use the first one by default")
    p.add_argument("--customers", metavar="A,..",
                   help="customers of alone (default: the made-up ones), of "
                   "overhead (default C1,C2,C3,C4,k0) and of utilization "
                   "(only the first, default C1)")
    p.add_argument("--tenants", default="1,10,100,200,1000,2000",
                   metavar="N,..",
                   help=f"numbers of tenants of scale, with {CONNECTIONS} "
                   "connections each; ulimit -Hn limits them (default "
                   "%(default)s)")
    p.add_argument("--clients", default="1,5,20,50,100", metavar="N,..",
                   help="numbers of connections of utilization (default "
                   "%(default)s)")
    p.add_argument("--slots", default="5,10,30,100", metavar="N,..",
                   help="slots per core of workers (default %(default)s)")
    p.add_argument("--policies", default="mr3-rs,wfq,2dfq,2dfqe",
                   metavar="NAME,..",
                   help="policies of the experiment policies (default "
                   "%(default)s)")
    p.add_argument("--controllers", metavar="NAME,..",
                   default="limit,codel,seda,seda-scaled,gradient,credits,time",
                   help="values of sandpaper_overload that overload compares; "
                   "none: sets no parameter of overload; load-check takes the "
                   "last one (default %(default)s)")
    p.add_argument("--cases", default="loads,neighbours,changes,retries,cheap",
                   metavar="NAME,..",
                   help="cases of overload (default %(default)s)")
    p.add_argument("--victim", default="k0", metavar="A",
                   help="the customer that an abuse hurts (default "
                   "%(default)s)")
    p.add_argument("--flood", type=number(1, 10**7, whole=True),
                   default=300_000, metavar="N",
                   help="number of requests of random-hosts (default "
                   "%(default)s)")


def what_to_compare(p: Parser) -> None:
    """Add the variants."""
    p.add_argument("--stock", type=Path, default=BUILT / "stock-7.7" / "root",
                   metavar="DIR", help="folder of the installed stock Varnish "
                   "(default build/stock-7.7/root)")
    p.add_argument("--sandpaper", type=Path, default=BUILT / "7.7" / "root",
                   metavar="DIR", help="folder of the installed Sandpaper "
                   "(default build/7.7/root)")
    p.add_argument("--variants", default="stock,sandpaper", metavar="A,..",
                   help="what to compare, some of stock, nginx, sandpaper, "
                   "off, observe; off and observe are Sandpaper's varnishd "
                   "with this value of the parameter sandpaper (default "
                   "%(default)s)")
    p.add_argument("--param", action="append", default=[], metavar="P=V",
                   help="set a varnishd parameter in all variants of "
                   "Sandpaper; repeat the option for more")
    p.add_argument("--prelude", type=Path, metavar="FILE",
                   help="VCL for all variants of Sandpaper, put first: imports "
                   "and vcl_init")


def how_long(p: Parser) -> None:
    """Add the plan."""
    p.add_argument("--seconds", type=number(0.1, 3600), metavar="S",
                   help="seconds of each measurement "
                   f"({usual('seconds', SECONDS)})")
    p.add_argument("--warmup", type=number(0, 3600), default=1, metavar="S",
                   help="seconds of load before each measurement (default "
                   "%(default)s)")
    p.add_argument("--turns", type=number(1, 1000, whole=True), metavar="N",
                   help="how often each variant is measured "
                   f"({usual('turns', TURNS)})")
    p.add_argument("--max-turns", type=number(0, 1000, whole=True),
                   default=0, metavar="N",
                   help="measure up to N times while a verdict is unresolved")
    p.add_argument("--target", type=number(0, 1), default=0.90, metavar="R",
                   help="the ratio that a verdict compares with (default "
                   "%(default)s)")
    p.add_argument("--connections", type=number(1, 20000, whole=True),
                   default=100, metavar="N",
                   help="connections of each tenant (default %(default)s)")
    p.add_argument("--seed", type=number(0, 2**31, whole=True), default=1,
                   help="seed of the random numbers (default %(default)s)")
    p.add_argument("--load", choices=["loadgen", "wrk"], default="loadgen",
                   help="the load generator (default %(default)s)")


def where_to_run(p: Parser) -> None:
    """Add the testbed."""
    p.add_argument("--rate", type=number(1e6, 1e12, rate=True),
                   default=RATE_BPS, metavar="BITS/S",
                   help="rate of the client-side link, also with a suffix k, "
                   "M or G (default 1250M)")
    p.add_argument("--cc", default="reno", metavar="NAME",
                   help="TCP congestion control (default %(default)s)")
    p.add_argument("--proxy-cores", default="0", metavar="LIST",
                   help="cores of varnishd, such as 0,2-3 (default "
                   "%(default)s)")
    p.add_argument("--load-cores", metavar="LIST",
                   help="cores of load and origin (default: all others)")
    p.add_argument("--loopback", action="store_true",
                   help="use the loopback interface, without namespaces and "
                   "without a shaped link, even as root")
    p.add_argument("--inventory", type=Path, metavar="FILE",
                   help="run on several machines: an Ansible inventory with "
                   "client, proxy and origin; --rate is then the rate of the "
                   "proxy's link")
    p.add_argument("--shape", action="store_true",
                   help="with --inventory: limit the proxy's link to --rate")
    p.add_argument("--unit-us", type=number(0.1, 1000), metavar="US",
                   help="microseconds of a unit of VCL work (default: measure "
                   "them)")
    p.add_argument("--nice", type=number(-20, 19, whole=True),
                   default=NICE, metavar="N",
                   help="priority of all started programs, where allowed "
                   "(default %(default)s)")


def parser() -> Parser:
    """Return the parser of the command line."""
    p = Parser(
        prog="sandpaper-bench",
        description="Measure how fairly one varnishd serves its tenants, "
        "with stock Varnish and with Sandpaper. bench/README.md describes "
        "each experiment.")
    for add in (what_to_run, of_some, what_to_compare, how_long,
                where_to_run):
        add(p)
    return p


def shorten(args: argparse.Namespace) -> None:
    """Take less of everything: minutes instead of hours."""
    def at_most(value: float | None, limit: float) -> float:
        return limit if value is None else min(value, limit)

    args.seconds = at_most(args.seconds, QUICK_SECONDS)
    args.turns = at_most(args.turns, QUICK_TURNS)
    if args.experiment not in (ABUSE, *ABUSES):
        # Clients that pipeline need most of a second to fill their sockets.
        args.warmup = at_most(args.warmup, QUICK_WARMUP)
    if args.experiment == ALL:
        args.tenants = "200"
    args.flood = at_most(args.flood, QUICK_FLOOD)


def make_plan(args: argparse.Namespace, experiment: Experiment) -> Plan:
    """Return an experiment's plan."""
    seconds = experiment.seconds if args.seconds is None else args.seconds
    turns = experiment.turns if args.turns is None else args.turns
    return Plan(seconds, args.warmup, turns, args.max_turns,
                args.connections, args.target, args.seed)


def make_ask(
    experiment: Experiment, args: argparse.Namespace, bed: Testbed
) -> Ask:
    """Return what is asked of an experiment; an error if it cannot do it."""
    name, plan = experiment.name, make_plan(args, experiment)
    variants = make_variants(name, args, bed.shaped)
    if experiment.compares_two and len(variants) != 2:
        raise TestbedError(f"{name} compares two variants: use --variants a,b")
    if experiment.needs and not any(v.parameters for v in variants):
        raise TestbedError(f"{name} needs Sandpaper's {experiment.needs}: use "
                           "--variants stock,sandpaper")
    return Ask(name, args, plan, variants, bed,
               few=args.quick and args.experiment == ALL)
