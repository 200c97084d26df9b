# SPDX-License-Identifier: BSD-2-Clause
"""The diffs of doc/internals/adding.md apply to the source, and touch few files."""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "doc/internals/adding.md"
MOST = 2  # files that are there already


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
