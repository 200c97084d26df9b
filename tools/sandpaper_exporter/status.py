# SPDX-License-Identifier: BSD-2-Clause
"""A sink: the status page, and the figures that it asks for.

Metrics need all tenants.  The page needs more of each tenant, but only of
those that do most: so this sink asks varnishd for them, after each look.  It
keeps a ring of points for the last ten minutes.  Its memory is bounded: a
point has TOP tenants and the rest.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import Any

from sandpaper_ask import NotRunning, Room, ToolError, Varnishadm

from .fields import CAUSES, REFUSED
from .poll import Answer, Lost, boot_s
from .web import Body

WINDOW = 10  # seconds that a rate is of, and that a point of the ring is for
HISTORY = 600  # seconds
TOP = 10  # tenants of a point
ROWS, MORE_ROWS = 160, 20  # tenants of the table: by use, by other keys
WHOLE = ("mode", "slots", "slots_open", "running", "waiting", "tenants",
         "nic_rate_bps")
NOW = ("weight", "waiting", "running", "oldest_wait_s", "group",
       "members", "waits_for")
LAST = ("cpu_part", "net_part", "used_part", "completed_per_s",
        "refused_per_s", *(f"{key}_per_s" for key in REFUSED),
        "wait_p50_s", "wait_p99_s")
PAGE = Path(__file__).with_name("page.html")

Row = dict[str, Any]


def allowed(kind: str, page: str) -> str:
    """Return what a policy says of the page's own scripts or styles."""
    return " ".join(
        "'sha256-" + base64.b64encode(
            hashlib.sha256(text.encode()).digest()).decode() + "'"
        for text in re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL))


def html() -> Body:
    """Return the page, which may run and load nothing but what is in it."""
    page = PAGE.read_text(encoding="utf-8")
    return Body(
        "text/html; charset=utf-8", page.encode(),
        "default-src 'none'; connect-src 'self'; img-src data:; "
        f"script-src {allowed('script', page)}; "
        f"style-src {allowed('style', page)}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")


def flat(row: Row) -> Row:
    """Return what the page shows of a tenant."""
    last = {w["s"]: w for w in row["last"]}[WINDOW]
    return {"tenant": row["tenant"],
            **{k: row[k] for k in NOW if k in row},
            **{k: last[k] for k in LAST}}


class Rates:
    """What grew in the last WINDOW seconds, of all tenants together."""

    def __init__(self) -> None:
        self._looks: deque[Answer] = deque()

    def add(self, answer: Answer) -> dict[str, Any] | None:
        """Take an answer; return the rates, if there is one to compare."""
        looks = self._looks
        if looks and looks[-1].started != answer.started:
            looks.clear()
        # Only the sums: the rows of 10,000 tenants are not for keeping
        looks.append(replace(answer, rows=[], whole={
            "started": answer.started, "sums": answer.whole["sums"]}))
        while len(looks) > 2 and looks[1].boot_s <= answer.boot_s - WINDOW:
            looks.popleft()
        seconds = answer.boot_s - looks[0].boot_s
        if seconds <= 0:
            return None
        before, now = looks[0].whole["sums"], answer.whole["sums"]

        def rate(key: str) -> float:
            return float(now[key] - before[key]) / seconds

        return {"completed": rate("completed"), "bytes": rate("bytes"),
                "cpu_cores": rate("cpu_s"), "net_part": rate("net_s"),
                "refused": {c: rate(f"refused_{c}") for c in CAUSES}}


class Ring:
    """Points of the last minutes, each with its time by boot_s().

    The deque has a slot for each WINDOW seconds.  In a slot are the last
    figures and the last gap, so a varnishd that comes and goes makes no more.
    """

    def __init__(self) -> None:
        self._slots: deque[dict[bool, tuple[float, Row]]] = deque(
            maxlen=HISTORY // WINDOW + 2)
        self._began = -math.inf  # of the last slot

    def points(self) -> Iterator[tuple[float, Row]]:
        """Yield the points, the oldest first."""
        for slot in self._slots:
            yield from sorted(slot.values(), key=itemgetter(0))

    def add(self, at: float, point: Row) -> None:
        """Take the figures of now, which replace those of a moment ago."""
        self._slot(at)[True] = at, point

    def gap(self, at: float) -> None:
        """Note that there are no figures: a point that has none."""
        if self._slots and max(
                self._slots[-1].values(), key=itemgetter(0))[1]:
            self._slot(at)[False] = at, {}

    def _slot(self, at: float) -> dict[bool, tuple[float, Row]]:
        """Return the slot of now."""
        if at - self._began >= WINDOW:
            self._began = at
            self._slots.append({})
        return self._slots[-1]


def point_of(whole: Row, rows: list[Row], rates: Row | None) -> Row:
    """Return a point: groups are the sums of others, so they are left out."""
    rows = [r for r in rows if "members" not in r]
    top = [r for r in nlargest(TOP, rows, key=lambda r: r["used_part"])
           if r["used_part"] > 0]

    def used(key: str) -> float:
        return float(sum(r[key] for r in rows) - sum(r[key] for r in top))

    return {"waiting": whole["waiting"],
            "wait_p99_s": max((r["wait_p99_s"] for r in rows), default=0),
            "refused": rates["refused"] if rates else dict.fromkeys(CAUSES, 0),
            "tenants": {r["tenant"]: [r["cpu_part"], r["net_part"]]
                        for r in top},
            "rest": [used("cpu_part"), used("net_part")]}


class Status:
    """Keeps what the page shows."""

    def __init__(self, adm: Varnishadm) -> None:
        self._adm = adm
        self._rooms: dict[str, Room] = {}
        self._rates, self._ring = Rates(), Ring()
        self._lock = threading.Lock()  # of what follows, and of the ring
        self._figures: Row = {"at": None, "whole": None, "rates": None,
                              "list": []}
        self._state = "none"  # "up", "stopped", "silent"

    def _most(self, whole: Row, rates: Row | None) -> list[Row]:
        """Ask for the tenants that do most."""
        found = self._ask("used_part", ROWS)
        if int(whole["tenants"]) > ROWS:
            if whole["waiting"]:
                found |= self._ask("waiting", MORE_ROWS)
            if rates and any(rates["refused"].values()):
                found |= self._ask("refused_per_s", MORE_ROWS)
        return list(found.values())

    def _ask(self, key: str, rows: int) -> dict[str, Row]:
        """Ask for the tenants that have most of a key."""
        found = self._adm.tenants(
            self._rooms.setdefault(key, Room(rows)), "-w", str(WINDOW),
            "-s", key, "-c", ",".join((*NOW, "last")))
        return {r["tenant"]: flat(r) for r in found["list"]}

    # A sink

    def add(self, answer: Answer) -> None:
        """Take an answer."""
        whole = {k: answer.whole[k] for k in WHOLE}
        rates = self._rates.add(answer)
        try:
            rows = self._most(whole, rates)
        except ToolError as error:
            self.lost(Lost(answer.at, "", isinstance(error, NotRunning)))
            return
        with self._lock:
            self._figures = {"at": answer.boot_s, "whole": whole,
                             "rates": rates, "list": rows}
            self._ring.add(answer.boot_s, point_of(whole, rows, rates))
            self._state = "up"

    def lost(self, lost: Lost) -> None:
        """Note that there was no answer; why may have paths, so it stays."""
        with self._lock:
            self._state = "stopped" if lost.gone else "silent"
            self._ring.gap(boot_s())

    # The paths

    def page(self) -> Body:
        """Return the figures, as JSON, with times by the clock of now."""
        with self._lock:
            now, boot = time.time(), boot_s()
            found = {"now": now, "state": self._state, "window_s": WINDOW,
                     "history_s": HISTORY, "causes": CAUSES, **self._figures,
                     "points": [{"at": now - (boot - at), **point}
                                for at, point in self._ring.points()
                                if boot - at < HISTORY]}
            if found["at"] is not None:
                found["at"] += now - boot
        return Body("application/json", json.dumps(found).encode())
