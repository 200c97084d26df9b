# SPDX-License-Identifier: BSD-2-Clause
"""The raw results of an experiment, written as they come.

The journal is EXPERIMENT.windows.jsonl, beside the result.  Its first line is
the head: what runs where.  A line for each window follows, and a line for each
turn when all its windows are there; each is on the disk before the next window
begins.  The same command with the same folder reads the journal and skips what
is there.  A last line without an end is of an interrupted write, and goes.

The windows of an unfinished turn count, too, unless the turn is `whole`: if it
says how a varnishd's memory grew, all of it has to be of one varnishd.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from .testbed import TestbedError

T = TypeVar("T")
SUFFIX = ".windows.jsonl"


def now() -> str:
    """Return the time of day."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def encode(value: Any, slices: bool = True) -> Any:
    """Return JSON of a value that is made of dataclasses.

    Only a window needs its slices of 0.1 s.
    """
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        return {"is": f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}",
                **{f.name: encode(getattr(value, f.name), slices)
                   if slices or not f.name.endswith("slices") else []
                   for f in fields(value)}}
    if isinstance(value, dict):
        return {"is": "dict",
                "items": [[k, encode(v, slices)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [encode(v, slices) for v in value]
    return value


def decode(value: Any) -> Any:
    """Return the value of such JSON; tuples have become lists."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if value["is"] == "dict":
        return {k: decode(v) for k, v in value["items"]}
    module, _, name = value["is"].partition(".")
    kind = getattr(importlib.import_module(f".{module}", __package__), name)
    return kind(**{k: decode(v) for k, v in value.items() if k != "is"})


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """Return what differs between two heads, each with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [said for key in {**old, **new}
                for said in differences(old.get(key), new.get(key),
                                        f"{name} {key}".strip())]
    if old == new:
        return []
    was, now_is = ("not set" if v is None else v for v in (old, new))
    return [f"{name} was {was}, is {now_is}"]


class Journal:
    """One experiment's raw results; without a file, only in memory."""

    def __init__(
        self, head: dict[str, Any] | None = None, path: Path | None = None,
        about: dict[str, Any] | None = None,
    ) -> None:
        # As it is read, so that old and new compare
        self.head: dict[str, Any] = json.loads(json.dumps(head or {}))
        self.path = path
        self.about = about or {}  # the first run's commit and command
        self.calibration: dict[str, float] = {}
        self.began = now()
        self.turns: list[dict[str, Any]] = []
        self.runs = 1  # that it took
        self._turns: dict[str, dict[str, Any]] = {}
        self._windows: dict[tuple[str, int], dict[str, Any]] = {}
        self._at: tuple[str, int] | None = None
        self._whole = False
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1
        if end < len(data):
            os.truncate(path, end)
        lines = [json.loads(line) for line in data[:end].splitlines()]
        if not lines:
            return
        first, *lines = lines
        found = differences(first["head"], self.head)
        if found:
            raise TestbedError(
                f"{path} is of another run ({'; '.join(found)}): use another "
                "folder, or --anew to measure all again")
        self.calibration, self.began = first["calibration"], first["at"]
        self.about = first["about"]
        for line in lines:
            if "run" in line:
                self.runs += 1
            elif "window" in line:
                self._windows[line["turn"], line["window"]] = line
            else:
                self._turns[line["turn"]] = line

    def begin(self, calibration: dict[str, float]) -> None:
        """Write the head, or that one more run begins."""
        if self.calibration:
            self.runs += 1
            self._write({"run": self.runs, "at": now()})
            return
        self.calibration = calibration
        self._write({"head": self.head, "about": self.about,
                     "at": self.began, "calibration": calibration})

    def _write(self, line: dict[str, Any]) -> None:
        if self.path is None:
            return
        with self.path.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def there(self) -> int:
        """Return how many turns are there from earlier runs."""
        return len(self._turns)

    def has(self, turn: str) -> bool:
        """Is the turn there?"""
        return turn in self._turns

    @property
    def seconds(self) -> float:
        """Return the seconds that all turns took."""
        return float(sum(t["seconds"] for t in self.turns))

    @property
    def disturbed(self) -> int:
        """Return how many windows of the turns were measured again."""
        return sum(t["disturbed"] for t in self.turns)

    def turn(
        self, turn: str, measure: Callable[[], T], whole: bool = False,
        disturbed: Callable[[], int] = lambda: 0,
    ) -> T:
        """Return a turn that is there, or measure it."""
        if any(t["turn"] == turn for t in self.turns):
            raise AssertionError(f"{turn} is there twice")
        line = self._turns.get(turn)
        if line is None:
            self._at, self._whole = (turn, 0), whole
            start, before = time.monotonic(), disturbed()
            value = encode(measure(), slices=False)
            self._at = None
            line = {"turn": turn, "at": now(),
                    "seconds": round(time.monotonic() - start, 1),
                    "disturbed": disturbed() - before, "value": value}
            self._write(line)
        self.turns.append(line)
        # Decoded even if it is new, so that what is read again is the same
        found: T = decode(json.loads(json.dumps(line["value"])))
        return found

    def window(self, measure: Callable[[], T]) -> T:
        """Return a window that is there, or measure it."""
        if self._at is None:
            return measure()
        turn, number = self._at = (self._at[0], self._at[1] + 1)
        line = self._windows.get(self._at)
        if line is None or self._whole:
            line = {"turn": turn, "window": number, "at": now(),
                    "value": encode(measure())}
            self._write(line)
        found: T = decode(line["value"])
        return found


def calibration(
    folder: Path, code: dict[str, Any], machine: dict[str, Any]
) -> dict[str, float]:
    """Return what a unit of work takes, of the same code and machine here.

    All experiments of a folder have the same tenants.
    """
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with path.open() as file:
            line = file.readline()
        if line.endswith("\n"):
            first = json.loads(line)
            if (first["head"]["code"] == code
                    and first["head"]["machine"] == machine):
                found: dict[str, float] = first["calibration"]
                return found
    return {}
