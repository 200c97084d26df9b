# SPDX-License-Identifier: BSD-2-Clause
"""What is compared, and where: the variants and the testbed of the options."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from .abuses import ABUSES
from .ask import check_once
from .customers import tenant_map
from .hosts import Hosts
from .nginx import NGINX, PROGRAM, NginxVariant
from .reaper import Reaper
from .rig import progress
from .testbed import Testbed, TestbedError, parse_cores
from .varnish import STOCK, Variant

SWITCHES = {"sandpaper": "on", "off": "off", "observe": "observe"}


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
    experiment: str, args: argparse.Namespace, shaped: bool
) -> list[Variant]:
    """Return an experiment's variants that the user asked for."""
    kind = ABUSES.get(experiment)
    prelude = tenant_map() if kind is not None and kind.mapped else ""
    if args.prelude:
        try:
            prelude = args.prelude.read_text()
        except OSError as error:
            raise TestbedError(f"--prelude {args.prelude}: "
                               f"{error.strerror}") from error
    check_once("--variants", args.variants.split(","))
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
                 *nic_rate(experiment, args.rate, shaped),
                 *new_hosts(experiment), *args.param), prelude))
        else:
            raise TestbedError(f"there is no variant '{name}': use some of "
                               "stock nginx " + " ".join(SWITCHES))
    return found


def as_text(cores: Iterable[int]) -> str:
    """Return cores as --proxy-cores takes them."""
    return ",".join(map(str, sorted(cores)))


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
    for option, cores in (("--proxy-cores", proxy), ("--load-cores", load)):
        if not set(cores) <= allowed:
            raise TestbedError(f"{option} {as_text(cores)}: this process may "
                               f"use only cores {as_text(allowed)}")
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
