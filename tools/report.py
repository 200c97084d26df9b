# SPDX-License-Identifier: BSD-2-Clause
"""Sums up what `make check` ran: prints each part, and what is wrong again at
the end, with the command that runs a failed case again."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

TAIL = 25                       # lines of a failed test's output
NOT_APPLICABLE = "not applicable: "  # how such a reason begins


@dataclass
class Part:
    """What one program ran: its cases are named as CASE= takes them."""

    set: str
    name: str
    log: Path
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    said: str = ""              # about the failed ones
    began: float = field(default_factory=time.monotonic)

    def names(self) -> list[str]:
        """Return the failed cases, each once."""
        return list(dict.fromkeys(self.failed))


class Report:
    """Safe to use from several threads."""

    def __init__(self, top: Path, options: str = "") -> None:
        self.top = top
        self.options = options  # of make, to get the same build
        self.parts: list[Part] = []
        self.lock = threading.Lock()

    def say(self, text: str) -> None:
        with self.lock:
            print(text, flush=True)

    def add(self, part: Part) -> None:
        self.parts.append(part)
        not_applicable, skipped = split([part])
        words = [f"{part.passed} passed, {len(part.failed)} failed"]
        if skipped:
            words.append(f"{len(skipped)} skipped")
        if not_applicable:
            words.append(f"{len(not_applicable)} not applicable")
        self.say(f"{part.set} {part.name}: {', '.join(words)} "
                 f"({time.monotonic() - part.began:.0f} s)" + "".join(
                     f"\n{part.set} {name}: FAILED" for name in part.names()))

    def totals(self, parts: Sequence[Part]) -> str:
        skipped = split(parts)[1]
        return (f"{sum(p.passed for p in parts)} passed, "
                f"{sum(len(p.failed) for p in parts)} failed, "
                f"{len(skipped)} skipped")

    def end(self, seconds: float) -> int:
        """Print the sum; return the exit status."""
        not_applicable, skipped = split(self.parts)
        bad = [p for p in self.parts if p.failed]
        if not_applicable:
            print("\nnot applicable here:\n" + "\n".join(not_applicable))
        if skipped:
            print("\nskipped:\n" + "\n".join(skipped))
        if bad:
            print("\nfailed:")
        for p in bad:
            for name in p.names():
                print(f"  {p.set} {name}: make check {self.options}"
                      f"ONLY={p.set} CASE='{name}'")
            print(f"  log: {p.log.relative_to(self.top)}")
            print(indent("\n".join(p.said.splitlines()[-TAIL:]), "  | "))
        print()
        for s in dict.fromkeys(p.set for p in self.parts):
            parts = [p for p in self.parts if p.set == s]
            n = len(split(parts)[0])
            print(f"{s}: {self.totals(parts)}"
                  + (f", {n} not applicable" if n else ""))
        print(f"all of it took {seconds:.0f} s")
        print(self.totals(self.parts), flush=True)
        return 1 if bad else 0


def split(parts: Sequence[Part]) -> tuple[list[str], list[str]]:
    """Return lines about what is not applicable, and about what is skipped."""
    lines: tuple[list[str], list[str]] = [], []
    for p in parts:
        for name, why in p.skipped.items():
            lines[not why.startswith(NOT_APPLICABLE)].append(
                f"  {p.set} {name}: {why.removeprefix(NOT_APPLICABLE)}")
    return lines
