# SPDX-License-Identifier: BSD-2-Clause
"""The demo's live view: start and stop attacks with keys, and watch shop.

The view is that of sandpaper-top.  Requests/s and p99 are what the load
generators count each second; `used` is what sandpaper.list says.
"""

from __future__ import annotations

import json
import os
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Sequence
from statistics import mean, median
from subprocess import Popen
from typing import Any

from .demo_sites import ATTACKS, SITES, Attack, Stage, everyday
from .load import Group
from .testbed import BENCH, TestbedError
from .varnish import Varnish

sys.path.append(str(BENCH.parent / "tools"))

import sandpaper_top as top  # noqa: E402

LEAST = (76, 18)  # columns and lines of a terminal
SMOOTH = 3  # seconds that the sentence looks at
SETTLE = 2  # seconds after a change that do not count in the table
SWITCHED_ON = 10  # the same: what waits from before has to end first
FULL = 1.25  # of what a site is asked for: a full bar
HISTORY = 300  # seconds of a site that are kept
PROVEN = 10  # seconds with an answer that make a new Host a tenant
FOREVER = 86400
INVENTED = "invented"


class Generator:
    """A load generator that runs, and what it counts each second."""

    def __init__(self, process: Popen[str]) -> None:
        assert process.stdout is not None
        self.process, self.began = process, time.monotonic()
        self.descriptor = process.stdout.fileno()
        os.set_blocking(self.descriptor, False)
        self.rps = self.p99_s = 0.0  # of an attack's last second
        self.handle: Any = None
        self._rest = b""

    def seconds(self) -> list[list[dict[str, Any]]] | None:
        """Return the groups of each new second, None at the end."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return []
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line)["groups"] for line in lines
                if line.startswith(b'{"interval_s"')]


class Seen:
    """What a site got in its seconds, the last `most` of them."""

    def __init__(self, most: int | None = None) -> None:
        self.rps: deque[float] = deque(maxlen=most)
        self.p99_s: deque[float] = deque(maxlen=most)

    def add(self, rps: float, p99_s: float) -> None:
        """Take a second."""
        self.rps.append(rps)
        self.p99_s.append(p99_s)

    def recent(self) -> float:
        """Return the requests/s of the last seconds."""
        return mean(list(self.rps)[-SMOOTH:]) if self.rps else 0.0


def number(value: float) -> str:
    """Return a whole number, with commas between thousands."""
    return f"{value:,.0f}"


def grade(part: float) -> str:
    """Return the style of a part of shop's throughput."""
    return "good" if part >= 0.9 else "warn" if part >= 0.6 else "bad"


def grade_time(seconds: float) -> str:
    """Return the style of a p99."""
    return ("good" if seconds < 0.1 else "warn" if seconds < 0.5 else "bad")


class Demo:
    """The live view's state, and what the keys do."""

    def __init__(
        self, stage: Stage, varnish: Varnish, shop_rps: float, note: str
    ) -> None:
        self.stage, self.varnish, self.shop_rps = stage, varnish, shop_rps
        self.note = note
        self.on = True
        self.wants_script = False
        self.shows_top = False
        self.attacks: dict[str, Generator] = {}
        self.sites = {name: Seen(HISTORY) for name in (*SITES, INVENTED)}
        self.quiet: deque[float] = deque(maxlen=30)  # shop without an attack
        # Of shop, by attack and by whether Sandpaper is on
        self.observed: dict[tuple[str, bool], Seen] = {}
        self.warning = ""
        self._changed = time.monotonic()
        self._settle: float = SETTLE
        self._sample: Any = None
        self._choices = top.Choices()
        self._glyphs = top.glyphs()
        self._offered = {g.name: g.rate for g in everyday(shop_rps)}
        self.view = top.Live(self.draw, self.key)

    # What goes on

    def start(self) -> None:
        """Start the everyday load, and watch it and varnishd."""
        self._everyday = self._generate(everyday(self.shop_rps))
        self.view.watch(self._everyday.descriptor, self._second)
        adm = top.Varnishadm("varnishadm", ())
        adm.command = [*self.stage.bed.inside(
            self.varnish.proxy.role, self.varnish.adm()), "-t", "5"]
        self._poller = top.Poller(adm, 1.0)
        self.view.watch(self._poller.reader, self._news)
        self.view.every(1.0, self._check_terminal)

    def _generate(self, groups: Sequence[Group]) -> Generator:
        return Generator(self.stage.load.background(
            self.varnish, groups, FOREVER))

    @staticmethod
    def _check_terminal() -> None:
        """End if the terminal is gone."""
        try:
            termios.tcgetattr(0)
        except termios.error:
            raise SystemExit(129) from None

    def _news(self) -> None:
        for said in self._poller.news():
            if isinstance(said, top.NotRunning):
                self.warning = str(said)
            elif isinstance(said, top.ToolError):
                raise TestbedError(f"varnishd is gone: {said}")
            elif isinstance(said, top.Sample):
                self.warning = ""
                self._sample = said

    def _second(self) -> None:
        """Take the everyday load's figures of a second."""
        seconds = self._everyday.seconds()
        if seconds is None:
            raise TestbedError("the load generator ended")
        for groups in seconds:
            self._take(groups)

    def _take(self, groups: Sequence[dict[str, Any]]) -> None:
        for g in groups:
            rps, p99_s = g["rps"], g["p99_s"]
            if g["name"] == "bad":
                mine = [r for k, r in self.attacks.items() if k != "5"]
                rps += sum(r.rps for r in mine)
                p99_s = max([p99_s, *(r.p99_s for r in mine)])
            self.sites[g["name"]].add(rps, p99_s)
        five = self.attacks.get("5")
        self.sites[INVENTED].add(*(
            (five.rps, five.p99_s) if five else (0.0, 0.0)))
        if time.monotonic() - self._changed < self._settle:
            return
        shop = self.sites["shop"]
        if not self.attacks and self.on:
            self.quiet.append(shop.rps[-1])
        if len(self.attacks) == 1 and not (self.on and self._new("shop")):
            self.observed.setdefault(
                (next(iter(self.attacks)), self.on), Seen()).add(
                    shop.rps[-1], shop.p99_s[-1])

    @staticmethod
    def _attack_second(running: Generator) -> None:
        """Take an attack's figures of a second."""
        for group, in running.seconds() or []:
            running.rps, running.p99_s = group["rps"], group["p99_s"]

    def toggle(self, attack: Attack) -> None:
        """Start or stop an attack."""
        running = self.attacks.pop(attack.key, None)
        if running is not None:
            self.view.unwatch(running.handle)
            self.stage.reaper.end(running.process)
        else:
            running = self._generate([attack.group])
            running.handle = self.view.watch(
                running.descriptor, lambda: self._attack_second(running))
            self.attacks[attack.key] = running
        self._change(SETTLE)

    def _change(self, settle: float) -> None:
        """What was started or switched takes effect within `settle` s."""
        left = self._changed + self._settle - time.monotonic()
        self._changed, self._settle = time.monotonic(), max(settle, left)

    def switch(self) -> None:
        """Switch Sandpaper off, or on."""
        self.varnish.cli("param.set", "sandpaper",
                         "off" if self.on else "on")
        self.on = not self.on
        self._change(SWITCHED_ON if self.on and self.attacks else SETTLE)

    def key(self, name: str) -> None:
        """Do what a key asks for."""
        attack = next((a for a in ATTACKS if a.key == name), None)
        if attack is not None:
            self.toggle(attack)
        elif name == "s":
            self.switch()
        elif name == "t":
            self.shows_top = not self.shows_top
        elif name == "m":
            self.wants_script = True
            self.view.quit()
        elif name in ("q", "Q", "esc"):
            self.view.quit()

    def close(self) -> None:
        """Ask varnishd no more."""
        self._poller.close()

    # What is shown

    @property
    def alone(self) -> float:
        """Return shop's requests/s without an attack."""
        return mean(self.quiet) if len(self.quiet) >= SMOOTH else (
            self.shop_rps)

    def kept(self, rps: Sequence[float]) -> float:
        """Return the part of its throughput that shop kept."""
        return min(1.0, mean(rps) / self.alone) if rps and self.alone else 0.0

    def sentence(self) -> list[tuple[str, str]]:
        """Return what is happening, in words."""
        if self.warning:
            return [("bad", self.warning)]
        if not self.sites["shop"].rps:
            return [("dim", "The first figures come in a moment.")]
        if self.on and self._new("shop"):
            return [("warn", "shop is a new Host: Sandpaper makes it a tenant "
                     f"after {PROVEN} seconds with answers.")]
        kept = self.kept([self.sites["shop"].recent()])
        names = " and ".join(a.name for a in ATTACKS
                             if a.key in self.attacks)
        state = "With Sandpaper" if self.on else "Without Sandpaper"
        if not names:
            if kept < 0.9:
                return [("warn", "The attack is over. shop is at "
                         f"{kept:.0%} of its throughput and recovers.")]
            return [("", "Nobody attacks. shop and blog get all that they "
                     "ask for. "), ("key", "Press a key from 1 to 5.")]
        if time.monotonic() - self._changed < SETTLE:
            return [("warn", f"A change: {names}, Sandpaper "
                     f"{'on' if self.on else 'off'}.")]
        line = [("", f"{state} shop keeps "), (grade(kept), f"{kept:.0%}"),
                ("", f" of its throughput now, under attack ({names}).")]
        if not self.on:
            line += [("key", " Press s.")]
        return line

    def _new(self, name: str) -> bool:
        """Is this site a new Host?"""
        return self._row(name) is not None and (
            self._row(name).group == "(new)")

    def _row(self, name: str) -> Any:
        """Return what sandpaper.list says of a site."""
        if self._sample is None:
            return None
        return next((r for r in self._sample.rows
                     if r.name == f"{name}.example"), None)

    def _used(self, name: str) -> str:
        """Return a site's part of the busiest resource."""
        if self._sample is None or not self.on:
            return "-"
        if name == INVENTED:
            known = {f"{n}.example" for n in SITES}
            parts = [r.used or 0.0 for r in self._sample.rows
                     if r.name not in known and not r.members]
            return f"{sum(parts):.0%}"
        row = self._row(name)
        return f"{row.used or 0:.0%}" if row is not None else "-"

    def _site(self, name: str, width: int) -> list[tuple[str, str]]:
        """Return the line of a site."""
        seen, g = self.sites[name], self._glyphs
        rps = seen.rps[-1] if seen.rps else 0.0
        p99_s = seen.p99_s[-1] if seen.p99_s else 0.0
        offered = self._offered.get(name, 0.0)
        ours = name in ("shop", "blog")
        part = min(1.0, seen.recent() / offered) if offered else 1.0
        style = grade(part) if ours else "info"
        high = max(seen.rps, default=0.0)
        if ours:
            high = FULL * offered
        history = max(0, width - 49)
        return [
            ("title", f" {name:<10}"), (style, f"{number(rps):>9}"),
            ("dim", f" of {number(offered):<7}" if ours else " " * 11),
            (grade_time(p99_s) if ours else "", f"{top.duration(p99_s):>8}"),
            ("info", f"{self._used(name):>7}"),
            (style, "   " + g.spark(seen.rps, history, high))]

    def _attack(self, attack: Attack, width: int) -> list[tuple[str, str]]:
        """Return the line of an attack."""
        running = self.attacks.get(attack.key)
        clock = (f"{time.monotonic() - running.began:4.0f} s" if running
                 else "")
        line = [("key", f" {attack.key} "),
                ("bad" if running else "dim",
                 f"{self._glyphs.dot if running else ' '} "),
                ("bad" if running else "", f"{attack.name:<15}"),
                ("bad", f"{clock:>7}")]
        for on in (False, True):
            seen = self.observed.get((attack.key, on))
            if seen is None:
                line.append(("dim", f"{'-':>10}{'-':>10}"))
                continue
            kept, p99_s = self.kept(seen.rps), median(seen.p99_s)
            line += [(grade(kept), f"{kept:>10.0%}"),
                     (grade_time(p99_s), f"{top.duration(p99_s):>10}")]
        return line

    def draw(self, columns: int, lines: int) -> list[list[tuple[str, str]]]:
        """Return the view."""
        if columns < LEAST[0] or lines < LEAST[1]:
            return top.too_small(columns, lines, LEAST)
        if self.shows_top:
            found = top.picture(self._sample, self._choices, self._glyphs,
                                columns, lines)
            found[-1] = [("key", "t"), ("dim", " back to the demo   "),
                         ("key", "q"), ("dim", " quit")]
            return found
        width = min(columns, 100)
        rule = ("dim", self._glyphs.rule * width)
        dot = self._glyphs.dot
        state = (("good", f"{dot} Sandpaper on ") if self.on
                 else ("bad", f"{dot} Sandpaper off "))
        title = " Three sites share one varnishd"
        names = list(SITES)
        if any(self.sites[INVENTED].rps):
            names.append(INVENTED)
        found = [
            [("title", title),
             ("", " " * (width - len(title) - len(state[1]))), state],
            [rule],
            [("dim", f" {'site, now':<10}{'requests/s':>10}{'':>10}{'p99':>8}"
              f"{'used':>7}   requests/s over time")],
            *(self._site(name, width) for name in names),
            *([] if len(names) > len(SITES) else [[]]),
            [("", " "), *self.sentence()],
            [("dim", " " + self._explain())],
            [rule],
            [("dim", f" {'all seconds of an attack':<27}"
              f"{'Sandpaper off':^19} {'Sandpaper on':^19}")],
            [("dim", f" {'attack':<26}{'shop keeps':>11}{'p99':>8}"
              f"{'shop keeps':>12}{'p99':>8}")],
            *(self._attack(a, width) for a in ATTACKS),
        ]
        found += [[] for _ in range(lines - 1 - len(found))]
        keys = [("1-5", "attack"), ("s", f"Sandpaper "
                                    f"{'off' if self.on else 'on'}"),
                ("t", "all tenants"), ("m", "quit, measure"), ("q", "quit")]
        help_line = [s for k, what in keys for s in (
            ("key", f" {k}"), ("dim", f" {what}  "))]
        return [*found[:lines - 1], help_line]

    def _explain(self) -> str:
        """Say what the attack does, or what the figures are."""
        running = [a for a in ATTACKS if a.key in self.attacks]
        if len(running) == 1:
            return running[0].what + "."
        return (f"{len(running)} attacks at the same time." if running
                else self.note)

    # What is left of it

    def rows(self) -> list[list[str]]:
        """Return the final table's rows, of the attacks that were seen."""
        found = []
        for attack in ATTACKS:
            row = [f"{attack.key} {attack.name}"]
            for on in (False, True):
                seen = self.observed.get((attack.key, on))
                if seen is None:
                    row += ["-", "-", "-"]
                    continue
                row += [f"{self.kept(seen.rps):.0%}",
                        top.duration(median(seen.p99_s)),
                        f"{len(seen.rps)} s"]
            if set(row[1:]) != {"-"}:
                found.append(row)
        return found


HEAD = ["attack", "off: shop keeps", "p99", "counted", "on: shop keeps",
        "p99", "counted"]
COUNTED = (
    "Seconds count while one attack runs and shop is a proven tenant. The "
    f"first {SETTLE} s\nafter a change do not count, and {SWITCHED_ON} s after "
    "Sandpaper is switched on.")


def run(stage: Stage, varnish: Varnish, shop_rps: float, note: str,
        end: Callable[[Demo], None]) -> bool:
    """Show the view; return whether the user wants the script, too."""
    demo = Demo(stage, varnish, shop_rps, note)
    demo.start()
    try:
        demo.view.run()
    finally:
        demo.close()
    end(demo)
    return demo.wants_script
