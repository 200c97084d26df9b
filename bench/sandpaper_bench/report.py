# SPDX-License-Identifier: BSD-2-Clause
"""The report: one HTML page from the JSON files of the experiments.

This file says what is on the page: first what is claimed, beside the paper's
figures, then a section for each experiment.  report.html, a template of
Jinja, says how it looks.  An experiment without a section in sections.toml
has no plots and no words; see also DRAW (plots.py) and RULES (claims.py).
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from .claims import NONE, Report, claims
from .progress import duration
from .rig import STOLEN, controls
from .sections import SECTIONS, Section
from .table import body, control_lines, link_text
from .testbed import TestbedError

T = TypeVar("T")

NAME = "report.html"
TEMPLATE = Path(__file__).with_name(NAME)
SHORT = "quick"  # `pairs` in short, so that it is never missing
TITLE = "Sandpaper: measured"
VERDICTS = ("met", "missed", "unresolved", "invalid")
NEEDED = ("experiment", "began", "seconds", "machine", "seed", "plan",
          "windows_disturbed", "valid", "control", "results")


def check_plots() -> None:
    """The page needs libraries that nothing else needs."""
    for library in ("matplotlib", "jinja2"):
        if importlib.util.find_spec(library) is None:
            raise TestbedError(
                f"{sys.executable} has no {library}, and the report needs it: "
                "run make bench-deps")


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


def link(report: Report) -> str:
    """Return the client-facing link's rate, and what limits it to that."""
    rates = link_text(report)
    if not rates:
        return "not shaped"
    shaped = report["machine"].get("link_shaped_by_tbf", True)
    return rates + (" (tbf)" if shaped else "")


def circumstances(report: Report) -> list[tuple[str, str]]:
    """Return what a reader has to know of the machine."""
    m = report["machine"]
    rows = [
        ("machine", f"{m['cpu']}, {m['cores']} cores, Linux {m['kernel']}"),
        ("testbed", f"{m['mode']}; varnishd on cores {listed(m, 'proxy')}, "
         f"load and origin on {listed(m, 'load') or 'their machines'}; "
         f"nice {m['nice']}"),
        ("client-facing link", link(report)),
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
    busy = machine["load_average_at_start"]
    turns = str(plan["turns"])
    if plan["max_turns"] > plan["turns"]:
        turns += f" to {plan['max_turns']}"
    return [
        ("began", f"{clock(began)}, took {duration(report['seconds'])}; "
         f"load average at start {busy:.1f}"
         + (f": the machine was busy, it has {machine['cores']} cores"
            if busy > machine["cores"] else "")),
        ("plan", f"{turns} turns, windows of {plan['seconds']:g} s after "
         f"{plan['warmup']:g} s, {plan['connections']} connections per tenant"),
        ("seed", str(report["seed"])),
        ("a unit of VCL work", f"{machine['unit_us']:.2f} µs of CPU"),
        ("windows disturbed", f"{report['windows_disturbed']}, measured "
         f"again: the hypervisor took more than {STOLEN * 100:g} % of the "
         "cores' time"),
    ]


def checked(path: Path, make: Callable[..., T], *arguments: Any) -> T:
    """Return what is made of a file's results; an error if they lack it."""
    try:
        return make(*arguments)
    except (KeyError, TypeError, ValueError, IndexError,
            AttributeError) as error:
        raise TestbedError(f"{path}: the results have no valid "
                           f"{error}: measure again") from error


def machines(reports: dict[Path, Report]) -> list[list[tuple[str, str]]]:
    """Return each different machine, and what was measured on it."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for path, report in reports.items():
        rows = checked(path, circumstances, report)
        found.setdefault(tuple(rows), []).append(report["experiment"])
    return [[*rows, ("experiments", ", ".join(names))]
            for rows, names in found.items()]


def section(path: Path, report: Report) -> dict[str, Any]:
    """Return what the page says of an experiment, by name."""
    name = report["experiment"]
    plots = importlib.import_module(".plots", __package__)
    return {
        "id": path.stem, "name": name, "file": path.name,
        "json": path.read_text(), "valid": report["valid"],
        "section": SECTIONS.get(name, Section(name)),
        "bad": [c["what"] for c in controls(report["control"])
                if not c["covers_one"]],
        "controls": control_lines(report["control"]) or ["no A/A control"],
        "plots": plots.draw(report),
        "table": body(name, report["results"]),
        "facts": run_facts(report)}


def build(paths: Sequence[Path]) -> str:
    """Return the page of these files."""
    check_plots()
    from jinja2 import Environment, StrictUndefined

    jinja = Environment(autoescape=True, undefined=StrictUndefined,
                        lstrip_blocks=True)
    jinja.filters["base64"] = lambda text: base64.b64encode(
        text.encode()).decode()
    reports = {path: read(path) for path in sorted(paths, key=order)}
    found = [vars(claim).values() for path, report in reports.items()
             for claim in checked(path, claims, report)]
    count = Counter(verdict for *_, verdict in found)
    measured = {report["experiment"] for report in reports.values()}
    return jinja.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        title=TITLE, written=clock(datetime.now(UTC)), dash=NONE,
        verdicts=VERDICTS, claims=found,
        counts=[(v, count[v]) for v in VERDICTS if count[v]],
        missing=[name for name in SECTIONS
                 if name not in {*measured, SHORT}],
        machines=machines(reports),
        experiments=[checked(path, section, path, report)
                     for path, report in reports.items()])


def write(folder: Path, paths: Sequence[Path] = ()) -> Path:
    """Write the page of these files, else of all in the folder."""
    if not folder.is_dir():
        raise TestbedError(f"{folder}: no such folder: run make bench")
    found = paths or list(folder.glob("*.json"))
    if not found:
        raise TestbedError(f"{folder}: has no results (*.json): run make "
                           "bench, or an experiment with --json FOLDER")
    page_file = folder / NAME
    page_file.write_text(build(found))
    return page_file
