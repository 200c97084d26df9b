# SPDX-License-Identifier: BSD-2-Clause
"""Records of runs: bench/results/DATE-EXPERIMENT.json.

A record is an experiment's report with the commit and the date on top. A
record that exists is never overwritten: the next one of a day is numbered.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .lab import dump, source_version
from .testbed import BENCH, TestbedError

RESULTS = BENCH / "results"


def check(folder: Path = RESULTS) -> None:
    """Raise an error if no record can be written, before anything runs."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise TestbedError(f"--record: {folder} is no folder that can be "
                           "written")


def write(report: dict[str, Any], folder: Path = RESULTS) -> Path:
    """Write a report as a record; return where."""
    date = report["began"][:10]
    name = f"{date}-{report['experiment']}"
    text = dump({"date": date, "commit": source_version(), **report})
    number = 1
    while True:
        suffix = "" if number == 1 else f"-{number}"
        path = folder / f"{name}{suffix}.json"
        try:
            with path.open("x") as file:
                file.write(text)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise TestbedError(f"--record: {path}: "
                               f"{error.strerror}") from error
        else:
            return path
