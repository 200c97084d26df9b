# SPDX-License-Identifier: BSD-2-Clause
"""What doc/internals says of the source is so: diffs apply, tables are the same."""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "doc/internals/adding.md"
LOCKING = TOP / "doc/internals/locking.md"
MOST = 2  # files that are there already


class States(unittest.TestCase):
    def compare(self, file: str, prefix: str, states: int) -> None:
        code = {state: set(re.findall(r"TO\((\w+)\)", to)) for state, to in
                re.findall(rf"\[{prefix}_(\w+)\] =\t(.*),",
                           (TOP / "src/varnishd" / file).read_text())}
        page = {state: set(re.findall(r"`(\w+)`", to)) for state, to in
                re.findall(rf"^\| `{prefix}_(\w+)` \|.*\| (.*) \|$",
                           LOCKING.read_text(), re.MULTILINE)
                if state in code}
        self.assertEqual(len(code), states)
        self.assertEqual(page, code)

    def test_the_transitions_of_a_connection(self) -> None:
        self.compare("spd_conn.c", "SPD", 4)

    def test_the_transitions_of_a_slot(self) -> None:
        self.compare("spd_slot.c", "SLOT", 3)


class Adding(unittest.TestCase):
    def test_each_diff_applies(self) -> None:
        diffs = re.findall(r"```diff\n(.*?)```", PAGE.read_text(), re.DOTALL)
        self.assertEqual(len(diffs), 5)
        for diff in diffs:
            with self.subTest(diff.split("\n", 1)[0]):
                subprocess.run(["patch", "-p1", "--dry-run", "--force",
                                "--fuzz=0"], cwd=TOP, input=diff, text=True,
                               check=True, stdout=subprocess.DEVNULL)
                self.assertLessEqual(
                    len(re.findall("^--- a/", diff, re.MULTILINE)), MOST)


if __name__ == "__main__":
    unittest.main()
