# SPDX-License-Identifier: BSD-2-Clause
"""Records of runs in Markdown: what all tables of figures have in common.

A column is its head and a template of a row (table.py); a row is a result,
with what stock has of the same as `stock_FIELD`.  A cell is empty if a value of
it was not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .claims import valid
from .estimate import covers_one, known
from .pedigree import DIRTY
from .rig import controls
from .table import cell, link_text
from .varnish import STOCK

Record = dict[str, Any]
Row = dict[str, Any]
Columns = Sequence[tuple[str, str]]
NOT_YET = "not measured at this commit yet"
OLD = "†"
IS_OLD = f"{OLD} older than the last change of the code."
OURS = "sandpaper"
BENCH = "bench/sandpaper-bench"
RATIO = "{ratio:.2f}{ratio_ci:to}"


class Records:
    """All records, and which commits are old."""

    def __init__(
        self, records: dict[str, Any], is_old: Callable[[str], bool]
    ) -> None:
        self.records, self._is_old = records, is_old

    def commit(self, record: Record) -> str:
        """Return the commit of a record, marked if it is old."""
        commit = (record["commit"] if "commit" in record
                  else record["machine"]["source"])
        if not commit:
            return "not recorded"
        commit += DIRTY if record.get("dirty") else ""
        return str(commit) + (OLD if self._is_old(commit) else "")


def not_yet(command: str) -> str:
    """Return what stands for a table without a record."""
    return f"{NOT_YET.capitalize()}: `{command}`."


def table(columns: Columns, rows: Iterable[Row]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (
        [head for head, _ in columns], ["---"] * len(columns),
        *([cell(template, row) for _, template in columns] for row in rows)))


def control_text(control: Record) -> str:
    """Return a control, and whether it is valid."""
    ends = control["ratio_ci"]
    if not known(ends):
        return cell("{ratio:.2f}, no interval", control)
    if control["covers_one"]:
        return cell(RATIO, control)
    # Two digits may hide by how little it misses 1
    hidden = covers_one([round(end, 2) for end in ends])
    return cell("{ratio:.4f}{ratio_ci:to4}, not valid" if hidden
                else RATIO + ", not valid", control)


def control_of(record: Record, part: str) -> str:
    """Return the control of a part, else the only one."""
    found = record["control"]
    own = found if "what" in found else found.get(part)
    return control_text(own) if own else ""


def under(record: Record, variant: str, same: Row) -> Row | None:
    """Return the result of a variant that has the same, if there is one."""
    return next((r for r in record["results"] if r.get("variant") == variant
                 and same.items() <= r.items()), None)


def beside(record: Record, row: Row, *keys: str) -> Row:
    """Return a row, with what each variant has where the keys are the same."""
    found = dict(row)
    for variant in dict.fromkeys(
            [STOCK, OURS, *(r["variant"] for r in record["results"])]):
        other = under(record, variant, {k: row[k] for k in keys}) or {}
        found |= {f"{variant}_{key}": other.get(key) for key in row}
    return found


def doubt(record: Record, part: str = "") -> str:
    """Return what stands behind a figure whose control is not valid."""
    return "" if valid(record, part) else ", not valid"


def machine_text(machine: Record) -> str:
    """Return which machine it was."""
    return (f"{machine['cores']} cores of {machine['cpu']}"
            + (" (virtual)" if machine.get("virtual") else "")
            + f", Linux {machine['kernel']}")


def about(figures: Records, record: Record) -> str:
    """Return how a record was made."""
    machine, plan = record["machine"], record["plan"]
    links = link_text(record)
    facts = [
        f"`{record['command']}`", record["date"],
        f"commit {figures.commit(record)}",
        f"{plan['turns']} turn{'s' * (plan['turns'] != 1)} of "
        f"{plan['seconds']:g} s",
        f"seed {record['seed']}",
        machine_text(machine), f"link of {links}" if links else "no shaped link"]
    if machine.get("governor"):
        facts.append(f"governor {machine['governor']}")
    return ", ".join(facts) + "."


def goal(more: float | None, less: float, valid: bool) -> str | None:
    """Return what a goal's cell says: it is met if `more` is not below."""
    if more is None:
        return None
    if not valid:
        return "not valid"
    return "missed" if more < less else "met"


def one_record(
    make: Callable[[Record], tuple[Columns, Iterable[Row]]], usual: str,
    figures: Records, name: str = "", *command: str,
) -> str:
    """Return the table of one record, with its circumstances and controls."""
    name = name or usual
    record = figures.records.get(name)
    if record is None:
        return not_yet(" ".join([BENCH, *(command or (name,))]))
    return "\n\n".join([table(*make(record)), " ".join([
        about(figures, record), *(
            f"Control, {c['what']}: {control_text(c)}."
            for c in controls(record["control"]))])])


def several(
    figures: Records, columns: Columns, rows: Iterable[Row],
    records: Sequence[Record],
) -> str:
    """Return the table of several records, with how each was made."""
    # Commands that differ only in the experiment are said once
    alike: dict[str, dict[str, str]] = {}
    for record in records:
        name, text = record["experiment"], about(figures, record)
        common = text.replace(f"{BENCH} {name} ", f"{BENCH} CASE ", 1)
        alike.setdefault(common, {})[text] = name
    return "\n\n".join([table(columns, rows), *(
        text if len(found) == 1 else f"{common} CASE: `{', '.join(names)}`."
        for common, found in alike.items()
        for text, *names in [[next(iter(found)), *found.values()]])])


def in_text(figures: Records, record: Record | None, text: str) -> str:
    """Return a figure for a text, marked as its record is."""
    if record is None:
        return f"({NOT_YET})"
    return text + (OLD if OLD in figures.commit(record) else "")
