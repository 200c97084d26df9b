# SPDX-License-Identifier: BSD-2-Clause
"""tools/floors on this tree, and on a small one with what it must not have."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
ROOT = os.environ.get("VARNISH_ROOT", "")
OBJECTS = "src/bin/*/sandpaper/varnishd"


def floors(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run([TOP / "tools" / "floors", *arguments], text=True,
                          capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Floors(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.write("varnishd/FLOORS", "1 low # a comment\n2 high also\n")
        self.write("varnishd/low.c", "void low(void) {}\n")
        self.write("varnishd/high.c",
                   "void low(void);\nvoid high(void) { low(); }\n")
        self.write("varnishd/also.c", "void also(void) {}\n")
        self.write("lib/a.c", "void b(void);\nvoid a(void) { b(); }\n")
        self.write("lib/b.c", "void b(void) {}\n")

    def write(self, name: str, text: str) -> None:
        path = self.top / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def said(self, status: int) -> list[str]:
        """Compile all files, and return what it says of them."""
        for path in (self.top / "src").glob("*/*.c"):
            folder = self.top / "obj" / path.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            prefix = "varnishd-" if folder.name == "varnishd" else ""
            subprocess.run(["gcc", "-c", "-o",
                            folder / f"{prefix}{path.stem}.o", path],
                           check=True)
        done, said = floors("--top", self.top, self.top / "obj" / "varnishd",
                            self.top / "obj")
        self.assertEqual(done, status, said)
        return said.splitlines()

    @unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
    def test_this_tree(self) -> None:
        objects, = Path(ROOT).parent.glob(OBJECTS)
        status, said = floors(objects, TOP / "build" / "obj" / "src")
        self.assertEqual((status, said), (0, ""))

    def test_a_variable_that_is_not_static(self) -> None:
        self.write("varnishd/low.c", "int a, spd_vsc; static int b;\n"
                   "void low(void) { b = a; }\n")
        self.assertEqual(self.said(1), [
            "floors: low.c: the variable a is not static, and not in GLOBAL "
            "of tools/floors"])

    def test_downward(self) -> None:
        self.assertEqual(self.said(0), [])

    def test_upward(self) -> None:
        self.write("varnishd/low.c",
                   "void high(void);\nvoid (*low(void))(void)\n"
                   "{ return (high); }\n")
        self.assertEqual(self.said(1), [
            "floors: low.c (floor 1) uses high() of high.c (floor 2)"])

    def test_beside(self) -> None:
        self.write("varnishd/also.c",
                   "void high(void);\nvoid also(void) { high(); }\n")
        self.assertEqual(self.said(1), [
            "floors: also.c (floor 2) uses high() of high.c (floor 2)"])

    def test_circle(self) -> None:
        self.write("lib/b.c", "void c(void);\nvoid b(void) { c(); }\n")
        self.write("lib/c.c", "void a(void);\nvoid c(void) { a(); }\n")
        said = self.said(1)
        self.assertEqual(len(said), 1)
        self.assertRegex(said[0], r"^floors: a circle: ([abc]\.c, ){3}[abc]\.c$")

    def test_a_list_that_is_wrong(self) -> None:
        self.write("varnishd/FLOORS", "1 low\n2 high gone\n")
        self.assertEqual(self.said(1), [
            "floors: FLOORS: there is no gone.c",
            "floors: FLOORS: also.c is missing"])

    def test_long(self) -> None:
        self.write("lib/b.c", "/* */\n" * 439 + "void\nb(void)\n{\n" +
                   "\n" * 59 + "}\n")
        self.assertEqual(self.said(1), [
            "floors: src/lib/b.c has 502 lines: 500 are allowed",
            "floors: src/lib/b.c: b() has 61 lines: 60 are allowed"])
        self.write("lib/b.c", "/* */\n" * 438 + "void\nb(void)\n{\n" +
                   "\n" * 58 + "}\n")
        self.assertEqual(self.said(0), [])


if __name__ == "__main__":
    unittest.main()
