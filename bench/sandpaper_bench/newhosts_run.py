# SPDX-License-Identifier: BSD-2-Clause
"""`bench/new-hosts`: a tenant beside clients that invent Hosts, in time.

There is no map, and all settings are Sandpaper's own.  A turn is a script of
newhosts.py, in which each window begins at a fixed second, or one of these:

sparse    a site with few visitors, alone, beside the victim, beside the abuse
pair      two real sites (--victim A,B), nobody else: when they are proven
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import record
from .abuse import abused, is_proven, prove
from .abuses import Abuse
from .ask import check_once
from .command import number, run_command
from .customers import CUSTOMERS, TWIN, path, tenant_map
from .experiments import EXPERIMENTS
from .load import Group, GroupResult, WorkerDied
from .newhosts import (
    EVERY,
    Script,
    newcomer_script,
    proven_script,
    quotients,
    summary,
    turns_script,
)
from .options import Parser, make_plan
from .options import parser as bench_parser
from .reaper import NICE, Reaper
from .resume import folder_of, make_journals
from .rig import Rig, progress
from .testbed import BENCH, RATE_BPS, TestbedError
from .variants import make_bed, nic_rate
from .varnish import Variant, Varnish

PROOF_SECONDS = 60.0
SITES, SPARSE_SECONDS = 14, 30.0
PAIR_SECONDS = 20.0
COUNTERS = ("new_hosts", "new_proven", "new_again", "tenants",
            "tenants_overflow", "refused", "shed")


def facts(varnish: Varnish, ours: bool) -> dict[str, Any]:
    """Return what varnishd says of itself."""
    found: dict[str, Any] = {
        "memory_mb": round(varnish.rss_bytes() / 2**20, 1),
        "threads": varnish.threads()}
    if ours:
        counters = varnish.gauges([f"SANDPAPER.{c}" for c in COUNTERS])
        found |= {n.partition(".")[2]: v for n, v in counters.items()}
    return found


def brief(seen: GroupResult) -> dict[str, Any]:
    """Return what is worth keeping of a group."""
    return {"rps": round(seen.rps, 1), "p50_ms": round(seen.p50_s * 1e3, 3),
            "p99_ms": round(seen.p99_s * 1e3, 3), "errors": seen.errors,
            "not_200": seen.not_200, "unanswered": seen.unanswered}


def by_second(seen: Sequence[GroupResult], seconds: float) -> str:
    """Return how many requests of these groups were answered each second.

    The load settles for the first 0.2 s of each group, which do not count.
    """
    slices = [sum(s.slices[i] for s in seen)
              for i in range(int(seconds * 10))]
    return " ".join(str(sum(slices[i:i + 10]))
                    for i in range(0, len(slices), 10))


def turn(
    rig: Rig, variant: Variant, script: Script, kind: Abuse, victim: Group,
    quickly: bool, jump: Sequence[float],
) -> dict[str, Any]:
    """Run a script once."""
    ours = bool(variant.parameters)
    with rig.varnish(abused(variant, kind)) as varnish:
        rig.load.prime(varnish, [victim])
        rps = 0.0
        if not script.starts:
            rps = rig.load.measure(varnish, [victim], 3.0)[victim.name].rps
            if quickly:
                prove(rig.load, varnish, victim)
        before = facts(varnish, ours)
        cpu = varnish.cpu_seconds()
        groups = script.groups(victim, rps, kind.groups)
        timer = threading.Timer(
            script.abused[0][0] + jump[0], varnish.cli,
            ("debug.sandpaper.age", f"{jump[1]:.0f}"))
        timer.daemon = True
        try:
            if jump[1] and ours:
                timer.start()
            seen = rig.load.disturbed(varnish, groups, script.seconds, 0.0)
        finally:
            timer.cancel()
        died = varnish.restarted() or varnish.panicked()
        after = {} if died else facts(varnish, ours) | {
            "cpu_s": round(varnish.cpu_seconds() - cpu, 2)}
        proven = ours and not died and is_proven(varnish, victim.host)
    found = {name: brief(s) for name, s in seen.items()
             if not name.startswith(("until", "abuser"))}
    attack = [s for name, s in seen.items() if name.startswith("abuser")]
    return {
        "variant": variant.name, "windows": found, "died": died,
        "abusive_rps": round(sum(s.rps for s in attack), 1),
        "abusive_requests": sum(s.sent_in_all for s in attack),
        "victim_by_second": by_second(
            [s for n, s in seen.items() if not n.startswith("abuser")],
            script.seconds),
        "abused_s": [list(a) for a in script.abused],
        "victim_starts_s": script.starts,
        "before": before, "after": after, "victim_proven_at_end": proven,
    }


def sparse_turn(
    rig: Rig, variant: Variant, kind: Abuse, victim: Group, new: bool
) -> dict[str, Any]:
    """Ask for pages of sites with so few visitors that they stay new.

    Each of SITES has a request every 6.7 s: never in 10 of 60 seconds.  That
    is two requests a second, and as rare for each as one a minute.
    """
    site = Group("site", "many.example", path("k0"), "paced", SITES,
                 2 / SITES, hosts=SITES)
    found: dict[str, Any] = {"variant": variant.name}
    with rig.varnish(abused(variant, kind)) as varnish:
        rig.load.prime(varnish, [victim, *(
            replace(site, host=f"h{n}.{site.host}", hosts=0)
            for n in range(SITES))])
        if new:
            prove(rig.load, varnish, victim)
        for name, others in (("idle", ()), ("beside", (victim,)),
                             ("idle again", ()), ("abused", kind.groups)):
            seen = rig.load.disturbed(
                varnish, [site, *others], SPARSE_SECONDS, 0.0)["site"]
            found[name] = brief(seen) | {"requests": seen.sent_in_all}
        rig.load.check([varnish])
        found["after"] = facts(varnish, bool(variant.parameters))
    return found


class Watch(threading.Thread):
    """Looks until these Hosts are tenants, for so long."""

    def __init__(
        self, varnish: Varnish, hosts: Sequence[str], seconds: float
    ) -> None:
        super().__init__(daemon=True)
        self._after_s: dict[str, float] = {}
        self._error: TestbedError | None = None
        self._varnish, self._hosts, self._seconds = varnish, hosts, seconds

    def run(self) -> None:
        """Look; keep what keeps it from looking."""
        try:
            self._look()
        except TestbedError as error:
            self._error = error

    def _look(self) -> None:
        """Look five times a second."""
        begin = time.monotonic()
        while (len(self._after_s) < len(self._hosts)
               and time.monotonic() - begin < self._seconds):
            for name in self._hosts:
                if name not in self._after_s and is_proven(
                        self._varnish, name):
                    self._after_s[name] = round(time.monotonic() - begin, 1)
            time.sleep(0.2)

    def after_s(self) -> dict[str, float]:
        """Return after how many seconds each was one, once it has ended."""
        if self._error is not None:
            raise self._error
        return self._after_s


def pair_turn(
    rig: Rig, variant: Variant, names: Sequence[str], new: bool
) -> dict[str, Any]:
    """Measure two real sites, each alone and both, when they are proven."""
    groups = [rig.tenant(name) for name in names]
    found: dict[str, Any] = {"variant": variant.name}
    with rig.varnish(variant) as varnish:
        rig.load.prime(varnish, groups)
        if new:
            watch = Watch(varnish, [g.host for g in groups], PAIR_SECONDS)
            watch.start()
            rig.load.disturbed(varnish, groups, PAIR_SECONDS, 0.0)
            watch.join()
            rig.load.check([varnish])
            found["proven_after_s"] = watch.after_s()
        a, b = groups
        seen = rig.in_phases(
            [(varnish, [a]), (varnish, groups), (varnish, [b])]).phases
    alone = seen[0][a.name].rps, seen[2][b.name].rps
    both = seen[1][a.name].rps, seen[1][b.name].rps
    norm = [t / s for t, s in zip(both, alone, strict=True)]
    return found | {
        "alone_rps": alone, "both_rps": both, "normalised": norm,
        "ratio": min(norm) / max(norm)}


def seconds(option: str, text: str) -> list[float]:
    """Return the seconds that an option says, by commas."""
    try:
        return [number(0, 3600)(part) for part in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise TestbedError(f"{option} {text}: {error}") from error


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    p = Parser(
        prog="new-hosts", description="Measure a tenant beside clients that "
        "invent Hosts, without a map.")
    p.add_argument("case", choices=sorted(EVERY))
    p.add_argument("--script", default="proven",
                   choices=["proven", "turns", "newcomer", "sparse", "pair"])
    p.add_argument("--victim", default="k0")
    p.add_argument("--variants", default="sandpaper",
                   help="of stock, sandpaper, tenant (new_hosts=tenant), map")
    p.add_argument("--turns", type=number(1, 1000, whole=True), default=1)
    p.add_argument("--at", default="10,60", help="seconds of abuse")
    p.add_argument("--cycles", type=number(1, 1000, whole=True), default=4)
    p.add_argument("--proof", type=number(0, 3600), default=PROOF_SECONDS,
                   help="seconds that the victim asks before")
    p.add_argument("--quickly", action="store_true",
                   help="prove the victim by a jump of the clock instead")
    p.add_argument("--jump", default="0,0", metavar="AT,BY",
                   help="in this second of abuse the clock of new Hosts jumps "
                   "by so many seconds")
    p.add_argument("--json", type=Path, metavar="FOLDER",
                   help="write the result to FOLDER, each turn at its end; the "
                   "same command continues after an interruption")
    p.add_argument("--anew", action="store_true",
                   help="do not continue: measure again what --json has")
    p.add_argument("--record", nargs="?", const="", metavar="NAME",
                   help="also write it to bench/results/NAME.json (default "
                   "NAME: CASE-VICTIM-SCRIPT)")
    p.add_argument("--root", type=Path,
                   default=BENCH.parent / "build")
    p.add_argument("--unit-us", type=number(0.1, 1000))
    p.set_defaults(nice=NICE)
    return p


def variants(names: str, root: Path) -> list[Variant]:
    """Return the variants by name."""
    ours = root / "7.7" / "root"
    on = ("sandpaper=on", *nic_rate("", RATE_BPS, shaped=True))
    every = {
        "stock": Variant("stock", root / "stock-7.7" / "root"),
        "sandpaper": Variant("sandpaper", ours, on),
        "tenant": Variant("tenant", ours, (*on, "sandpaper_new_hosts=tenant")),
        "map": Variant("map", ours, on, tenant_map()),
    }
    chosen = names.split(",")
    check_once("--variants", chosen)
    for name in chosen:
        if name not in every:
            raise TestbedError(f"there is no variant '{name}': use some of "
                               + " ".join(every))
    return [every[name] for name in chosen]


def check_victims(script: str, victims: Sequence[str]) -> None:
    """Has the script as many victims as it needs?  They are made up."""
    for name in victims:
        if name.removesuffix(TWIN) not in CUSTOMERS:
            raise TestbedError(f"--victim {name}: use some of "
                               + " ".join(CUSTOMERS)
                               + f", or a twin such as c1{TWIN}")
    if len(victims) != (2 if script == "pair" else 1):
        use = "two, such as c1,c3" if script == "pair" else "one"
        raise TestbedError(f"--victim {','.join(victims)}: --script {script} "
                           f"takes {use}")
    check_once("--victim", victims)


def check(args: argparse.Namespace) -> None:
    """Refuse what can't be measured."""
    make_script(args, args.proof)
    if len(seconds("--jump", args.jump)) != 2:
        raise TestbedError(f"--jump {args.jump}: use AT,BY")
    check_victims(args.script, args.victim.split(","))


def make_script(args: argparse.Namespace, proof: float) -> Script:
    """Return the script that was asked for."""
    ats = seconds("--at", args.at)
    if args.script == "turns":
        return turns_script(proof, args.cycles)
    if args.script == "newcomer":
        return newcomer_script(10.0, ats)
    return proven_script(proof, ats)


def one_turn(
    rig: Rig, variant: Variant, args: argparse.Namespace
) -> dict[str, Any]:
    """Run the script once under one variant."""
    new = variant.name == "sandpaper"
    if args.script == "pair":
        return pair_turn(rig, variant, args.victim.split(","), new)
    victim = rig.tenant(args.victim)
    if args.script == "sparse":
        return sparse_turn(rig, variant, EVERY[args.case], victim, new)
    proof = args.proof if new and not args.quickly else 1.0
    return turn(rig, variant, make_script(args, proof), EVERY[args.case],
                victim, new and args.quickly, seconds("--jump", args.jump))


def say(number: int, one: dict[str, Any]) -> None:
    """Print what a turn of a script found."""
    if one["died"]:
        progress(f"turn {number} {one['variant']}: a worker process died")
        return
    progress(f"turn {number} {one['variant']}: " + ", ".join(
        f"{k} {v:.3f}" for k, v in quotients(one).items()))
    progress("    " + json.dumps(one["windows"]))
    progress(f"    abuse {one['abusive_rps']:.0f}/s  "
             + json.dumps(one["after"]))


def all_turns(
    rig: Rig, chosen: Sequence[Variant], args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure all variants in turns A B B A; a worker that dies ends one."""
    turns: list[dict[str, Any]] = []
    for count in range(args.turns):
        for variant in chosen if count % 2 == 0 else chosen[::-1]:
            try:
                turns.append(rig.kept(
                    f"{variant.name}, turn {count + 1}",
                    partial(one_turn, rig, variant, args), whole=True))
            except WorkerDied as error:
                progress(f"{variant.name}: {error}")
                continue
            if args.script in ("pair", "sparse"):
                progress(json.dumps(turns[-1]))
            else:
                say(count + 1, turns[-1])
    return turns


def make_report(
    rig: Rig, chosen: Sequence[Variant], args: argparse.Namespace,
    turns: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the record."""
    report = rig.report(f"{args.case}, {args.script}", {}, [])
    # What is in `turns` is not needed twice
    for key in ("valid", "control", "results", "plan", "windows_disturbed",
                "windows"):
        report.pop(key)
    return report | {
        "case": args.case, "script": args.script, "victim": args.victim,
        "jump_s": seconds("--jump", args.jump),
        "proved_by": "a jump of the clock" if args.quickly
        else f"{args.proof:g} s of load",
        "abusers": [asdict(g) for g in EVERY[args.case].groups],
        "summary": {} if args.script in ("sparse", "pair") else {
            v.name: summary([t for t in turns if t["variant"] == v.name])
            for v in chosen},
        "turns": turns}


def run(args: argparse.Namespace, reaper: Reaper) -> int:
    """Measure, print, write."""
    given = bench_parser().parse_args(["pairs"])
    given.unit_us = args.unit_us
    check(args)
    chosen = variants(args.variants, args.root.resolve())
    if args.record is not None:
        record.check(args.record)
    bed = make_bed(given, reaper)
    name = args.record or f"{args.case}-{args.victim}-{args.script}"
    folder = folder_of(args.json)
    kept, = make_journals(args, bed, folder, {name: chosen})
    rig = Rig(bed, reaper, chosen, make_plan(given, EXPERIMENTS["pairs"]),
              unit_us=args.unit_us or kept.calibration.get("unit_us"))
    rig.begin([], kept)
    report = make_report(rig, chosen, args, all_turns(rig, chosen, args))
    record.keep(report, name, folder, args.record is not None)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run one case; return the exit status."""
    return run_command(parser(), argv, run)
