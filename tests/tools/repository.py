# SPDX-License-Identifier: BSD-2-Clause
"""A small repository, and what tools/check-docs says of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import common
from common import ROOT, TIMEOUT, TOOLS, TOP, ran

SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
README = "# Title\n\nThis page leads to [the other one](doc/a.md#more).\n"
OTHER = "# A\n\nText.\n\n## More\n\nMore text.\n"


class Repository:
    """A repository with two pages, which a test makes worse."""

    def __init__(self, folder: Path) -> None:
        self.top = folder / "repository"
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self.write("README.md", README)
        self.write("doc/a.md", OTHER)
        self.write("GNUmakefile", "all: demo\ndemo:\n\ttrue\n")
        ran("git", "init", "-q", self.top)

    def write(self, name: str, text: str) -> None:
        common.write(self.top / name, text)

    def argv(self, part: str, *more: str) -> list[str]:
        return [sys.executable, str(TOOLS / "check-docs"), "--top",
                str(self.top), "--only", part, "--prose",
                str(TOP / "build" / "prose"),
                *(["--varnish", ROOT] if ROOT else []), *more]

    def check(self, part: str, *more: str) -> list[str]:
        """What is wrong, line by line; checks the summary and the status."""
        done = ran(*self.argv(part, *more), status=None, timeout=5 * TIMEOUT)
        self.output = done.stdout
        lines = done.stdout.splitlines()
        assert lines, done.stderr
        summary = SUMMARY.match(lines[-1])
        assert summary is not None, done.stdout + done.stderr
        failed = int(summary[2])
        assert done.returncode == (1 if failed else 0), done.stdout
        assert summary[3] == "0", done.stdout
        found = [line for line in lines
                 if re.match(r"^[\w./-]+:\d+: ", line)]
        assert bool(found) == bool(failed), done.stdout
        return found

    def one(self, part: str) -> str:
        """The only thing that is wrong."""
        found, = self.check(part)
        return found
