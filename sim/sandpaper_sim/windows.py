# SPDX-License-Identifier: BSD-2-Clause
"""How much a child may ask of a parent: a window for each tenant and parent.

A window is how many requests may be under way. It may be below 1: then one
request may be under way, and the next one goes after a longer time than one
round trip. A rule moves the window. All rules grow it only while it is full,
and double it each round trip until the first sign of congestion.

none    no limit.
halve   In a round trip the window grows by `add`, and by `up` of itself. After
        a refusal (429) `keep` of it stays, at most once a round trip. With
        keep = 0.5, add = 1 and up = 0 this is Reno.
price   As halve, and each answer has a price. In a round trip the window
        loses gain x price of itself, and grows by `up` only at price 0. It
        rests where add = gain x price x window. So a tenant whose requests
        cost c times as much has 1/c of the window: all have equal CPU.

Times are ns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .server import SECOND

FIRST = 4.0                     # requests, of a new window
LEAST = 1 / 16
MOST = 1024.0
PRICE_MOST = 100.0              # higher prices count as this
FORGET = 10 * SECOND            # a price is older: it is not known
MEMORY = 8                      # answers, of the mean round trip
RTT = SECOND // 10              # until one is measured


def price_of(values: Sequence[str]) -> float | None:
    """Return what a Sandpaper-Price header says; None: it is to be ignored.

    values: of all headers of this name in one answer."""
    if len(values) != 1:
        return None
    try:
        price = float(values[0])
    except ValueError:
        return None
    if math.isnan(price) or price < 0:
        return None
    return min(price, PRICE_MOST)


@dataclass(frozen=True)
class Rule:
    """How a window moves. `halve` has no gain, `none` no window."""

    name: str
    keep: float = 0.5
    add: float = 1.0            # requests a round trip
    up: float = 0.0             # part of the window a round trip
    gain: float = 0.0           # per unit of the price

    def __post_init__(self) -> None:
        for name, most in (("keep", 1), ("add", 64), ("up", 1), ("gain", 1e6)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} {getattr(self, name)} is not "
                                 f"allowed: use 0 to {most}")

    @property
    def limits(self) -> bool:
        """Is there a window?"""
        return self.name != "none"


NONE = Rule("none")


class Window:
    """Of one tenant and parent."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.size, self.under_way = FIRST, 0
        self._slow = True               # it doubles each round trip
        self._cut = self._sent = -FORGET    # when it was cut; last request
        self._rtt = 0.0
        self._price, self._priced = 0.0, -FORGET    # the last one, and when

    def may(self, now: int) -> bool:
        """May one more request go?"""
        if not self.rule.limits:
            return True
        if self.size >= 1:
            return self.under_way + 1 <= self.size
        return self.under_way == 0 and \
            now - self._sent >= (self._rtt or RTT) / self.size

    def price(self, now: int) -> float:
        """The last one, 0 if it is not known."""
        return self._price if now - self._priced < FORGET else 0.0

    def fill(self) -> float:
        """How full it is: requests under way over the window."""
        return self.under_way / self.size

    def sent(self, now: int) -> None:
        """A request goes."""
        if now - self._sent >= FORGET and self.under_way == 0:
            self.size, self._slow = FIRST, True
        self.under_way += 1
        self._sent = now

    def answered(self, now: int, sent: int, price: float | None) -> None:
        """To the request that went at `sent` there is an answer."""
        full, rule = self.under_way >= self.size - 1, self.rule
        self._back(now, sent)
        pays = self._paid(now, price) * self.size
        if pays > rule.add:
            self._slow = False
        grows = 0.0
        if full and self._slow:
            grows = self.size
        elif full:
            grows = rule.add + (0 if pays else rule.up * self.size)
        change = max(grows - pays, -self.size / 2)
        self._move(self.size + change / max(self.size, 1))

    def refused(self, now: int, sent: int, price: float | None) -> None:
        """The parent answered 429."""
        self._back(now, sent)
        self._paid(now, price)
        self._reduce(now, sent)

    def lost(self, now: int, sent: int) -> None:
        """There was no answer in time."""
        self.under_way -= 1
        self._reduce(now, sent)

    def _paid(self, now: int, price: float | None) -> float:
        """Return the part of the window that a round trip at this price takes.

        Without a price there is none."""
        if price is None or not self.rule.gain:
            return 0.0
        self._price, self._priced = price, now
        return self.rule.gain * price

    def _back(self, now: int, sent: int) -> None:
        self.under_way -= 1
        took = now - sent
        self._rtt += (took - self._rtt) / MEMORY if self._rtt else took

    def _reduce(self, now: int, sent: int) -> None:
        self._slow = False
        if sent > self._cut:
            self._cut = now
            self._move(self.size * self.rule.keep)

    def _move(self, size: float) -> None:
        self.size = min(MOST, max(LEAST, size))
