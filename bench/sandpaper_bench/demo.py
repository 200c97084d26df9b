# SPDX-License-Identifier: BSD-2-Clause
"""`make demo`: three sites on one varnishd, and one of them misbehaves.

In a terminal it is a live view with keys.  Else, and with --script, it is a
fixed script with a table at the end, and the exit status is 1 if Sandpaper
does not help against an attack.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .command import number
from .demo_script import (
    RULE,
    Result,
    Script,
    Timing,
    play,
    table,
)
from .demo_sites import (
    ATTACKS,
    PARAMETERS,
    SANDPAPER,
    SHOP_PART,
    STOCK,
    Attack,
    Stage,
)
from .options import Parser
from .pedigree import code
from .progress import duration
from .reaper import NICE, Reaper
from .rig import commit_text
from .table import align
from .testbed import BENCH, RATE_BPS, Testbed, TestbedError, parse_cores
from .varnish import Variant

JSON = BENCH.parent / "build" / "demo.json"
WHOLE = duration(Timing().seconds(ATTACKS))
SHORT = Timing(settle=0.1, alone=0.3, onset=0.3, wedge=0.3, attack=0.4,
               turns=1)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    build = BENCH.parent / "build"
    p = Parser(
        prog="demo", description="Show three sites on one varnishd: shop, "
        "blog, and bad, which attacks the others. Needs a terminal; without "
        f"one, a fixed script of about {WHOLE} measures five attacks.")
    p.add_argument("--script", action="store_true",
                   help="run the fixed script, in a terminal, too")
    p.add_argument("--attacks", metavar="12345", default="12345",
                   help="run the script with these attacks only "
                   "(default %(default)s): " + ", ".join(
                       f"{a.key} {a.name}" for a in ATTACKS))
    p.add_argument("--short", action="store_true",
                   help="run the script in seconds: a test of the script, "
                   "without thresholds")
    p.add_argument("--json", type=Path, metavar="FILE", default=JSON,
                   help="write the script's figures there (default "
                   "build/demo.json)")
    p.add_argument("--stock", type=Path, default=build / "stock-7.7" / "root",
                   metavar="DIR", help="where stock Varnish is installed")
    p.add_argument("--sandpaper", type=Path, default=build / "7.7" / "root",
                   metavar="DIR", help="where Sandpaper is installed")
    p.add_argument("--loopback", action="store_true",
                   help="use the loopback interface, even as root")
    p.add_argument("--proxy-cores", default="0", metavar="LIST",
                   help="varnishd's cores (default %(default)s)")
    p.add_argument("--seed", type=number(0, 2**31, whole=True), default=1)
    p.add_argument("--nice", type=number(-20, 19, whole=True),
                   default=NICE, metavar="N",
                   help="priority of all processes, where the system allows "
                   "it (default %(default)s)")
    return p


def make_bed(args: argparse.Namespace, reaper: Reaper) -> Testbed:
    """Return the testbed, not yet up."""
    allowed = os.sched_getaffinity(0)
    proxy = parse_cores(args.proxy_cores)
    if not set(proxy) <= allowed:
        proxy = [min(allowed)]
    # On one core the load and varnishd have to share it.
    load = sorted(allowed - set(proxy)) or proxy
    return Testbed(reaper, proxy, load, RATE_BPS, "reno", args.loopback)


def make_variants(
    args: argparse.Namespace, bed: Testbed
) -> dict[str, Variant]:
    """Return stock and Sandpaper."""
    rate = f"{RATE_BPS / 1e6:.0f}M" if bed.shaped else "0"
    return {
        STOCK: Variant(STOCK, args.stock.resolve(), PARAMETERS),
        SANDPAPER: Variant(
            SANDPAPER, args.sandpaper.resolve(),
            (*PARAMETERS, "sandpaper=on", f"sandpaper_nic_rate={rate}"))}


def chosen(keys: str) -> list[Attack]:
    """Return the attacks with these keys."""
    unknown = set(keys) - {a.key for a in ATTACKS}
    if unknown or not keys:
        raise TestbedError(f"--attacks '{keys}': name one or more of 12345")
    return [a for a in ATTACKS if a.key in keys]


def where(bed: Testbed) -> str:
    """Say in a sentence what the demo runs on."""
    proxy, load = (", ".join(map(str, c))
                   for c in (bed.proxy_cores, bed.load_cores))
    cores = f"varnishd on core {proxy}, clients and origin on core {load}"
    if bed.proxy_cores == bed.load_cores:
        cores = "one core for varnishd, clients and origin"
    if bed.shaped:
        return f"Link to the clients: {RATE_BPS / 1e9:g} Gbit/s; {cores}."
    return f"Loopback, no link limit (root has one); {cores}."


def introduction(bed: Testbed, attacks: Sequence[Attack],
                 timing: Timing) -> str:
    """Say what the script does."""
    lines = [
        "Three sites share one varnishd: shop, blog, and bad.",
        "shop and blog get the same number of requests all the time.",
        "How much of its throughput does shop keep while bad attacks?", "",
        *(f"  {a.key} {a.name:<15} {a.what}" for a in attacks), "",
        "Stock Varnish and Sandpaper take turns, both without a map of "
        "tenants.",
        "Both have 200 threads: 2 pools of 100 (thread_pool_max=100). So 400 "
        "clients are enough.", where(bed),
        f"This takes about {duration(timing.seconds(attacks))}.", ""]
    return "\n".join(lines)


def go_on(bed: Testbed) -> str:
    """Return the commands to go on with."""
    def path(*parts: str) -> str:
        return os.path.relpath(BENCH.parent.joinpath(*parts))

    return "\n".join([
        "Go on with:",
        f"  {path('bench', 'demo')}    the live view: attack with the keys "
        "1 to 5",
        "  make install PREFIX=/opt/sandpaper",
        "  /opt/sandpaper/sbin/varnishd -a :8080 -b YOUR-ORIGIN:80",
        "  /opt/sandpaper/bin/sandpaper-top",
    ])


def report(
    bed: Testbed, variants: dict[str, Variant], script: Script,
    results: Sequence[Result], began: datetime,
) -> dict[str, Any]:
    """Return the figures, the commit and the machine as JSON's object."""
    return {
        "experiment": "demo",
        "began": began.isoformat(timespec="seconds"),
        "seconds": round((datetime.now(UTC) - began).total_seconds(), 1),
        "commit": commit_text(code()),
        "machine": bed.describe(),
        "versions": {n: v.version() for n, v in variants.items()},
        "parameters": {n: list(v.parameters) for n, v in variants.items()},
        "shop_rps": round(script.shop_rps, 1),
        "timing": vars(script.timing),
        "results": [r.row() for r in results],
    }


def write(path: Path, found: dict[str, Any]) -> None:
    """Write the JSON file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    except OSError as error:
        raise TestbedError(f"--json {path}: {error.strerror}") from error


def run_script(args: argparse.Namespace, reaper: Reaper) -> int:
    """Play the script; return 1 if a threshold is missed."""
    def say(text: str) -> None:
        print(text, flush=True)

    attacks, timing = chosen(args.attacks), SHORT if args.short else Timing()
    bed = make_bed(args, reaper)
    variants = make_variants(args, bed)
    for variant in variants.values():
        _ = variant.program  # is it there?
    say(introduction(bed, attacks, timing))
    began = datetime.now(UTC)
    stage = Stage(bed, reaper, args.seed)
    with Script(stage, variants, timing) as script:
        say(f"shop asks for {script.shop_rps:.0f} requests/s")
        results = play(script, attacks, say)
        found = report(bed, variants, script, results, began)
    write(args.json, found)
    say("\nWhat shop keeps of its throughput, and its p99, under attack:\n")
    say(table(results) + "\n")
    if not args.short:
        say(RULE + "\n")
    missed = [] if args.short else [m for r in results for m in r.missed()]
    for sentence in missed:
        say(f"MISSED: {sentence}.")
    if missed:
        say(f"Repeat one attack: bench/demo --script --attacks N. The "
            f"figures are in {os.path.relpath(args.json)}.")
    else:
        say(go_on(bed))
    return 1 if missed else 0


def run_live(args: argparse.Namespace, reaper: Reaper) -> bool:
    """Show the live view; return whether the user wants the script, too."""
    from . import demo_live

    bed = make_bed(args, reaper)
    variants = make_variants(args, bed)
    _ = variants[SANDPAPER].program  # is it there?
    print(f"Starting an origin, varnishd and three sites. {where(bed)}",
          flush=True)
    stage = Stage(bed, reaper, args.seed)

    def end(demo: demo_live.Demo) -> None:
        rows = demo.rows()
        if rows:
            print("What shop kept of its throughput, and its p99, with "
                  "Sandpaper off (as stock) and on:\n")
            print(align(demo_live.HEAD, rows) + "\n")
            print(demo_live.COUNTED + "\n")
        if not demo.wants_script:
            print(f"Five attacks against the stock build, about {WHOLE}: "
                  "bench/demo --script\n")
            print(go_on(bed))

    with stage.varnish(variants[SANDPAPER]) as varnish:
        stage.prime(varnish)
        shop_rps = SHOP_PART * stage.capacity(varnish)
        return demo_live.run(stage, varnish, shop_rps, where(bed), end)


def can_be_live() -> bool:
    """Is there a terminal for the live view?  An error if urwid is not."""
    from .demo_live import top

    if top.why_no_terminal() is not None:
        return False
    try:
        top.need_urwid()
    except top.ToolError:
        raise TestbedError(
            "the live view needs urwid: apt-get install python3-urwid, or "
            "say --script") from None
    return True


def main(argv: list[str]) -> int:
    """Run the demo; return the exit status."""
    args = parser().parse_args(argv)
    reaper = Reaper(args.nice)
    try:
        if not args.script and can_be_live():
            if not run_live(args, reaper):
                return 0
            reaper.close()
            reaper = Reaper(args.nice)
        return run_script(args, reaper)
    except TestbedError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        with suppress(OSError):
            print("demo: interrupted", file=sys.stderr)
        return 130
    finally:
        reaper.close()
