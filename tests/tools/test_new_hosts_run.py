# SPDX-License-Identifier: BSD-2-Clause
"""bench/new-hosts: what it refuses, and what becomes of a worker that died."""

from __future__ import annotations

import contextlib
import io
import json
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from sandpaper_bench.abuses import Abuse
from sandpaper_bench.load import Load, WorkerDied, tenant
from sandpaper_bench.newhosts import proven_script
from sandpaper_bench.newhosts_run import (
    main,
    pair_turn,
    say,
    sparse_turn,
    turn,
)
from sandpaper_bench.testbed import TestbedError
from sandpaper_bench.varnish import Variant

CASE = "new-hosts-paced-404"


class Refusals(unittest.TestCase):
    """What can't be measured ends in one line that names it, and status 2."""

    def test_arguments(self) -> None:
        for words, what in (
                ("--variants off", "there is no variant 'off': use .* tenant"),
                ("--variants map,map", "--variants names map 2 times"),
                ("--victim k9", "--victim k9: use some of c1"),
                ("--victim C1", "--victim C1: use some of c1"),
                ("--victim c1,c3", "--script proven takes one"),
                ("--script pair", "--victim k0: --script pair takes two"),
                ("--at 10,nan", "--at 10,nan: 'nan' is not allowed: use a"),
                ("--script pair --victim c1,c1", "--victim names c1 2 times")):
            said = io.StringIO()
            with (self.subTest(words), contextlib.redirect_stderr(said),
                  patch("sandpaper_bench.newhosts_run.make_bed",
                        side_effect=AssertionError)):
                self.assertEqual(main([CASE, *words.split()]), 2)
                self.assertRegex(said.getvalue(),
                                 f"^new-hosts: .*{what}.*\n$")

    def test_numbers(self) -> None:
        for option in ("--turns", "--cycles"):
            said = io.StringIO()
            with (contextlib.redirect_stderr(said),
                  self.assertRaises(SystemExit)):
                main([CASE, option, "0"])
            self.assertRegex(said.getvalue(), f"^new-hosts: argument {option}"
                             ": '0' is not allowed: use a whole .*\n$")

    def test_an_interrupt(self) -> None:
        for words, said in (([], "new-hosts: interrupted\n"), (
                ["--json", "/a"], "new-hosts: interrupted: the same command "
                "goes on, with what is in /a\n")):
            err = io.StringIO()
            with (patch("sandpaper_bench.newhosts_run.run",
                        side_effect=KeyboardInterrupt),
                  contextlib.redirect_stderr(err)):
                self.assertEqual(main([CASE, *words]), 130)
            self.assertEqual(err.getvalue(), said)


class Turn(unittest.TestCase):
    """One turn of a script."""

    def setUp(self) -> None:
        self.varnish, self.rig = MagicMock(), MagicMock()
        self.rig.varnish.return_value.__enter__.return_value = self.varnish
        self.varnish.cpu_seconds.return_value = 1.0
        self.rig.load.measure.return_value = {"k0": MagicMock(rps=100.0)}
        self.rig.load.disturbed.return_value = {}
        self.rig.load.check = Load.check
        self.varnish.restarted.return_value = False

    def turn(self, *parameters: str) -> dict[str, Any]:
        return turn(self.rig, Variant("it", Path(), parameters),
                    proven_script(1.0, [10.0]), Abuse(), tenant("k0"),
                    False, [5.0, 60.0])

    def test_a_worker_that_died_is_said(self) -> None:
        gone = TestbedError("/proc/1/status: no such file")
        self.varnish.restarted.return_value = True
        self.varnish.rss_bytes.side_effect = [2**20, gone]
        self.varnish.cpu_seconds.side_effect = [1.0, gone]
        found = self.turn()
        self.assertTrue(found["died"])
        self.assertEqual(found["after"], {})
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            say(1, found)
        self.assertEqual(said.getvalue(), "turn 1 it: a worker process died\n")

    def test_a_worker_that_died_ends_a_turn_of_rare_requests(self) -> None:
        self.rig.load.disturbed.return_value = {"site": MagicMock(
            rps=2.0, p50_s=0.1, p99_s=0.1)}
        self.varnish.restarted.return_value = True
        self.varnish.rss_bytes.side_effect = TestbedError("no /proc/1/status")
        with self.assertRaises(WorkerDied):
            sparse_turn(self.rig, Variant("it", Path()), Abuse(),
                        tenant("k0"), False)

    def pair(self) -> dict[str, Any]:
        self.rig.tenant = tenant
        seen = {n: MagicMock(rps=100.0) for n in ("c1", "c3")}
        self.rig.in_phases.return_value.phases = [seen] * 3
        return pair_turn(self.rig, Variant("it", Path()), ["c1", "c3"], True)

    def test_two_sites_are_watched_until_they_are_tenants(self) -> None:
        self.varnish.cli.return_value = json.dumps([0, [], 0, {"list": [
            {"tenant": "c1-main.example"}, {"tenant": "c3-main.example"}]}])
        found = self.pair()
        self.assertEqual(set(found["proven_after_s"]),
                         {"c1-main.example", "c3-main.example"})
        self.assertEqual(found["ratio"], 1.0)

    def test_what_keeps_from_watching_is_said(self) -> None:
        self.varnish.cli.side_effect = TestbedError("varnishadm: no")
        with self.assertRaisesRegex(TestbedError, "varnishadm: no"):
            self.pair()
        self.varnish.restarted.return_value = True
        with self.assertRaises(WorkerDied):
            self.pair()

    def test_the_clock_jumps_no_more_once_the_load_failed(self) -> None:
        self.rig.load.disturbed.side_effect = WorkerDied
        with (patch("threading.Timer") as timer,
              self.assertRaises(WorkerDied)):
            self.turn("sandpaper=on")
        timer.return_value.start.assert_called_once_with()
        timer.return_value.cancel.assert_called_once_with()
        self.assertIs(timer.return_value.daemon, True)
