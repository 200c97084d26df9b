# SPDX-License-Identifier: BSD-2-Clause
"""One tenant's page: why it waits, its last seconds, its history, its fields.

The sentences and the fields are what sandpaper.show says, with the names that
JSON has.  The history is what this program saw.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .rates import Row
from .table import duration, number, percent
from .terminal import Glyphs, Line

CELL = 34  # columns of a field and its value
TALL = 4  # lines of the bars of requests/s, if there is room
ROOMY = 40  # lines of a terminal that has it


@dataclass
class Details:
    """What sandpaper.show says of a tenant."""

    tenant: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    why: Sequence[str] = ()  # sentences
    error: str = ""


def of_window(key: str, value: float | None) -> str:
    """Return a figure of the last seconds; its name says what it is."""
    if value is None:
        return "-"
    if key.endswith("_part"):
        return percent(value)
    return number(value) if key.endswith("_per_s") else duration(value)


def windows(last: Sequence[Mapping[str, Any]], g: Glyphs,
            width: int) -> list[Line]:
    """Return a table of the last 1, 10, 60 s, without causes that are 0."""
    if not last:
        return []
    cell = 9 if width >= 50 else 7
    name = min(23, width - len(last) * cell)
    found: list[Line] = [[("head", "the last".ljust(name)), *(
        ("head", f"{w['s']} s".rjust(cell)) for w in last)]]
    for key in last[0]:
        values = [w.get(key) for w in last]
        minor = key.startswith(("refused", "shed", "cancelled", "would"))
        if key == "s" or (minor and not any(values)):
            continue
        found.append([("dim", g.fit(key, name)), *(
            ("bad" if minor else "", of_window(key, v).rjust(cell))
            for v in values)])
    return found


def history(row: Row, g: Glyphs, width: int, tall: int) -> list[Line]:
    """Return bars of what this program saw of the tenant."""
    found: list[Line] = []
    kinds: list[tuple[str, str, Callable[[float], str], int]] = [
        ("rps", "req/s", number, tall), ("used", "used", percent, 1),
        ("waiting", "waiting", number, 1), ("p99_s", "wait p99", duration, 1)]
    for what, text, shown, lines in kinds:
        values = row.past(what, width)
        now = getattr(row, what) or 0.0
        most = max([*values, now])
        found.append([("head", text), ("dim", "   now "),
                      ("", shown(now)),
                      ("dim", "   most "), ("", shown(most))])
        found += [[("good", bars)]
                  for bars in g.tall(values, width, lines, most)]
    return found


def value_text(value: object) -> str:
    """Return a field's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def grid(fields: Mapping[str, Any], g: Glyphs, width: int) -> list[Line]:
    """Return all fields that are one value, side by side."""
    cells = [(key, g.safe(value_text(v))) for key, v in fields.items()
             if not isinstance(v, list | dict) and key != "tenant"]
    across = max(1, width // CELL)
    rows = -(-len(cells) // across)
    return [[s for key, text in cells[n::rows] for s in (
        ("dim", key + " "),
        ("", text.rjust(CELL - 3 - len(key)) + "  "))]
        for n in range(rows)]


def page(row: Row | None, details: Details, g: Glyphs, width: int,
         lines: int) -> list[Line]:
    """Return all lines of a tenant's page, more than there may be room for."""
    name = g.safe(details.tenant)
    group = details.fields.get("group") or (row.group if row else "")
    found: list[Line] = [[("title", name), *(
        [("dim", "   of the group "), ("", g.safe(group))] if group else [])]]
    if details.error:
        found.append([("bad", g.safe(details.error))])
    elif not details.fields:
        found.append([("dim", "its fields come in a moment")])
    found += [[]] if details.why else []
    for sentence in details.why:
        found += [[("", line)] for line in textwrap.wrap(
            g.safe(sentence), min(width, 100))]
    last = windows(details.fields.get("last", ()), g, width)
    if last:
        found += [[], *last]
    if row is not None:
        found += [[], *history(row, g, width, TALL if lines >= ROOMY else 1)]
    if details.fields:
        found += [[], [("head", "all fields")],
                  *grid(details.fields, g, width)]
    return found
