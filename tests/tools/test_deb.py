# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages: they are built, and installed in a booted Debian."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from common import ROOT, TOP, ran

BUILD_SECONDS = 500
BOOT_SECONDS = 500
OUT = TOP / "build" / "7.7" / "deb"
STEPS = (TOP / "tests" / "packages" / "steps").read_text().partition(
    "STEPS='")[2].partition("'")[0].split()

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(Path(ROOT).parent.name != "7.7",
                       reason="not applicable: packages are of series 7.7"),
]


@pytest.fixture(scope="module")
def packages() -> Path:
    """A folder with new packages."""
    ran("make", "--no-print-directory", "deb", "NO_DEPS=1", cwd=TOP,
        timeout=BUILD_SECONDS)
    return OUT


@pytest.fixture(scope="module")
def verdicts(packages: Path) -> subprocess.CompletedProcess[str]:
    """What check-deb says."""
    return ran(TOP / "tools" / "check-deb", "--debs", packages, status=None,
               timeout=BOOT_SECONDS)


def test_lintian(packages: Path) -> None:
    changes, = packages.glob("*.changes")
    said = ran("lintian", "--allow-root", "--no-tag-display-limit",
               changes, status=None).stdout
    assert not said


@pytest.mark.parametrize("step", STEPS)
def test_step(verdicts: subprocess.CompletedProcess[str], step: str) -> None:
    assert f"passed {step}" in verdicts.stdout.splitlines(), verdicts.stdout
