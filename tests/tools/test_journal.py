# SPDX-License-Identifier: BSD-2-Clause
"""What an experiment writes: its journal as it runs, its record at the end."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import MagicMock, patch

from sandpaper_bench import record
from sandpaper_bench.cli import run_jobs
from sandpaper_bench.journal import (
    SUFFIX,
    Journal,
    calibration,
    decode,
    encode,
)
from sandpaper_bench.load import GroupResult
from sandpaper_bench.options import parser
from sandpaper_bench.resume import make_head, make_journals, published
from sandpaper_bench.testbed import Testbed, TestbedError
from sandpaper_bench.timeline import Line

BENCH = Path(__file__).resolve().parents[2] / "bench"


class Records(unittest.TestCase):
    """What --record writes."""

    def setUp(self) -> None:
        self.report: dict[str, Any] = {
            "experiment": "pairs", "commit": "abc1234", "control": {},
            "results": [], "windows": [{"turn": "a"}, {"turn": "b"}]}

    def test_the_newest_takes_the_place_of_the_last(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            for name, file in (("", "pairs.json"), ("", "pairs.json"),
                               ("pairs-nginx", "pairs-nginx.json")):
                path = record.write(self.report, name, Path(tmp))
                self.assertEqual(path, Path(tmp) / file)
            self.assertEqual(record.read(Path(tmp)), {
                "pairs": self.report, "pairs-nginx": self.report})
            self.assertIn('\n  {"turn": "b"}\n', path.read_text())

    def test_no_folder(self) -> None:
        with tempfile.TemporaryDirectory() as tmp, \
                self.assertRaisesRegex(TestbedError, "--record: .*missing"):
            record.check("", Path(tmp) / "missing")

    def test_on_request(self) -> None:
        job = MagicMock(seconds=1.0)
        job.name, job.run.return_value = "pairs", self.report
        for words, count in (([], 0), (["--record"], 1)):
            args = parser().parse_args(["pairs", *words])
            with patch("sandpaper_bench.record.write") as write, \
                    contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                run_jobs(args, [job], MagicMock(), [Journal()], None)
            self.assertEqual(write.call_count, count)

    def test_a_folder_of_results_has_no_part_of_one(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            record.keep(self.report, "mine", Path(tmp), recorded=False)
            self.assertEqual(record.read(Path(tmp)), {"mine": self.report})
            with self.assertRaisesRegex(TestbedError, "b.json cannot be "
                                        "written: No such file"):
                record.keep(self.report, "b", Path(tmp) / "none", False)
            with (patch.object(Path, "replace", side_effect=OSError),
                  self.assertRaisesRegex(TestbedError, "c.json cannot")):
                record.keep(self.report, "c", Path(tmp), recorded=False)
            self.assertFalse((Path(tmp) / "c.json").exists())


class Continuing(unittest.TestCase):
    """A journal has each window, and an interrupted run goes on."""

    HEAD: ClassVar[dict[str, Any]] = {
        "code": {"code": "abc1234"}, "machine": {"cores": 2},
        "options": {"seconds": 4.5, "seed": 1}}

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.path = Path(tmp.name) / f"fake{SUFFIX}"
        self.measured: list[int] = []

    def journal(self, **options: Any) -> Journal:
        head = self.HEAD | {"options": self.HEAD["options"] | options}
        found = Journal(head, self.path, {"command": "first"})
        found.begin({"unit_us": 2.5})
        return found

    def experiment(
        self, journal: Journal, killed_at: int = 0, whole: bool = False
    ) -> list[Any]:
        """Take three turns of two windows; an interrupt comes in one."""
        def window() -> GroupResult:
            if len(self.measured) + 1 == killed_at:
                raise KeyboardInterrupt
            self.measured.append(len(self.measured) + 1)
            return GroupResult("it", 1, self.measured[-1] / 3, 0, 0, 0, 0, 0,
                               0, 0, 0, 0, 0.0, 0, 0, [1, 2])

        return [journal.turn(f"turn {n}", lambda: (
            journal.window(window), journal.window(window)), whole)
            for n in range(3)]

    def test_each_window_is_on_the_disk_before_the_next(self) -> None:
        with patch("os.fsync", wraps=os.fsync) as synced:
            self.experiment(self.journal())
        lines = [json.loads(line) for line in
                 self.path.read_text().splitlines()]
        self.assertEqual([(x.get("turn"), x.get("window"))
                          for x in lines[1:4]],
                         [("turn 0", 1), ("turn 0", 2), ("turn 0", None)])
        self.assertEqual(synced.call_count, len(lines))

    def test_killed_between_windows_it_loses_one(self) -> None:
        whole = self.experiment(self.journal())
        for killed_at in range(1, 7):
            self.path.unlink()
            self.measured.clear()
            with self.assertRaises(KeyboardInterrupt):
                self.experiment(self.journal(), killed_at)
            journal = self.journal()
            found = self.experiment(journal)
            self.assertEqual(found, whole, killed_at)
            self.assertEqual(self.measured, [1, 2, 3, 4, 5, 6])
            self.assertEqual(journal.runs, 2)

    def test_a_turn_of_one_varnishd_is_measured_again(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.experiment(self.journal(), 4, whole=True)
        found = self.experiment(self.journal(), whole=True)
        self.assertEqual([[round(s.rps * 3) for s in turn] for turn in found],
                         [[1, 2], [4, 5], [6, 7]])

    def test_a_process_that_is_killed_while_it_writes(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.experiment(self.journal(), 4)
        with self.path.open("a") as file:
            file.write('{"turn":"turn 1","win')
        self.experiment(self.journal())
        self.assertEqual(self.measured, [1, 2, 3, 4, 5, 6])
        for line in self.path.read_text().splitlines():
            json.loads(line)

    def test_another_run_is_named(self) -> None:
        self.experiment(self.journal())
        with self.assertRaisesRegex(
                TestbedError, r"fake.* of another run \(options seconds was "
                r"4.5, is 2.0\): .*--anew"):
            self.journal(seconds=2.0)
        with self.assertRaisesRegex(TestbedError, "options warmup was not set,"
                                    " is 2.0"):
            self.journal(warmup=2.0)
        with self.assertRaisesRegex(TestbedError, "code code was abc1234, is "
                                    "def5678; machine cores was 2, is 4"):
            Journal(self.HEAD | {"code": {"code": "def5678"},
                                 "machine": {"cores": 4}}, self.path)

    def test_what_is_there_is_said(self) -> None:
        args = parser().parse_args(["pairs"])
        args.command, folder = "pairs", self.path.parent
        where = Testbed(MagicMock(nice=0), [0], [1], loopback=True)
        for turns, said in ((0, ""), (3, "^3 turns are there already, in "
                                         f"{folder}: they are not measured")):
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                journal, = make_journals(args, where, folder, {"fake": []})
            self.assertRegex(err.getvalue(), said or "^$")
            self.assertEqual(journal.there, turns)
            journal.begin({"unit_us": 2.5})
            self.experiment(journal)

    def test_it_goes_on_with_the_first_run_s_units(self) -> None:
        self.journal()
        found = Journal(self.HEAD, self.path, {"command": "second"})
        found.begin({"unit_us": 9.9})
        self.assertEqual(found.calibration, {"unit_us": 2.5})
        self.assertEqual(found.about, {"command": "first"})
        folder = self.path.parent
        code, machine = self.HEAD["code"], self.HEAD["machine"]
        self.assertEqual(calibration(folder, code, machine),
                         {"unit_us": 2.5})
        self.assertEqual(calibration(folder, {}, machine), {})

    def test_each_kind_of_turn_comes_back(self) -> None:
        for value in (
                Line([1], [[2]], 1, 1.0), {25: GroupResult(
                    "a", 1, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, [])}):
            text = json.dumps(encode(value))
            self.assertEqual(decode(json.loads(text)), value)

    def test_a_command_as_it_is_published(self) -> None:
        for words in ("pairs --quick --json /tmp/a --record --seed 2",
                      "pairs --quick --record b --anew --seed 2 --json=c",
                      f"pairs --quick --seed 2 --record --json {BENCH}/a"):
            self.assertEqual(published("bench/x", words.split()),
                             "bench/x pairs --quick --seed 2")
        self.assertEqual(published("x", ["--json", "/tmp/my a", "--seed",
                                         "2"]), "x --seed 2")
        self.assertEqual(published("x", ["--stock", f"{BENCH}/a"]),
                         "x --stock bench/a")

    def test_what_decides_whether_it_is_the_same_run(self) -> None:
        where = Testbed(MagicMock(), [0], [1], loopback=True)
        where.mode = "namespaces"

        def head(*words: str) -> dict[str, Any]:
            args = parser().parse_args(list(words))
            args.command = " ".join(words)
            return make_head("pairs", args, where,
                             {"code": "a", "changes": None}, [])

        first = head("pairs")
        for same in ("pairs --json x --record y", "all",
                     "pairs --pairs c1-c3"):
            self.assertEqual(head(*same.split()), first)
        for other in ("pairs --seed 2", "pairs --turns 9", "pairs --quick",
                      "pairs --param a=b", "pairs --seconds 4",
                      "pairs --rate 2e9"):
            self.assertNotEqual(head(*other.split()), first)
