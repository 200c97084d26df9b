# SPDX-License-Identifier: BSD-2-Clause
"""A command that measures: from its words to its exit status."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from .reaper import Reaper
from .resume import published
from .testbed import TestbedError


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
        return 130
    finally:
        reaper.close()
