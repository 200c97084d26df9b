# SPDX-License-Identifier: BSD-2-Clause
"""Asks varnishd once a second, and hands each answer to sinks.

A sink is metrics, the accounting, or a page: whatever adds up answers.  All
sinks get the same answers, in the poller's thread, one after the other.
Looks are at whole seconds, and when an hour ends.  If a look costs varnishd
much, the next one is later.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sandpaper_ask import NotRunning, ToolError, Varnishadm

from .fields import ROW_KEYS

HOUR = 3600

# What varnishadm says when there is no varnishd
GONE = ("Could not get hold of varnishd", "Connection failed")


@dataclass(frozen=True)
class Answer:
    """What sandpaper.list said of all tenants."""

    at: float  # Unix time
    took_s: float
    whole: dict[str, Any]  # all but the tenants
    rows: list[dict[str, Any]]  # by name
    boot_s: float  # by a clock that nobody can set

    @property
    def started(self) -> float:
        """When the worker process began, in Unix time."""
        return float(self.whole["started"])


@dataclass(frozen=True)
class Lost:
    """A look that got no answer."""

    at: float  # Unix time
    why: str
    gone: bool  # the worker process does not run


class Sink(Protocol):
    """What is told about each look."""

    def add(self, answer: Answer) -> None:
        """Take an answer."""

    def lost(self, lost: Lost) -> None:
        """Note that there was none."""


def boot_s() -> float:
    """Return the time by a clock that nobody can set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(text: str) -> None:
    """Write a line to the log."""
    print(f"sandpaper-exporter: {text}", file=sys.stderr, flush=True)


def look(adm: Varnishadm) -> Answer | Lost:
    """Ask for all tenants."""
    at, began = time.time(), boot_s()
    try:
        whole = adm.snapshot(ROW_KEYS)
        rows = whole.pop("list")
        float(whole["started"])
    except ToolError as error:
        gone = isinstance(error, NotRunning) or any(
            word in str(error) for word in GONE)
        return Lost(at, str(error), gone)
    except (LookupError, ValueError) as error:
        return Lost(at, f"sandpaper.list lacks {error}: the varnishd is older "
                    "than this program", gone=False)
    return Answer(at, boot_s() - began, whole, rows, began)


def next_look(now: float, rest_s: float, interval: float) -> float:
    """Return the Unix time of the next look, if varnishd rests until then."""
    after = now + rest_s
    return min(after - after % interval + interval, now - now % HOUR + HOUR)


class Poller(threading.Thread):
    """Looks at each interval until it is stopped."""

    def __init__(self, adm: Varnishadm, interval: float,
                 sinks: Sequence[Sink]) -> None:
        super().__init__(name="poller", daemon=True)
        self._adm, self._interval, self._sinks = adm, interval, sinks
        self._over = threading.Event()
        self._said = ""

    def run(self) -> None:
        """Look, until stop().  Without looks the program is of no use."""
        try:
            self._look_on()
        except BaseException:
            traceback.print_exc()
            os._exit(1)

    def _look_on(self) -> None:
        while not self._over.is_set():
            self.once()
            now = time.time()
            self._over.wait(next_look(now, self._adm.rest_s, self._interval)
                            - now)

    def once(self) -> None:
        """Look once, and hand over what was found."""
        found = look(self._adm)
        wrong = found.why if isinstance(found, Lost) else ""
        for sink in self._sinks:
            try:
                if isinstance(found, Answer):
                    sink.add(found)
                    continue
            except (LookupError, TypeError, ValueError) as error:
                wrong = f"sandpaper.list cannot be read: {error!r}"
            sink.lost(found if isinstance(found, Lost) else
                      Lost(found.at, wrong, gone=False))
        if wrong != self._said:
            say(wrong or "varnishd answers")
        self._said = wrong

    def stop(self) -> None:
        """Look no more; return when the last look has ended."""
        self._over.set()
        self.join()
