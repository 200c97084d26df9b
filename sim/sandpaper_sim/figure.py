# SPDX-License-Identifier: BSD-2-Clause
"""What a figure is: a function from a seed to numbers, and one that draws.

A figure's simulations are tasks: calls of one function with different
arguments. They run on as many cores as one likes, the result is the same."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
QUIET = 3.0                     # s without a word of progress
LINES = 15.0                    # s from line to line, if not on a terminal


class NotHere(Exception):
    """The library lacks what the figure needs, in one line."""


class Progress:
    """Says on stderr how much is done and how long the rest will take."""

    def __init__(self, name: str, tasks: int) -> None:
        self.name, self.tasks, self.done = name, tasks, 0
        self.begun = time.monotonic()
        self.said = self.begun + QUIET - LINES
        self.tty = sys.stderr.isatty()
        self.wrote = False

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        now = time.monotonic()
        spent = now - self.begun
        if spent < QUIET or not (self.tty or now - self.said >= LINES):
            return
        self.said, self.wrote = now, True
        left = spent / self.done * (self.tasks - self.done)
        print(f"{self.name}: {self.done} of {self.tasks}, "
              f"about {left:.0f} s left", file=sys.stderr, flush=True,
              end="\r" if self.tty else "\n")

    def end(self) -> None:
        """All are."""
        if self.tty and self.wrote:
            print(" " * 60, end="\r", file=sys.stderr, flush=True)


@dataclass
class Context:
    """How to run a figure."""

    name: str
    seed: int = 1
    jobs: int = 1
    quick: bool = False

    def map(self, what: Callable[..., T],
            tasks: Iterable[Sequence[Any]]) -> list[T]:
        """what(*task) of each task, in their order."""
        tasks = list(tasks)
        progress = Progress(self.name, len(tasks))
        results: list[Any] = [None] * len(tasks)
        if self.jobs == 1:
            for i, task in enumerate(tasks):
                results[i] = what(*task)
                progress.step()
        else:
            self._spread(what, tasks, results, progress)
        progress.end()
        return results

    def _spread(self, what: Callable[..., T], tasks: list[Sequence[Any]],
                results: list[Any], progress: Progress) -> None:
        pool = ProcessPoolExecutor(self.jobs)
        try:
            futures = {pool.submit(what, *task): i
                       for i, task in enumerate(tasks)}
            for f in as_completed(futures):
                results[futures[f]] = f.result()
                progress.step()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


@dataclass
class Result:
    """What a figure found. All but `table` goes into the JSON."""

    parameters: dict[str, Any]
    results: list[dict[str, Any]]
    paper: dict[str, Any]
    table: list[str] = field(default_factory=list)


Plot = Callable[[Any, dict[str, Any]], None]


@dataclass(frozen=True)
class Figure:
    """run: a Result. plot(figure, json): on a matplotlib figure."""

    name: str
    summary: str
    run: Callable[[Context], Result]
    plot: Plot


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of columns; numbers to the right."""
    def text(x: object) -> str:
        return f"{x:.4g}" if isinstance(x, float) else str(x)
    cells = [[text(x) for x in row] for row in rows]
    wide = [max(map(len, column))
            for column in zip(head, *cells, strict=True)]
    return ["  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                      for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            .rstrip() for row in [list(head), *cells]]
