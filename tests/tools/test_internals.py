# SPDX-License-Identifier: BSD-2-Clause
"""What doc/internals says of the source is so: diffs apply, tables are right."""

from __future__ import annotations

import re

import pytest
from common import TOP, ran

PAGE = TOP / "doc/internals/adding.md"
LOCKING = TOP / "doc/internals/locking.md"
MOST = 2  # files that are there already


@pytest.mark.parametrize(("file", "prefix", "states"), [
    ("spd_conn.c", "SPD", 4), ("spd_slot.c", "SLOT", 3)])
def test_the_transitions(file: str, prefix: str, states: int) -> None:
    """The table of locking.md is that of the code."""
    code = {state: set(re.findall(r"TO\((\w+)\)", to)) for state, to in
            re.findall(rf"\[{prefix}_(\w+)\] =\t(.*),",
                       (TOP / "src/varnishd" / file).read_text())}
    page = {state: set(re.findall(r"`(\w+)`", to)) for state, to in
            re.findall(rf"^\| `{prefix}_(\w+)` \|.*\| (.*) \|$",
                       LOCKING.read_text(), re.MULTILINE)
            if state in code}
    assert len(code) == states
    assert page == code


def test_each_diff_applies() -> None:
    diffs = re.findall(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(diffs) == 5
    for diff in diffs:
        ran("patch", "-p1", "--dry-run", "--force", "--fuzz=0", cwd=TOP,
            given=diff)
        assert len(re.findall("^--- a/", diff, re.MULTILINE)) <= MOST
