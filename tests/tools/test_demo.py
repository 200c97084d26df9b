# SPDX-License-Identifier: BSD-2-Clause
"""The demo: its script, its live view, and what is left when it is ended."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from sandpaper_bench.demo import WHOLE, chosen, introduction, main
from sandpaper_bench.demo_script import Result, Timing, Turn, play, table
from sandpaper_bench.demo_sites import ATTACKS, SANDPAPER, STOCK
from sandpaper_bench.testbed import TestbedError
from terminal import Terminal

TOP = Path(__file__).resolve().parents[2]
ROOT = os.environ.get("VARNISH_ROOT", str(TOP / "build" / "7.7" / "root"))
# The program is what is tested, not stock Varnish, which need not be built.
DEMO = [str(TOP / "bench" / "demo"), "--stock", ROOT, "--sandpaper", ROOT]
MARK = "SANDPAPER_DEMO_TEST"
PATIENCE = 20.0  # seconds until all is gone


def result(ours: float, stock: float) -> Result:
    """Return a result of which only what was kept counts."""
    return Result(ATTACKS[0], {
        name: [Turn(100.0, 100.0 * kept, 0.01, 0.02)] * 2
        for name, kept in ((SANDPAPER, ours), (STOCK, stock))})


class Thresholds(unittest.TestCase):
    """When Sandpaper does not help, the script says so."""

    def test_each_attack_can_fail(self) -> None:
        self.assertEqual(result(1.0, 0.2).missed(), [])
        for ours, stock, said in ((0.5, 0.1, "keeps 50%"),
                                  (1.0, 0.9, "not ahead of stock")):
            missed = result(ours, stock).missed()
            self.assertEqual(len(missed), 1, missed)
            self.assertIn(said, missed[0])
        self.assertEqual(len(result(0.5, 0.5).missed()), 2)

    def test_the_table_has_both(self) -> None:
        self.assertRegex(table([result(0.99, 0.1)]),
                         r"1 heavy VCL +10% +99% +10 ms +20 ms +20 ms +ok")

    def test_nobody_keeps_more_than_all(self) -> None:
        self.assertEqual(Turn(100, 150, 0, 0).kept, 1.0)
        self.assertEqual(Turn(0, 150, 0, 0).kept, 0.0)

    def test_two_minutes(self) -> None:
        self.assertLess(Timing().seconds(ATTACKS), 115)
        self.assertEqual(WHOLE, "2 min")
        self.assertIn("This takes about 2 min.", introduction(
            MagicMock(), ATTACKS, Timing()))

    def test_an_attack_has_one_number(self) -> None:
        script = MagicMock()
        said: list[str] = []
        script.measure.side_effect = lambda a: replace(
            result(1.0, 0.2), attack=a)
        play(script, ATTACKS, said.append)
        self.assertEqual([line.split("  ")[0] for line in said], [
            "1 heavy VCL", "2 huge pages", "4 pipelining",
            "5 invented Hosts", "3 silent origin"])

    def test_the_script_has_all_cores_after_the_live_view(self) -> None:
        every = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, every)
        found: list[set[int]] = []

        def live(*_: object) -> bool:
            os.sched_setaffinity(0, {max(every)})
            return True

        def script(*_: object) -> int:
            found.append(os.sched_getaffinity(0))
            return 0

        with (patch("sandpaper_bench.demo.can_be_live", return_value=True),
              patch("sandpaper_bench.demo.run_live", live),
              patch("sandpaper_bench.demo.run_script", script)):
            self.assertEqual(main([]), 0)
        self.assertEqual(found, [every])

    def test_attacks_by_key(self) -> None:
        self.assertEqual([a.key for a in chosen("51")], ["1", "5"])
        for wrong in ("", "6", "1,2"):
            with self.assertRaisesRegex(TestbedError, "name one or more"):
                chosen(wrong)


class Left(unittest.TestCase):
    """Tests after which nothing of the demo may be left."""

    def setUp(self) -> None:
        self.mark = uuid.uuid4().hex

    def processes(self) -> list[int]:
        """Return the processes that the demo started."""
        found, mark = [], f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
        return found

    def left(self, pid: int) -> list[Any]:
        """Return what is left of the demo with this pid."""
        spaces = Path("/run/netns")
        return [*self.processes(),
                *Path("/dev/shm").glob(f"sandpaper-bench-{pid}-*"),
                *Path(tempfile.gettempdir()).glob(f"sandpaper-bench-{pid}-*"),
                *(spaces.glob(f"spb{pid}-*") if spaces.exists() else [])]

    def check_nothing_left(self, pid: int, patience: float = 0.0) -> None:
        """Nothing is left, at the latest after so many seconds."""
        end = time.monotonic() + patience
        while (left := self.left(pid)) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(left, [])

    def terminal(self, *options: str, **more: Any) -> Terminal:
        found = Terminal([*DEMO, *options], **{MARK: self.mark}, **more)
        self.addCleanup(found.close)
        return found


class Script(Left):
    """The fixed script, in a very short form."""

    def test_it_prints_the_table_and_writes_the_figures(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "demo.json"
            process = subprocess.Popen(
                [*DEMO, "--short", "--attacks", "15", "--json", str(file)],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
                env={**os.environ, MARK: self.mark})
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, err), (0, ""), out)
            found = json.loads(file.read_text())
        self.assertRegex(out, r"\n5 invented Hosts +\d+% +\d+%")
        self.assertEqual([r["attack"] for r in found["results"]],
                         ["heavy VCL", "invented Hosts"])
        self.assertIn("cpu", found["machine"])
        self.check_nothing_left(process.pid)

    def test_what_is_wrong_is_one_line(self) -> None:
        for options in (["--attacks", "7"], ["--stock", "/nowhere"],
                        ["--bogus"], ["--proxy-cores", "x"], ["--nice", "x"],
                        ["--seed", "x"]):
            done = subprocess.run(
                [*DEMO, *options], capture_output=True, text=True,
                check=False, stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual(done.returncode, 2, options)
            self.assertRegex(done.stderr, r"^demo: .*\n$")


class LiveView(Left):
    """The live view, on loopback: no root is needed."""

    def test_keys(self) -> None:
        t = self.terminal("--loopback")
        t.expect("Three sites share one varnishd")
        t.expect("Nobody attacks|new Host")
        t.type("4")
        t.expect("send requests to bad")
        t.expect("under attack .pipelining|new Host")
        t.type("s")
        t.expect("Sandpaper off")
        t.expect("pipelining +[0-9]+ s +[0-9]+%")
        t.type("q")
        pid, status = t.process.pid, t.end()
        self.assertEqual(status, 0, t.text)
        self.assertRegex(t.text, "4 pipelining +[0-9]+%")
        self.assertIn("Seconds count while one attack runs", t.text)
        self.assertIn("Go on with:", t.text)
        self.check_nothing_left(pid)

    def test_a_small_terminal_and_one_without_utf8(self) -> None:
        t = self.terminal("--loopback", columns=20, lines=5, LC_ALL="C")
        t.expect("too small")
        t.type("q")
        pid, status = t.process.pid, t.end()
        self.assertEqual(status, 0, t.text)
        self.assertTrue(t.raw.isascii(), t.raw)
        self.check_nothing_left(pid)

    def test_a_worker_process_that_dies_is_reported(self) -> None:
        t = self.terminal("--loopback")
        t.expect("Nobody attacks|new Host")
        managers = [p for p in self.processes() if Path(
            f"/proc/{p}/cmdline").read_bytes().split(b"\0")[0].endswith(
                b"varnishd")]
        self.assertTrue(managers)
        os.kill(min(managers), signal.SIGKILL)
        pid, status = t.process.pid, t.end()
        self.assertEqual(status, 2)
        self.assertRegex(t.text, "demo: (varnishd is gone|the load)")
        self.check_nothing_left(pid)


class Interrupted(Left):
    """Whenever it is ended, nothing is left."""

    def test_signals_at_any_moment(self) -> None:
        moments = random.Random(20)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            t = self.terminal()
            t.read_for(moments.uniform(0.3, 5))
            with self.subTest(signal=number.name):
                status = t.end(number)
                # Before Python handles signals they end it at once
                self.assertIn(status, (128 + number, -number), t.text)
                self.assertNotIn("Traceback", t.text)
                self.check_nothing_left(t.process.pid, PATIENCE)

    def test_a_terminal_that_closes(self) -> None:
        t = self.terminal("--loopback")
        t.expect("Three sites share one varnishd")
        t.hang_up()
        self.assertNotEqual(t.end(), 0)
        self.check_nothing_left(t.process.pid, PATIENCE)
