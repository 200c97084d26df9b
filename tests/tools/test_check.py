# SPDX-License-Identifier: BSD-2-Clause
"""`make check` and CI say what failed, what is skipped, and how to go on."""

from __future__ import annotations

import contextlib
import importlib.machinery
import io
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

import children  # noqa: E402
import pytests  # noqa: E402
from report import NOT_APPLICABLE, Part, Report  # noqa: E402

TIMEOUT = 60  # seconds
CASES = """
import pytest

class Test:
    def test_good(self):
        pass

def test_bad():
    assert "so it" == "is"

@pytest.mark.skip(reason="no tool")
def test_skipped():
    pass

@pytest.mark.parametrize("i", range(3))
def test_parts(i):
    assert i != 1

@pytest.fixture
def broken():
    raise OSError("no set-up")

def test_broken(broken):
    pass
"""
# A `make` that says what a test wants it to say
MAKE = """#!/bin/sh
for last; do :; done
[ "$last" != "SECONDS=30" ] || last=fuzz
[ -z "$VARNISH_SRC" ] || last=$last.spare
cat "$SAYS/$last" 2>/dev/null || { echo "no $last"; exit 2; }
"""


class Folder(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self) -> None:
        self.dir = Path(self.enterContext(tempfile.TemporaryDirectory()))


class Verdicts(Folder):
    """What pytest says of each test."""

    def run_them(self, cases: str, *tests: str) -> Part:
        file, out = self.dir / "test_some.py", self.dir / "out"
        file.write_text(cases)
        done = subprocess.run(
            pytests.command(sys.executable, file, tests, out), check=False,
            timeout=TIMEOUT, capture_output=True)
        part = Part("tools", "test_some", out)
        pytests.read(part, out, done.returncode)
        return part

    def test_verdicts(self) -> None:
        part = self.run_them(CASES)
        self.assertEqual(part.passed, 3)
        self.assertEqual(part.failed, [
            "test_some.test_bad", "test_some.test_broken",
            "test_some.test_parts"])
        self.assertEqual(part.skipped, {"test_some.test_skipped": "no tool"})

    def test_one_of_them(self) -> None:
        part = self.run_them(CASES, *pytests.chosen(
            ["test_other.test_bad", "test_some.Test.test_good",
             "test_some::test_skipped"], "test_some"))
        self.assertEqual((part.passed, part.failed), (1, []))
        self.assertEqual(list(part.skipped), ["test_some.test_skipped"])

    def test_a_file_that_cannot_be_read(self) -> None:
        self.assertEqual(self.run_them("import gone").failed, ["test_some"])

    def test_a_file_without_tests(self) -> None:
        self.assertEqual(self.run_them("").failed, ["test_some"])

    def test_one_that_hangs_is_named(self) -> None:
        part = self.run_them("import threading, pytest\n"
                             "@pytest.mark.timeout(1)\n"
                             "def test_hangs():\n"
                             "    threading.Event().wait()\n"
                             "def test_good():\n"
                             "    pass\n")
        self.assertEqual((part.passed, part.failed),
                         (1, ["test_some.test_hangs"]))


class Reports(Folder):
    """What is printed at the end."""

    def end(self, *parts: Part) -> tuple[int, list[str]]:
        report, out = Report(self.dir), io.StringIO()
        with contextlib.redirect_stdout(out):
            for part in parts:
                report.add(part)
            status = report.end(1)
        return status, out.getvalue().splitlines()

    def test_all_is_well(self) -> None:
        status, said = self.end(Part("unit", "a", self.dir / "log", passed=2))
        self.assertEqual((status, said[-1]),
                         (0, "2 passed, 0 failed, 0 skipped"))

    def test_a_failure_comes_with_its_command(self) -> None:
        status, said = self.end(
            Part("vtc", "varnishtest", self.dir / "log", passed=1,
                 failed=["a1", "a1"], said="why it failed"))
        self.assertEqual(status, 1)
        self.assertIn("  vtc a1: make check ONLY=vtc CASE='a1'", said)
        self.assertIn("  | why it failed", said)
        self.assertEqual(said[-1], "1 passed, 2 failed, 0 skipped")

    def test_what_cannot_apply_is_not_skipped(self) -> None:
        status, said = self.end(
            Part("tools", "m", self.dir / "log", skipped={
                "m.A": "no tool", "m.B": NOT_APPLICABLE + "no PMU"}))
        self.assertEqual(status, 0)
        self.assertLess(said.index("not applicable here:"),
                        said.index("  tools m.B: no PMU"))
        self.assertLess(said.index("skipped:"),
                        said.index("  tools m.A: no tool"))
        self.assertEqual(said[-1], "0 passed, 0 failed, 1 skipped")


class Choice(unittest.TestCase):
    """Sets and cases that do not exist are refused by name."""

    def refusal(self, *options: str) -> str:
        done = subprocess.run(
            [sys.executable, TOP / "tools" / "check", "--obj", "build/none",
             "--varnish", "build/none", *options], capture_output=True,
            text=True, check=False, timeout=TIMEOUT, cwd=TOP)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_no_such_set(self) -> None:
        self.assertIn("there is no set 'all': there are unit, vtc, tools",
                      self.refusal("--sets", "unit all"))

    def test_no_such_case(self) -> None:
        self.assertIn("no case 'a b' in the sets unit vtc",
                      self.refusal("--sets", "unit vtc", "--case", "a b"))

    def test_make_names_the_sets(self) -> None:
        env = {k: v for k, v in os.environ.items() if k not in (
            "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ONLY", "CASE")}
        done = subprocess.run(
            ["make", "check", "ONLY=unit vct"], capture_output=True, cwd=TOP,
            text=True, check=False, timeout=TIMEOUT, env=env)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no set 'vct': ONLY names some of unit vtc tools",
                      done.stderr)


class Children(Folder):
    """Nothing outlives what started it."""

    def test_what_it_started_ends_with_it(self) -> None:
        note = self.dir / "pid"
        p = children.start(["sh", "-c", f"sleep 1000 & echo $! >{note}"])
        p.wait(TIMEOUT)
        child = Path("/proc", note.read_text().strip())
        self.assertTrue(child.exists())
        children.forget(p)
        end = time.monotonic() + TIMEOUT
        while child.exists() and "Z" not in (child / "stat").read_text():
            self.assertLess(time.monotonic(), end)

    def test_it_may_tidy_up(self) -> None:
        note = self.dir / "note"
        p = children.start([sys.executable, "-c", f"""
import pathlib, sys, time
note = pathlib.Path({str(note)!r})
try:
    note.write_text("runs")
    time.sleep(1000)
finally:
    note.write_text("tidy")
"""], stderr=subprocess.DEVNULL)
        end = time.monotonic() + TIMEOUT
        while not note.exists() or note.read_text() != "runs":
            self.assertLess(time.monotonic(), end)
        children.forget(p)
        self.assertEqual(note.read_text(), "tidy")


class Unit(unittest.TestCase):
    """What cmocka says of its tests."""

    def test_skips(self) -> None:
        check = importlib.machinery.SourceFileLoader(
            "check", str(TOP / "tools" / "check")).load_module()
        said = ("[ RUN      ] test_a\nnot applicable: no PMU\n"
                "[  SKIPPED ] test_a\n[ RUN      ] test_b\nnoise\n"
                "[       OK ] test_b\n[ RUN      ] test_c\n"
                "[  SKIPPED ] test_c\n[  PASSED  ] 1 test(s).\n"
                "[  SKIPPED ] 2 test(s), listed below:\n"
                "[  SKIPPED ] test_a\n[  SKIPPED ] test_c\n")
        self.assertEqual(check.skips(said), {
            "test_a": "not applicable: no PMU",
            "test_c": "the test gives no reason"})


class Counts(Folder):
    """tools/count-tests knows how many tests there were."""

    def count(self, *options: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [TOP / "tools" / "count-tests", "--logs", self.dir, "--wanted",
             self.dir / "counts", *options], check=False, timeout=TIMEOUT,
            stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()

    def setUp(self) -> None:
        super().setUp()
        (self.dir / "ci-check.log").write_text(
            "unit: 5 passed, 1 failed, 2 skipped, 1 not applicable\n"
            "vtc: 4 passed, 0 failed, 0 skipped\n"
            "9 passed, 1 failed, 2 skipped\n")
        (self.dir / "ci-fuzz.log").write_text("5 passed, 0 failed\n")
        self.wanted = self.dir / "counts"

    def test_as_many_as_wanted(self) -> None:
        self.wanted.write_text("# why\nunit 9\nfuzz 5\n")
        self.assertEqual(self.count(), (0, [
            "unit: 9 tests wanted, 9 found", "fuzz: 5 tests wanted, 5 found"]))

    def test_fewer(self) -> None:
        self.wanted.write_text("vtc 5\nupstream 1\n")
        self.assertEqual(self.count(), (1, [
            "vtc: 5 tests wanted, 4 found: FEWER",
            "upstream: 1 tests wanted, 0 found: FEWER"]))

    def test_update(self) -> None:
        self.wanted.write_text("# why\nvtc 9\nupstream 7\n")
        self.count("--update")
        self.assertEqual(self.wanted.read_text(),
                         "# why\nvtc 4\nupstream 7\nunit 9\nfuzz 5\n")


class All(Folder):
    """tools/check-all goes on, and keeps a record."""

    def run_parts(self, *parts: tuple[str, str],
                  options: tuple[str | Path, ...] = ()) -> int:
        file = self.dir / "parts"
        file.write_text(json.dumps(parts))
        return subprocess.run(
            [sys.executable, TOP / "tools" / "check-all", "--parts", file,
             "--out", self.dir, *options], check=False, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode

    def results(self) -> list[tuple[str, str]]:
        return [(r["what"], r["result"]) for r in
                json.loads((self.dir / "record.json").read_text())]

    def test_a_failed_part_stops_nothing(self) -> None:
        self.assertEqual(self.run_parts(
            ("one", "echo 1 passed, 2 failed, 0 skipped; exit 1"),
            ("two", "exit 3"), ("three", "echo 3 passed, 0 failed; exit 2"),
            ("four", "echo 4 passed, 0 failed"), ("five", "")), 1)
        self.assertEqual(self.results(), [
            ("one", "1 passed, 2 failed, 0 skipped"), ("two", "failed"),
            ("three", "3 passed, 0 failed, exit status 2"),
            ("four", "4 passed, 0 failed"),
            ("five", "not run: VARNISH_SRC_60 names no source of Varnish "
             "6.0")])
        record = json.loads((self.dir / "record.json").read_text())
        self.assertTrue(all(set(r) == {
            "what", "command", "commit", "changes", "dirty", "date", "result"}
            for r in record))

    def test_no_path_of_this_machine_is_recorded(self) -> None:
        copy = self.dir / "copy.json"
        self.assertEqual(self.run_parts(
            ("old", 'test "$VARNISH_SRC_60" = /there'),
            options=("--source-60", "/there", "--record", copy)), 0)
        self.assertEqual(self.results(), [("old", "passed")])
        self.assertEqual(copy.read_text(),
                         (self.dir / "record.json").read_text())
        parts = runpy.run_path(str(TOP / "tools" / "check-all"))["parts"]
        self.assertNotIn("/there", str(parts("/there")))

    def test_it_goes_on_after_an_interruption(self) -> None:
        ran, stop = self.dir / "ran", self.dir / "stop"
        parts = (("good", f"echo good >>{ran}"),
                 ("bad", f"echo bad >>{ran}; exit 1"),
                 ("long", f"[ -e {stop} ] || kill -INT $PPID; "
                  f"echo long >>{ran}; [ -e {stop} ]"))
        self.assertNotEqual(self.run_parts(*parts), 0)
        self.assertEqual(self.results(), [("good", "passed"),
                                          ("bad", "failed")])
        stop.touch()
        ran.unlink()
        self.assertEqual(self.run_parts(*parts), 1)
        # What has passed is not run again
        self.assertEqual(ran.read_text(), "bad\nlong\n")
        self.assertEqual(dict(self.results()), {
            "good": "passed", "bad": "failed", "long": "passed"})


class Ci(Folder):
    """.ci/run with a make that says what it is to say."""

    def run_ci(self, counts: str = "fuzz 2\n", **says: str
               ) -> tuple[int, list[str]]:
        top, words, path = (self.dir / n for n in ("top", "says", "bin"))
        for folder in (top / ".ci", top / "tools", top / "tests", words, path):
            folder.mkdir(parents=True)
        shutil.copy(TOP / "tools" / "count-tests", top / "tools")
        (top / "tests" / "counts.txt").write_text(counts)
        shutil.copy(TOP / ".ci" / "run", top / ".ci" / "run")
        for name, text in says.items():
            (words / name.replace("_", ".")).write_text(text + "\n")
        (path / "make").write_text(MAKE)
        (path / "unshare").write_text("#!/bin/sh\nexit 1\n")
        for program in path.iterdir():
            program.chmod(0o755)
        env = {"PATH": f"{path}:{os.environ['PATH']}", "SAYS": str(words)}
        done = subprocess.run([top / ".ci" / "run"], env=env, text=True,
                              capture_output=True, check=False,
                              timeout=TIMEOUT)
        return done.returncode, done.stdout.splitlines()

    REST = {"check-upstream": "5 passed, 0 failed",
            "fuzz": "2 passed, 0 failed"}

    def test_all_is_well(self) -> None:
        status, said = self.run_ci(
            demo="a table", check="9 passed, 0 failed, 0 skipped",
            **self.REST)
        self.assertEqual((status, said[-1]), (0, "17 passed, 0 failed"))
        self.assertIn("a table", said)

    def test_fewer_tests_than_wanted_is_a_failure(self) -> None:
        status, said = self.run_ci(
            "fuzz 3\n", demo="a table", check="9 passed, 0 failed, 0 skipped",
            **self.REST)
        self.assertEqual((status, said[-1]), (1, "17 passed, 1 failed"))
        self.assertIn("fuzz: 3 tests wanted, 2 found: FEWER", said)

    def test_a_skipped_test_is_a_failure(self) -> None:
        status, said = self.run_ci(
            demo="a table", check="9 passed, 0 failed, 2 skipped",
            **self.REST)
        self.assertEqual((status, said[-1]), (1, "17 passed, 1 failed"))

    def test_a_demo_that_fails(self) -> None:
        status, said = self.run_ci(
            check="9 passed, 0 failed, 0 skipped", source="there is one",
            **self.REST)
        self.assertEqual((status, said[-1]), (1, "25 passed, 1 failed"))
        self.assertIn("no demo", said)

    def test_a_source_that_is_handed_over(self) -> None:
        spare = (self.dir / "shared" / "distfiles"
                 / "varnish_7.7.0.orig.tar.xz")
        spare.parent.mkdir(parents=True)
        spare.touch()
        status, said = self.run_ci(
            demo_spare="a table", check_spare="9 passed, 0 failed, 0 skipped",
            **{f"{k}_spare": v for k, v in self.REST.items()})
        self.assertEqual((status, said[-1]), (0, "17 passed, 0 failed"))
        self.assertEqual([said[0], said[-3]],
                         ["NOT A FRESH MACHINE: source handed over"] * 2)

    def test_no_source_of_another_series(self) -> None:
        absent = "NOT TESTED: series 9.0, the mirror has no source"
        rest = {"demo": "a table", "check": "9 passed, 0 failed, 0 skipped",
                **self.REST}
        status, said = self.run_ci(**rest)
        self.assertEqual((status, said[-2:]),
                         (0, [absent, "17 passed, 0 failed"]))
        shutil.rmtree(self.dir)
        status, said = self.run_ci(source="there is one", **rest)
        self.assertEqual((status, said[-1]), (0, "26 passed, 0 failed"))
        self.assertNotIn(absent, said)


if __name__ == "__main__":
    unittest.main()
