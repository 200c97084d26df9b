# SPDX-License-Identifier: BSD-2-Clause
"""Figures of `compress` in Markdown: a row for each link, under each rule."""

from __future__ import annotations

from .claims import valid
from .markdown import (
    BENCH,
    Record,
    Records,
    Row,
    about,
    beside,
    control_text,
    goal,
    not_yet,
    table,
)
from .rig import controls

NAMES = ("plain", "compressed", "auto")


def each(template: str) -> str:
    """Return a cell with a field of each variant; F stands for its name."""
    return ", ".join(template.replace("F", f"{name}_") for name in NAMES)


def rows(record: Record) -> list[Row]:
    """Return a row for each link: what `auto` has, and the others."""
    found = []
    for r in record["results"]:
        if r["variant"] != NAMES[-1]:
            continue
        row = beside(record, r, "link")
        for name in NAMES:
            row[f"{name}_kb"] = row[f"{name}_bytes"] / 1e3
        row["wanted"] = f"over {r['against']} {r['goal']:g}"
        row["verdict"] = goal(r["ratio"], r["goal"], valid(record, r["link"]))
        found.append(row)
    return found


def compress(figures: Records) -> str:
    """Return throughput with each link, and what an answer takes."""
    record = figures.records.get("compress")
    if record is None:
        return not_yet(f"{BENCH} compress --record")
    every = rows(record)
    names = ", ".join(NAMES)
    return "\n\n".join([
        table([
            ("link", "{link}"),
            *((f"{name}, requests/s", f"{{{name}_rps:,.0f}}"
               f"{{{name}_rps_ci:to0}}") for name in NAMES),
            ("auto over plain", "{over_plain:.2f}{over_plain_ci:to}"),
            ("auto over the better of both",
             "{over_best:.2f}{over_best_ci:to}"),
            ("goal: at least", "{wanted}"), ("", "{verdict}")], every),
        table([
            ("link", "{link}"),
            (f"CPU us per request: {names}", each("{Fcpu_us:.0f}")),
            ("kB per answer", each("{Fkb:.1f}")),
            ("busy part of the cores", each("{Fbusy:.2f}")),
            ("p99, ms", each("{Fp99_s:time}")),
            ("errors", each("{Ferrors}"))], every),
        " ".join([about(figures, record), *(
            f"Control, {c['what']}: {control_text(c)}."
            for c in controls(record["control"]))])])
