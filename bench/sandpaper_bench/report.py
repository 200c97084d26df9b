# SPDX-License-Identifier: BSD-2-Clause
"""The report: one HTML page from the JSON files of the experiments.

First what is claimed, beside the paper's figures, then a section for each
experiment: what the paper says, plots, table, controls, circumstances, the
JSON itself.  An experiment without an entry in SECTIONS gets the same, but
plots and explanations; see also TABLES (table.py) and CLAIMS (claims.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from .abuses import ABUSES, KEPT
from .claims import (
    FAIR,
    LOST_MANY,
    LOST_NOOP,
    LOST_REALISTIC,
    NONE,
    Report,
    claims,
)
from .lab import controls
from .pace import duration
from .page import VERDICTS, facts, page, raw, text
from .page import table as html_table
from .table import body, control_lines
from .testbed import TestbedError

NAME = "report.html"
TITLE = "Sandpaper: measured"
NEEDED = ("experiment", "began", "seconds", "machine", "seed", "plan",
          "windows_disturbed", "valid", "control", "results")

Plots = Callable[[ModuleType, Report], list[str]]


@dataclass(frozen=True)
class Section:
    """What a section says beside its figures."""

    title: str
    about: str  # what is measured, and the paper's own words on it
    columns: str  # of the table
    plots: Plots = lambda _plots, _report: []


PAIR_COLUMNS = (
    "alone/s, both/s: requests/s of the tenant alone and together. norm.: "
    "both/s divided by alone/s. min/max: the smaller norm. divided by the "
    "larger one, with its 95 % interval. p50, p99: latency in ms, together. "
    "str.alone, stretch: p99 divided by connections/throughput, alone and "
    "together. slowest: requests of the slowest connection, divided by the "
    "mean of all.")
LINE_COLUMNS = (
    "before/s, static/s: requests/s of the static tenant in the phase before "
    "and in this one. kept: their quotient. fair: the quotient under "
    "multi-resource fairness. of fair: kept divided by fair, with its 95 % "
    "interval.")
ABUSE_COLUMNS = (
    "alone/s, abused/s: requests/s of the victim alone and under the abuse. "
    "kept: abused/s divided by alone/s, with its 95 % interval. fair: the "
    "part that the victim is entitled to. p99: latency in ms, alone and under "
    "the abuse, of an open loop at half of the fair rate. settled: seconds "
    "after the abuse until no request runs or waits. lost: requests of the "
    "victim that were not answered exactly once. threads: the highest number. "
    "memory: growth of varnishd in MB. asked: requests of the abuser. failed: "
    "the checks that failed.")
RATE_ABOUT = (
    "The pairs again, with a new varnishd for each turn. The rate of the link "
    "is {}. In the paper it is configured (section 3.2).")

SECTIONS = {
    "table1": Section(
        "Table 1: what a request of the paper's customers takes",
        "Paper, table 1, has 8 cores and 10 Gbit/s. Its figures times 8 are "
        "compared with one core and 1.25 Gbit/s. The work and the pages of "
        "the customers are made to take as long as in the paper. The dominant "
        "resource of each must be the same. Whiskers are standard deviations "
        "here, not intervals.",
        "CPU us (sd): varnishd's CPU time per request in microseconds, mean "
        "and standard deviation over windows. link us: time of its bytes on "
        "the link. bytes: of an answer. bound by: the longer of the two.",
        lambda plots, r: [plots.table1(r)]),
    "pairs": Section(
        "Pairs: two tenants alone and together",
        "Paper, figures 3 and 9: min/max of normalised throughput; 1 is fair. "
        "The text gives stock's of four pairs: C1 and C2 0.62 and 0.72, C1 "
        "and C3 0.55 and 0.74, C1 and C4 0.50 and 0.61, C3 and C4 0.68 and "
        "0.31; with Sandpaper “nearly all ratios moved towards 1”, without "
        "figures. Section 6.2: C1's p99 with C3 from 39.42 to 101.85 ms, "
        "C3's with C1 from 4.83 s to 19.89 ms, the longest of all, C2's "
        "with C1, from 5.77 s to 411.80 ms, a stretch of about 27.",
        PAIR_COLUMNS,
        lambda plots, r: [plots.fairness(r, FAIR), plots.p99(r)]),
    "alone": Section(
        "Alone: what Sandpaper costs one tenant",
        "Paper, section 6.4: a no-op VCL and 1 KB lose 17 % of stock's "
        "throughput, realistic customers less than 9 %.",
        "base: stock. ours: Sandpaper, at the same time. /s: requests/s. "
        "ratio: ours divided by base, with its 95 % interval. us: CPU time "
        "per request in microseconds. slowest: requests of the slowest "
        "connection, divided by the mean of all. A loss below 0 is a gain.",
        lambda plots, r: [
            plots.lost(r, LOST_REALISTIC, LOST_NOOP), plots.cpu(r)]),
    "overhead": Section(
        "Overhead: what a tenant alone pays, and for which part",
        "Paper, section 6.4: with the no-op VCL and 1 KB, measuring every "
        "request costs 20 % of stock's throughput, every fifth 17 %; "
        "realistic customers lose less than 9 %. off: Sandpaper's varnishd "
        "with sandpaper=off. sampled: on, with the default measurement of "
        "costs. every request: on, and the cost of each request is "
        "measured.",
        "The setting follows the customer. base: stock. ours: the setting, at "
        "the same time. /s: requests/s. ratio: ours divided by base, with its "
        "95 % interval. us: CPU time per request in microseconds. slowest: "
        "requests of the slowest connection, divided by the mean of all.",
        lambda plots, r: [
            plots.overhead(r, LOST_REALISTIC, LOST_NOOP)]),
    "workers": Section(
        "Workers: fairness by pool size",
        "Paper, figure 4: as the number of workers approaches the number of "
        "requests, a scheduler has less to decide and fairness falls; no "
        "figures in the text. Both have 10 workers per core by default.",
        PAIR_COLUMNS + " The number after the tenants: connections of each.",
        lambda plots, r: [plots.workers(r, FAIR)]),
    "utilization": Section(
        "Utilization: what end-to-end synchronisation leaves idle",
        "Paper, figure 6: with MR3 as published (policy mr3), throughput and "
        "CPU utilisation of 8 cores “cease to scale with the number of "
        "concurrent connections”; no figures in the text. Two cores show "
        "less of it, especially if the load runs on them, too.",
        "answered/s: requests/s. busy: varnishd's CPU time, divided by that of "
        "its cores. us: CPU time per request in microseconds. p99: ms.",
        lambda plots, r: [plots.utilization(r)]),
    "latency": Section(
        "Latency: open loops",
        "Requests come at random times, at 80 % of the fair rate. The "
        "latencies in the paper are of closed loops: see pairs.",
        "offered/s, answered/s: requests/s. p99 alone, p50, p99, max: ms. "
        "times: p99 together divided by (p99 alone / share), with its 95 % "
        "interval. waiting: requests without an answer at the end.",
        lambda plots, r: [plots.latency(r)]),
    "policies": Section(
        "Policies: a tenant with small requests among expensive ones",
        "2DFQ (SIGCOMM 2016), sections 1 and 6: small requests wait while "
        "large ones occupy all threads. Here one tenant has requests of 1 ms, "
        "and ten tenants have 1 ms to 1 s of CPU, with ten slots and four "
        "connections each. No figures of the papers are comparable.",
        "small/s: requests/s of the tenant with small requests. p50, p99 with "
        "its 95 % interval, max: ms. part: of all work; an eleventh is fair. "
        "least and largest part: of any tenant."),
    "scale": Section(
        "Scale: what many tenants cost",
        "Paper, section 6.4: from about 5 % of stock's throughput with a "
        "handful of customers to 8.6 % with 2000 and 20,000 connections.",
        "base: stock. ours: Sandpaper, at the same time. /s: requests/s. "
        "ratio: ours divided by base, with its 95 % interval. us: CPU time "
        "per request in microseconds.",
        lambda plots, r: [plots.scale(r, LOST_MANY)]),
    "content-change": Section(
        "Content change: a tenant changes to a larger page",
        "Paper, figure 12: under stock “both customers' throughputs drop "
        "precipitously”; with Sandpaper the static one's “is isolated from "
        "the changes”, it even increases. Its phases take 20 s.",
        LINE_COLUMNS,
        lambda plots, r: [plots.timeline(r), plots.of_fair(r)]),
    "flash-crowd": Section(
        "Flash crowd: a tenant's connections double, then triple",
        "Paper, figure 13: a spike of 1 s has a “negligible effect on "
        "Sandpaper”, one of 5 s is “substantial for mainline Varnish and "
        "noticeable in Sandpaper”, one to three times almost the same.",
        LINE_COLUMNS,
        lambda plots, r: [plots.timeline(r), plots.of_fair(r)]),
    "fetch": Section(
        "Fetch: slots for requests that wait for the origin",
        "Paper, section 5.2 and theorem B.2: with requests at a Poisson rate "
        "λ, of which a part p misses, and exponential fetches of a mean 1/µ, "
        "λp/µ more workers than usual are expected. Sandpaper lends their "
        "slots to other requests.",
        "misses: p. fetch s: 1/µ. expected: λp/µ. lent: slots, mean of a "
        "window, with its 95 % interval. threads: of varnishd. answered/s: "
        "requests/s.",
        lambda plots, r: [plots.fetch(r)]),
    "parts": Section(
        "Parts: connections with a part of a request",
        "What 15,000 connections that send a request a byte at a time cost "
        "an open loop, compared with 200 that send as many bytes in all. Not "
        "in the paper.",
        "offered/s: requests/s. p99 none, few, many: ms, beside none, 200 and "
        "15,000. times: many divided by few, with its 95 % interval. us: CPU "
        "time per request. cost: beside many divided by beside none. closed: "
        "connections with a part that varnishd has closed."),
    **{name: Section(
        f"Abuse: {name}", "The throughput that a victim keeps. Not in the "
        "paper.",
        ABUSE_COLUMNS, lambda plots, r: [plots.kept(r, KEPT)])
       for name in ABUSES},
    "soak": Section(
        "Soak: everything at once",
        "All abuses together, each with less load. Meanwhile an operator "
        "changes parameters and VCL. Not in the paper.",
        "arrived: requests at the gate. unaccounted: requests that neither "
        "completed, were cancelled, wait nor run. lost: requests of a victim "
        "that were not answered exactly once. settled: seconds until no "
        "request runs or waits. held, held wall: 99.99 % of the "
        "holds of Sandpaper's lock were not longer, on the holder's CPU clock "
        "and on the wall clock. memory: growth at rest from half of the load "
        "to its end."),
    **{name: Section(
        f"Pairs, the link's rate {what}", RATE_ABOUT.format(what),
        PAIR_COLUMNS,
        lambda plots, r: [plots.fairness(r, r["plan"]["target"])])
       for name, what in (("rate-unknown", "not set"),
                          ("rate-wrong", "set twice too high"))},
}


def check_plots() -> None:
    """The plots need a library that nothing else needs."""
    if importlib.util.find_spec("matplotlib") is None:
        raise TestbedError(
            f"{sys.executable} has no matplotlib, and the plots need it: run "
            "apt-get install python3-matplotlib, or make bench")


def read(path: Path) -> Report:
    """Return an experiment's report; an error if the file holds none."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TestbedError(
            f"{path}: is not JSON ({error}): remove it") from error
    lacks = [key for key in NEEDED
             if not isinstance(found, dict) or key not in found]
    if lacks or not found["results"]:
        raise TestbedError(f"{path}: is not the result of an experiment, it "
                           f"lacks {', '.join(lacks) or 'results'}: remove "
                           "it")
    return dict(found)


def order(path: Path) -> tuple[int, str]:
    """Return where in the page a file's experiment stands."""
    known = list(SECTIONS)
    name = path.stem
    return known.index(name) if name in known else len(known), name


def clock(when: datetime) -> str:
    """Return a time as the page has it."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def bits(rate: float | None) -> str:
    """Return a link's rate."""
    return f"{rate / 1e9:g} Gbit/s (tbf)" if rate else "not shaped"


def circumstances(report: Report) -> list[tuple[str, str]]:
    """Return what a reader has to know of the machine."""
    m = report["machine"]
    rows = [
        ("machine", f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}"),
        ("testbed", f"{m['mode']}; varnishd on cores {listed(m, 'proxy')}, "
         f"load and origin on {listed(m, 'load')}; nice {m['nice']}"),
        ("client-facing link", bits(m["link_bits_per_second"])),
        ("TCP congestion control", str(m["congestion_control"])),
        ("source", m["source"] or "not a git checkout"),
    ]
    for name, parameters in m["variants"].items():
        words = " ".join(parameters) or "no parameters of Sandpaper"
        version = m["versions"].get(name)
        rows.append((name, f"{version}; {words}" if version else words))
    return rows


def listed(machine: dict[str, Any], role: str) -> str:
    """Return the cores of a role."""
    return ",".join(map(str, machine[f"{role}_cores"]))


def run_facts(report: Report) -> list[tuple[str, str]]:
    """Return what may differ from experiment to experiment."""
    plan, machine = report["plan"], report["machine"]
    began = datetime.fromisoformat(report["began"])
    turns = str(plan["turns"])
    if plan["max_turns"] > plan["turns"]:
        turns += f" to {plan['max_turns']}"
    return [
        ("began", f"{clock(began)}, took {duration(report['seconds'])}; "
         "load average at start "
         f"{machine['load_average_at_start']:.1f}"),
        ("plan", f"{turns} turns, windows of {plan['seconds']:g} s after "
         f"{plan['warmup']:g} s, {plan['connections']} connections per tenant"),
        ("seed", str(report["seed"])),
        ("a unit of VCL work", f"{machine['unit_us']:.2f} µs of CPU"),
        ("windows disturbed", f"{report['windows_disturbed']}, measured "
         "again: the hypervisor took more than 2 % of the cores' time"),
    ]


def headline(reports: dict[Path, Report]) -> list[str]:
    """Return the table of all claims, and how many are met."""
    rows, count = [], dict.fromkeys(VERDICTS, 0)
    for path, report in reports.items():
        for c in checked(path, claims, report):
            rows.append([c.what, c.paper, c.stock, c.ours, c.interval,
                         c.target, c.verdict])
            count[c.verdict] += 1
    if not rows:
        return []
    return [
        text(", ".join(f"{n} {v}" for v, n in count.items() if n)
             + f", of {len(rows)} claims. A claim is met or missed if its "
             "whole 95 % interval is on that side of the target. It is "
             "unresolved if the interval covers the target, and invalid if "
             "its A/A control does not cover 1. “×” means times, “% lost” is "
             f"compared with stock. “{NONE}”: the paper has no number, or the "
             "claim compares with stock."),
        html_table(["claim", "paper", "stock", "Sandpaper", "95 % interval",
                    "target", "verdict"], rows, "claims")]


def missing(reports: dict[Path, Report]) -> list[str]:
    """Return what was not measured."""
    left = set(SECTIONS) - {r["experiment"] for r in reports.values()}
    names = ", ".join(n for n in SECTIONS if n in left)
    return [text(f"Not measured: {names}.", "quiet")] if left else []


def checked(
    path: Path, make: Callable[..., list[Any]], *arguments: Any
) -> list[Any]:
    """Return what is made of a file's results; an error if they lack it."""
    try:
        return make(*arguments)
    except (KeyError, TypeError, ValueError, IndexError,
            AttributeError) as error:
        raise TestbedError(f"{path}: the results have no valid "
                           f"{error}: measure again") from error


def control_list(report: Report) -> list[str]:
    """Return the A/A controls, and an alarm if one does not cover 1."""
    pieces = []
    bad = [c["what"] for c in controls(report["control"])
           if not c["covers_one"]]
    if not report["valid"]:
        pieces.append('<p class="alarm"><strong>INVALID</strong>: '
                      + escape("equal variants did not measure equal: "
                               f"{'; '.join(bad)}") + "</p>")
    lines = control_lines(report["control"]) or ["no A/A control"]
    return [*pieces, '<ul class="control">'
            + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"]


def section(plots: ModuleType, path: Path, report: Report) -> list[str]:
    """Return an experiment's part of the page."""
    known = SECTIONS.get(report["experiment"],
                         Section(report["experiment"], "", ""))
    badge = "" if report["valid"] else ' <span class="invalid">invalid</span>'
    pieces = [f'<h2 id="{escape(path.stem)}">{escape(known.title)}{badge}'
              "</h2>", text(known.about)]
    pieces += control_list(report)
    pieces += [f"<figure>{plot}</figure>"
               for plot in known.plots(plots, report)]
    return [*pieces, html_table(*body(report)), text(known.columns, "quiet"),
            facts(run_facts(report)), raw(path.name, path.read_text())]


def contents(reports: dict[Path, Report]) -> str:
    """Return the table of contents."""
    entries = [("claims", "Claims"), ("circumstances", "Circumstances")]
    entries += [(path.stem, r["experiment"] + ("" if r["valid"]
                                               else " (invalid)"))
                for path, r in reports.items()]
    return "<nav><ol>" + "".join(
        f'<li><a href="#{escape(i)}">{escape(t)}</a></li>'
        for i, t in entries) + "</ol></nav>"


def machines(reports: dict[Path, Report]) -> list[str]:
    """Return each different machine, and what was measured on it."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for path, report in reports.items():
        rows = checked(path, circumstances, report)
        found.setdefault(tuple(rows), []).append(report["experiment"])
    return [facts([*rows, ("experiments", ", ".join(names))])
            for rows, names in found.items()]


def build(paths: Sequence[Path]) -> str:
    """Return the page of these files."""
    check_plots()
    plots = importlib.import_module(".plots", __package__)
    reports = {path: read(path) for path in sorted(paths, key=order)}
    pieces = [
        f"<h1>{TITLE}</h1>",
        text("How fairly one varnishd serves its tenants, and at what cost. "
             "Stock Varnish and Sandpaper take turns on one machine. The "
             "figures of the paper (SEC '19) are given, too. Written "
             f"{clock(datetime.now(UTC))}.",
             "quiet"),
        contents(reports), '<h2 id="claims">Claims</h2>',
        *headline(reports), *missing(reports),
        '<h2 id="circumstances">Circumstances</h2>', *machines(reports)]
    with plots.style():
        for path, report in reports.items():
            pieces += checked(path, section, plots, path, report)
    return page(TITLE, pieces)


def write(folder: Path, paths: Sequence[Path] = ()) -> Path:
    """Write the page of these files, else of all in the folder."""
    if not folder.is_dir():
        raise TestbedError(f"{folder}: no such folder: run make bench")
    found = paths or list(folder.glob("*.json"))
    if not found:
        raise TestbedError(f"{folder}: has no results (*.json): run make "
                           "bench, or an experiment with --json FILE")
    page_file = folder / NAME
    page_file.write_text(build(found))
    return page_file
