# SPDX-License-Identifier: BSD-2-Clause
"""The demo's fixed script: what shop keeps of its throughput under attack.

Stock and Sandpaper run at the same time, on the same core, and take turns in
the order A B B A.  In each turn shop is measured without the attack, then
with it.  An attack has failed if Sandpaper misses a threshold of the attack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from .demo_sites import (
    AHEAD,
    KEEPS,
    SANDPAPER,
    SHOP_PART,
    STOCK,
    Attack,
    Stage,
    everyday,
)
from .table import align
from .varnish import Variant, Varnish

START_SECONDS = 8.0  # two varnishds, their pages and shop's rate; measured
RESTART_SECONDS = 3.0


@dataclass(frozen=True)
class Timing:
    """The seconds of each part of a turn."""

    settle: float = 0.2
    alone: float = 1.0
    onset: float = 0.8
    wedge: float = 1.5  # the onset of an attack that uses threads up
    attack: float = 2.0
    turns: int = 2  # of each variant

    def turn(self, attack: Attack) -> float:
        """Return the seconds of a turn, with two load generators."""
        return (self.settle + self.alone + self.attack + 0.2
                + (self.wedge if attack.wedges else self.onset))

    def seconds(self, attacks: Sequence[Attack]) -> float:
        """Return the seconds that all attacks take."""
        restarts = sum(a.wedges for a in attacks) * (self.turns // 2)
        return START_SECONDS + restarts * RESTART_SECONDS + sum(
            2 * self.turns * self.turn(a) for a in attacks)


@dataclass(frozen=True)
class Turn:
    """What shop got in a turn without the attack, and with it."""

    rps_alone: float
    rps: float
    p99_alone_s: float
    p99_s: float

    @property
    def kept(self) -> float:
        """Return the part of its throughput that shop kept, at most 1."""
        return min(1.0, self.rps / self.rps_alone) if self.rps_alone else 0.0


@dataclass(frozen=True)
class Result:
    """An attack's turns, by variant."""

    attack: Attack
    turns: dict[str, list[Turn]]

    def kept(self, variant: str) -> float:
        """Return the part of its throughput that shop kept."""
        return median(t.kept for t in self.turns[variant])

    def p99_s(self, variant: str) -> float:
        """Return shop's p99 under attack, in seconds."""
        return median(t.p99_s for t in self.turns[variant])

    @property
    def p99_alone_s(self) -> float:
        """Return shop's p99 without an attack, in seconds."""
        return median(t.p99_alone_s
                      for turns in self.turns.values() for t in turns)

    def missed(self) -> list[str]:
        """Return a sentence for each threshold that Sandpaper misses."""
        ours, stock = self.kept(SANDPAPER), self.kept(STOCK)
        name, found = self.attack.name, []
        if ours < self.attack.keeps:
            found.append(
                f"{name}: with Sandpaper shop keeps {ours:.0%} of its "
                f"throughput, at least {self.attack.keeps:.0%} is required")
        if ours - stock < self.attack.ahead:
            found.append(
                f"{name}: Sandpaper ({ours:.0%}) is not ahead of stock "
                f"({stock:.0%}) by {100 * self.attack.ahead:.0f} points")
        return found

    def row(self) -> dict[str, Any]:
        """Return one entry of `results` in the JSON file."""
        return {
            "attack": self.attack.name, "what": self.attack.what,
            "kept_stock": round(self.kept(STOCK), 4),
            "kept_sandpaper": round(self.kept(SANDPAPER), 4),
            "p99_s_alone": round(self.p99_alone_s, 6),
            "p99_s_stock": round(self.p99_s(STOCK), 6),
            "p99_s_sandpaper": round(self.p99_s(SANDPAPER), 6),
            "keeps": self.attack.keeps, "ahead": self.attack.ahead,
            "missed": self.missed(),
            "turns": {v: [asdict(t) for t in turns]
                      for v, turns in self.turns.items()},
        }


class Script:
    """The stage with both variants, from first to last turn."""

    def __init__(
        self, stage: Stage, variants: dict[str, Variant], timing: Timing
    ) -> None:
        self.stage, self.variants, self.timing = stage, variants, timing
        self._open = {name: ExitStack() for name in variants}
        self._running: dict[str, Varnish] = {}
        self._wedged: set[str] = set()
        self.shop_rps = 0.0

    def __enter__(self) -> Script:
        for name in self.variants:
            self._start(name)
        self.shop_rps = SHOP_PART * min(
            self.stage.capacity(v) for v in self._running.values())
        return self

    def __exit__(self, *_: object) -> None:
        for stack in self._open.values():
            stack.close()

    def _start(self, name: str) -> None:
        """Start a varnishd, instead of the one that runs if there is one."""
        self._open[name].close()
        self._wedged.discard(name)
        self._running[name] = self._open[name].enter_context(
            self.stage.varnish(self.variants[name], name == SANDPAPER))
        self.stage.prime(self._running[name])

    def _turn(self, attack: Attack, name: str) -> Turn:
        """Measure shop without the attack, then with it."""
        if name in self._wedged:
            self._start(name)
        sites, t = everyday(self.shop_rps), self.timing
        varnish, load = self._running[name], self.stage.load
        alone = load.measure(varnish, sites, t.alone, t.settle)["shop"]
        beside = load.measure(
            varnish, [*sites, attack.group], t.attack,
            t.wedge if attack.wedges else t.onset)["shop"]
        if attack.wedges and name == STOCK:
            self._wedged.add(name)
        return Turn(alone.rps, beside.rps, alone.p99_s, beside.p99_s)

    def measure(self, attack: Attack) -> Result:
        """Measure an attack in turns A B B A."""
        turns: dict[str, list[Turn]] = {name: [] for name in self.variants}
        names = list(self.variants)
        for number in range(self.timing.turns):
            for name in names if number % 2 == 0 else names[::-1]:
                turns[name].append(self._turn(attack, name))
        return Result(attack, turns)


def play(
    script: Script, attacks: Sequence[Attack], say: Callable[[str], None]
) -> list[Result]:
    """Measure all attacks; say how it goes.  The result is by key."""
    found = []
    # What uses up a varnishd's threads comes last.
    order = sorted(attacks, key=lambda a: (a.wedges, a.key))
    for attack in order:
        start = time.monotonic()
        found.append(script.measure(attack))
        r = found[-1]
        say(f"{attack.key} {attack.name:<15} shop keeps "
            f"{r.kept(STOCK):4.0%} on stock, {r.kept(SANDPAPER):4.0%} with "
            f"Sandpaper   ({time.monotonic() - start:.0f} s)")
    return sorted(found, key=lambda r: r.attack.key)


def milliseconds(seconds: float) -> str:
    """Return a time to read, as 4.2 ms or 1.3 s."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.{0 if seconds >= 0.01 else 1}f} ms"


RULE = (f"ok: with Sandpaper shop keeps at least {KEEPS:.0%} of its "
        f"throughput, and at least\n{100 * AHEAD:.0f} points more than on "
        "stock. There is no limit for p99.")
HEAD = ["attack", "stock", "Sandpaper", "p99 alone", "p99 stock",
        "p99 Sandpaper", ""]


def table(results: Sequence[Result]) -> str:
    """Return the final table."""
    return align(HEAD, [[
        f"{r.attack.key} {r.attack.name}", f"{r.kept(STOCK):.0%}",
        f"{r.kept(SANDPAPER):.0%}", milliseconds(r.p99_alone_s),
        milliseconds(r.p99_s(STOCK)), milliseconds(r.p99_s(SANDPAPER)),
        "missed" if r.missed() else "ok"] for r in results])

