# SPDX-License-Identifier: BSD-2-Clause
"""`sandpaper-bench quick`: two pairs of tenants, on stock and on Sandpaper.

The shortest experiment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any, TextIO

from .ask import Ask, chosen_pairs, named
from .customers import CUSTOMERS, TWIN
from .pairs import pair_parts
from .runner import Experiment, Job
from .table import Row, align
from .testbed import BENCH

PAIRS = "c1-c3,c3-c4"
NICKNAMES = {"c1": "much VCL", "c3": "large pages", "c4": "smaller pages"}


def paint(text: str, code: str, stream: TextIO) -> str:
    """Return text in a colour for a stream to a terminal, plain elsewhere."""
    if not stream.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def label(name: str) -> str:
    """Return a tenant as the table calls it."""
    return f"{name} ({NICKNAMES.get(name, 'tenant')})"


def work(name: str) -> str:
    """Return what a tenant's requests take."""
    customer = CUSTOMERS.get(name.removesuffix(TWIN))
    if customer is None:
        return "as in the paper's Table 1"
    return (f"{customer.size / 1000:6.1f} kB pages, {customer.work_us:.0f} us "
            "of VCL work a request")


def introduction(
    chosen: Sequence[tuple[str, str]], connections: int
) -> str:
    """Return what will happen, for stderr."""
    names = dict.fromkeys(n for pair in chosen for n in pair)
    tenants = "\n".join(f"  {label(n):<20} {work(n)}" for n in names)
    return (
        paint("Several tenants, one varnishd: does one hurt the other?",
              "1", sys.stderr) + "\n" + tenants + "\n"
        "Each is loaded alone, then together with its neighbour, "
        f"{connections} connections each.\n"
        "Stock Varnish and Sandpaper take turns.\n")


def rows(result: dict[str, Any]) -> list[Row]:
    """Return the two rows of a pair under one variant."""
    found: list[Row] = []
    for side in "ab":
        found.append([
            label(result[side]),
            f"{result[f'rps_alone_{side}']:.0f}",
            f"{result[f'rps_{side}']:.0f}",
            f"{result[f'norm_{side}']:.2f}",
            f"{result['ratio']:.2f}" if side == "a" else "",
            f"{result[f'p50_s_{side}'] * 1e3:.0f}",
            f"{result[f'p99_s_{side}'] * 1e3:.0f}",
        ])
    return found


HEAD = ["tenant", "alone/s", "together/s", "normalised", "min/max",
        "p50 ms", "p99 ms"]


def pair_text(results: Sequence[dict[str, Any]]) -> str:
    """Return one pair under all variants as one table."""
    body: list[Row] = []
    for result in results:
        body += rows(result)
    lines = align(HEAD, body).splitlines()
    text = lines[:2]
    for number, result in enumerate(results):
        code = "1;32" if result["variant"] == "sandpaper" else "1;33"
        name = "Stock" if result["variant"] == "stock" else "Sandpaper"
        text += [paint(name, code, sys.stdout), *lines[2 + 2 * number:4 + 2 * number]]
    return "\n".join(text)


def summary(results: Sequence[dict[str, Any]]) -> str:
    """Return the change in a sentence, per variant."""
    parts = []
    for variant in dict.fromkeys(r["variant"] for r in results):
        mine = [r for r in results if r["variant"] == variant]
        ratio = median(r["ratio"] for r in mine)
        p99 = max(max(r["p99_s_a"], r["p99_s_b"]) for r in mine)
        which = f" (median of {len(mine)} pairs)" if len(mine) > 1 else ""
        parts.append(f"{variant}: min/max {ratio:.2f}{which}, worst p99 "
                     f"{p99 * 1e3:.0f} ms")
    return "; ".join(parts)


def where_it_ran(machine: dict[str, Any]) -> str:
    """Say where it ran."""
    rate = machine["link_bits_per_second"]
    if not rate:
        return ("loopback, not shaped: page sizes cost CPU only; run as "
                "root for the real thing")
    where = ("several machines" if machine["mode"] == "hosts"
             else "network namespaces")
    shaped = "shaped to" if machine.get("link_shaped_by_tbf", True) else "of"
    return (f"{where}, the client-facing link {shaped} {rate / 1e9:g} "
            f"Gbit/s, TCP {machine['congestion_control']}")


def outro(report: dict[str, Any]) -> str:
    """Say what was used, how to read it, and how to go on."""
    machine = report["machine"]
    noise = median(r["noise_cores"] for r in report["results"])
    cores = ",".join(map(str, machine["proxy_cores"]))
    lines = [
        "normalised: throughput together / alone; fair: equal, min/max 1.00",
        f"Testbed: {where_it_ran(machine)}; varnishd on core {cores}.",
    ]
    if noise > 0.25:
        lines.append(
            f"Other work used {noise:.0%} of varnishd's core: these figures "
            "are rough. Measure again on an idle machine.")
    root = os.path.relpath(BENCH.parent / "build" / "7.7" / "root")
    lines += [
        "", paint("To run it for real:", "1", sys.stdout),
        f"  {root}/sbin/varnishd -f $PWD/your.vcl -a :80 -n /var/tmp/sandpaper",
        f"  {root}/bin/varnishadm -n /var/tmp/sandpaper sandpaper.list",
        "The README has a multi-tenant VCL to start from.",
    ]
    return "\n".join(lines)


def plan(ask: Ask) -> Job:
    """Plan the pairs, without a control."""
    chosen = chosen_pairs(ask.args.pairs or PAIRS)
    parts = pair_parts(ask, chosen)
    said = introduction(chosen, ask.plan.connections)
    parts[0] = replace(parts[0], title=f"{said}\n{parts[0].title}")
    return Job(ask, parts, named(chosen))


def text(report: dict[str, Any]) -> str:
    """Return the pairs, one by one, and what to make of them."""
    results = report["results"]
    chosen = dict.fromkeys((r["a"], r["b"]) for r in results)
    return "\n".join([
        *(pair_text([r for r in results if (r["a"], r["b"]) == pair]) + "\n"
          for pair in chosen), summary(results), outro(report)])


EXPERIMENT = Experiment("quick", plan, in_all=False, turns=3, seconds=3.0,
                        text=text)
