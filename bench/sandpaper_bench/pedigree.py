# SPDX-License-Identifier: BSD-2-Clause
"""Which code a figure is of, and whether it has changed.

MOVES is the only list of the files that can move a figure.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from .testbed import BENCH

TOP = BENCH.parent
# Pathspecs of git. What only keeps or prints figures is excluded.
MOVES = (
    "src", "patches/*/*.patch", "vmod_sandpaper", "tools/build-varnish",
    "bench/cache", "bench/loadgen", "bench/origin.py", "bench/places.py",
    "bench/syslog.py", "bench/vcl", "bench/vmod_customers",
    "bench/wrk-scripts", "bench/sandpaper_bench",
    "doc/examples/compress.vcl",
    *(f":(exclude)bench/sandpaper_bench/{name}" for name in (
        "cachefigures.py", "claims.py", "compressfigures.py", "demo*.py",
        "exporterfigures.py", "figures.py", "haboobfigures.py",
        "journal.py", "markdown.py", "overloadfigures.py", "paper.py",
        "pedigree.py", "plots.py", "record.py", "report.*", "sections.*",
        "table.py")),
)
DIRTY = "-dirty"


def git(top: Path, *words: str) -> str | None:
    """Return what git says; nothing if it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", str(top), *words],
            capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def changes(top: Path = TOP) -> str:
    """Return what is not committed in the files that can move a figure."""
    said = git(top, "diff", "HEAD", "--", *MOVES)
    new = git(top, "ls-files", "-o", "--exclude-standard", "--", *MOVES)
    return (said or "") + (new or "")


def code(top: Path = TOP) -> dict[str, Any]:
    """Return the commit that is measured.

    `code` is the last one that touched a file that can move a figure, and
    `changes` a digest of what is not committed there.
    """
    found = changes(top)
    return {
        "commit": git(top, "rev-parse", "--short", "HEAD"),
        "dirty": bool(found),
        "code": git(top, "log", "-1", "--format=%h", "--", *MOVES),
        "changes": hashlib.sha256(found.encode()).hexdigest()[:12]
        if found else None,
    }


def digest(path: Path) -> str:
    """Return what sha256sum says of a file here."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class History:
    """Is a commit older than the last change of the code?"""

    def __init__(self, top: Path = TOP) -> None:
        self._top = top
        # A shallow clone has no history, and a tarball has no git at all
        self.known = ((top / ".git").exists() and git(
            top, "rev-parse", "--is-shallow-repository") == "false")
        self._last = self.known and git(
            top, "log", "-1", "--format=%H", "--", *MOVES)
        self._changed = self.known and bool(changes(top))

    def is_old(self, commit: str | None) -> bool:
        """Say so of a commit; an unknown one is old.

        A change that is not committed counts, so that the marks can go into
        the commit that makes figures old.
        """
        if not self._last:
            return False
        commit = (commit or "").removesuffix(DIRTY)
        return (not commit or self._changed or git(
            self._top, "merge-base", "--is-ancestor", self._last, commit)
            is None)
