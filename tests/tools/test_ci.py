# SPDX-License-Identifier: BSD-2-Clause
"""CI and `make check-all` go on after a failure, and say what was run."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from common import TOOLS, TOP, ran, write

# A `make` that says what a test wants it to say
MAKE = """#!/bin/sh
for last; do :; done
[ "$last" != "SECONDS=30" ] || last=fuzz
[ -z "$VARNISH_SRC" ] || last=$last.spare
cat "$SAYS/$last" 2>/dev/null || { echo "no $last"; exit 2; }
"""
CHECK = "9 passed, 0 failed, 0 skipped"
REST: dict[str, Any] = {"check-upstream": "5 passed, 0 failed",
                        "fuzz": "2 passed, 0 failed"}


# tools/count-tests knows how many tests there were

@pytest.fixture
def logs(folder: Path) -> Path:
    write(folder / "ci-check.log",
          "unit: 5 passed, 1 failed, 2 skipped, 1 not applicable\n"
          "vtc: 4 passed, 0 failed, 0 skipped\n"
          "9 passed, 1 failed, 2 skipped\n")
    write(folder / "ci-fuzz.log", "5 passed, 0 failed\n")
    return folder


def count(logs: Path, *options: str, status: int = 0) -> list[str]:
    return ran(TOOLS / "count-tests", "--logs", logs, "--wanted",
               logs / "counts", *options, status=status).stdout.splitlines()


def test_as_many_as_wanted(logs: Path) -> None:
    write(logs / "counts", "# why\nunit 9\nfuzz 5\n")
    assert count(logs) == ["unit: 9 tests wanted, 9 found",
                           "fuzz: 5 tests wanted, 5 found"]


def test_fewer(logs: Path) -> None:
    write(logs / "counts", "vtc 5\nupstream 1\n")
    assert count(logs, status=1) == [
        "vtc: 5 tests wanted, 4 found: FEWER",
        "upstream: 1 tests wanted, 0 found: FEWER"]


def test_update(logs: Path) -> None:
    wanted = write(logs / "counts", "# why\nvtc 9\nupstream 7\n")
    count(logs, "--update")
    assert wanted.read_text() == (
        "# why\nvtc 4\nupstream 7\nunit 9\nfuzz 5\n")


# tools/check-all goes on, and keeps a record

def run_parts(folder: Path, *parts: tuple[str, str],
              options: tuple[str | Path, ...] = ()) -> int:
    file = write(folder / "parts", json.dumps(parts))
    return ran(sys.executable, TOOLS / "check-all", "--parts", file, "--out",
               folder, *options, status=None).returncode


def results(folder: Path) -> dict[str, str]:
    record = json.loads((folder / "record.json").read_text())
    found = {r["what"]: r["result"] for r in record}
    assert len(found) == len(record), "a part is recorded twice"
    return found


def test_a_failed_part_stops_nothing(folder: Path) -> None:
    assert run_parts(
        folder, ("one", "echo 1 passed, 2 failed, 0 skipped; exit 1"),
        ("two", "exit 3"), ("three", "echo 3 passed, 0 failed; exit 2"),
        ("four", "echo 4 passed, 0 failed"), ("five", "")) == 1
    assert results(folder) == {
        "one": "1 passed, 2 failed, 0 skipped", "two": "failed",
        "three": "3 passed, 0 failed, exit status 2",
        "four": "4 passed, 0 failed",
        "five": "not run: VARNISH_SRC_60 names no source of Varnish 6.0"}
    record = json.loads((folder / "record.json").read_text())
    assert all(set(r) == {"what", "command", "commit", "changes", "dirty",
                          "date", "result"} for r in record)


def test_no_path_of_this_machine_is_recorded(folder: Path) -> None:
    copy = folder / "copy.json"
    assert run_parts(folder, ("old", 'test "$VARNISH_SRC_60" = /there'),
                     options=("--source-60", "/there", "--record", copy)) == 0
    assert results(folder) == {"old": "passed"}
    assert copy.read_text() == (folder / "record.json").read_text()
    parts = runpy.run_path(str(TOOLS / "check-all"))["parts"]
    assert "/there" not in str(parts("/there"))


def test_it_goes_on_after_an_interruption(folder: Path) -> None:
    note, stop = folder / "note", folder / "stop"
    parts = (("good", f"echo good >>{note}"),
             ("bad", f"echo bad >>{note}; exit 1"),
             ("long", f"[ -e {stop} ] || kill -INT $PPID; "
              f"echo long >>{note}; [ -e {stop} ]"))
    assert run_parts(folder, *parts) != 0
    assert results(folder) == {"good": "passed", "bad": "failed"}
    stop.touch()
    note.unlink()
    assert run_parts(folder, *parts) == 1
    # What has passed is not run again
    assert note.read_text() == "bad\nlong\n"
    assert results(folder) == {"good": "passed", "bad": "failed",
                               "long": "passed"}


# .ci/run with a make that says what it is to say

def run_ci(folder: Path, counts: str = "fuzz 2\n", *, status: int = 0,
           **says: str) -> list[str]:
    top, words, path = (folder / n for n in ("top", "says", "bin"))
    write(top / "tests" / "counts.txt", counts)
    for name in (".ci/run", "tools/count-tests"):
        (top / name).parent.mkdir()
        shutil.copy(TOP / name, top / name)
    words.mkdir()
    for name, text in says.items():
        write(words / name.replace("_", "."), text + "\n")
    for name, text in (("make", MAKE), ("unshare", "#!/bin/sh\nexit 1\n")):
        write(path / name, text).chmod(0o755)
    env = {"PATH": f"{path}:{os.environ['PATH']}", "SAYS": str(words)}
    return ran(top / ".ci" / "run", env=env,
               status=status).stdout.splitlines()


def test_all_is_well(folder: Path) -> None:
    said = run_ci(folder, demo="a table", check=CHECK, **REST)
    assert said[-1] == "17 passed, 0 failed"
    assert "a table" in said


def test_fewer_tests_than_wanted_is_a_failure(folder: Path) -> None:
    said = run_ci(folder, "fuzz 3\n", demo="a table", check=CHECK, **REST,
                  status=1)
    assert said[-1] == "17 passed, 1 failed"
    assert "fuzz: 3 tests wanted, 2 found: FEWER" in said


def test_a_skipped_test_is_a_failure(folder: Path) -> None:
    said = run_ci(folder, demo="a table", **REST, status=1,
                  check="9 passed, 0 failed, 2 skipped")
    assert said[-1] == "17 passed, 1 failed"


def test_a_demo_that_fails(folder: Path) -> None:
    said = run_ci(folder, check=CHECK, source="there is one", **REST, status=1)
    assert said[-1] == "25 passed, 1 failed"
    assert "no demo" in said


def test_a_source_that_is_handed_over(folder: Path) -> None:
    write(folder / "shared/distfiles/varnish_7.7.0.orig.tar.xz", "")
    said = run_ci(folder, demo_spare="a table", check_spare=CHECK,
                  **{f"{k}_spare": v for k, v in REST.items()})
    assert said[-1] == "17 passed, 0 failed"
    assert [said[0], said[-3]] == [
        "NOT A FRESH MACHINE: source handed over"] * 2


def test_no_source_of_another_series(folder: Path) -> None:
    absent = "NOT TESTED: series 9.0, the mirror has no source"
    says: dict[str, Any] = {"demo": "a table", "check": CHECK, **REST}
    said = run_ci(folder / "without", **says)
    assert said[-2:] == [absent, "17 passed, 0 failed"]
    said = run_ci(folder / "with", source="there is one", **says)
    assert said[-1] == "26 passed, 0 failed"
    assert absent not in said
