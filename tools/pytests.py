# SPDX-License-Identifier: BSD-2-Clause
"""Which tests a file of pytest has, as CASE= names them, and what became of
each, from the JUnit file that pytest writes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from report import Part


def command(python: str, file: Path, tests: Sequence[str],
            verdicts: Path) -> list[str]:
    """Return the command for a file, or for some tests of it.

    A test is `test` or `Class.test`.
    """
    chosen = ["::".join([str(file), *test.split(".")]) for test in tests]
    return [python, "-m", "pytest", "-v", "-rfEs", "--tb=short",
            "-p", "no:cacheprovider", f"--junit-xml={verdicts}",
            *(chosen or [str(file)])]


def chosen(patterns: Sequence[str], file: str) -> list[str]:
    """Return the tests of a file that CASE= names one by one.

    `file.Class.test` and pytest's own `file::Class::test` mean the same.
    """
    names = [p.replace("::", ".").partition(".") for p in patterns]
    return [test for name, _, test in names if name == file and test]


def name_of(case: ET.Element, file: str) -> str:
    """Return file.test or file.Class.test; the file if it has no tests."""
    name = f"{case.get('classname')}.{case.get('name')}"
    at = name.find(f"{file}.")
    return name[at:] if at >= 0 else file


def read(part: Part, verdicts: Path, status: int) -> None:
    """Note the verdicts; a test with parameters is one for each of them."""
    cases = (list(ET.parse(verdicts).iter("testcase"))
             if verdicts.exists() else [])
    failed: set[str] = set()
    passed: set[str] = set()
    for case in cases:
        name = name_of(case, part.name)
        skipped = case.find("skipped")
        if (case.find("failure") is not None
                or case.find("error") is not None):
            failed.add(name)
        elif skipped is not None:
            part.skipped[name] = skipped.get("message", "")
        else:
            passed.add(name)
    part.passed = len(passed)
    part.failed = sorted(name.partition("[")[0] for name in failed)
    if not failed and (status != 0 or not cases):
        part.failed = [part.name]
