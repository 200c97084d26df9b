# SPDX-License-Identifier: BSD-2-Clause
"""`make check` says what failed, what is skipped, and how to go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import children
import pytest
import pytests
from common import TIMEOUT, TOOLS, TOP, load, ran, until
from report import NOT_APPLICABLE, Part, Report

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
HANGS = """
import threading
import pytest

@pytest.mark.timeout(1)
def test_hangs():
    threading.Event().wait()

def test_good():
    pass
"""
TIDY = """
import pathlib, sys, time
note = pathlib.Path(sys.argv[1])
try:
    note.write_text("runs")
    time.sleep(1000)
finally:
    note.write_text("tidy")
"""

check = load("check")


# What pytest says of each test

def verdicts(folder: Path, cases: str, *tests: str) -> Part:
    file, out = folder / "test_some.py", folder / "out"
    file.write_text(cases)
    done = ran(*pytests.command(sys.executable, file, tests, out),
               status=None)
    part = Part("tools", "test_some", out)
    pytests.read(part, out, done.returncode)
    return part


def test_verdicts(folder: Path) -> None:
    part = verdicts(folder, CASES)
    assert part.passed == 3
    assert part.failed == ["test_some.test_bad", "test_some.test_broken",
                           "test_some.test_parts"]
    assert part.skipped == {"test_some.test_skipped": "no tool"}


def test_one_of_them(folder: Path) -> None:
    part = verdicts(folder, CASES, *pytests.chosen(
        ["test_other.test_bad", "test_some.Test.test_good",
         "test_some::test_skipped"], "test_some"))
    assert (part.passed, part.failed) == (1, [])
    assert list(part.skipped) == ["test_some.test_skipped"]


@pytest.mark.parametrize("cases", ["import gone", ""])
def test_a_file_without_tests(folder: Path, cases: str) -> None:
    assert verdicts(folder, cases).failed == ["test_some"]


def test_one_that_hangs_is_named(folder: Path) -> None:
    part = verdicts(folder, HANGS)
    assert (part.passed, part.failed) == (1, ["test_some.test_hangs"])


def test_what_cmocka_skipped() -> None:
    said = ("[ RUN      ] test_a\nnot applicable: no PMU\n"
            "[  SKIPPED ] test_a\n[ RUN      ] test_b\nnoise\n"
            "[       OK ] test_b\n[ RUN      ] test_c\n"
            "[  SKIPPED ] test_c\n[  PASSED  ] 1 test(s).\n"
            "[  SKIPPED ] 2 test(s), listed below:\n"
            "[  SKIPPED ] test_a\n[  SKIPPED ] test_c\n")
    assert check.skips(said) == {"test_a": "not applicable: no PMU",
                                 "test_c": "the test gives no reason"}


# What is printed at the end

@pytest.fixture
def log(folder: Path) -> Path:
    return folder / "log"


def end(capsys: pytest.CaptureFixture[str], part: Part
        ) -> tuple[int, list[str]]:
    report = Report(part.log.parent)
    report.add(part)
    return report.end(1), capsys.readouterr().out.splitlines()


def test_all_is_well(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    status, said = end(capsys, Part("unit", "a", log, passed=2))
    assert (status, said[-1]) == (0, "2 passed, 0 failed, 0 skipped")


def test_a_failure_comes_with_its_command(
        capsys: pytest.CaptureFixture[str], log: Path) -> None:
    status, said = end(capsys, Part(
        "vtc", "varnishtest", log, passed=1, failed=["a1", "a1"],
        said="why it failed"))
    assert status == 1
    assert "  vtc a1: make check ONLY=vtc CASE='a1'" in said
    assert "  | why it failed" in said
    assert said[-1] == "1 passed, 2 failed, 0 skipped"


def test_what_cannot_apply_is_not_skipped(
        capsys: pytest.CaptureFixture[str], log: Path) -> None:
    status, said = end(capsys, Part("tools", "m", log, skipped={
        "m.A": "no tool", "m.B": NOT_APPLICABLE + "no PMU"}))
    assert status == 0
    assert said.index("not applicable here:") < said.index(
        "  tools m.B: no PMU")
    assert said.index("skipped:") < said.index("  tools m.A: no tool")
    assert said[-1] == "0 passed, 0 failed, 1 skipped"


# Sets and cases that do not exist are refused by name

@pytest.mark.parametrize(("options", "says"), [
    (["--sets", "unit all"],
     "there is no set 'all': there are unit, vtc, tools"),
    (["--sets", "unit vtc", "--case", "a b"],
     "no case 'a b' in the sets unit vtc")], ids=["set", "case"])
def test_no_such(options: list[str], says: str) -> None:
    done = ran(TOOLS / "check", "--obj", "build/none", "--varnish",
               "build/none", *options, cwd=TOP, status=None)
    assert done.returncode != 0
    assert says in done.stderr


def test_make_names_the_sets() -> None:
    env = {k: v for k, v in os.environ.items() if k not in (
        "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ONLY", "CASE")}
    done = ran("make", "check", "ONLY=unit vct", cwd=TOP, env=env, status=2)
    assert "no set 'vct': ONLY names some of unit vtc tools" in done.stderr


# Nothing outlives what started it

def test_what_it_started_ends_with_it(folder: Path) -> None:
    note = folder / "pid"
    p = children.start(["sh", "-c", f"sleep 1000 & echo $! >{note}"])
    p.wait(TIMEOUT)
    child = Path("/proc", note.read_text().strip())
    assert child.exists()
    children.forget(p)
    until(lambda: not child.exists() or "Z" in (child / "stat").read_text())


def test_it_may_tidy_up(folder: Path) -> None:
    note = folder / "note"
    p = children.start([sys.executable, "-c", TIDY, note],
                       stderr=subprocess.DEVNULL)
    until(lambda: note.exists() and note.read_text() == "runs")
    children.forget(p)
    assert note.read_text() == "tidy"
