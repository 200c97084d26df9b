# SPDX-License-Identifier: BSD-2-Clause
"""Where results go, and whether they continue those of an earlier run."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .journal import SUFFIX, Journal
from .options import ABUSE, ALL
from .pedigree import TOP, code, digest
from .runner import Job
from .testbed import BUILD, Testbed, TestbedError
from .varnish import Variant

# What changes no window: where results go, and which turns there are
NOT_OF_WINDOWS = ("anew", "command", "experiment", "json", "record", "pairs",
                  "customers", "tenants", "slots", "clients", "policies")


def folder_of(args: argparse.Namespace) -> Path | None:
    """Return where results go, if anywhere; it is writable."""
    folder: Path | None = args.json
    if folder is None and args.experiment in (ALL, ABUSE):
        folder = BUILD
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


def journal_path(
    args: argparse.Namespace, folder: Path | None, name: str
) -> Path | None:
    """Return where a journal is; --anew begins it again."""
    path = folder and folder / f"{name}{SUFFIX}"
    if path and args.anew:
        path.unlink(missing_ok=True)
    return path


def make_journals(
    args: argparse.Namespace, jobs: Sequence[Job], bed: Testbed,
    folder: Path | None,
) -> list[Journal]:
    """Return each job's journal; an error if one is of another run."""
    source = code()
    return [Journal(
        make_head(job.name, args, bed, source, job.ask.variants),
        journal_path(args, folder, args.record or job.name),
        {"source": source, "command": args.command}) for job in jobs]
