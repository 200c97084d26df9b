# SPDX-License-Identifier: BSD-2-Clause
"""A sink: what each tenant used in each hour, as CSV files for bills.

DIR/2026-11-29T10Z.csv has the hour that begins at 10:00 UTC.  DIR/state has
all that is needed to go on: the counters of the last answer, and the hours
whose files are not final.  It is written first, with each answer that changes
something, then DIR/looked with the time of the answer, then the hours.  So
after a kill they can differ, but nothing is lost or counted twice.  All files
are written by rename.

While the files cannot be written, the hours stay in memory, but HOURS at most.

An hour is complete if nothing in it is unknown.  Unknown are:
  - what a worker process had counted between the last answer and its end
  - the hour, if an hour ends between two answers: what was used is divided by
    time
  - the hour, if the clock was set meanwhile
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from .fields import REFUSED
from .poll import HOUR, Answer, Lost
from .totals import FAR, MOST, UNMAPPED, Growth, Numbers, Seen, Step, add

HOURS = 24  # that an interval is divided into, and that are kept in memory
DAY = 24  # hours
VERSION = 1  # of the state
KEYS = ("completed", "cpu_s", "bytes", *REFUSED)
FILE = re.compile(r"\d{4}-\d\d-\d\dT\d\dZ\.csv")
COLUMNS = ("hour", "tenant", "cpu_s", "bytes", "requests", "refused",
           "complete", "unknown_s")


class UsageError(Exception):
    """The folder cannot be used; the text says why."""


@dataclass
class Hour:
    """What was used in an hour."""

    used: dict[str, Numbers] = field(default_factory=dict)  # by label
    unknown_s: float = 0
    json: str = ""  # of both, unless they have changed

    def as_json(self) -> str:
        """Return it as the state has it."""
        if not self.json:
            self.json = json.dumps([self.unknown_s, self.used])
        return self.json


def hour_of(time: float) -> int:
    """Return when the hour of this time began."""
    return int(time // HOUR) * HOUR


def parts(began: float, ended: float) -> list[tuple[int, float]]:
    """Return the hours of an interval, and how many seconds each one has.

    Of a long one only the first hour and the last ones.
    """
    first = hour_of(began)
    hours = range(first, max(first + 1, ceil(ended)), HOUR)
    return [(hour, min(ended, hour + HOUR) - max(began, hour))
            for hour in (*hours[:1], *hours[1:][1 - HOURS:])]


class Hours:
    """The hours whose files are not final."""

    def __init__(self) -> None:
        self.found: dict[int, Hour] = {}
        self.changed: set[int] = set()  # their files have to be written
        # What the file of an hour has that was final
        self.file: Callable[[int], Hour | None] = lambda _hour: None

    def begin(self, now: float) -> None:
        """Begin with an hour of which a part is over."""
        hour = hour_of(now)
        found = self._hour(hour)
        found.unknown_s = max(found.unknown_s, now - hour)

    def add(self, step: Step) -> None:
        """Take what was used, and what is unknown."""
        for began, ended in step.unseen:
            for hour, seconds in parts(began, ended):
                self._hour(hour).unknown_s += seconds
        if step.set_by:
            for hour in {hour_of(step.left), hour_of(step.began)}:
                self._hour(hour).unknown_s += abs(step.set_by)
        within = parts(step.began, step.ended)
        whole = sum(seconds for _, seconds in within)
        if len(within) > 1:
            self._not_certain(within)
        rest = step.grown
        for n, (hour, seconds) in enumerate(within):
            part = rest
            if n + 1 < len(within):
                part = {label: share(grown, seconds / whole)
                        for label, grown in rest.items()}
                rest = {label: [a - b for a, b in zip(
                    rest[label], grown, strict=True)]
                    for label, grown in part.items()}
                whole -= seconds
            if hour not in self.found:
                self._hour(hour)
            for label, grown in part.items():
                if any(grown):
                    add(self._hour(hour).used.setdefault(
                        label, [0] * len(KEYS)), grown)

    def _not_certain(self, within: list[tuple[int, float]]) -> None:
        """Note that what was used may belong to another hour."""
        least = min(seconds for _, seconds in within)
        for hour, seconds in within:
            if len(within) > 2:
                self._hour(hour).unknown_s += seconds
            elif least > FAR:
                self._hour(hour).unknown_s += least

    def _hour(self, hour: int) -> Hour:
        """Return an hour, to change it."""
        self.changed.add(hour)
        if hour not in self.found:
            self.found[hour] = self.file(hour) or Hour()
        found = self.found[hour]
        found.json = ""
        return found

    def put_together(self, hour: int, other: int) -> None:
        """Count what was used in another hour as of this one."""
        found, more = self._hour(hour), self.found.pop(other)
        self.changed.discard(other)
        found.unknown_s = HOUR
        for label, used in more.used.items():
            add(found.used.setdefault(label, [0] * len(KEYS)), used)


def share(grown: Numbers, part: float) -> Numbers:
    """Return a part of counters; counts stay whole numbers."""
    return [int(v * part) if isinstance(v, int) else v * part for v in grown]


def stamp(hour: int) -> datetime:
    """Return when an hour begins."""
    return datetime.fromtimestamp(hour, UTC)


def file_of(hour: int) -> str:
    """Return the name of the file of an hour."""
    return f"{stamp(hour):%Y-%m-%dT%HZ}.csv"


def as_csv(hour: int, found: Hour, *, over: bool) -> str:
    """Return the file of an hour."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    begins = stamp(hour).strftime("%Y-%m-%dT%H:%M:%SZ")
    end = ["yes" if over and found.unknown_s <= 0 else "no",
           f"{min(found.unknown_s, HOUR):.3f}"]
    nothing: Numbers = [0] * len(KEYS)
    for label in sorted({UNMAPPED, *found.used}):
        completed, cpu_s, octets, *refused = found.used.get(label, nothing)
        out.writerow([begins, label, f"{cpu_s:.6f}", round(octets),
                      round(completed), round(sum(refused)), *end])
    return text.getvalue()


class Usage:
    """Keeps the files of a folder."""

    def __init__(self, folder: Path, say: Callable[[str], None],
                 most: int = MOST, keep_days: int | None = None) -> None:
        self.folder, self._say, self._keep_days = folder, say, keep_days
        self._now_hour = 0
        self.writing = True  # False while the disk is full
        self._lock = self._take()
        self._growth, self._hours = Growth(KEYS), Hours()
        self._lines: dict[str, tuple[Seen, str]] = {}
        self._state = ""
        self._read()
        self._growth.most = most
        self._hours.file = self._from_csv

    def _take(self) -> int:
        """Let no other exporter write to the folder."""
        try:
            lock = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"--usage {self.folder}: another "
                             "sandpaper-exporter writes there") from None
        except OSError as error:
            raise UsageError(
                f"--usage {self.folder}: {error.strerror}") from error
        return lock

    def close(self) -> None:
        """Let another exporter write to the folder."""
        os.close(self._lock)

    # A sink

    def add(self, answer: Answer) -> None:
        """Take an answer, and write what has changed."""
        first = self._growth.started is None
        step = self._growth.add(answer)
        if first:
            self._hours.begin(answer.at)
        if step is not None:
            self._hours.add(step)
        self._write(self._growth.at)

    def lost(self, lost: Lost) -> None:
        """Note that there was no answer."""
        self._growth.lost(lost)

    # Files

    def _write(self, now: float) -> None:
        """Write the state, then the hours, and forget those that are over."""
        now_hour = hour_of(now)
        if now_hour != self._now_hour:
            self._remove_old()
        self._now_hour = now_hour
        try:
            text = self._as_state()
            if text != self._state:
                self._put("state", text)
                self._state = text
            self._put("looked", f"{now!r}\n")
            for hour, found in sorted(self._hours.found.items()):
                over = hour != now_hour  # for now: the clock may be set
                if over or hour in self._hours.changed:
                    self._put(file_of(hour), as_csv(hour, found, over=over),
                              last=over)
                    self._hours.changed.discard(hour)
                if over:
                    del self._hours.found[hour]
        except OSError as error:
            if self.writing:
                self._say(f"accounting stops: {self.folder}: {error.strerror}")
            self.writing = False
            self._bound()
            return
        if not self.writing:
            self._say("accounting goes on")
        self.writing = True

    def _bound(self) -> None:
        """Put hours together that have no file, so that memory is bounded."""
        found = self._hours.found
        first, *others = sorted(found)
        for hour in others:
            if len(found) < HOURS:
                break
            if hour != self._now_hour and not os.path.exists(
                    self.folder / file_of(hour)):
                self._hours.put_together(first, hour)

    def _remove_old(self) -> None:
        """Remove the oldest files: by number, since the clock may be set."""
        if self._keep_days is None:
            return
        try:
            names = sorted(filter(FILE.fullmatch, os.listdir(self.folder)))
            for name in names[:-self._keep_days * DAY]:
                (self.folder / name).unlink()
        except OSError as error:
            self._say(f"{error.filename}: it cannot be removed: "
                      f"{error.strerror}")

    def _put(self, name: str, text: str, *, last: bool = False) -> None:
        """Write a file by rename; one that changes no more, to the disk."""
        new = self.folder / f".{name}.new"
        try:
            with new.open("w", encoding="utf-8",
                          errors="surrogateescape") as f:
                f.write(text)
                f.flush()
                if last:
                    os.fsync(f.fileno())
            new.replace(self.folder / name)
        except OSError:
            with suppress(OSError):
                new.unlink()
            raise

    def _from_csv(self, hour: int) -> Hour | None:
        """Return what the file of an hour has.

        There is one if the state was lost, or if the clock was set back.
        """
        file = self.folder / file_of(hour)
        try:
            with file.open(encoding="utf-8", errors="surrogateescape",
                           newline="") as f:
                rows = list(csv.DictReader(f))
            return Hour({r["tenant"]: [
                int(r["requests"]), float(r["cpu_s"]), int(r["bytes"]),
                int(r["refused"]), 0, 0, 0] for r in rows},
                max((float(r["unknown_s"]) for r in rows), default=0))
        except FileNotFoundError:
            return None
        except (OSError, LookupError, TypeError, ValueError) as error:
            old = file.with_suffix(".old")
            self._say(f"{file} cannot be read ({error}): it is now {old.name}")
            with suppress(OSError):
                file.replace(old)
            return None

    # The state: a line for the whole, then one for each tenant

    def _as_state(self) -> str:
        g, before = self._growth, self._lines
        self._lines = {}
        for name, seen in g.tenants.items():
            known = before.get(name)
            if known is None or known[0] != seen:
                known = seen, json.dumps([name, *seen])
            self._lines[name] = known
        whole = json.dumps({
            "version": VERSION, "keys": KEYS, "started": g.started,
            "sums": g.sums, "owed": g.owed})
        hours = ", ".join(f'"{hour}": {found.as_json()}'
                          for hour, found in self._hours.found.items())
        return "\n".join([f'{whole[:-1]}, "hours": {{{hours}}}}}', *(
            line for _, line in self._lines.values())]) + "\n"

    def _read(self) -> None:
        """Go on with what an exporter before has written, if there is."""
        file, looked = self.folder / "state", self.folder / "looked"
        try:
            text = file.read_text(encoding="utf-8", errors="surrogateescape")
            at = (looked.read_text(encoding="ascii") if looked.exists()
                  else file.stat().st_mtime)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from error
        try:
            self._growth, self._hours = from_state(text, float(at))
        except (LookupError, TypeError, ValueError) as error:
            raise UsageError(
                f"{file} is damaged ({error}): to begin anew, move it away"
            ) from None


def from_state(text: str, looked: float) -> tuple[Growth, Hours]:
    """Return what a file of the state says, and when the last look was."""
    first, *lines = text.split("\n")[:-1]
    whole = json.loads(first)
    if (whole["version"], whole["keys"]) != (VERSION, list(KEYS)):
        raise ValueError("it is of another version")
    hours = Hours()
    for hour, (unknown_s, used) in whole["hours"].items():
        hours.found[int(hour)] = Hour(used, unknown_s)
    tenants = {}
    for line in lines:
        name, label, raw = json.loads(line)
        tenants[name] = Seen(label, tuple(raw))
    return Growth(
        KEYS, labels={name for name, seen in tenants.items()
                      if seen.label == name},
        started=whole["started"], at=looked, tenants=tenants,
        sums=whole["sums"], owed=whole["owed"], looked=looked), hours
