# SPDX-License-Identifier: BSD-2-Clause
"""What a terminal can show, and a live view in it, which needs urwid.

A view is lines of segments: a style's name and a text.  The table, a tenant's
page and the demo draw such lines; only class Live knows urwid.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from sandpaper_ask import ToolError

LEAST = (40, 8)  # columns and lines of a terminal

Segment = tuple[str, str]  # style and text
Line = list[Segment]

PALETTE = [  # style, 16 colours, background, without colour
    ("", "default", "default", "default"),
    ("title", "default,bold", "default", "bold"),
    ("head", "default,bold", "default", "underline"),
    ("good", "light green", "default", "default"),
    ("warn", "yellow", "default", "bold"),
    ("bad", "light red,bold", "default", "standout"),
    ("info", "light cyan", "default", "default"),
    ("dim", "dark gray", "default", "default"),
    ("key", "default,bold", "default", "bold"),
    ("chosen", "default,standout", "default", "standout"),
]


def first_environment() -> Mapping[str, str]:
    """Return the environment as it was before Python changed the locale."""
    with suppress(OSError):
        text = Path("/proc/self/environ").read_bytes().decode(
            errors="replace")
        return dict(item.split("=", 1) for item in text.split("\0")
                    if "=" in item)
    return os.environ


def is_utf8(environment: Mapping[str, str]) -> bool:
    """Has the locale UTF-8?"""
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if environment.get(name):
            return environment[name].lower().replace("-", "").endswith(
                ("utf8", "utf8@euro"))
    return False


def why_no_terminal() -> str | None:
    """Return why there can be no live view, None if there can."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "no terminal"
    if os.environ.get("TERM", "dumb") in ("", "dumb"):
        return "the terminal cannot place text (TERM=dumb)"
    return None


@dataclass(frozen=True)
class Glyphs:
    """What the view is drawn with."""

    bars: str
    cut: str
    rule: str
    full: str
    rest: str
    dot: str
    down: str
    up: str

    def spark(self, values: Sequence[float | None], width: int,
              top: float) -> str:
        """Return the last values as a row of bars; `top` is full."""
        last = list(values)[-width:]
        steps = len(self.bars) - 1

        def bar(value: float | None) -> str:
            if value is None:
                return " "
            part = value / top if top > 0 else 0.0
            least = 1 if value > 0 else 0
            return self.bars[max(least, min(steps, round(part * steps)))]

        return "".join(map(bar, last)).rjust(width)

    def tall(self, values: Sequence[float], width: int, lines: int,
             top: float) -> list[str]:
        """Return the last values as bars of several lines, the upper first."""
        last = list(values)[-width:]
        steps = len(self.bars) - 1
        high = [max(1 if v > 0 else 0, round(v / top * steps * lines))
                if top > 0 else 0 for v in last]

        def piece(value: int, below: int) -> str:
            part = min(steps, value - below * steps)
            return self.bars[part] if part > 0 or below == 0 else " "

        return ["".join(piece(v, n) for v in high).rjust(width)
                for n in reversed(range(lines))]

    def meter(self, part: float, width: int) -> str:
        """Return a horizontal bar, `part` of it full."""
        n = max(0, min(width, round(part * width)))
        return self.full * n + self.rest * (width - n)

    def fit(self, text: str, width: int) -> str:
        """Return the text in exactly `width` characters."""
        if len(text) > width:
            text = text[:width - len(self.cut)] + self.cut
        return text.ljust(width)

    def safe(self, text: str) -> str:
        """Return a text without what a terminal would obey.

        Each character of the result takes one column.
        """
        if text.isascii() and text.isprintable():
            return text
        return "".join(
            c if c.isprintable() and (c.isascii() or (
                self is UNICODE and not unicodedata.combining(c)
                and unicodedata.east_asian_width(c) not in "WF")) else "?"
            for c in text)


UNICODE = Glyphs("▁▁▂▃▄▅▆▇█", "…", "─", "█", "░", "●", "▼", "▲")
ASCII = Glyphs("_.:-=+*#@", "~", "-", "#", ".", "*", "v", "^")


def glyphs() -> Glyphs:
    """Return what this terminal can draw."""
    return UNICODE if is_utf8(first_environment()) else ASCII


def plain(lines: Sequence[Line]) -> str:
    """Return lines as text without colours."""
    return "\n".join("".join(text for _, text in line).rstrip()
                     for line in lines)


def flow(items: Sequence[Line], width: int, most: int,
         gap: str = "   ") -> list[Line]:
    """Return items side by side in lines; what needs more is left out."""
    found: list[Line] = [[]]
    used = 0
    for item in items:
        length = sum(len(text) for _, text in item)
        if found[-1] and used + len(gap) + length > width:
            if len(found) == most:
                break
            found.append([])
        if found[-1]:
            found[-1].append(("", gap))
            used += len(gap)
        else:
            used = 0
        found[-1] += item
        used += length
    return found


def clip(line: Line, width: int) -> Line:
    """Return the part of a line that fits."""
    found: Line = []
    for style, text in line:
        if width <= 0:
            break
        found.append((style, text[:width]))
        width -= len(text)
    return found


def too_small(columns: int, lines: int,
              least: tuple[int, int] = LEAST) -> list[Line]:
    """Return what a small terminal shows."""
    return [[("bad", "Terminal too small.")],
            [("", f"It has {columns}x{lines},")],
            [("", f"{least[0]}x{least[1]} is needed.")],
            [("dim", "q: quit")]][:lines]


def need_urwid() -> Any:
    """Import urwid: a table can be printed without it."""
    try:
        import urwid
    except ImportError:
        raise ToolError("the live view needs urwid: apt-get install "
                       "python3-urwid; --once prints a table") from None
    return urwid


class Live:
    """A live view: it draws lines, and passes keys on.

    `draw` gets the columns and lines of the terminal.  Programs add timers
    and descriptors to watch, then call run().
    """

    def __init__(
        self, draw: Callable[[int, int], list[Line]],
        key: Callable[[str], None], colour: bool = True,
    ) -> None:
        self._urwid = urwid = need_urwid()
        urwid.set_encoding("utf8" if glyphs() is UNICODE else "ascii")
        text = urwid.Text("", wrap="clip")

        class View(urwid.WidgetWrap):  # type: ignore[misc,name-defined]
            def render(self, size: tuple[int, int],
                       focus: bool = False) -> Any:
                lines = [clip(line, size[0]) for line in
                         draw(*size)[:size[1]]]
                markup: list[Any] = []
                for number, line in enumerate(lines):
                    markup += [(s, t) for s, t in line if t]
                    if number + 1 < len(lines):
                        markup.append("\n")
                text.set_text(markup or "")
                return super().render(size, focus)

            def selectable(self) -> bool:
                return True

            def keypress(self, size: tuple[int, int], name: str) -> None:
                key(name)
                self._invalidate()

            def again(self) -> None:
                self._invalidate()

        self.widget = View(urwid.Filler(text, valign="top"))
        screen = urwid.raw_display.Screen()
        if not colour or os.environ.get("NO_COLOR"):
            screen.set_terminal_properties(colors=1)
        self._loop = urwid.MainLoop(
            self.widget, PALETTE, screen, handle_mouse=False,
            event_loop=urwid.SelectEventLoop())

    def redraw(self) -> None:
        """Draw again before the loop waits."""
        self.widget.again()

    def watch(self, descriptor: int, call: Callable[[], Any]) -> Any:
        """Call when a descriptor can be read; return what unwatch() takes."""
        def ready() -> bool:
            call()
            self.redraw()
            return True

        return self._loop.watch_file(descriptor, ready)

    def unwatch(self, handle: Any) -> None:
        """Watch a descriptor no more."""
        self._loop.remove_watch_file(handle)

    def every(self, seconds: float, call: Callable[[], None]) -> None:
        """Call after each such time."""
        def again(_loop: Any, _data: Any) -> None:
            self._loop.set_alarm_in(seconds, again)
            call()
            self.redraw()

        self._loop.set_alarm_in(seconds, again)

    def quit(self) -> NoReturn:
        """Leave the view, from within it."""
        raise self._urwid.ExitMainLoop

    def run(self) -> None:
        """Show the view until something calls quit() or raises."""
        self._loop.run()
