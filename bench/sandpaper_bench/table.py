# SPDX-License-Identifier: BSD-2-Clause
"""Reports as tables: for a terminal, and for the page.

A row is a result of an experiment; a pair's result gives a row for each of
its two tenants.  A column's template (sections.toml) makes a cell of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Formatter
from typing import Any

from .abuses import ABUSES
from .estimate import known
from .rig import controls
from .sections import SECTIONS

Row = Sequence[str]
Table = tuple[Row, list[Row]]  # head, rows
Result = dict[str, Any]


class Absent(Exception):
    """A cell has a value that was not measured."""


class Cells(Formatter):
    """Python's formats, and those that results need.

    ms, ms0, time: a time in s, as milliseconds; a long `time` has no tenths.
    95, 95ms: an interval.  to, to0, to1, to4: an interval behind a value, with
    two digits or that many; nothing if it is not known.  or X: a text, or X if it
    is empty.
    """

    def format_field(self, value: Any, form: str) -> str:
        """Return a value in a format."""
        if value is None:
            raise Absent
        if form in ("ms", "ms0"):
            return f"{value * 1e3:.{0 if form == 'ms0' else 1}f}"
        if form == "time":
            value *= 1e3
            return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
        if form in ("95", "95ms"):
            return interval([end * (1e3 if form == "95ms" else 1)
                             for end in value])
        if form in ("to", "to0", "to1", "to4"):
            low, high = (f"{end:.{form[2:] or 2}f}" for end in value)
            return f" ({low} to {high})" if known(value) else ""
        if form.startswith("or "):
            return value or form.removeprefix("or ")
        return str(super().format_field(value, form))


CELLS = Cells()


def cell(template: str, row: Mapping[str, Any]) -> str:
    """Return a template with a row's values; empty if one is None."""
    try:
        return CELLS.vformat(template, (), row)
    except Absent:
        return ""


def align(head: Row, rows: Sequence[Row]) -> str:
    """Return rows in columns: the first left, the others right."""
    width = [max(map(len, column)) for column in zip(head, *rows, strict=True)]

    def line(row: Row) -> str:
        return "  ".join(
            [row[0].ljust(width[0])]
            + [c.rjust(w) for c, w in zip(row[1:], width[1:], strict=True)])

    rule = "-" * (sum(width) + 2 * (len(width) - 1))
    return "\n".join([line(head), rule, *map(line, rows)])


def interval(ends: Sequence[float]) -> str:
    """Return a 95 % interval as text."""
    return f"{ends[0]:.2f}..{ends[1]:.2f}" if known(ends) else "unknown"


def sides(result: Result) -> list[Result]:
    """Return a row for each tenant of a pair; the first has their ratio."""
    found = []
    for side, other in ("ab", "ba"):
        found.append(result | {
            key.removesuffix(f"_{side}"): value
            for key, value in result.items() if key.endswith(f"_{side}")
        } | {"tenant": result[side], "beside": result[other]})
    found[1] |= {"ratio": None, "ratio_ci": None, "ratio_windows": None,
                 "ratio_at_cost": None}
    return found


def rows_of(results: Iterable[Result]) -> Iterator[Result]:
    """Return the rows of a table, with what is of several fields."""
    for r in results:
        if "norm_a" in r:
            clients = f", {r['connections']}" if "connections" in r else ""
            yield from (row | {
                "who": f"{row['tenant']} with {row['beside']}{clients}"}
                for row in sides(r))
        elif "customer" in r:
            yield r | {"who": " ".join(
                r[key] for key in ("customer", "setting") if key in r)}
        elif "parts" in r:
            yield r | {"least_part": min(r["parts"]),
                       "largest_part": max(r["parts"])}
        elif "errors_baseline" in r:
            yield r | {"errors": r["errors_baseline"] + r["errors_variant"]}
        else:
            yield r


def body(experiment: str, results: Sequence[Result]) -> Table:
    """Return the table of results; an unknown experiment's has all scalars."""
    section = SECTIONS.get(experiment)
    if section is None:
        head = [k for k, v in results[0].items()
                if isinstance(v, str | int | float)]
        return head, [[str(r.get(k, "")) for k in head] for r in results]
    return ([head for head, _ in section.columns],
            [[cell(template, r) for _, template in section.columns]
             for r in rows_of(results)])


def abuse_table(results: Sequence[Result]) -> Table:
    """Return one table of several abuses."""
    return body(next(iter(ABUSES)), results)


def control_lines(control: dict[str, Any]) -> list[str]:
    """Return a line for each A/A control."""
    return [f"A/A control: {c['what']}: {c['ratio']:.3f} "
            f"({interval(c['ratio_ci'])})"
            + ("" if c["covers_one"] else ": INVALID, does not cover 1")
            for c in controls(control)]


def link_text(report: dict[str, Any]) -> str:
    """Return the client-facing links' rates; nothing if none is limited."""
    rates = {r["link_bps"] for r in report.get("results", ()) if "link_bps" in r} or {
        report["machine"]["link_bits_per_second"]}
    return ", ".join(f"{rate / 1e9:g}" for rate in sorted(
        filter(None, rates))) + " Gbit/s" * any(rates)


def table(report: dict[str, Any]) -> str:
    """Return the report's table and its controls, as text."""
    return "\n".join([
        align(*body(report["experiment"], report["results"])),
        *control_lines(report["control"])])
