# SPDX-License-Identifier: BSD-2-Clause
"""`make mutate` on a library of a few lines, and on a few lines in a varnishd:
what is killed, what survives, and that a run goes on where the last one ended.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import common
import pytest
from common import TOP, ran

PYTHON = "/usr/bin/python3"     # has Debian's python3-clang
TIMEOUT = 120  # seconds
VARNISH = Path(os.environ.get(
    "VARNISH_ROOT", TOP / "build" / "7.7" / "root")).parent

SOURCE = """
#include "tiny.h"

int
tiny_max(int a, int b)
{
	if (a > b)
		return (a);
	return (b);
}

int
tiny_large(int a)
{
	if (a > 9)
		return (2);
	return (1);
}

int
tiny_three(int a)
{
	switch (a) {
	case 2:
		return (20);
	case 3:
		return (30);
	}
	int unused = 7;
	(void)unused;
	return (a);
}

int
tiny_idle(int a)
{
	return (a + 5);
}

int
tiny_sum(const int *v, int n)
{
	int sum;

	for (sum = 0; n > 0; n--)
		sum += *v++;
	return (sum);
}
"""
HEADER = """
int tiny_max(int, int);
int tiny_large(int);
int tiny_three(int);
int tiny_idle(int);
int tiny_sum(const int *, int);

static inline int
tiny_twice(int a)
{
	return (a * 2);
}
"""
TEST = """
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perfctr/tiny.h"

static void
test_all(void **state)
{
	const int v[] = { 1, 2, 3, 4 };

	(void)state;
	assert_int_equal(tiny_max(1, 2), 2);
	assert_int_equal(tiny_max(2, 1), 2);
	assert_int_equal(tiny_large(5), 1);
	assert_int_equal(tiny_large(20), 2);
	assert_int_equal(tiny_three(2), 20);
	assert_int_equal(tiny_three(3), 30);
	assert_int_equal(tiny_three(9), 9);
	assert_int_equal(tiny_sum(v, 3), 6);
	assert_int_equal(tiny_twice(4), 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all) };

	return (cmocka_run_group_tests(tests, NULL, NULL));
}
"""
# A file of varnishd with additional functions. Only these are mutated.
PART = f"""
#include "{TOP}/src/varnishd/spd_part.c"

int tiny_idle(int);

int
tiny_idle(int a)
{{
	return (a + 5);
}}

static __attribute__((constructor)) void
tiny_start(void)
{{
	volatile int a = 1, unread = 7;

	(void)unread;
	if (a > 1)
		abort();
}}
"""
CASE_GOOD = """varnishtest "A request"

server s1 {
	rxreq
	txresp
} -start
varnish v1 -vcl+backend { } -start
client c1 {
	txreq
	rxresp
	expect resp.status == 200
} -run
"""
CASE_BAD = """varnishtest "This case always fails"

shell { false }
"""
ABORTS = "src/varnishd/spd_part.c:tiny_start\t> to >=\t0\tif (a > 1)"
NO_ABORT = "src/varnishd/spd_part.c:tiny_start\tdelete\t0\tabort();"
UNREAD = ("src/varnishd/spd_part.c:tiny_start\t7 to 8\t0\t"
          "volatile int a = 1, unread = 7;")
ALIVE = [
    "src/perfctr/tiny.c:tiny_large\t> to >=\t0\tif (a > 9)",
    "src/perfctr/tiny.c:tiny_large\t9 to 10\t0\tif (a > 9)"]
CASE = "src/perfctr/tiny.c:tiny_three\t2 to 3\t0\tcase 2:"
UNUSED = "src/perfctr/tiny.c:tiny_three\t7 to 8\t0\tint unused = 7;"
IDLE = [
    "src/perfctr/tiny.c:tiny_idle\t+ to -\t0\treturn (a + 5);",
    "src/perfctr/tiny.c:tiny_idle\t5 to 6\t0\treturn (a + 5);"]
ENDLESS = ("src/perfctr/tiny.c:tiny_sum\t-- to ++\t0\t"
           "for (sum = 0; n > 0; n--)")
NO_VALUE = ("src/perfctr/tiny.c:tiny_sum\tdelete\t0\t"
            "for (sum = 0; n > 0; n--)")
INLINE = "src/perfctr/tiny.h:tiny_twice\t* to /\t0\treturn (a * 2);"


def has_clang() -> bool:
    return shutil.which("ccache") is not None and ran(
        PYTHON, "-c", "import clang.cindex", status=None).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_clang(), reason="no ccache, or no python3-clang: "
    "tools/install-deps 7.7 mutate")


def write(top: Path, name: str, text: str) -> None:
    common.write(top / name, text)


def mutate(top: Path, status: int, *argv: str | Path) -> str:
    done = ran(PYTHON, TOP / "tools/mutate", "--top", top, "--jobs",
               str(os.cpu_count()), *(argv or ["src/perfctr"]), status=status,
               timeout=TIMEOUT)
    return done.stdout + done.stderr


def judged(top: Path) -> list[dict[str, str]]:
    path = top / "build/mutate/results.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def tiny(folder: Path) -> Path:
    """A library of a few lines, with a test."""
    write(folder, "src/perfctr/tiny.c", SOURCE)
    write(folder, "src/perfctr/tiny.h", HEADER)
    write(folder, "tests/unit/test_tiny.c", TEST)
    # This one cannot be built without Varnish, and is left out
    write(folder, "tests/fuzz/fuzz_gate.c", '#include "varnishd/sp.h"\n')
    write(folder, "tests/fuzz/corpus/gate/one", "1")
    return folder


def test_verdicts_and_going_on(tiny: Path) -> None:
    said = mutate(tiny, 1)
    result = {r["id"]: r["result"] for r in judged(tiny)}
    for id_ in ALIVE:
        assert result.pop(id_) == "survived"
    assert result[CASE] == "invalid"
    assert result[UNUSED] == "same"
    for id_ in IDLE:
        assert result.pop(id_) == "not reached"
    for id_ in (ENDLESS, NO_VALUE, INLINE):
        assert result[id_] == "killed"
    void = "src/perfctr/tiny.c:tiny_three\tdelete\t0\t(void)unused;"
    same = "src/perfctr/tiny.c:tiny_max\t> to >=\t0\tif (a > b)"
    for id_ in (CASE, UNUSED, same, void):
        result.pop(id_)
    assert [id_ for id_ in result if result[id_] != "killed"] == []
    assert ALIVE[0] in said
    assert "4 problems" in said
    assert f"{len(result)} killed, 2 survived, 2 not reached" in said

    # A second run judges nothing again
    n = len(judged(tiny))
    mutate(tiny, 1)
    assert len(judged(tiny)) == n

    # A list without the reasons is none, one with them is enough
    write(tiny, "tests/mutants.txt", f"{ALIVE[0]}\n")
    assert "no reason" in mutate(tiny, 1)
    write(tiny, "tests/mutants.txt", "# known\n" + "".join(
        f"{id_}\taccepted: the test has it so\n"
        for id_ in (*ALIVE, *IDLE)))
    mutate(tiny, 0)

    # A better test: what it kills does not belong into the list
    write(tiny, "tests/unit/test_tiny.c", TEST.replace(
        "assert_int_equal(tiny_twice",
        "assert_int_equal(tiny_idle(1), 6);\n"
        "\tassert_int_equal(tiny_twice"))
    said = mutate(tiny, 0)
    for id_ in IDLE:
        assert "no survivor, remove from the list\t" + id_ in said
    assert "remove from the list\t" + ALIVE[0] not in said

    # More than one in twenty cannot all be equivalent
    write(tiny, "tests/mutants.txt", "".join(
        f"{id_}\tequivalent: never 9 or 10\n" for id_ in ALIVE))
    assert "more than 5 %" in mutate(tiny, 1)


def test_fails_without_a_mutant(tiny: Path) -> None:
    write(tiny, "tests/unit/test_tiny.c", TEST.replace(", 8)", ", 9)"))
    assert "test_tiny fails without a mutant" in mutate(tiny, 1)


# A file of varnishd

def sample(top: Path, n: int, *argv: str | Path) -> tuple[dict[str, str], str]:
    """Return the verdicts, and what was said; the score is too low."""
    said = mutate(top, 1, "--varnish", VARNISH, "--sample", str(n), *argv,
                  "src/varnishd")
    assert "src/varnishd: the score has to be 0.85" in said
    found = judged(top)
    result = {r["id"]: r["result"] for r in found}
    assert len(found) == len(result)  # none was judged twice
    return result, said


@pytest.mark.skipif(not (VARNISH / "installed").exists(),
                    reason="no built Varnish: make varnish")
def test_verdicts_and_a_larger_sample(folder: Path) -> None:
    write(folder, "src/varnishd/spd_part.c", PART)
    write(folder, "vtc/a00001_good.vtc", CASE_GOOD)
    write(folder, "vtc/a00002_bad.vtc", CASE_BAD)
    few, said = sample(folder, 3)
    assert ("do not judge, they are skipped or fail without a mutant: "
            "a00002_bad\n") in said
    assert len(few) == 3

    ran("git", "init", "-q", cwd=folder)
    ran("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q",
        "--allow-empty", "-m", "a", cwd=folder)
    path = folder / "mutants.json"
    result, said = sample(folder, 400, "--record", path)
    assert result == result | few
    assert result[ABORTS] == "killed"
    assert result[UNREAD] == "survived"
    assert UNREAD in said
    assert sorted(i for i, r in result.items() if r == "not reached") == [
        *(i.replace("perfctr/tiny", "varnishd/spd_part") for i in IDLE),
        NO_ABORT]
    score = json.loads(path.read_text())["folders"]["src/varnishd"]
    assert score["of"] == len(result)
    assert score["sample"] == len(result)
    assert score["unreached"] == 3
    assert score["high"] > score["score"]

    # The same again: nothing is judged anew
    sample(folder, 400)
