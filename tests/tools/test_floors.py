# SPDX-License-Identifier: BSD-2-Clause
"""tools/floors on this tree, and on a small one with what it must not have."""

from __future__ import annotations

import re
from pathlib import Path

import common
import pytest
from common import ROOT, TOOLS, TOP, needs_varnish, ran

OBJECTS = "src/bin/*/sandpaper/varnishd"


def write(top: Path, name: str, text: str) -> None:
    common.write(top / "src" / name, text)


@pytest.fixture
def top(folder: Path) -> Path:
    """A tree in which each file is on its floor."""
    write(folder, "varnishd/FLOORS", "1 low # a comment\n2 high also\n")
    write(folder, "varnishd/low.c", "void low(void) {}\n")
    write(folder, "varnishd/high.c",
          "void low(void);\nvoid high(void) { low(); }\n")
    write(folder, "varnishd/also.c", "void also(void) {}\n")
    write(folder, "lib/a.c", "void b(void);\nvoid a(void) { b(); }\n")
    write(folder, "lib/b.c", "void b(void) {}\n")
    return folder


def said(top: Path, status: int) -> list[str]:
    """Compile all files, and return what it says of them."""
    for path in (top / "src").glob("*/*.c"):
        folder = top / "obj" / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        prefix = "varnishd-" if folder.name == "varnishd" else ""
        ran("gcc", "-c", "-o", folder / f"{prefix}{path.stem}.o", path)
    done = ran(TOOLS / "floors", "--top", top, top / "obj" / "varnishd",
               top / "obj", status=status)
    return (done.stdout + done.stderr).splitlines()


@needs_varnish
def test_this_tree() -> None:
    objects, = Path(ROOT).parent.glob(OBJECTS)
    done = ran(TOOLS / "floors", objects, TOP / "build" / "obj" / "src")
    assert done.stdout + done.stderr == ""


def test_a_variable_that_is_not_static(top: Path) -> None:
    write(top, "varnishd/low.c",
          "int a, spd_vsc; static int b;\nvoid low(void) { b = a; }\n")
    assert said(top, 1) == [
        "floors: low.c: the variable a is not static, and not in GLOBAL "
        "of tools/floors"]


def test_downward(top: Path) -> None:
    assert said(top, 0) == []


def test_upward(top: Path) -> None:
    write(top, "varnishd/low.c",
          "void high(void);\nvoid (*low(void))(void)\n{ return (high); }\n")
    assert said(top, 1) == [
        "floors: low.c (floor 1) uses high() of high.c (floor 2)"]


def test_beside(top: Path) -> None:
    write(top, "varnishd/also.c",
          "void high(void);\nvoid also(void) { high(); }\n")
    assert said(top, 1) == [
        "floors: also.c (floor 2) uses high() of high.c (floor 2)"]


def test_circle(top: Path) -> None:
    write(top, "lib/b.c", "void c(void);\nvoid b(void) { c(); }\n")
    write(top, "lib/c.c", "void a(void);\nvoid c(void) { a(); }\n")
    line, = said(top, 1)
    assert re.search(r"^floors: a circle: ([abc]\.c, ){3}[abc]\.c$", line)


def test_a_list_that_is_wrong(top: Path) -> None:
    write(top, "varnishd/FLOORS", "1 low\n2 high gone\n")
    assert said(top, 1) == ["floors: FLOORS: there is no gone.c",
                            "floors: FLOORS: also.c is missing"]


def test_long(top: Path) -> None:
    write(top, "lib/b.c", "/* */\n" * 439 + "void\nb(void)\n{\n"
          + "\n" * 59 + "}\n")
    assert said(top, 1) == [
        "floors: src/lib/b.c has 502 lines: 500 are allowed",
        "floors: src/lib/b.c: b() has 61 lines: 60 are allowed"]
    write(top, "lib/b.c", "/* */\n" * 438 + "void\nb(void)\n{\n"
          + "\n" * 58 + "}\n")
    assert said(top, 0) == []
