# SPDX-License-Identifier: BSD-2-Clause
"""For the tests whose varnishd and clients are in network namespaces."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "bench"))

from sandpaper_bench.reaper import Reaper, guarded  # noqa: E402
from sandpaper_bench.testbed import (  # noqa: E402
    make_namespaces,
    may_make_namespaces,
    run,
)

__all__ = ["ROOT", "TIMEOUT", "Namespaces", "run"]

ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 60  # seconds


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(may_make_namespaces(), "needs root, for namespaces")
class Namespaces(unittest.TestCase):
    """Namespaces, and what was started in them, end with the test."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="netns.")))
        self.reaper = Reaper()
        self.addCleanup(self.reaper.close)

    def namespaces(self, *names: str) -> list[str]:
        """Make namespaces with loopback; return what they are called."""
        made = [f"{self.folder.name}-{name}" for name in names]
        make_namespaces(self.reaper, made)
        return made

    def start(self, where: str, *command: str) -> subprocess.Popen[str]:
        """Start a command in a namespace; it ends with the test."""
        return self.reaper.popen(guarded(
            ["ip", "netns", "exec", where, *command]))

    def varnishd(self, where: str, vcl: str, *options: str) -> None:
        """Start it in a namespace; return when it answers."""
        file = self.folder / "vcl"
        file.write_text(vcl)
        process = self.start(
            where, f"{ROOT}/sbin/varnishd", "-F", "-j", "none",
            "-n", f"{self.folder}/n", "-f", str(file), *options)
        end = time.monotonic() + TIMEOUT
        while subprocess.run(
                ["ip", "netns", "exec", where, f"{ROOT}/bin/varnishadm",
                 "-n", f"{self.folder}/n", "-t", "1", "ping"],
                check=False, timeout=TIMEOUT, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode:
            self.assertIsNone(process.poll(), "varnishd has ended")
            self.assertLess(time.monotonic(), end, "varnishd does not start")
