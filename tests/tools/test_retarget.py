# SPDX-License-Identifier: BSD-2-Clause
"""tools/retarget on the tree that `make check` has patched, and on others."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
TREE = TOP / "build" / "source-7.7"


def retarget(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([str(TOP / "tools" / "retarget"), *arguments],
                          text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Retarget(unittest.TestCase):
    """What applies, what does not, and what makes no sense."""

    @unittest.skipUnless(TREE.exists(), f"there is no {TREE}")
    def test_its_own_tree(self) -> None:
        status, said = retarget("7.7", str(TREE))
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"^patches of 7\.7 on Varnish 7\.7\.\d+: "
                         r"(\d+) hunks, \1 apply, 0 do not\n0 lines where ")

    @unittest.skipUnless(TREE.exists(), f"there is no {TREE}")
    def test_what_does_not_apply_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            tree = Path(tmp) / "tree"
            shutil.copytree(TREE, tree, symlinks=True)
            locks = tree / "include" / "tbl" / "locks.h"
            locks.write_text(locks.read_text().replace("LOCK(sess)", ""))
            (tree / "include" / "tbl" / "vsl_tags.h").unlink()
            waits = tree / "bin" / "varnishd" / "storage" / "storage_malloc.c"
            text = waits.read_text()
            waits.write_text(text + "\tAZ(pthread_cond_wait(&c, &m));\n")
            status, said = retarget("7.7", str(tree))
        self.assertEqual(status, 1)
        self.assertIn("02-tables: include/tbl/locks.h: hunk 1, about line",
                      said)
        self.assertIn("02-tables: there is no include/tbl/vsl_tags.h", said)
        self.assertIn(" apply, 2 do not\n", said)
        self.assertIn(
            "a thread can wait here: bin/varnishd/storage/storage_malloc.c:"
            f"{text.count(chr(10)) + 1}: AZ(pthread_cond_wait(&c, &m));\n"
            "1 lines where a thread can wait are not in 7.7: ", said)

    def test_what_makes_no_sense(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            for arguments, what in (
                    (("5.0", tmp), "no series 5.0: use one of 6.0, 7.7, 9.0"),
                    (("7.7", "/nowhere/at-all"), "at-all does not exist: give"),
                    (("7.7", tmp), "it has no configure.ac"),
                    (("7.7", __file__), "neither a source tree nor a tarball")):
                status, said = retarget(*arguments)
                self.assertEqual(status, 1, said)
                self.assertIn(what, said)
                self.assertEqual(said.count("\n"), 1, said)


if __name__ == "__main__":
    unittest.main()
