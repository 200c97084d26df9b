# SPDX-License-Identifier: BSD-2-Clause
"""Run an experiment in the simulator and print a table.

`sim/run NAME` runs a figure, `sim/run scenario FILE` your own scenario, and
`sim/run replay FILE` a recorded log or trace. `sim/run` lists the figures."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from . import play, replay
from .figure import Context, Figure, Result
from .figures import FIGURES
from .files import Wrong, replace
from .play import whole

FORMATS = ("svg", "png", "pdf")
COMMANDS = {"scenario": play, "replay": replay}


def fail(text: str) -> NoReturn:
    """One line, and status 2."""
    print(f"sim/run: {text}", file=sys.stderr)
    raise SystemExit(2)


class Parser(argparse.ArgumentParser):
    """Errors in one line."""

    def error(self, message: str) -> NoReturn:
        """What is wrong with the arguments."""
        fail(message)


def arguments(argv: list[str]) -> argparse.Namespace:
    """Of the command."""
    p = Parser(prog="sim/run", description=__doc__)
    command = COMMANDS.get(argv[0]) if argv else None
    p.add_argument("name", metavar="NAME", nargs=None if command else "?",
                   help="a figure, `scenario` or `replay`; without NAME, "
                   "all are listed")
    if command:
        command.add_arguments(p)
    p.add_argument("--json", type=Path, metavar="FILE",
                   help="write the results to FILE as JSON")
    p.add_argument("--plot", type=Path, metavar="FILE",
                   help="draw a plot to FILE; the name ends in "
                   f"{', '.join('.' + f for f in FORMATS)}")
    p.add_argument("--seed", type=whole(0), metavar="N",
                   help="seed of the random numbers (default: 1, or the seed "
                   "in the scenario)")
    p.add_argument("--jobs", type=whole(1), metavar="N",
                   default=len(os.sched_getaffinity(0)),
                   help="number of processes (default %(default)s); it does "
                   "not change the result")
    p.add_argument("--scheduler", metavar="ADDRESS",
                   help="simulate on a Dask cluster, such as tcp://host:8786")
    p.add_argument("--keep", type=Path, metavar="FOLDER",
                   help="keep partial results in FOLDER: an interrupted run "
                   "then continues")
    p.add_argument("--quick", action="store_true",
                   help="run a short form")
    a = p.parse_args(argv)
    if a.plot and a.plot.suffix[1:] not in FORMATS:
        fail(f"--plot {a.plot}: the name must end in one of "
             f"{', '.join('.' + f for f in FORMATS)}")
    for file in (a.json, a.plot, getattr(a, "trace", None)):
        if file and not file.absolute().parent.is_dir():
            fail(f"{file}: there is no folder {file.absolute().parent}: "
                 "create it")
    if a.keep and a.keep.exists() and not a.keep.is_dir():
        fail(f"--keep {a.keep}: is not a folder: use another name")
    return a


def names() -> str:
    """All figures and commands, one a line."""
    all_ = {f.name: f.summary for f in FIGURES.values()} | {
        name: module.SUMMARY for name, module in COMMANDS.items()}
    width = max(map(len, all_))
    return "\n".join(f"  {name:{width}}  {summary}"
                     for name, summary in all_.items())


def as_json(figure: Figure, context: Context, result: Result,
            ) -> dict[str, Any]:
    """What --json writes."""
    return {"figure": figure.name, "seed": context.seed,
            "quick": context.quick, "parameters": result.parameters,
            "results": result.results, "paper": result.paper}


def draw(figure: Figure, data: dict[str, Any], file: Path) -> None:
    """The plot, without a date in it, so that equal seeds give equal files."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "sandpaper"
    from matplotlib.figure import Figure as Canvas
    canvas = Canvas(layout="constrained")
    figure.plot(canvas, data)
    empty = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    kind = file.suffix[1:]
    replace(file, lambda new: canvas.savefig(
        new, format=kind, metadata=empty.get(kind)))


def figure_of(a: argparse.Namespace) -> Figure:
    """The one that is asked for; Wrong."""
    if a.name in COMMANDS:
        return COMMANDS[a.name].figure(a)
    if a.name not in FIGURES:
        fail(f"there is no figure '{a.name}': use one of "
             f"{', '.join(FIGURES)}, {' FILE, '.join(COMMANDS)} FILE")
    return FIGURES[a.name]


def run(a: argparse.Namespace) -> None:
    """One figure."""
    try:
        figure = figure_of(a)
        context = Context(a.name, 1 if a.seed is None else a.seed, a.jobs,
                          a.quick, a.keep, a.scheduler)
        result = figure.run(context)
    except Wrong as e:
        fail(str(e))
    data = as_json(figure, context, result)
    print("\n".join(result.table))
    if a.json:
        text = json.dumps(data, indent=1) + "\n"
        replace(a.json, lambda new: Path(new).write_text(text))
    if a.plot:
        draw(figure, data, a.plot)


def main(argv: list[str] | None = None) -> None:
    """The command."""
    a = arguments(sys.argv[1:] if argv is None else argv)
    if a.name is None:
        print("usage: sim/run NAME [--json FILE] [--plot FILE] [--seed N] "
              "[--jobs N] [--scheduler ADDRESS] [--keep FOLDER] [--quick]\n"
              + names())
        return
    try:
        run(a)
    except KeyboardInterrupt:
        print("sim/run: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
