# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-check: what it says of files of tenants."""

from __future__ import annotations

from pathlib import Path

import pytest
from common import ROOT, ran

pytestmark = pytest.mark.skipif(not ROOT, reason="VARNISH_ROOT is not set")


def check(*files: object, status: int) -> tuple[str, str]:
    """Return what it prints to its output and as errors."""
    done = ran(f"{ROOT}/bin/sandpaper-check", *map(str, files), status=status)
    return done.stdout, done.stderr


def test_files_are_checked_together(folder: Path) -> None:
    groups, shops = folder / "groups", folder / "shops"
    groups.write_text("(gold) weight=4\n")
    shops.write_text("shop shop.example *.shop.example group=gold\nblog\n")
    assert check(groups, shops, status=0) == (
        "no errors: tenants 2, groups 1, patterns of Hosts 2\n", "")
    assert check(shops, status=1) == ("", (
        f"{shops}:1: group=gold: the group is not declared: declare it "
        "first\n1 error\n"))


def test_each_error_has_a_line(folder: Path) -> None:
    file = folder / "tenants"
    file.write_text("a weight=0\n\nb b:80\n")
    assert check(file, folder / "none", status=1) == ("", (
        f'{file}:1: "a": the weight is not allowed: use 0.001 to 1024\n'
        f'{file}:3: "b:80": the pattern has a port: remove the port\n'
        f"{folder}/none: the file cannot be opened: No such file or "
        "directory\n3 errors\n"))


def test_wrong_arguments_get_the_usage() -> None:
    usage, _ = check("--help", status=0)
    assert usage.startswith("Usage: sandpaper-check FILE..\n")
    assert check(status=2) == ("", usage)
    assert check("-x", status=2) == ("", usage)
