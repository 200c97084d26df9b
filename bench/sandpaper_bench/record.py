# SPDX-License-Identifier: BSD-2-Clause
"""Records of runs: bench/results/NAME.json, from which figures are rendered.

A record is an experiment's report: its commit, machine, date, command, seed,
controls, results and raw windows.  NAME is the experiment's, or that of
--record.  A new record takes the place of the old one, which git still has.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .rig import dump, progress
from .testbed import BENCH, TestbedError

RESULTS = BENCH / "results"


def check(name: str, folder: Path = RESULTS) -> None:
    """Raise an error if no record can be written, before anything runs."""
    if "/" in name or name.startswith("."):
        raise TestbedError(f"--record {name}: use a file's name, without / "
                           "and without a dot at its start")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise TestbedError(f"--record: {folder} is no folder that can be "
                           "written")


def write(
    report: dict[str, Any], name: str = "", folder: Path = RESULTS
) -> Path:
    """Write a report to a folder, by default as a record; return where."""
    path = folder / f"{name or report['experiment']}.json"
    fresh = path.with_suffix(".new")
    try:
        fresh.write_text(dump(report))
        fresh.replace(path)
    except OSError as error:
        raise TestbedError(f"{path} cannot be written: "
                           f"{error.strerror}") from error
    return path


def keep(
    report: dict[str, Any], name: str, folder: Path | None, recorded: bool
) -> None:
    """Write a report to the folder of --json and, on request, as a record."""
    if folder is not None:
        write(report, name, folder)
    if recorded:
        progress(f"recorded in {write(report, name)}")


def read(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return all records by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(folder.glob("*.json"))}
