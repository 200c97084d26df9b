# SPDX-License-Identifier: BSD-2-Clause
"""A command that measures: parse its numbers, run it, return its status."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from .reaper import Reaper
from .resume import published
from .testbed import TestbedError

SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}


def number(
    least: float, most: float, whole: bool = False, rate: bool = False
) -> Callable[[str], float]:
    """Return argparse's type of a number between the two.

    A rate, in bits/s, takes the suffixes of sandpaper_nic_rate, too.
    """
    allowed = (f"use a {'whole ' if whole else ''}number from {least:.10g} to "
               f"{most:.10g}")
    if rate:
        allowed = (f"use {least / 1e6:g}M to {most / 1e9:g}G bits/s, such as "
                   "1250M")

    def parse(text: str) -> float:
        unit = SUFFIXES.get(text[-1:]) if rate else None
        try:
            value = (int(text) if whole else float(text) if unit is None
                     else float(text[:-1]) * unit)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not allowed: {allowed}")
        return value

    return parse


def run_command(
    parser: argparse.ArgumentParser, words: Sequence[str] | None,
    run: Callable[[argparse.Namespace, Reaper], int],
) -> int:
    """Run it with these words, or those of the command line.

    Return the exit status.  At its end, all that it started has ended.
    """
    words = sys.argv[1:] if words is None else words
    args = parser.parse_args(words)
    args.command = published(f"bench/{parser.prog}", words)
    reaper = Reaper(args.nice)
    try:
        return run(args, reaper)
    except TestbedError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        goes_on = (f": the same command goes on, with what is in {args.json}"
                   if args.json else "")
        with suppress(OSError):
            print(f"{parser.prog}: interrupted{goes_on}", file=sys.stderr)
        return 130
    finally:
        reaper.close()
