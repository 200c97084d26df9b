# SPDX-License-Identifier: BSD-2-Clause
"""The tools that get Varnish's source and compare its tests with stock's."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"


def load(name: str) -> types.ModuleType:
    """A script without .py, as a module, leaving no bytecode beside it."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(TOOLS))
    loader = importlib.machinery.SourceFileLoader(
        name.replace("-", "_"), str(TOOLS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # The interpreter looks a class's module up there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


source = load("varnish-source")
upstream = load("check-upstream")
check = load("check")


class InDirectory(unittest.TestCase):
    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = Path(tmp.name)

    def write(self, name: str, text: str) -> Path:
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class AptSources(InDirectory):
    def test_one_line_format(self) -> None:
        self.write("sources.list", "# deb http://no/ trixie main\n"
                   "deb [arch=amd64 signed-by=/k] http://a/debian trixie main\n"
                   "deb http://s/sec trixie-security main contrib\n")
        self.assertEqual(source.archive_bases(self.dir),
                         {"": "http://a/debian", "-security": "http://s/sec"})

    def test_deb822_format(self) -> None:
        self.write("sources.list.d/debian.sources",
                   "Types: deb\n# a comment\nURIs: http://a/debian\n"
                   "Suites: bookworm bookworm-updates\nComponents: main\n\n"
                   "Types: deb\nURIs:\n http://s/sec\n"
                   "Suites: bookworm-security\n")
        self.assertEqual(source.archive_bases(self.dir),
                         {"": "http://a/debian", "-security": "http://s/sec"})

    def test_other_archives_do_not_count(self) -> None:
        self.write("sources.list.d/x.sources",
                   "Enabled: no\nURIs: http://off/debian\nSuites: trixie\n\n"
                   "URIs: http://node/\nSuites: nodistro\n")
        self.write("sources.list.d/y.list", "deb cdrom:[x]/ trixie main\n"
                   "deb http://cloud/apt cloud-sdk-bookworm main\n")
        self.write("sources.list.d/z.list.disabled",
                   "deb http://off/debian trixie main\n")
        self.assertEqual(source.archive_bases(self.dir), {})


class Source(InDirectory):
    def tree(self, version: str) -> Path:
        return self.write("tree/configure.ac",
                          f"AC_INIT([Varnish], [{version}], [x@y])\n").parent

    def get(self, series: str, src: Path) -> Path:
        dest = self.dir / "out"
        source.get(series, dest, src)
        return dest

    def refusal(self, series: str, src: Path | None) -> str:
        with self.assertRaises(source.SourceError) as e:
            source.get(series, self.dir / "out", src)
        text = str(e.exception)
        self.assertNotIn("\n", text)
        return text

    def test_tree_and_second_run(self) -> None:
        src = self.tree("6.0.16")
        dest = self.get("6.0", src)
        mark = dest / "mark"
        mark.touch()
        self.get("6.0", src)
        self.assertTrue(mark.exists())
        self.write("tree/new.c", "\n")
        self.get("6.0", src)
        self.assertFalse(mark.exists())
        self.assertTrue((dest / "new.c").exists())

    def test_objects_stay_behind(self) -> None:
        src = self.tree("7.7.0")
        self.write("tree/lib/x.o", "")
        self.write("tree/lib/x.c", "")
        dest = self.get("7.7", src)
        self.assertEqual([p.name for p in (dest / "lib").iterdir()], ["x.c"])
        self.assertEqual((self.dir / "out.patches").read_text(), "unknown\n")

    def test_debians_patches_are_applied(self) -> None:
        self.tree("7.7.0")
        self.write("tree/a.c", "one\n")
        self.write("deb/debian/patches/series", "fix # why\n\n")
        self.write("deb/debian/patches/fix",
                   "--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-one\n+two\n")
        orig = self.dir / "varnish_7.7.0.orig.tar.xz"
        for tar, folder, what in (
                (orig, self.dir, "tree"),
                (self.dir / "varnish_7.7.0-3+deb13u9.debian.tar.xz",
                 self.dir / "deb", "debian")):
            subprocess.run(["tar", "-cJf", tar, "-C", folder, what],
                           check=True)
        dest = self.get("7.7", orig)
        self.assertEqual((dest / "a.c").read_text(), "two\n")
        self.assertEqual((self.dir / "out.version").read_text(),
                         "7.7.0-3+deb13u9\n")
        self.assertEqual((self.dir / "out.patches").read_text(),
                         "Debian 7.7.0-3+deb13u9\n")

    def test_newest_debian_tarball(self) -> None:
        for v in ("9", "10", "2"):
            self.write(f"varnish_7.7.0-3+deb13u{v}.debian.tar.xz", "")
        orig = self.write("varnish_7.7.0.orig.tar.xz", "")
        self.assertEqual(source.debian_tarball(orig).name,
                         "varnish_7.7.0-3+deb13u10.debian.tar.xz")

    def test_tarball_that_was_handed_over(self) -> None:
        """Cut off, it leaves nothing; whole, its patches are unknown."""
        self.tree("7.7.0")
        orig = self.dir / "varnish_7.7.0.orig.tar.xz"
        subprocess.run(["tar", "-cJf", orig, "-C", self.dir, "tree"],
                       check=True)
        whole = orig.read_bytes()
        orig.write_bytes(whole[:len(whole) // 2])
        self.assertIn("cut off", self.refusal("7.7", orig))
        self.assertEqual(list(self.dir.glob("out.new*")), [])
        self.assertFalse((self.dir / "out").exists())
        orig.write_bytes(whole)
        self.get("7.7", orig)
        self.assertEqual((self.dir / "out.patches").read_text(), "unknown\n")

    def test_another_series_is_refused_by_name(self) -> None:
        for version in ("7.7.0", "6.01.0", "trunk"):
            text = self.refusal("6.0", self.tree(version))
            self.assertIn(f"is Varnish {version}, not 6.0", text)
            self.assertFalse((self.dir / "out").exists())

    def test_what_is_no_varnish(self) -> None:
        self.assertIn("no source of Varnish", self.refusal("7.7", self.dir))
        junk = self.write("junk.tar.xz", "junk")
        self.assertIn("no tarball", self.refusal("7.7", junk))
        self.assertIn("does not exist",
                      self.refusal("7.7", self.dir / "nothing"))

    def test_vinyl_that_lacks_a_part(self) -> None:
        self.write("tree/configure.ac",
                   "AC_INIT([Vinyl Cache], [9.0.1], [x@y])\n")
        orig = self.dir / "vinyl-cache-9.0.1.tar.xz"
        subprocess.run(["tar", "-cJf", orig, "-C", self.dir, "tree"],
                       check=True)
        for src in (self.dir / "tree", orig):
            self.assertRegex(self.refusal("9.0", src),
                             f"{src} has nothing in bin/vinyltest/vtest2: .*"
                             r"vtest2-source_\*\.deb")
        self.write("tree/bin/vinyltest/vtest2/src/main.c", "part\n")
        self.get("9.0", self.dir / "tree")

    def test_old_series_is_to_be_handed_over(self) -> None:
        self.assertIn("VARNISH_SRC=", self.refusal("6.0", None))


class Upstream(InDirectory):
    def test_reruns(self) -> None:
        p, f, s = "passed", "failed", "skipped"
        self.assertTrue(upstream.same([p, p, p], [p, f, p]))
        self.assertTrue(upstream.same([f, f, f], [f, f, f]))
        self.assertTrue(upstream.same([s, s, s], [s, s, s]))
        self.assertFalse(upstream.same([p, f, p], [p, p, p]))
        self.assertFalse(upstream.same([s, s, s], [p, p, p]))
        self.assertFalse(upstream.same([], [p, p, p]))

    def test_list_wants_a_reason(self) -> None:
        path = self.write("l", "# why\na00001 counts threads\n")
        self.assertEqual(upstream.read_listed(path),
                         {"a00001": "counts threads"})
        for bad in ("a00001\n", "a00001 x\na00001 y\n"):
            with self.assertRaises(SystemExit):
                upstream.read_listed(self.write("l", bad))

    def test_list_is_short(self) -> None:
        nine = "".join(f"a0000{i} why\n" for i in range(9))
        with self.assertRaises(SystemExit):
            upstream.read_listed(self.write("l", nine))


class Cases(InDirectory):
    def test_listed_ones_are_not_run(self) -> None:
        for n in "abc":
            self.write(f"vtc/{n}.vtc", "")
        folder = self.dir / "vtc"
        listed = self.write("not-run.txt", "# why\nb it needs 7.7\n")
        tests, not_run = check.cases(folder, listed)
        self.assertEqual([t.stem for t in tests], ["a", "c"])
        self.assertEqual(not_run, {"b": "it needs 7.7"})
        tests, not_run = check.cases(folder, self.dir / "nothing")
        self.assertEqual((len(tests), not_run), (3, {}))
        with self.assertRaises(SystemExit):
            check.cases(folder, self.write("l", "d it is gone\n"))


class VtcRun(InDirectory):
    def test_verdicts(self) -> None:
        """A stand-in prints what varnishtest prints, and dies."""
        fake = self.write("fake", "#!/bin/sh\n"
                          "echo '#    top  TEST tests/a.vtc passed (0.1)'\n"
                          "echo '#    top  TEST tests/b.vtc FAILED (0.1) x'\n"
                          "echo '#    top  TEST tests/c.vtc skipped (0.1)'\n"
                          "kill -9 $$\n")
        os.chmod(fake, 0o755)
        tests = [Path(f"tests/{n}.vtc") for n in "abcd"]
        results = upstream.vtc.run([str(fake)], tests, self.dir / "log")
        self.assertEqual(results, {"a": "passed", "b": "failed",
                                   "c": "skipped", "d": "failed"})
        self.assertEqual(upstream.vtc.counts(results),
                         "1 passed, 2 failed, 1 skipped")


if __name__ == "__main__":
    unittest.main()
