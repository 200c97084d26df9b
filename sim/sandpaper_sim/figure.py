# SPDX-License-Identifier: BSD-2-Clause
"""What a figure is: a function from a seed to numbers, and one that draws.

A figure's simulations are tasks: calls of one function with different
arguments. They run on as many cores as one likes, the result is the same."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .files import replace

Found = dict[str, Any]          # what a task returns, fit for JSON
QUIET = 3.0                     # s without a word of progress
LINES = 15.0                    # s from line to line, if not on a terminal


class NotHere(Exception):
    """What a figure needs is not there, in one line."""


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


class Kept:
    """Tasks' results in a folder, so that what was interrupted goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def file(self, what: Callable[..., Found], task: Sequence[Any]) -> Path:
        """Of a task: by the function's name and its arguments."""
        key = repr((what.__module__, what.__qualname__, tuple(task)))
        return self.folder / (
            hashlib.sha256(key.encode()).hexdigest()[:32] + ".json")

    def load(self, file: Path) -> Found | None:
        """What was found before."""
        return json.loads(file.read_text()) if file.exists() else None

    def store(self, file: Path, found: Found) -> None:
        """What was found now."""
        replace(file, lambda new: Path(new).write_text(json.dumps(found)))


@dataclass
class Context:
    """How to run a figure."""

    name: str
    seed: int = 1
    jobs: int = 1
    quick: bool = False
    keep: Path | None = None    # a folder of what was found before
    scheduler: str | None = None    # a Dask scheduler's address

    def map(self, what: Callable[..., Found],
            tasks: Iterable[Sequence[Any]]) -> list[Found]:
        """what(*task) of each task, in their order."""
        tasks = list(tasks)
        kept = Kept(self.keep) if self.keep else None
        found = [kept.load(kept.file(what, t)) if kept else None
                 for t in tasks]
        left = [i for i, f in enumerate(found) if f is None]
        progress = Progress(self.name, len(left))
        for i, f in self._each(what, tasks, left):
            # As from a file: the same, kept or not.
            found[i] = json.loads(json.dumps(f))
            if kept:
                kept.store(kept.file(what, tasks[i]), f)
            progress.step()
        progress.end()
        return [f for f in found if f is not None]

    def _each(self, what: Callable[..., Found], tasks: list[Sequence[Any]],
              left: list[int]) -> Iterator[tuple[int, Found]]:
        if self.scheduler:
            yield from self._far(what, tasks, left)
            return
        if self.jobs == 1:
            yield from ((i, what(*tasks[i])) for i in left)
            return
        pool = ProcessPoolExecutor(self.jobs)
        try:
            futures = {pool.submit(what, *tasks[i]): i for i in left}
            for f in as_completed(futures):
                yield futures[f], f.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _far(self, what: Callable[..., Found], tasks: list[Sequence[Any]],
             left: list[int]) -> Iterator[tuple[int, Found]]:
        """On the machines of a Dask scheduler, which have this package."""
        try:
            from distributed import Client
            from distributed import as_completed as completed
        except ImportError:
            raise NotHere("--scheduler needs Dask: run build/venv/bin/pip "
                          "install -e 'sim[cluster]'") from None
        try:
            client = Client(self.scheduler, timeout=10)
        except (OSError, ValueError) as e:
            raise NotHere(f"--scheduler {self.scheduler} does not answer: "
                          f"{e}") from None
        with client:
            futures = {client.submit(what, *tasks[i], pure=False): i
                       for i in left}
            for f in completed(futures):
                yield futures[f], f.result()


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
