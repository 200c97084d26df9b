# SPDX-License-Identifier: BSD-2-Clause
"""What the live view shows, and what keys do.

There are three screens: the table, a tenant's page, and the help.  Frozen, the
view keeps the figures that it has; the newest are put by until it goes on.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from .page import Details, page
from .rates import Sample
from .table import COLUMNS, NAME, Choices, picture, sorted_rows
from .terminal import LEAST, Glyphs, Line, clip, too_small

KEYS = [
    ("q", "quit"),
    ("h", "this page; any key goes back"),
    ("up, down", "choose a tenant; also page up and down, home, end"),
    ("enter", "the page of this tenant; in it, left and right go to the next "
     "one, and esc goes back"),
    ("/", "filter: type a part of a name, or a pattern with * ? [ ]; enter "
     "keeps it, esc removes it"),
    ("space", "freeze: the figures stand still; space again shows the newest"),
    ("g", "open or close groups: (new), all of them, none"),
]
ABOUT = ("The figures are those of the last interval. Sort by a column with "
         "its key, and in the other direction with the same key again:")
PAGE_HELP: Line = [
    ("key", "esc"), ("dim", " back  "), ("key", "space"),
    ("dim", " freeze  "), ("key", "left right"), ("dim", " others  "),
    ("key", "up down"), ("dim", " more of it  "), ("key", "q"),
    ("dim", " quit")]


def help_lines(width: int) -> list[Line]:
    """Return all lines of the help."""
    found: list[Line] = [[("title", "sandpaper-top")], []]

    def explain(key: str, text: str) -> None:
        first, *rest = textwrap.wrap(text, max(20, min(width, 90) - 10))
        found.append([("key", key.ljust(10)), ("", first)])
        found.extend([("", " " * 10 + line)] for line in rest)

    for key, text in KEYS:
        explain(key, text)
    found += [[], *([("", line)] for line in
                    textwrap.wrap(ABOUT, min(width, 90))), []]
    for c in (NAME, *COLUMNS):
        explain(c.key, f"{c.title}: {c.about}")
    return found


class View:
    """The state of the view.

    `look_at` gets the tenant whose details are wanted, or None.
    """

    def __init__(self, g: Glyphs, choices: Choices,
                 look_at: Callable[[str | None], None],
                 leave: Callable[[], None]) -> None:
        self._glyphs, self.choices = g, choices
        self._look_at, self._leave = look_at, leave
        self.note = ""
        self.sample: Sample | None = None
        self.details: Details | None = None  # of the tenant of the page
        self.frozen = False
        self._newest: Sample | None = None
        self._newest_details: Details | None = None
        self._typing = False  # a filter
        self._help = False
        self._skipped = 0  # lines of a page or of the help

    # What comes

    def take(self, news: Sample | Details) -> None:
        """Take what was found; show it now unless the view is frozen."""
        if isinstance(news, Sample):
            self._newest = news
            if self.sample is None or not self.frozen:
                self.sample = news
        elif self.details and news.tenant == self.details.tenant:
            self._newest_details = news
            if not self.frozen or not (self.details.fields
                                       or self.details.error):
                self.details = news

    # What is shown

    def draw(self, columns: int, lines: int) -> list[Line]:
        """Return the lines of the terminal."""
        if columns < LEAST[0] or lines < LEAST[1]:
            return too_small(columns, lines)
        note = self.note
        if self.frozen and self.sample:
            note = f"frozen at {self.sample.clock}: space goes on  {note}"
        if self._help:
            return self._part(help_lines(columns), columns, lines,
                              [("dim", "any key goes back")])
        if self.details:
            row = next((r for r in self.sample.rows
                        if r.name == self.details.tenant), None
                       ) if self.sample else None
            found = page(row, self.details, self._glyphs, columns, lines)
            found[0] += [("warn", "   " + note)]
            return self._part(found, columns, lines, PAGE_HELP)
        found = picture(self.sample, self.choices, self._glyphs, columns,
                        lines, note)
        if self._typing:
            found[-1] = [("key", "/"), ("", self.choices.filter + "_"),
                         ("dim", "   enter keeps it, esc removes it")]
        return found

    def _part(self, found: list[Line], columns: int, lines: int,
              last: Line) -> list[Line]:
        """Return the lines that there is room for, and the last one."""
        self._skipped = max(0, min(self._skipped, len(found) - lines + 1))
        found = found[self._skipped:self._skipped + lines - 1]
        found += [[] for _ in range(lines - 1 - len(found))]
        return [clip(line, columns) for line in [*found, last]]

    # What keys do

    def key(self, name: str) -> None:
        """Do what a key says."""
        if self._typing:
            self._type(name)
        elif self._help:
            self._help_key(name)
        elif name in ("q", "Q"):
            self._leave()
        elif name == "h":
            self._help, self._skipped = True, 0
        elif name == " ":
            self._freeze()
        elif self.details:
            self._page_key(name)
        else:
            self._table_key(name)

    def _type(self, name: str) -> None:
        """Change the filter by a key."""
        if name == "enter":
            self._typing = False
        elif name == "esc":
            self.choices.filter, self._typing = "", False
        elif name in ("backspace", "delete"):
            self.choices.filter = self.choices.filter[:-1]
        elif len(name) == 1:
            self.choices.filter += name
        self.choices.skipped = 0

    def _help_key(self, name: str) -> None:
        if name in ("down", "up"):
            self._skipped += 1 if name == "down" else -1
        else:
            self._help = False

    def _freeze(self) -> None:
        """Freeze, or show the newest."""
        self.frozen = not self.frozen
        if not self.frozen:
            self.sample = self._newest
            self.details = self.details and (self._newest_details
                                             or self.details)

    def _table_key(self, name: str) -> None:
        choices = self.choices
        if name == "esc":
            if not choices.filter:
                self._leave()
            choices.filter = ""
        elif name in {c.key for c in (NAME, *COLUMNS)}:
            choices.sort_by(name)
        elif name == "g":
            choices.next_groups()
        elif name == "/":
            self._typing = True
        elif name in ("enter", "right"):
            self._open(0 if choices.chosen else 1)
        elif name == "home":
            choices.chosen, choices.skipped = None, 0
        else:
            step = {"down": 1, "up": -1, "page down": choices.height,
                    "page up": -choices.height,
                    "end": len(choices.order)}.get(name)
            if step:
                self._move(step)

    def _page_key(self, name: str) -> None:
        if name in ("esc", "enter", "backspace"):
            self.details = self._newest_details = None
            self._look_at(None)
        elif name in ("left", "right"):
            self._open(1 if name == "right" else -1)
        elif name in ("down", "up", "page down", "page up"):
            self._skipped += ((10 if "page" in name else 1)
                              * (1 if "down" in name else -1))
        elif name == "home":
            self._skipped = 0

    def _move(self, step: int) -> None:
        """Choose another row, in the order that the next redraw has."""
        if self.sample:
            self.choices.order = [r.name for r in sorted_rows(
                self.sample.rows, self.choices)]
        self.choices.move(step)

    def _open(self, step: int) -> None:
        """Open the page of a tenant so many rows from the chosen one."""
        self._move(step)
        if self.choices.chosen is not None and self.choices.order:
            self.details = Details(self.choices.chosen)
            self._newest_details = None
            self._skipped = 0
            self._look_at(self.choices.chosen)
