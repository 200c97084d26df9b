# SPDX-License-Identifier: BSD-2-Clause
"""The report: one HTML page from the JSON files of the experiments.

First what is claimed, beside the paper's figures, then a section for each
experiment: what the paper says, plots, table, controls, circumstances, the
JSON itself.  An experiment without a section in sections.toml gets the same,
but plots and explanations; see also DRAW (plots.py) and RULES (claims.py).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

from .claims import NONE, Report, claims
from .lab import controls
from .pace import duration
from .page import VERDICTS, facts, page, raw, text
from .page import table as html_table
from .sections import SECTIONS, Section
from .table import body, control_lines
from .testbed import TestbedError

NAME = "report.html"
TITLE = "Sandpaper: measured"
NEEDED = ("experiment", "began", "seconds", "machine", "seed", "plan",
          "windows_disturbed", "valid", "control", "results")

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
                         Section(report["experiment"]))
    badge = "" if report["valid"] else ' <span class="invalid">invalid</span>'
    pieces = [f'<h2 id="{escape(path.stem)}">{escape(known.title)}{badge}'
              "</h2>", text(known.about)]
    pieces += control_list(report)
    pieces += [f"<figure>{plot}</figure>" for plot in plots.draw(report)]
    return [*pieces, html_table(*body(report["experiment"],
                                      report["results"])),
            text(known.legend, "quiet"),
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
