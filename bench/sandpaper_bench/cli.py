# SPDX-License-Identifier: BSD-2-Clause
"""The command line: sandpaper-bench EXPERIMENT [--json FOLDER] ..

Everything that can be wrong with the arguments is found before anything
starts: an experiment is first a Job, its schedule and what runs it.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from . import journal, record, report, schedule
from .abuse import abuse
from .abuses import ABUSES
from .customers import (
    CUSTOMERS,
    MADE_UP_PAIRS,
    NOOP,
    PAIRS,
    check_names,
    publisher,
    tenant_map,
)
from .fetch import fetch
from .hosts import Hosts
from .journal import Journal
from .lab import Lab, Plan, dump, progress
from .latency import latency
from .nginx import NGINX, PROGRAM, NginxVariant
from .overhead import overhead
from .pace import Schedule, duration
from .pairs import alone, pairs
from .pedigree import TOP, code, digest
from .parts import obstacle as parts_obstacle
from .parts import parts
from .policies import policies
from .publishers import PUBLISHERS
from .reaper import Reaper
from .scale import possible, scale
from .soak import SECONDS as SOAK_SECONDS
from .soak import soak
from .table import abuse_table, align, table
from .table1 import table1
from .testbed import BENCH, BUILD, Testbed, TestbedError, parse_cores
from .timeline import check_phase, content_change, flash_crowd
from .utilization import CORES, own_cores, utilization
from .varnish import Variant
from .vmod import NEEDED, build_places, build_vmod, supported
from .workers import workers

ALL, ABUSE, REPORT, SOAK = "all", "abuse", "report", "soak"
QUICK = "quick"
SECONDS = 4.5
TURNS = 5
REPEATS = {"flash-crowd": 10}  # turns, where five say too little
QUICK_TURNS = 3
EXPERIMENTS = ["table1", "pairs", "alone", "overhead", "workers",
               "utilization", "latency", "scale", "content-change",
               "flash-crowd", "fetch", "policies", "parts", *ABUSES,
               "rate-unknown", "rate-wrong"]
# These go into `all`, the other abuses are for `abuse`.
IN_ALL = ("slow-readers", "random-hosts")
# Not in `all`: one is part of `overhead`, one compares what is ours, one is
# beside the abuses
APART = ("alone", "policies", "parts")
# Left out of a quick `all`: like others that stay, or nothing when short.
LONG = ("workers", "utilization", "flash-crowd", "random-hosts",
        "rate-unknown", "rate-wrong")
# What stock has not
OURS = {"workers": "slots", "fetch": "slots", "utilization": "policies",
        "policies": "policies", SOAK: "counters"}
STOCK = "stock"
SWITCHES = {"sandpaper": "on", "off": "off", "observe": "observe"}


def as_text(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs as --pairs takes them."""
    return ",".join("-".join(pair) for pair in pairs)


class Parser(argparse.ArgumentParser):
    """A parser that ends with one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong."""
        self.exit(2, f"{self.prog}: {message} (--help shows all)\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    build = BENCH.parent / "build"
    p = Parser(
        prog="sandpaper-bench",
        description="Measure how fairly one varnishd serves its tenants, "
        "with stock Varnish and with Sandpaper. bench/README.md describes "
        "each experiment.")
    p.add_argument("experiment", metavar="EXPERIMENT",
                   choices=[*EXPERIMENTS, ALL, ABUSE, SOAK, REPORT, QUICK],
                   help="what to run: quick (two pairs, four minutes), all, "
                   "abuse (all abuses one by one), soak (all abuses at "
                   "once), report (write the page from "
                   "earlier results), or one of " + ", ".join(EXPERIMENTS))
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
                   "experiment's; a NAME is for one experiment, and names the "
                   "files of --json, too)")
    p.add_argument("--quick", action="store_true",
                   help="measure each for a shorter time; with all, also fewer "
                   "pairs and customers")
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
                   help="numbers of tenants of scale, with 10 connections "
                   "each; ulimit -Hn limits them (default %(default)s)")
    p.add_argument("--clients", default="1,5,20,50,100", metavar="N,..",
                   help="numbers of connections of utilization (default "
                   "%(default)s)")
    p.add_argument("--slots", default="5,10,30,100", metavar="N,..",
                   help="slots per core of workers (default %(default)s)")
    p.add_argument("--policies", default="mr3-rs,wfq,2dfq,2dfqe",
                   metavar="NAME,..",
                   help="policies of the experiment policies (default "
                   "%(default)s)")
    p.add_argument("--victim", default="k0", metavar="A",
                   help="the customer that an abuse hurts (default "
                   "%(default)s)")
    p.add_argument("--flood", type=int, default=300_000, metavar="N",
                   help="number of requests of random-hosts (default "
                   "%(default)s)")
    p.add_argument("--stock", type=Path, default=build / "stock-7.7" / "root",
                   metavar="DIR", help="folder of the installed stock Varnish "
                   "(default build/stock-7.7/root)")
    p.add_argument("--sandpaper", type=Path, default=build / "7.7" / "root",
                   metavar="DIR", help="folder of the installed Sandpaper "
                   "(default build/7.7/root)")
    p.add_argument("--variants", default="stock,sandpaper", metavar="A,..",
                   help="what to compare, some of stock, nginx, sandpaper, "
                   "off, observe; off and observe are Sandpaper's varnishd "
                   "with this value of the parameter sandpaper (default "
                   "%(default)s)")
    p.add_argument("--param", action="append", default=[], metavar="P=V",
                   help="set a varnishd parameter in all variants except "
                   "stock; repeat the option for more")
    p.add_argument("--prelude", type=Path, metavar="FILE",
                   help="VCL for all variants except stock, put first: imports "
                   "and vcl_init")
    p.add_argument("--seconds", type=float, metavar="S",
                   help=f"seconds of each measurement (default {SECONDS:g}; "
                   f"{SOAK_SECONDS:g} for soak)")
    p.add_argument("--warmup", type=float, default=1, metavar="S",
                   help="seconds of load before each measurement (default "
                   "%(default)s)")
    p.add_argument("--turns", type=int, metavar="N",
                   help=f"how often each variant is measured (default {TURNS}; "
                   + ", ".join(f"{n} for {e}" for e, n in REPEATS.items())
                   + ")")
    p.add_argument("--max-turns", type=int, default=0, metavar="N",
                   help="measure up to N times while a verdict is unresolved")
    p.add_argument("--target", type=float, default=0.90, metavar="R",
                   help="the ratio that a verdict compares with (default "
                   "%(default)s)")
    p.add_argument("--connections", type=int, default=100, metavar="N",
                   help="connections of each tenant (default %(default)s)")
    p.add_argument("--seed", type=int, default=1,
                   help="seed of the random numbers (default %(default)s)")
    p.add_argument("--load", choices=["loadgen", "wrk"], default="loadgen",
                   help="the load generator (default %(default)s)")
    p.add_argument("--rate", type=float, default=1.25e9, metavar="BITS/S",
                   help="rate of the client-side link (default %(default)g)")
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
    p.add_argument("--unit-us", type=float, metavar="US",
                   help="microseconds of a unit of VCL work (default: measure "
                   "them)")
    p.add_argument("--nice", type=int, default=-10, metavar="N",
                   help="priority of all started programs, where allowed "
                   "(default %(default)s)")
    return p


def nic_rate(experiment: str, rate: float, shaped: bool) -> tuple[str, ...]:
    """Return what Sandpaper is told of the link's rate, if anything."""
    if not shaped or experiment == "rate-unknown":
        return ("sandpaper_nic_rate=0",)
    factor = 2 if experiment == "rate-wrong" else 1
    return (f"sandpaper_nic_rate={round(rate * factor / 1e6)}M",)


def new_hosts(experiment: str) -> tuple[str, ...]:
    """Return what Sandpaper does with Hosts that no map names.

    Where this is not the question, each is a tenant at once: no experiment
    waits until its tenants are proven.
    """
    kind = ABUSES.get(experiment)
    if kind is not None and kind.new:
        return ()
    return ("sandpaper_new_hosts=tenant",)


def make_variants(
    args: argparse.Namespace, shaped: bool
) -> list[Variant]:
    """Return the variants that the user asked for."""
    kind = ABUSES.get(args.experiment)
    prelude = tenant_map() if kind is not None and kind.mapped else ""
    if args.prelude:
        try:
            prelude = args.prelude.read_text()
        except OSError as error:
            raise TestbedError(f"--prelude {args.prelude}: "
                               f"{error.strerror}") from error
    found = []
    for name in args.variants.split(","):
        if name == STOCK:
            found.append(Variant(STOCK, args.stock.resolve()))
        elif name == NGINX:
            found.append(NginxVariant(NGINX, PROGRAM.parent.parent))
        elif name in SWITCHES:
            found.append(Variant(
                name, args.sandpaper.resolve(),
                (f"sandpaper={SWITCHES[name]}",
                 *nic_rate(args.experiment, args.rate, shaped),
                 *new_hosts(args.experiment), *args.param), prelude))
        else:
            raise TestbedError(f"there is no variant {name}: use some of "
                               "stock nginx " + " ".join(SWITCHES))
    return found


def make_bed(args: argparse.Namespace, reaper: Reaper) -> Testbed:
    """Return the testbed, not yet up."""
    if args.inventory:
        hosts = Hosts(reaper, args.inventory, args.rate, args.cc, args.shape)
        progress("testbed: " + ", ".join(map(str, hosts.hosts.values()))
                 + "".join(f"; {name} is not used" for name in hosts.idle))
        return hosts
    allowed = os.sched_getaffinity(0)
    proxy = parse_cores(args.proxy_cores)
    load = (parse_cores(args.load_cores) if args.load_cores
            else sorted(allowed - set(proxy)))
    if not set(proxy + load) <= allowed:
        raise TestbedError(f"cores {proxy + load}: this process may use only "
                           f"{sorted(allowed)}: change --proxy-cores or "
                           "--load-cores")
    if not load:
        raise TestbedError(
            f"cores {sorted(allowed)} are too few: varnishd and the load need "
            "one each; to let them share cores, use --load-cores, too")
    bed = Testbed(reaper, proxy, load, args.rate, args.cc, args.loopback)
    progress(f"testbed: {bed.mode}"
             + ("" if bed.shaped else " (the link is not shaped: net-bound "
                "tenants are CPU-bound here; run as root to shape it)")
             + f", varnishd on cores {proxy}, load on {load}")
    return bed


def make_plan(args: argparse.Namespace, name: str) -> Plan:
    """Return an experiment's plan, of numbers that make sense."""
    turns = args.turns
    if turns is None:
        turns = REPEATS.get(name, TURNS)
    given = vars(args) | {"seconds": seconds_of(args), "turns": turns}
    for option, least in (("seconds", 0.1), ("warmup", 0), ("turns", 1),
                          ("connections", 1), ("rate", 1e6), ("flood", 1)):
        if given[option] < least:
            raise TestbedError(f"--{option} {given[option]:g}: use at least "
                               f"{least:g}")
    return Plan(seconds_of(args), args.warmup, turns, args.max_turns,
                args.connections, args.target, args.seed)


def make_lab(
    args: argparse.Namespace, bed: Testbed, reaper: Reaper,
    journals: Sequence[Journal] = (), folder: Path | None = None,
) -> Lab:
    """Return the laboratory that the arguments describe.

    What is continued has the units of work that it began with.
    """
    units: dict[str, float] = {}
    if folder and journals:
        head = journals[0].head
        units = next((j.calibration for j in journals if j.calibration),
                     journal.calibration(folder, head["code"],
                                         head["machine"]))
    return Lab(bed, reaper, make_variants(args, bed.shaped),
               make_plan(args, args.experiment), args.load == "wrk",
               args.unit_us or units.get("unit_us"), units.get("lua_us"))


def chosen_pairs(text: str) -> list[tuple[str, str]]:
    """Parse "c1-c3,c3-c4"."""
    found = []
    for item in text.split(","):
        a, dash, b = item.partition("-")
        if not dash or a == b:
            raise TestbedError(f"'{item}' is not a pair: use two customers, "
                               "such as c1-c3")
        check_names([a, b])
        found.append((a, b))
    return found


def serves_publishers(args: argparse.Namespace) -> bool:
    """Can C1 to C4 run?  A Varnish that is not there is refused later."""
    roots = {v.root for v in make_variants(args, shaped=False)}
    return all(supported(root) for root in roots if root.exists())


def wanted_pairs(
    name: str, args: argparse.Namespace
) -> Sequence[tuple[str, str]]:
    """Return the pairs that --pairs names, or those that can run here."""
    if args.pairs is not None:
        return chosen_pairs(args.pairs)
    every = PAIRS if serves_publishers(args) else MADE_UP_PAIRS
    few = args.quick and args.experiment == ALL
    return every if name == "pairs" and not few else every[:1]


def wanted_customers(name: str, args: argparse.Namespace) -> list[str]:
    """Return the customers that --customers names, or those of the plan."""
    if args.customers is not None and name != "table1":
        found: list[str] = args.customers.split(",")
        check_names(found)
        return found
    few = args.quick and args.experiment == ALL
    if name == "alone":
        return ["c1", NOOP] if few else [*CUSTOMERS]
    realistic = PUBLISHERS if serves_publishers(args) else CUSTOMERS
    found = [n for n in realistic if n[0] in "Cc"]
    if name == "table1":
        return found[::2] if few else found
    if name == "overhead" and few:
        return [NOOP]
    return [*found, NOOP]


def chosen_sizes(option: str, text: str) -> list[int]:
    """Parse "1,10,100"."""
    sizes = [int(n) if n.isdigit() else 0 for n in text.split(",")]
    if min(sizes) < 1:
        raise TestbedError(f"{option} '{text}' is not a list of numbers: use "
                           "numbers from 1, such as 1,10,100")
    return sizes


def seconds_of(
    args: argparse.Namespace, default: float = SECONDS
) -> float:
    """Return --seconds, or how long an experiment takes without."""
    return default if args.seconds is None else args.seconds


def shorten(args: argparse.Namespace) -> None:
    """Take less of everything: minutes instead of an hour or two."""
    args.seconds = min(seconds_of(args), 2.0)
    args.turns = min(QUICK_TURNS if args.turns is None else args.turns,
                     QUICK_TURNS)
    if args.experiment not in (ABUSE, *ABUSES):
        # Clients that pipeline need most of a second to fill their sockets.
        args.warmup = min(args.warmup, 0.3)
    if args.experiment == ALL:
        args.tenants, args.slots, args.clients = "200", "10,100", "10,100"
    args.flood = min(args.flood, 10_000)


@dataclass(frozen=True)
class Job:
    """An experiment that can run: how long its turns take, and how."""

    name: str
    schedule: Schedule
    run: Callable[[Lab], dict[str, Any]]
    customers: Sequence[str] = ()

    @property
    def seconds(self) -> float:
        """Return how long it takes, undisturbed."""
        return sum(self.schedule)


def named(chosen: Sequence[tuple[str, str]]) -> list[str]:
    """Return the customers of pairs."""
    return [name for pair in chosen for name in pair]


def obstacle(
    name: str, args: argparse.Namespace, bed: Testbed
) -> str | None:
    """Return what the experiment lacks on this machine, if anything."""
    if name in ("table1", "policies") and not serves_publishers(args):
        return f"C1 to C4, and they need Varnish {NEEDED}"
    if name == "content-change" and not bed.shaped:
        return "a shaped link, and loopback has none: run it as root"
    if name == "utilization" and len(own_cores(bed)) < CORES:
        return f"{CORES} cores, not {own_cores(bed)}"
    if name == "parts":
        return parts_obstacle()
    if name in ABUSES and not ABUSES[name].runs_on(bed):
        return f"{ABUSES[name].needs}: run it as root, on one machine"
    return None


def check_variants(name: str, variants: Sequence[str]) -> None:
    """What is compared has to be there."""
    if name in ("alone", "overhead", "scale") and len(variants) != 2:
        raise TestbedError(f"{name} compares two variants: use --variants a,b")
    if set(variants) <= {STOCK} and name in OURS:
        raise TestbedError(f"{name} needs Sandpaper's {OURS[name]}: use "
                           "--variants stock,sandpaper")


def customers_job(
    name: str, args: argparse.Namespace, plan: Plan, many: int
) -> Job:
    """Return an experiment of customers that are each alone, as a job."""
    names = wanted_customers(name, args)
    number = len(names)
    if name == "table1":
        return Job(name, schedule.table1(plan, many, number),
                   partial(table1, names=names), names)
    if name == "alone":
        return Job(name, schedule.alone(plan, number),
                   partial(alone, names=names), names)
    if name == "overhead":
        return Job(name, schedule.overhead(plan, number),
                   partial(overhead, names=names), names)
    clients = chosen_sizes("--clients", args.clients)
    return Job(name, schedule.utilization(plan, many, len(clients)),
               partial(utilization, name=names[0], clients=clients),
               names[:1])


def make_job(name: str, args: argparse.Namespace, bed: Testbed) -> Job:
    """Return the experiment as a job; an error if it can't run so."""
    plan, variants = make_plan(args, name), args.variants.split(",")
    many = len(variants)
    check_variants(name, variants)
    lacks = obstacle(name, args, bed)
    if lacks:
        raise TestbedError(f"{name} needs {lacks}")
    if name in ("content-change", "flash-crowd"):
        check_phase(plan.seconds)
    if name in ("table1", "alone", "overhead", "utilization"):
        return customers_job(name, args, plan, many)
    if name == "fetch":
        return Job(name, schedule.fetch(plan, many), fetch)
    if name == "policies":
        wanted = args.policies.split(",")
        return Job(name, schedule.policies(plan, len(wanted)),
                   partial(policies, names=wanted))
    if name == "scale":
        sizes = possible(chosen_sizes("--tenants", args.tenants))
        return Job(name, schedule.scale(plan, sizes),
                   partial(scale, sizes=sizes))
    if name == "content-change":
        return Job(name, schedule.content_change(plan, many), content_change)
    if name == "flash-crowd":
        return Job(name, schedule.flash_crowd(plan, many), flash_crowd)
    if name == "parts":
        check_names([args.victim])
        return Job(name, schedule.parts(plan, many),
                   partial(parts, victim=args.victim), [args.victim])
    if name == SOAK:
        seconds = seconds_of(args, SOAK_SECONDS)
        ours = sum(v in SWITCHES for v in variants)
        return Job(name, schedule.soak(ours, seconds),
                   partial(soak, seconds=seconds))
    if name in ABUSES:
        check_names([args.victim])
        return Job(name, schedule.abuse(plan, many, name, args.flood),
                   partial(abuse, name=name, victim=args.victim,
                           flood=args.flood), [args.victim])
    chosen = wanted_pairs(name, args)
    if name == "workers":
        slots = chosen_sizes("--slots", args.slots)
        return Job(name, schedule.workers(plan, len(slots)),
                   partial(workers, pair=chosen[0], slots=slots), chosen[0])
    if name == "latency":
        return Job(name, schedule.latency(plan, many, len(chosen)),
                   partial(latency, chosen=chosen), named(chosen))
    return Job(name, schedule.pairs(plan, many, len(chosen)),
               partial(pairs, chosen=chosen, experiment=name),
               named(chosen))


def experiments(args: argparse.Namespace, bed: Testbed) -> list[str]:
    """Return what `all` or `abuse` runs here; say what it leaves out."""
    names = []
    for name in ABUSES if args.experiment == ABUSE else EXPERIMENTS:
        if args.experiment == ALL and (name in APART or (
                name in ABUSES and name not in IN_ALL)):
            continue
        lacks = obstacle(name, args, bed)
        if lacks:
            progress(f"{name} is left out: it needs {lacks}")
        elif not (args.quick and args.experiment == ALL and name in LONG):
            names.append(name)
    if args.quick and args.experiment == ALL:
        progress(f"--quick leaves out: {', '.join(LONG)}")
    return names


def make_jobs(args: argparse.Namespace, bed: Testbed) -> list[Job]:
    """Return what to run, and say how long it takes."""
    names = [args.experiment]
    if args.experiment in (ALL, ABUSE):
        names = experiments(args, bed)
    jobs = [make_job(name, args, bed) for name in names]
    for job in jobs if len(jobs) > 1 else []:
        progress(f"  {job.name:<15} {len(job.schedule):4} turns  "
                 f"{duration(job.seconds):>10}")
    progress(f"this takes about {duration(sum(j.seconds for j in jobs))}, "
             "longer if other work disturbs it")
    return jobs


def build_publishers(args: argparse.Namespace, jobs: Sequence[Job]) -> None:
    """Build what C1 to C4 need, if a job names one: it may be missing."""
    if any(publisher(name) for job in jobs for name in job.customers):
        for variant in make_variants(args, shaped=False):
            _ = variant.program
            if variant.name == NGINX:
                raise TestbedError(f"{NGINX} has no C1 to C4: use made-up "
                                   "customers, such as --pairs c1-c3")
            build_vmod(variant.root)
        build_places()


def run_job(
    job: Job, args: argparse.Namespace, lab: Lab, kept: Journal
) -> dict[str, Any]:
    """Run one experiment; return its report."""
    lab.variants = job_variants(job, args, lab.bed)
    lab.plan = make_plan(args, job.name)
    lab.prepare(job.customers)
    lab.begin(job.schedule, kept)
    return job.run(lab)


def job_variants(
    job: Job, args: argparse.Namespace, bed: Testbed
) -> list[Variant]:
    """Return the variants of one of several experiments."""
    return make_variants(
        argparse.Namespace(**vars(args) | {"experiment": job.name}),
        bed.shaped)


def folder_of(args: argparse.Namespace) -> Path | None:
    """Return where results go, if anywhere; it is writable."""
    folder: Path | None = args.json
    if folder is None:
        if args.experiment not in (ALL, ABUSE):
            return None
        folder = BUILD
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TestbedError(f"--json {folder}: {error.strerror}: use a "
                           "folder") from error
    if not os.access(folder, os.W_OK):
        raise TestbedError(f"--json {folder}: cannot be written: use another "
                           "folder")
    return folder


def relative(text: str) -> str:
    """Return text without the folder that the work tree is in."""
    return text.replace(f"{TOP}/", "")


def published(program: str, words: Sequence[str]) -> str:
    """Return a command as a record has it: without where results go."""
    kept, left = [program], list(words)
    while left:
        word = left.pop(0)
        option = word.partition("=")[0]
        if option not in ("--json", "--anew", "--record"):
            kept.append(word)
        elif "=" not in word and left and (
                option == "--json"
                or option == "--record" and not left[0].startswith("-")):
            del left[0]
    return relative(shlex.join(kept))


# What changes no window: where results go, and which turns there are
NOT_OF_WINDOWS = ("anew", "command", "experiment", "json", "record", "pairs",
                  "customers", "tenants", "slots", "clients", "policies")


def make_head(
    name: str, args: argparse.Namespace, bed: Testbed,
    source: dict[str, Any], variants: Sequence[Variant],
) -> dict[str, Any]:
    """Return what has to be the same when an experiment is continued."""
    machine = bed.describe()
    for moves in ("load_average_at_start", "congestion_control"):
        machine.pop(moves, None)
    return {
        "experiment": name,
        "code": {k: source[k] for k in ("code", "changes")},
        "machine": machine,
        "programs": {v.name: digest(v.program) for v in variants},
        "options": {k: relative(str(v)) if isinstance(v, Path) else v
                    for k, v in vars(args).items()
                    if k not in NOT_OF_WINDOWS},
    }


def journal_path(
    args: argparse.Namespace, folder: Path | None, name: str
) -> Path | None:
    """Return where a journal is; --anew begins it again."""
    path = folder and folder / f"{name}{journal.SUFFIX}"
    if path and args.anew:
        path.unlink(missing_ok=True)
    return path


def make_journals(
    args: argparse.Namespace, jobs: Sequence[Job], bed: Testbed,
    folder: Path | None,
) -> list[Journal]:
    """Return each job's journal; an error if one is of another run."""
    source, found = code(), []
    for job in jobs:
        found.append(Journal(
            make_head(job.name, args, bed, source,
                      job_variants(job, args, bed)),
            journal_path(args, folder, args.record or job.name),
            {"source": source, "command": args.command}))
    return found


def run_jobs(
    args: argparse.Namespace, jobs: Sequence[Job], lab: Lab,
    journals: Sequence[Journal], folder: Path | None,
) -> list[dict[str, Any]]:
    """Run one experiment after the other; print and write each."""
    reports = []
    for number, (job, kept) in enumerate(zip(jobs, journals, strict=True)):
        if len(jobs) > 1:
            left = sum(j.seconds for j in jobs[number:])
            print(f"\n== {job.name}: {number + 1} of {len(jobs)}, about "
                  f"{duration(left)} left", flush=True)
        found = run_job(job, args, lab, kept)
        if folder:
            (folder / f"{args.record or job.name}.json").write_text(
                dump(found))
        print(table(found), flush=True)
        if args.record is not None:
            progress(f"recorded in {record.write(found, args.record)}")
        reports.append(found)
    return reports


def verdicts(reports: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return which abuses ran under Sandpaper, and in what each failed."""
    return {f"{report['experiment']}, {r['variant']}": r["failed"]
            for report in reports for r in report["results"]
            if r["variant"] in SWITCHES}


def run(args: argparse.Namespace, reaper: Reaper) -> int:
    """Run what was asked for; `all` ends with a page.

    The status is 1 if that was an abuse, or all, and one failed; the last
    line then says how many.
    """
    abuses = args.experiment in (ABUSE, SOAK, *ABUSES)
    whole = args.experiment == ALL
    if whole:
        report.check_plots()
    if args.record is not None:
        record.check()
    bed = make_bed(args, reaper)
    jobs = make_jobs(args, bed)
    if args.record and len(jobs) > 1:
        raise TestbedError(f"--record {args.record}: a name is for one "
                           "experiment: use --record alone")
    folder = folder_of(args)
    build_publishers(args, jobs)
    journals = make_journals(args, jobs, bed, folder)
    lab = make_lab(args, bed, reaper, journals, folder)
    reports = run_jobs(args, jobs, lab, journals, folder)
    if whole and folder:
        files = [folder / f"{job.name}.json" for job in jobs]
        print(f"\n{report.write(folder, files)}")
    if not abuses:
        return 0
    if len(reports) > 1:
        every = [r for found in reports for r in found["results"]]
        print("\n" + align(*abuse_table(every)))
    found = verdicts(reports)
    failed = {name: what for name, what in found.items() if what}
    for name, what in failed.items():
        print(f"FAILED {name}: {what}")
    print(f"{len(found) - len(failed)} passed, {len(failed)} failed",
          flush=True)
    return 1 if failed else 0


def run_quick(args: argparse.Namespace, reaper: Reaper) -> int:
    """Run the shortest experiment."""
    from . import quick

    folder = folder_of(args)
    found = quick.run(args, reaper)
    if folder:
        (folder / f"{QUICK}.json").write_text(dump(found))
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run one experiment, or all; return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    args = parser().parse_args(words)
    args.command = published("bench/sandpaper-bench", words)
    if args.quick:
        shorten(args)
    reaper = None
    try:
        if args.experiment == REPORT:
            print(report.write(args.json or BUILD))
        else:
            reaper = Reaper(args.nice)
            if args.experiment == QUICK:
                return run_quick(args, reaper)
            return run(args, reaper)
    except TestbedError as error:
        print(f"sandpaper-bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        if reaper is not None:
            reaper.close()
    return 0
