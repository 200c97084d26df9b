# SPDX-License-Identifier: BSD-2-Clause
"""The commands of bench/: their numbers, and what an interrupt says."""

from __future__ import annotations

import contextlib
import io
import signal
import subprocess
import sys
import unittest

from sandpaper_bench.options import parser
from sandpaper_bench.testbed import BENCH

TIMEOUT = 60  # seconds


class Numbers(unittest.TestCase):
    """A number that no run can use is refused, and what is allowed is named."""

    def test_numbers(self) -> None:
        rate = "use 1M to 1000G bits/s, such as 1250M"
        for arguments, allowed in (
                *((f"--{option} {value}", f"number from {allowed}")
                  for option, allowed, values in (
                      ("seconds", "0.1 to 3600", "nan inf abc 1e9 0"),
                      ("warmup", "0 to 3600", "nan inf"),
                      ("turns", "1 to 1000", "0 1.5"),
                      ("max-turns", "0 to 1000", "1001"),
                      ("connections", "1 to 20000", "0 1000000"),
                      ("target", "0 to 1", "nan 2"),
                      ("unit-us", "0.1 to 1000", "0"),
                      ("flood", "1 to 10000000", "0"),
                      ("seed", "0 to 2147483648", "x"),
                      ("nice", "-20 to 19", "50"))
                  for value in values.split()),
                *((f"--rate {value}", rate)
                  for value in ("nan", "fast", "1Gbit", "M", "1k"))):
            with self.subTest(arguments):
                option, value = arguments.split()
                said = io.StringIO()
                with (contextlib.redirect_stderr(said),
                      self.assertRaises(SystemExit)):
                    parser().parse_args(["pairs", option, value])
                self.assertRegex(said.getvalue(), f"{option}: '{value}' is "
                                 f"not allowed: .*{allowed}")

    def test_a_rate_has_suffixes(self) -> None:
        for text in ("1250M", "1.25G", "1250000k", "1.25e9"):
            args = parser().parse_args(["pairs", "--rate", text])
            self.assertEqual(args.rate, 1.25e9)


AT_ONCE = """
import os, runpy, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "sandpaper_bench.journal":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class Interrupted(unittest.TestCase):
    """An interrupt at any time is no traceback."""

    def test_during_the_imports(self) -> None:
        for name in ("sandpaper-bench", "new-hosts", "demo"):
            done = subprocess.run(
                [sys.executable, "-c", AT_ONCE, BENCH / name],
                capture_output=True, text=True, timeout=TIMEOUT, check=False)
            self.assertEqual((done.returncode, done.stderr),
                             (-signal.SIGINT, ""), name)
