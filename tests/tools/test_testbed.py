# SPDX-License-Identifier: BSD-2-Clause
"""The testbed on one machine: which cores its programs use."""

from __future__ import annotations

import json
import os
import sys
import threading
import unittest

from sandpaper_bench.reaper import Reaper
from sandpaper_bench.testbed import Testbed, TestbedError, may_make_namespaces

AFFINITY = [sys.executable, "-c",
            "import os; print(list(os.sched_getaffinity(0)))"]


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "needs two cores")
class Cores(unittest.TestCase):
    """Only varnishd runs on the cores that are measured."""

    def setUp(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        self.addCleanup(os.sched_setaffinity, 0, cores)
        self.proxy, self.load = cores[:1], cores[1:]

    def bed(self, *, loopback: bool) -> Testbed:
        reaper = Reaper()
        self.addCleanup(reaper.close)
        bed = Testbed(reaper, self.proxy, self.load, loopback=loopback)
        bed.up()
        return bed

    def check(self, bed: Testbed) -> None:
        """Short commands, such as varnishadm, run on the load's cores."""
        found = []
        asks = threading.Thread(target=lambda: found.append(
            bed.ask("proxy0", AFFINITY).stdout))  # as an action does
        asks.start()
        asks.join()
        self.assertEqual(json.loads(found[0]), self.load)
        for role, cores in (("proxy0", self.proxy), ("client", self.load)):
            program = bed.reaper.popen(bed.command(role, AFFINITY))
            assert program.stdout is not None
            self.assertEqual(json.loads(program.stdout.readline()), cores)

    def test_on_loopback(self) -> None:
        self.check(self.bed(loopback=True))

    @unittest.skipUnless(may_make_namespaces(), "needs root")
    def test_in_namespaces(self) -> None:
        self.check(self.bed(loopback=False))

    @unittest.skipUnless(may_make_namespaces(), "needs root")
    def test_a_congestion_control_that_is_not_there(self) -> None:
        reaper = Reaper()
        self.addCleanup(reaper.close)
        bed = Testbed(reaper, self.proxy, self.load, congestion_control="foo")
        with self.assertRaisesRegex(TestbedError, "^--cc foo: the kernel does "
                                    "not have it: use one of .*reno"):
            bed.up()
