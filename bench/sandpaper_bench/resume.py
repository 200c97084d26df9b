# SPDX-License-Identifier: BSD-2-Clause
"""Where results go, and whether they continue those of an earlier run."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .journal import SUFFIX, Journal
from .pedigree import TOP, code, digest
from .rig import progress
from .testbed import Testbed, TestbedError
from .varnish import Variant

# What changes no window: where results go, and which turns there are
NOT_OF_WINDOWS = ("anew", "command", "experiment", "json", "record", "pairs",
                  "customers", "tenants", "slots", "clients", "policies",
                  "controllers", "cases")


def folder_of(folder: Path | None) -> Path | None:
    """Return the folder of --json, if there is one; it is writable."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TestbedError(f"--json {folder}: {error.strerror}: use a "
                           "folder") from error
    if not os.access(folder, os.W_OK):
        raise TestbedError(f"--json {folder}: cannot be written: use another "
                           "folder")
    return folder


def relative(text: str) -> str:
    """Return text without the folder that the work tree is in."""
    return text.replace(f"{TOP}/", "")


def published(program: str, words: Sequence[str]) -> str:
    """Return a command as a record has it: without where results go."""
    kept, left = [program], list(words)
    while left:
        word = left.pop(0)
        option = word.partition("=")[0]
        if option not in ("--json", "--anew", "--record"):
            kept.append(word)
        elif "=" not in word and left and (
                option == "--json"
                or option == "--record" and not left[0].startswith("-")):
            del left[0]
    return relative(shlex.join(kept))


def make_head(
    name: str, args: argparse.Namespace, bed: Testbed,
    source: dict[str, Any], variants: Sequence[Variant],
) -> dict[str, Any]:
    """Return what has to be the same when an experiment is continued."""
    machine = bed.describe()
    for moves in ("load_average_at_start", "congestion_control"):
        machine.pop(moves, None)
    return {
        "experiment": name,
        "code": {k: source[k] for k in ("code", "changes")},
        "machine": machine,
        "programs": {v.name: digest(v.program)[:12] for v in variants},
        "options": {k: relative(str(v)) if isinstance(v, Path) else v
                    for k, v in vars(args).items()
                    if k not in NOT_OF_WINDOWS},
    }


def make_journals(
    args: argparse.Namespace, bed: Testbed, folder: Path | None,
    variants: Mapping[str, Sequence[Variant]],
) -> list[Journal]:
    """Return the journal of each experiment, which has these variants.

    An error if one is of another run; --anew begins them again.
    """
    source, journals = code(), []
    for name, compared in variants.items():
        path = folder and folder / f"{args.record or name}{SUFFIX}"
        if path and args.anew:
            path.unlink(missing_ok=True)
        journals.append(Journal(
            make_head(name, args, bed, source, compared), path,
            {"source": source, "command": args.command}))
    if there := sum(journal.there for journal in journals):
        progress(f"{there} turns are there already, in {folder}: they are not "
                 "measured again")
    return journals
