# SPDX-License-Identifier: BSD-2-Clause
"""How cases of varnishtest are run, and Varnish's own compared with stock's."""

from __future__ import annotations

from pathlib import Path

import pytest
from common import load, write

import vtc

upstream = load("check-upstream")
check = load("check")
FAKE = """#!/bin/sh
echo '#    top  TEST tests/a.vtc passed (0.1)'
echo '#    top  TEST tests/b.vtc FAILED (0.1) x'
echo '#    top  TEST tests/c.vtc skipped (0.1)'
kill -9 $$
"""


def test_reruns() -> None:
    p, f, s = "passed", "failed", "skipped"
    assert upstream.same([p, p, p], [p, f, p])
    assert upstream.same([f, f, f], [f, f, f])
    assert upstream.same([s, s, s], [s, s, s])
    assert not upstream.same([p, f, p], [p, p, p])
    assert not upstream.same([s, s, s], [p, p, p])
    assert not upstream.same([], [p, p, p])
    assert not upstream.same([f, f, f], [s, s, s])
    # One of nine is chance, and two are not
    assert upstream.same([p] * 8 + [f], [p] * 9)
    assert not upstream.same([p] * 7 + [f, f], [p] * 9)


class Suite:
    """A suite whose test fails in runs with these numbers."""

    def __init__(self, *fails: int) -> None:
        self.fails = fails

    def alone(self, _test: str, _name: str, numbers: range) -> list[str]:
        return ["failed" if n in self.fails else "passed" for n in numbers]


@pytest.mark.parametrize(("fails", "runs", "same"), [
    ((), 3, True), ((1,), 9, True), ((1, 4), 9, False), ((0, 1, 2), 9, False),
    ((3,), 3, True)])
def test_who_fails_once_runs_again(fails: tuple[int, ...], runs: int, *,
                                   same: bool) -> None:
    alone, theirs = upstream.rerun(Suite(*fails), Suite(), "a", "on")
    assert (len(alone), len(theirs)) == (runs, runs)
    assert upstream.same(alone, theirs) is same


def test_list_wants_a_reason(folder: Path) -> None:
    path = write(folder / "l", "# why\na00001 counts threads\n")
    assert upstream.read_listed(path) == {"a00001": "counts threads"}
    for bad in ("a00001\n", "a00001 x\na00001 y\n"):
        with pytest.raises(SystemExit):
            upstream.read_listed(write(folder / "l", bad))


def test_list_is_short(folder: Path) -> None:
    nine = "".join(f"a0000{i} why\n" for i in range(9))
    with pytest.raises(SystemExit):
        upstream.read_listed(write(folder / "l", nine))


def test_listed_cases_are_not_run(folder: Path) -> None:
    for n in "abc":
        write(folder / f"vtc/{n}.vtc", "")
    listed = write(folder / "not-run.txt", "# why\nb it needs 7.7\n")
    tests, not_run = check.cases(folder / "vtc", listed)
    assert [t.stem for t in tests] == ["a", "c"]
    assert not_run == {"b": "it needs 7.7"}
    tests, not_run = check.cases(folder / "vtc", folder / "nothing")
    assert (len(tests), not_run) == (3, {})
    with pytest.raises(SystemExit):
        check.cases(folder / "vtc", write(folder / "l", "d it is gone\n"))


def test_verdicts_of_varnishtest(folder: Path) -> None:
    """A stand-in prints what varnishtest prints, and dies."""
    fake = write(folder / "fake", FAKE)
    fake.chmod(0o755)
    tests = [Path(f"tests/{n}.vtc") for n in "abcd"]
    results = vtc.run([str(fake)], tests, folder / "log")
    assert results == {"a": "passed", "b": "failed", "c": "skipped",
                       "d": "failed"}
    assert vtc.counts(results) == "1 passed, 2 failed, 1 skipped"
