# SPDX-License-Identifier: BSD-2-Clause
"""tools/retarget on the tree that `make check` has patched, and on others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from common import TOOLS, TOP, load, ran

TREE = TOP / "build" / "source-7.7"


needs_tree = pytest.mark.skipif(not TREE.exists(),
                                reason=f"there is no {TREE}")


def retarget(*arguments: str | Path, status: int) -> str:
    done = ran(TOOLS / "retarget", *arguments, status=status)
    return done.stdout + done.stderr


@needs_tree
def test_its_own_tree() -> None:
    assert re.search(
        r"^patches of 7\.7 on Varnish 7\.7\.\d+: (\d+) hunks, \1 apply, 0 do "
        r"not\n0 lines where ", retarget("7.7", TREE, status=0))


@needs_tree
def test_what_does_not_apply_is_named(folder: Path) -> None:
    tree = folder / "tree"
    shutil.copytree(TREE, tree, symlinks=True)
    locks = tree / "include" / "tbl" / "locks.h"
    locks.write_text(locks.read_text().replace("LOCK(sess)", ""))
    (tree / "include" / "tbl" / "vsl_tags.h").unlink()
    waits = tree / "bin" / "varnishd" / "storage" / "storage_malloc.c"
    text = waits.read_text()
    waits.write_text(text + "\tAZ(pthread_cond_wait(&c, &m));\n")
    said = retarget("7.7", tree, status=1)
    assert "02-tables: include/tbl/locks.h: hunk 1, about line" in said
    assert "02-tables: there is no include/tbl/vsl_tags.h" in said
    assert " apply, 2 do not\n" in said
    assert ("a thread can wait here: bin/varnishd/storage/storage_malloc.c:"
            f"{text.count(chr(10)) + 1}: AZ(pthread_cond_wait(&c, &m));\n"
            "1 lines where a thread can wait are not in 7.7: ") in said


def test_what_makes_no_sense(folder: Path) -> None:
    for series, tree, what in (
            ("5.0", folder, "no series 5.0: use one of 6.0, 7.7, 9.0"),
            ("7.7", "/nowhere/at-all", "at-all does not exist: give"),
            ("7.7", folder, "it has no configure.ac"),
            ("7.7", __file__, "neither a source tree nor a tarball")):
        said = retarget(series, tree, status=1)
        assert what in said
        assert said.count("\n") == 1, said


@pytest.mark.parametrize("call", [
    "Lck_CondWaitTimeout(c, l, 1)", "pthread_cond_timedwait(&c, &m, &t)",
    "pthread_join(t, &v)", "nanosleep(&t, &l)", "VTCP_connect(s, 1)",
    "accept4(s, a, l, 0)", "connect(s, a, l)", "writev(s, v, 2)",
    "recvmsg(s, m, 0)", "sendto(s, p, l, 0, a, n)"])
def test_calls_that_wait(call: str) -> None:
    tool = load("retarget")
    assert tool.WAIT.search(f"\ti = {call};")
    assert not tool.WAIT.search(f"\ti = x{call};")
