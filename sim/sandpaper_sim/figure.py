# SPDX-License-Identifier: BSD-2-Clause
"""What a figure is: a function from a seed to numbers, and one that draws.

A figure's simulations are tasks: calls of one function with different
arguments. They run on as many cores as one likes, the result is the same."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from .files import Wrong, replace

Found = dict[str, Any]          # what a task returns, fit for JSON
Canvas = Any                    # a figure of matplotlib's
QUIET = 3.0                     # s without a word of progress
LINES = 15.0                    # s from word to word, if not on a terminal
PROGRESS = "{desc}: {n_fmt} of {total_fmt}, about {remaining} left"
STEPS = 1000                    # of a simulation that says how far it is


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
        left = {i: t for i, t in enumerate(tasks) if found[i] is None}
        for i, f in tqdm(self._each(what, left), self.name, len(left),
                         leave=False, delay=QUIET, bar_format=PROGRESS,
                         mininterval=0.1 if sys.stderr.isatty() else LINES):
            # As from a file: the same, kept or not.
            found[i] = json.loads(json.dumps(f))
            if kept:
                kept.store(kept.file(what, tasks[i]), f)
        return [f for f in found if f is not None]

    def _each(self, what: Callable[..., Found],
              tasks: dict[int, Sequence[Any]]) -> Iterator[tuple[int, Found]]:
        """Numbers of tasks and what was found, as they are done."""
        if self.jobs == 1 and not self.scheduler:
            yield from ((i, what(*task)) for i, task in tasks.items())
            return
        if not tasks:
            return
        with self._executor() as pool:
            futures = {pool.submit(what, *task): i
                       for i, task in tasks.items()}
            try:
                for f in as_completed(futures):
                    yield futures[f], f.result()
            finally:
                for f in futures:
                    f.cancel()

    @contextmanager
    def _executor(self) -> Iterator[Executor]:
        """Processes, or a Dask scheduler's machines with this package."""
        if not self.scheduler:
            with ProcessPoolExecutor(self.jobs) as pool:
                yield pool
            return
        try:
            from distributed import Client
        except ImportError:
            raise Wrong(f"{self.name}: --scheduler needs Dask: run "
                        "build/venv/bin/pip install -e 'sim[cluster]'"
                        ) from None
        try:
            client = Client(self.scheduler, timeout=10)
        except (OSError, ValueError) as e:
            raise Wrong(f"{self.name}: --scheduler {self.scheduler} does not "
                        f"answer: {e}") from None
        with client:
            yield client.get_executor(pure=False)


def in_steps(run: Callable[[int], None], end: int, name: str) -> None:
    """Call run(until), up to the end; say what is left if it takes long."""
    step = -(-end // STEPS)
    for at in tqdm(range(step, end + step, step), name, leave=False,
                   delay=QUIET, mininterval=LINES,
                   bar_format="{desc}: {percentage:.0f} % simulated, about "
                   "{remaining} left"):
        run(min(at, end))


@dataclass
class Result:
    """What a figure found. All but `table` goes into the JSON."""

    parameters: dict[str, Any]
    results: list[dict[str, Any]]
    paper: dict[str, Any]
    table: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    """run: a Result. plot(figure, json): on a matplotlib figure."""

    name: str
    summary: str
    run: Callable[[Context], Result]
    plot: Callable[[Canvas, Found], None]


def judged(claim: str, found: str, agrees: bool) -> Found:
    """What a paper says, what is found here, and if they agree."""
    return {"paper": claim, "found": found, "agrees": agrees}


def verdicts(judgements: Iterable[Found]) -> list[str]:
    """Return a line for each."""
    return [f"{'agrees' if j['agrees'] else 'differs'}: {j['paper']}; "
            f"here {j['found']}" for j in judgements]


def where(rows: Iterable[Found], **fields: object) -> list[Found]:
    """Those that have these values."""
    return [r for r in rows
            if all(r.get(k) == value for k, value in fields.items())]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of columns; numbers to the right. None is shown as -."""
    def text(x: object) -> str:
        if x is None:
            return "-"
        return f"{x:.4g}" if isinstance(x, float) else str(x)
    cells = [[text(x) for x in row] for row in rows]
    wide = [max(map(len, column))
            for column in zip(head, *cells, strict=True)]
    return ["  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                      for i, (c, w) in enumerate(zip(row, wide, strict=True)))
            .rstrip() for row in [list(head), *cells]]
