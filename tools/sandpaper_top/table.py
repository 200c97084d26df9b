# SPDX-License-Identifier: BSD-2-Clause
"""The table of tenants: its columns, what is sorted and left out, the lines.

Columns that have no room are left out, those first that say least.  The column
by which the table is sorted is always there.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .rates import Row, Sample
from .terminal import LEAST, Glyphs, Line, flow, too_small

NEW = "(new)"  # the group of new Hosts
NAME_WIDTH = (12, 40)
BARS = (8, 60)  # columns of the history


def number(value: float) -> str:
    """Return a rate in at most six characters."""
    if value >= 1e6:
        return f"{value / 1e6:.1f}M"
    if value >= 1e4:
        return f"{value / 1e3:.1f}k"
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def duration(seconds: float) -> str:
    """Return a time in at most six characters, such as 4.2 ms."""
    if seconds >= 9.95:
        return f"{seconds:.0f} s"
    if seconds >= 0.9995:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.{0 if seconds >= 0.00995 else 1}f} ms"


def percent(part: float | None) -> str:
    """Return a part of one, or a dash if there is nothing to divide."""
    if part is None:
        return "-"
    return f"{part * 100:.{int(0 < part < 0.0095)}f} %"


def group_text(row: Row) -> str:
    """Return a tenant's group, or how many members a group has."""
    return f"{row.members} members" if row.members else row.group


@dataclass(frozen=True)
class Column:
    """A column: the key that sorts by it, and how it is shown."""

    key: str
    title: str
    width: int
    text: Callable[[Row], str]
    by: Callable[[Row], Any]
    about: str
    rank: int = 0  # columns of a low rank are left out last
    style: Callable[[Row], str] = lambda _row: ""
    words: bool = False  # from A to Z first, and flush left


NAME = Column("n", "tenant", 0, lambda r: r.name, lambda r: r.name,
              "its name; those in parentheses are groups, or Sandpaper's own",
              words=True)
GROUP = Column("o", "group", 12, group_text, group_text,
               "its group, or how many members a group has", 10,
               lambda r: "dim", words=True)
COLUMNS = [
    Column("r", "req/s", 7, lambda r: number(r.rps), lambda r: r.rps,
           "requests that ended", 2),
    Column("u", "used", 6, lambda r: percent(r.used), lambda r: r.used or 0,
           "its part of what all used of the busiest resource", 1,
           lambda r: "info"),
    Column("w", "weight", 7, lambda r: f"{r.weight:.3g}",
           lambda r: r.weight, "its part relative to others", 6),
    Column("i", "waiting", 8, lambda r: str(r.waiting),
           lambda r: r.waiting, "requests in its queue: who fills the queue",
           3, lambda r: "warn" if r.waiting else "dim"),
    Column("x", "running", 8, lambda r: str(r.running),
           lambda r: r.running, "requests that run now", 7),
    Column("d", "wait", 7, lambda r: duration(r.wait_s),
           lambda r: r.wait_s, "mean time in the queue", 5),
    Column("p", "p99", 7, lambda r: duration(r.p99_s), lambda r: r.p99_s,
           "of 100 requests, 99 waited for less", 8),
    Column("f", "refused/s", 10, lambda r: number(r.refused),
           lambda r: r.refused, "requests that a limit turned away", 4,
           lambda r: "bad" if r.refused else "dim"),
    Column("c", "cores", 6, lambda r: f"{r.cpu:.2f}", lambda r: r.cpu,
           "CPU time it used, in cores", 11),
    Column("b", "Mbit/s", 7, lambda r: number(r.bits / 1e6),
           lambda r: r.bits, "what it sent", 12),
    GROUP,
]
KEYS = {c.key: c for c in (NAME, *COLUMNS)}
HISTORY_RANK = 9  # bars come before columns of a higher rank

GROUPS = {"new": "(new) closed", "all": "groups closed", "open": "groups open"}


def matcher(text: str) -> Callable[[str], object]:
    """Return what says if a name is meant: by a glob, or a part of it."""
    if any(c in text for c in "*?["):
        return re.compile(fnmatch.translate(text), re.IGNORECASE).match
    return re.compile(re.escape(text), re.IGNORECASE).search


@dataclass
class Choices:
    """What the user has chosen with keys."""

    sort: str = "u"
    turned: bool = False  # the other direction
    groups: str = "new"  # those whose members are not shown
    filter: str = ""
    chosen: str | None = None  # a tenant's name
    skipped: int = 0
    order: list[str] = field(default_factory=list)  # names, as last drawn
    height: int = 1  # rows that were drawn

    def sort_by(self, key: str) -> None:
        """Sort by a column; again: in the other direction."""
        self.turned = key == self.sort and not self.turned
        self.sort, self.skipped = key, 0

    def next_groups(self) -> None:
        """Open or close groups."""
        states = list(GROUPS)
        self.groups = states[(states.index(self.groups) + 1) % len(states)]

    def move(self, rows: int) -> None:
        """Choose a row below or above the chosen one."""
        if not self.order:
            return
        at = (self.order.index(self.chosen) + rows
              if self.chosen in self.order
              else self.skipped + max(0, rows - 1))
        self.chosen = self.order[max(0, min(at, len(self.order) - 1))]

    def follow(self) -> None:
        """Skip so many rows that the chosen one is seen."""
        if self.chosen in self.order:
            at = self.order.index(self.chosen)
            self.skipped = max(at - self.height + 1, min(self.skipped, at))
        self.skipped = max(0, min(self.skipped,
                                  len(self.order) - self.height))


def fold(rows: Sequence[Row], groups: str) -> list[Row]:
    """Return the rows without members of groups that are closed.

    A group's row has the figures of all its members.
    """
    closed = {r.name for r in rows if r.members} if groups == "all" else set()
    if groups != "open":
        closed |= {r.name for r in rows if r.name == NEW}
    return [r for r in rows if r.group not in closed]


def sorted_rows(rows: Sequence[Row], choices: Choices) -> list[Row]:
    """Return the rows that are meant, in the order that was chosen."""
    found = fold(rows, choices.groups)
    if choices.filter:
        match = matcher(choices.filter)
        found = [r for r in found if match(r.name)]
    found.sort(key=lambda r: r.name)  # what is equal: by use, then by name
    found.sort(key=lambda r: r.rps, reverse=True)
    column = KEYS[choices.sort]
    found.sort(key=column.by, reverse=column.words == choices.turned)
    return found


def head(sample: Sample, g: Glyphs, width: int = 100) -> list[Line]:
    """Return the lines above the table."""
    mode = {"on": "good", "off": "bad"}.get(sample.mode, "warn")
    net = f"{sample.bits / 1e6:.0f} Mbit/s"
    if sample.link:
        net += f" of {sample.link / 1e6:.0f}"

    def item(what: str, text: object, style: str = "") -> Line:
        return [("dim", f"{what} "), (style, str(text))]

    items = [
        [("title", "sandpaper-top")],
        [(mode, f"{g.dot} "), (mode, sample.mode)],
        item("policy", sample.policy), item("slots", sample.slots),
        item("running", sample.running),
        item("waiting", sample.waiting, "warn" if sample.waiting else ""),
        item("tenants", sample.tenants),
        item("cpu", f"{sample.cpu:.2f} cores"), item("net", net),
        item("busiest", sample.busiest, "info"),
        item("figures of", f"{sample.seconds:.1f} s"),
    ]
    if sample.security_patches == "none":
        items.append(item("security patches", "none", "warn"))
    return flow(items, width, 2 if width >= 100 else 4)


def layout(rows: Sequence[Row], choices: Choices, width: int
           ) -> tuple[int, list[Column], int]:
    """Return the width of names, the columns, and the width of the bars."""
    longest = max((len(r.name) for r in rows), default=0)
    name = max(NAME_WIDTH[0], min(longest, NAME_WIDTH[1]))
    least = min(name, 20)
    left = width - least
    wanted = sorted(COLUMNS, key=lambda c: (c.key != choices.sort, c.rank))
    shown: set[str] = set()
    bars = 0
    for c in wanted:
        if c.rank > HISTORY_RANK and not bars and left > BARS[0] + 1:
            bars = BARS[0]
            left -= bars + 1
        if c is GROUP and c.key != choices.sort and not any(
                r.group or r.members for r in rows):
            continue
        if left < c.width + 1:
            break
        shown.add(c.key)
        left -= c.width + 1
    more = min(left, name - least)
    left -= more
    if bars or left > BARS[0]:
        bars = min(BARS[1], bars + left - (0 if bars else 1))
    return least + more, [c for c in COLUMNS if c.key in shown], bars


def title(columns: Sequence[Column], choices: Choices, g: Glyphs, name: int,
          bars: int) -> Line:
    """Return the line above the rows."""
    def cell(c: Column, width: int) -> tuple[str, str]:
        text = c.title
        if c.key == choices.sort:
            text += g.up if choices.turned != c.words else g.down
        return ("info" if c.key == choices.sort else "head",
                text.ljust(width) if c.words else text.rjust(width))

    line: Line = [cell(NAME, name)]
    for c in columns:
        if c is not GROUP:
            line += [("head", " "), cell(c, c.width)]
    if bars:
        line.append(("head", " " + (
            "req/s over time" if bars >= 15 else "history").rjust(bars)))
    if GROUP in columns:
        line += [("head", " "), cell(GROUP, GROUP.width)]
    return line


def row_line(r: Row, columns: Sequence[Column], g: Glyphs, name: int,
             bars: int, chosen: bool) -> Line:
    """Return the line of a tenant."""
    line: Line = [("title", g.fit(g.safe(r.name), name))]
    line += [(c.style(r), " " + c.text(r).rjust(c.width))
             for c in columns if c is not GROUP]
    if bars:
        past = r.past("rps", bars)
        line.append(("good", " " + g.spark(past, bars,
                                           max(past, default=0.0))))
    if GROUP in columns:
        line.append(("dim", " " + g.fit(g.safe(group_text(r)),
                                        GROUP.width)))
    if chosen:
        line = [("chosen", "".join(text for _, text in line))]
    return line


def body(sample: Sample, choices: Choices, g: Glyphs, width: int,
         lines: int) -> list[Line]:
    """Return the table in a number of lines."""
    rows = sorted_rows(sample.rows, choices)
    choices.order = [r.name for r in rows]
    choices.height = max(1, lines - 2)
    choices.follow()
    shown = rows[choices.skipped:choices.skipped + choices.height]
    name, columns, bars = layout(shown, choices, width)
    found = [title(columns, choices, g, name, bars)]
    found += [row_line(r, columns, g, name, bars, r.name == choices.chosen)
              for r in shown]
    hidden = len(rows) - len(shown)
    said = [f"{hidden} more"] if hidden else []
    if choices.filter:
        said.append(f"{len(rows)} of {len(sample.rows)} match "
                    + g.safe(choices.filter))
    if said:
        found.append([("dim", ", ".join(said))])
    return found


HELP: Line = [("key", "q"), ("dim", " quit  "), ("key", "h"),
              ("dim", " help  "), ("key", "/"), ("dim", " filter  "),
              ("key", "space"), ("dim", " freeze  "), ("key", "enter"),
              ("dim", " one tenant  "), ("key", "g"), ("dim", " groups  "),
              ("dim", "sort: "),
              *(s for c in (NAME, *COLUMNS) for s in (
                  ("key", c.key), ("dim", f" {c.title}  ")))]


def picture(sample: Sample | None, choices: Choices, g: Glyphs,
            columns: int, lines: int, note: str = "") -> list[Line]:
    """Return the view of all tenants."""
    if columns < LEAST[0] or lines < LEAST[1]:
        return too_small(columns, lines)
    if sample is None:
        found: list[Line] = [[("title", "sandpaper-top")],
                             [("dim", note or "the first figures come in a "
                               "moment")]]
    else:
        above = head(sample, g, columns)
        found = above[:max(1, lines - 7)]
        found.append([("warn", note)])
        found += body(sample, choices, g, columns, lines - len(found) - 1)
    found += [[] for _ in range(lines - 1 - len(found))]
    return [*found[:lines - 1], HELP]
