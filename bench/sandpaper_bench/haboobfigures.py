# SPDX-License-Identifier: BSD-2-Clause
"""Figure 39 of SEDA's thesis: its figures, ours, and which statements hold.

A statement is judged of the last Sandpaper among the variants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .markdown import (
    BENCH,
    OURS,
    Columns,
    Record,
    Records,
    Row,
    about,
    control_text,
    not_yet,
    table,
)
from .rig import controls
from .table import align, cell
from .table import table as plain

# Figure 39: clients, Mbit/s, mean and longest response time in s, Jain's index
THESIS = {
    "Apache": ((64, 177.56, 0.01661, 2.285, 0.99),
               (1024, 173.09, 0.47547, 93.691, 0.80)),
    "Flash": ((64, 172.65, 0.01858, 12.470, 0.99),
              (1024, 172.65, 0.66532, 37.388, 0.99)),
    "Haboob": ((64, 187.52, 0.01508, 1.872, 0.99),
               (1024, 201.42, 0.54723, 3.886, 0.98)),
}
FIELDS = ("clients", "mbit_s", "mean_s", "max_s", "jain")
KEPT = 0.95  # of the throughput with fewer clients
SERVERS = {"stock": "stock Varnish", OURS: "Sandpaper"}

# What one server has: with few clients, and with many
Seen = tuple[Mapping[str, float], Mapping[str, float]]


@dataclass(frozen=True)
class Statement:
    """A sentence of the thesis as a number of each server, and its limit."""

    text: str
    value: Callable[[Seen], float]
    holds: Callable[[float], bool]
    form: str = "{:.2f}"


def slowdown(seen: Seen) -> float:
    """Return the longest response time of many clients over the mean."""
    return seen[1]["max_s"] / max(seen[1]["mean_s"], 1e-9)


STATEMENTS = (
    Statement(
        f"Throughput with 1024 clients is at least {KEPT} of that with 64",
        lambda s: s[1]["mbit_s"] / max(s[0]["mbit_s"], 1e-9),
        lambda x: x >= KEPT),
    Statement("With 1024 clients Jain's index is at least Haboob's, 0.98",
              lambda s: s[1]["jain"], lambda x: x >= 0.98, "{:.3f}"),
    Statement("With 1024 clients Jain's index is at least Flash's, 0.99",
              lambda s: s[1]["jain"], lambda x: x >= 0.99, "{:.3f}"),
    Statement("With 1024 clients the longest response time is at most "
              "Haboob's, 3.9 s", lambda s: s[1]["max_s"],
              lambda x: x <= 3.886, "{:.2f} s"),
    Statement("With 1024 clients the longest response time is at most as many "
              "times the mean as Haboob's, 7.1", slowdown,
              lambda x: x <= 3.886 / 0.54723, "{:.1f}"),
    Statement("With 64 clients the longest response time is at most "
              "Haboob's, 1.9 s", lambda s: s[0]["max_s"],
              lambda x: x <= 1.872, "{:.2f} s"),
)


def thesis() -> dict[str, Seen]:
    """Return what the thesis has of each of its servers."""
    return {name: (dict(zip(FIELDS, few, strict=True)),
                   dict(zip(FIELDS, many, strict=True)))
            for name, (few, many) in THESIS.items()}


def of_each(results: Sequence[Row]) -> dict[str, Seen]:
    """Return what each variant has."""
    found: dict[str, list[Row]] = {}
    for r in sorted(results, key=lambda r: r["clients"]):
        found.setdefault(r["variant"], []).append(r)
    return {name: (rows[0], rows[-1]) for name, rows in found.items()}


def spread(servers: Mapping[str, Seen]) -> float:
    """Return the largest mean response time of few clients over the least."""
    means = [few["mean_s"] for few, _ in servers.values()]
    return max(means) / max(min(means), 1e-9)


def lead(servers: Mapping[str, Seen], name: str) -> float | None:
    """Return a server's throughput over the best of the others."""
    others = [many["mbit_s"] for other, (_, many) in servers.items()
              if other != name]
    return (servers[name][1]["mbit_s"] / max(*others, 1e-9)
            if others else None)


def verdict(holds: bool) -> str:
    """Return a verdict."""
    return "agrees" if holds else "differs"


def ours(names: Sequence[str]) -> str:
    """Return which variant is judged."""
    return OURS if OURS in names else names[-1]


def judged(results: Sequence[Row]) -> list[Row]:
    """Return a row for each statement: what all have, and the verdict."""
    here, there = of_each(results), thesis()
    mine = ours(list(here))
    rows: list[Row] = []
    for s in STATEMENTS:
        values = {name: s.value(seen)
                  for name, seen in (there | here).items()}
        rows.append({"statement": s.text, "verdict": verdict(
            s.holds(values[mine])), **{
                name: s.form.format(x) for name, x in values.items()}})
    whole = dict.fromkeys((*there, *here), "")
    if len(here) > 1:
        limit, found = spread(there), spread(here)
        rows.append(whole | {
            "statement": "With 64 clients the mean response times of the "
            f"servers differ by at most {limit:.2f} times, as in the thesis",
            "Haboob": f"{limit:.2f}", mine: f"{found:.2f}",
            "verdict": verdict(found <= limit)})
        best = lead(here, mine)
        rows.append(whole | {
            "statement": "With 1024 clients its throughput is higher than "
            "that of each other server: over the best one",
            "Haboob": f"{lead(there, 'Haboob'):.2f}", mine: f"{best:.2f}",
            "verdict": verdict(best is not None and best > 1)})
    return rows


def statement_columns(results: Sequence[Row]) -> Columns:
    """Return the columns of the statements."""
    names = [*THESIS, *dict.fromkeys(r["variant"] for r in results)]
    return [("statement", "{statement}"),
            *((SERVERS.get(n, n), f"{{{n}}}") for n in names),
            ("verdict", "{verdict}")]


def measured(results: Sequence[Row]) -> str:
    """Return the thesis's figures and ours, by clients."""
    rows: list[Row] = [
        {"server": f"{name}, thesis", **of_clients,
         "rps": None, "p99_s": None, "errors": None}
        for name, seen in thesis().items() for of_clients in seen]
    rows += [{"server": SERVERS.get(r["variant"], r["variant"]), **r}
             for r in results]
    rows.sort(key=lambda r: r["clients"])
    return table([
        ("clients", "{clients:.0f}"), ("server", "{server}"),
        ("Mbit/s", "{mbit_s:.0f}"), ("requests/s", "{rps:,.0f}"),
        ("mean, ms", "{mean_s:time}"), ("p99, ms", "{p99_s:time}"),
        ("longest, ms", "{max_s:time}"), ("Jain's index", "{jain:.3f}"),
        ("errors", "{errors}")], rows)


def haboob(figures: Records) -> str:
    """Return all figures of a record, and which statements hold."""
    record: Record | None = figures.records.get("haboob")
    if record is None:
        return not_yet(f"{BENCH} haboob --variants stock,nginx,{OURS} "
                       "--record")
    results = record["results"]
    return "\n\n".join([
        measured(results),
        table(statement_columns(results), judged(results)),
        " ".join([about(figures, record), *(
            f"Control, {c['what']}: {control_text(c)}."
            for c in controls(record["control"]))])])


def terminal(report: Record) -> str:
    """Return the report as text: figures, and which statements hold."""
    results = report["results"]
    columns = statement_columns(results)
    return "\n\n".join([plain(report), align(
        [head for head, _ in columns],
        [[cell(template, row) for _, template in columns]
         for row in judged(results)])])
