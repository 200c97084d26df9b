# SPDX-License-Identifier: BSD-2-Clause
"""The program: its options, the live view, and what it prints without one."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import fields

from sandpaper_ask import (
    NotRunning,
    Parser,
    ToolError,
    Varnishadm,
    varnishadm,
)

from .poller import INTERVAL, Poller
from .rates import KEYS, Rates, Row, Sample
from .table import COLUMNS, NAME, Choices, body, head, sorted_rows
from .terminal import (
    Line,
    Live,
    glyphs,
    need_urwid,
    plain,
    why_no_terminal,
)
from .view import View

PRINTED = 100  # rows of a table that is printed
SORTS = {c.title: c.key for c in (NAME, *COLUMNS)}
NOT_IN_JSON = ("history", "until")


def live(adm: Varnishadm, interval: float | None, choices: Choices,
         colour: bool) -> None:
    """Show the live view until the user quits or varnishd is gone."""
    def look_at(tenant: str | None) -> None:
        poller.look_at(tenant)

    def leave() -> None:
        screen.quit()

    def draw(columns: int, lines: int) -> list[Line]:
        return view.draw(columns, lines)

    def news() -> None:
        for said in poller.news():
            if isinstance(said, NotRunning):
                view.note = f"{said}; waiting for it"
            elif isinstance(said, ToolError):
                raise said
            else:
                view.note = ""
                view.take(said)

    view = View(glyphs(), choices, look_at, leave)
    screen = Live(draw, view.key, colour)
    poller = Poller(adm, interval)
    screen.watch(poller.reader, news)
    try:
        screen.run()
    finally:
        poller.close()


def samples(adm: Varnishadm, interval: float) -> Iterator[Sample]:
    """Return a sample for each interval."""
    rates = Rates()
    rates.add(adm.snapshot(KEYS), time.monotonic())
    while True:
        time.sleep(interval)
        found = rates.add(adm.snapshot(KEYS), time.monotonic())
        if found is not None:
            yield found


def as_json(sample: Sample, choices: Choices) -> str:
    """Return a sample as a line of JSON."""
    def flat(thing: Row | Sample) -> dict[str, object]:
        return {f.name: getattr(thing, f.name) for f in fields(thing)
                if f.name not in NOT_IN_JSON}

    found = flat(sample)
    found["rows"] = [flat(r) for r in sorted_rows(sample.rows, choices)]
    return json.dumps(found)


def print_table(adm: Varnishadm, interval: float, choices: Choices) -> None:
    """Print the table of one interval."""
    g = glyphs()
    sample = next(samples(adm, interval))
    width = max(shutil.get_terminal_size((100, 24)).columns, 80)
    rows = min(PRINTED, len(sample.rows))
    table = body(sample, choices, g, width, rows + 2)
    print(plain([*head(sample, g, width), [], *table]))


def seconds(text: str) -> float:
    """Return an interval from 0.1 to 3600 s."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of seconds from 0.1 to 3600")
    return value


def parser() -> Parser:
    """Return the parser of the command line."""
    p = Parser(
        prog="sandpaper-top",
        description="Show what each tenant of a running varnishd uses, and "
        "how long its requests wait. In the live view the key h shows all "
        "keys.",
        epilog="Columns: " + " ".join(
            f"{c.title}: {c.about}." for c in (NAME, *COLUMNS))
        + " The exit status is 0, 1 if varnishd cannot be asked, 2 for a "
        "wrong option, and 130 after Ctrl-C.")
    p.add_varnishd()
    p.add_argument("--interval", type=seconds, metavar="S",
                   help="seconds between two looks (default 1; in the live "
                   "view more, if there are so many tenants that looks would "
                   "take more than 0.2 % of varnishd's cores)")
    p.add_argument("--filter", default="", metavar="TEXT",
                   help="only tenants whose name has this part, or matches "
                   "this pattern with * ? [ ]")
    p.add_argument("--sort", choices=SORTS, default="used", metavar="COLUMN",
                   help=f"one of {', '.join(SORTS)} (default used)")
    p.add_argument("--reverse", action="store_true",
                   help="sort in the other direction")
    p.add_argument("--no-color", action="store_true",
                   help="no colours, as with NO_COLOR in the environment")
    p.add_argument("--once", action="store_true", help="print one table of "
                   f"one interval, at most {PRINTED} rows, and end; the same "
                   "happens without a terminal")
    p.add_argument("--json", action="store_true", help="print a line of JSON "
                   "for each interval instead of a table; with --once, one "
                   "line. All rows are in it")
    return p


def run(args: argparse.Namespace) -> None:
    """Do what the options ask for."""
    adm = varnishadm(args)
    interval = args.interval or INTERVAL
    choices = Choices(SORTS[args.sort], args.reverse, filter=args.filter)
    if args.json:
        choices.groups = "open"
        for sample in samples(adm, interval):
            print(as_json(sample, choices), flush=True)
            if args.once:
                break
        return
    if args.once or why_no_terminal():
        print_table(adm, interval, choices)
        return
    need_urwid()
    # What is wrong from the start needs no view.
    adm.answer("sandpaper.list", "-j", "1")
    live(adm, args.interval, choices, not args.no_color)


def main(argv: list[str] | None = None) -> int:
    """Run the program; return the exit status."""
    p = parser()
    args = p.parse_args(argv)
    p.varnishd(args)
    try:
        run(args)
    except ToolError as error:
        print(f"sandpaper-top: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    return 0
