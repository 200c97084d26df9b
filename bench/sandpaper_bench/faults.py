# SPDX-License-Identifier: BSD-2-Clause
"""What happens to a varnishd from outside while it is under load.

An action is a CLI command, `{vcl}` in it the file of its VCL, or one of

    wait S            the next one S seconds later
    signal NAME       to the worker process
    descriptors N     as many as the worker process may have open
    start             waits until there is a worker process again
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Self

from .rig import progress
from .testbed import TestbedError
from .varnish import Varnish

LOOK_SECONDS = 0.1
GAP_SECONDS = 0.2  # between two actions


def waits(actions: Sequence[str]) -> float:
    """Return the seconds that actions wait for, in all."""
    return sum(float(action.split()[1]) for action in actions
               if action.startswith("wait "))


def do(varnish: Varnish, action: str) -> float:
    """Do it; return after how many seconds the next one is due."""
    match action.replace("{vcl}", str(varnish.vcl_file)).split():
        case ["wait", seconds]:
            return float(seconds)
        case ["signal", name]:
            varnish.signal(name)
        case ["descriptors", number]:
            varnish.limit_descriptors(int(number))
        case words:
            varnish.cli(*words)
            if words == ["start"]:
                varnish.adopt()
    return GAP_SECONDS


class Faults(threading.Thread):
    """Does actions, in turn or once, and notes the most threads and memory."""

    def __init__(
        self, varnish: Varnish, actions: Sequence[str], once: bool = False
    ) -> None:
        super().__init__(daemon=True)
        self._varnish, self._actions, self._once = varnish, actions, once
        self._over = threading.Event()
        self.errors: list[str] = []  # actions that could not be done
        self.threads = self.rss_bytes = self.done = 0

    def run(self) -> None:
        actions: Iterator[str] = iter(
            self._actions if self._once else itertools.cycle(self._actions))
        due = time.monotonic() + LOOK_SECONDS
        while not self._over.wait(LOOK_SECONDS):
            with contextlib.suppress(TestbedError):  # it may have ended
                self.threads = max(self.threads, self._varnish.threads())
                self.rss_bytes = max(self.rss_bytes,
                                     self._varnish.rss_bytes())
            if time.monotonic() >= due and (action := next(actions, "")):
                due = time.monotonic() + self._do(action)
        # What was begun is ended: nothing stays stopped or changed
        while self._actions and (self.done % len(self._actions) or (
                self._once and not self.done)):
            self._do(next(actions))

    def _do(self, action: str) -> float:
        self.done += 1
        try:
            return do(self._varnish, action)
        except TestbedError as error:
            self.errors.append(f"{action}: {error}")
            return GAP_SECONDS

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        for error in self.errors:
            progress(f"  {error}")
