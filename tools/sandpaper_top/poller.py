# SPDX-License-Identifier: BSD-2-Clause
"""Asks varnishd at each interval, in a thread of its own.

So a slow answer delays no key.  The thread makes the rates, too: that takes
longer than a redraw if there are ten thousand tenants.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from sandpaper_ask import Refused, ToolError, Varnishadm

from .page import Details
from .rates import KEYS, Rates, Sample

INTERVAL = 1.0  # seconds between two looks, if nothing else is said

News = Sample | Details | ToolError


def pause(interval: float | None, rest_s: float) -> float:
    """Return the seconds from one look to the next, if varnishd is to rest
    for so long."""
    return max(INTERVAL, rest_s) if interval is None else interval


class Poller:
    """Asks varnishd, and wakes the view.

    Without an interval it asks each second, but less often if the answers of
    many tenants cost varnishd much.
    """

    def __init__(self, adm: Varnishadm, interval: float | None = None
                 ) -> None:
        self._adm, self._interval = adm, interval
        self._rates = Rates()
        self.reader, self._writer = os.pipe()
        self._found: deque[News] = deque()
        self._tenant: str | None = None
        self._over = False
        self._wake = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def look_at(self, tenant: str | None) -> None:
        """Ask for all of this tenant, too, and begin now."""
        self._tenant = tenant
        self._wake.set()

    def _run(self) -> None:
        due = 0.0
        while not self._over:
            start = time.monotonic()
            if start >= due:
                found = self._put(self._sample)
                # The first answer has no rates: the second one comes soon
                due = start + pause(self._interval,
                                    self._adm.rest_s if found else 0)
            if self._tenant is not None:
                self._put(self._details)
            left = due - time.monotonic()
            if self._tenant is not None:
                left = min(left, self._interval or INTERVAL)
            if left > 0:
                self._wake.wait(left)
                self._wake.clear()

    def _sample(self) -> News | None:
        return self._rates.add(self._adm.snapshot(KEYS), time.monotonic())

    def _details(self) -> News | None:
        tenant = self._tenant
        if tenant is None:
            return None
        try:
            return Details(tenant, self._adm.show(tenant),
                           self._adm.explain(tenant))
        except Refused as error:  # it is not there any more
            return Details(tenant, error=str(error))

    def _put(self, ask: Callable[[], News | None]) -> bool:
        """Keep an answer for the view; return if there was one."""
        found: News | None
        try:
            found = ask()
        except ToolError as error:
            found = error
        if found is not None:
            self._found.append(found)
            with suppress(OSError):
                os.write(self._writer, b"x")
        return found is not None

    def news(self) -> Iterator[News]:
        """Return what was found since the last call."""
        os.read(self.reader, 4096)
        while self._found:
            yield self._found.popleft()

    def close(self) -> None:
        """Ask no more."""
        self._over = True
        self._wake.set()
