# SPDX-License-Identifier: BSD-2-Clause
"""make deb, for a series that it cannot build; the tests of the packages."""

from __future__ import annotations

import contextlib
import fcntl

import pytest
from common import TOP, ran


@pytest.mark.parametrize("target", ["deb", "check-deb", "check-container"])
@pytest.mark.parametrize("series", ["6.0", "8.0"])
def test_a_series_without_packages(target: str, series: str) -> None:
    done = ran("make", "--no-print-directory", target, f"SERIES={series}",
               "NO_DEPS=1", cwd=TOP, status=2)
    assert done.stderr.splitlines()[0] == (
        "build-deb: there are packages of the series 7.7 and 9.0, not of "
        f"'{series}'. Without packages: make install SERIES={series}")
    assert not done.stdout  # nothing else was begun


def test_one_check_at_a_time() -> None:
    lock = TOP / "build" / "container" / "lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as f:
        # Or a check that runs now has the lock: just as well
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done = ran(TOP / "tools" / "check-container", status=1)
    assert done.stderr == (
        "check-container: another check-container runs here\n")
    assert not done.stdout


def test_there_are_packages() -> None:
    for series in ("7.7", "9.0"):
        assert ran(TOP / "tools" / "build-deb", series).stdout == ""
