# SPDX-License-Identifier: BSD-2-Clause
"""`make mutate` on a library of a few lines, and on a few lines in a varnishd:
what is killed, what survives, and that a run goes on where the last one ended.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
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
    return shutil.which("ccache") is not None and subprocess.run(
        [PYTHON, "-c", "import clang.cindex"], capture_output=True,
        check=False).returncode == 0


@unittest.skipUnless(has_clang(), "no ccache, or no python3-clang: "
                     "tools/install-deps 7.7 mutate")
class Mutate(unittest.TestCase):
    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def mutate(self, status: int, *argv: str) -> str:
        p = subprocess.run(
            [PYTHON, TOP / "tools/mutate", "--top", self.top, "--jobs",
             str(os.cpu_count()), *(argv or ["src/perfctr"])], text=True,
            timeout=TIMEOUT, capture_output=True, check=False)
        self.assertEqual(p.returncode, status, p.stdout + p.stderr)
        return p.stdout + p.stderr

    def judged(self) -> list[dict[str, str]]:
        path = self.top / "build/mutate/results.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


class Tiny(Mutate):
    def setUp(self) -> None:
        super().setUp()
        self.write("src/perfctr/tiny.c", SOURCE)
        self.write("src/perfctr/tiny.h", HEADER)
        self.write("tests/unit/test_tiny.c", TEST)
        # This one cannot be built without Varnish, and is left out
        self.write("tests/fuzz/fuzz_gate.c", '#include "varnishd/sp.h"\n')
        self.write("tests/fuzz/corpus/gate/one", "1")

    def test_verdicts_and_going_on(self) -> None:
        said = self.mutate(1)
        result = {r["id"]: r["result"] for r in self.judged()}
        for id_ in ALIVE:
            self.assertEqual(result.pop(id_), "survived")
        self.assertEqual(result[CASE], "invalid")
        self.assertEqual(result[UNUSED], "same")
        for id_ in IDLE:
            self.assertEqual(result.pop(id_), "not reached")
        for id_ in (ENDLESS, NO_VALUE, INLINE):
            self.assertEqual(result[id_], "killed")
        void = "src/perfctr/tiny.c:tiny_three\tdelete\t0\t(void)unused;"
        same = "src/perfctr/tiny.c:tiny_max\t> to >=\t0\tif (a > b)"
        for id_ in (CASE, UNUSED, same, void):
            result.pop(id_)
        self.assertEqual([id_ for id_ in result
                          if result[id_] != "killed"], [])
        self.assertIn(ALIVE[0], said)
        self.assertIn("4 problems", said)
        self.assertIn(f"{len(result)} killed, 2 survived, 2 not reached",
                      said)

        # A second run judges nothing again
        n = len(self.judged())
        self.mutate(1)
        self.assertEqual(len(self.judged()), n)

        # A list without the reasons is none, one with them is enough
        self.write("tests/mutants.txt", f"{ALIVE[0]}\n")
        self.assertIn("no reason", self.mutate(1))
        self.write("tests/mutants.txt", "# known\n" + "".join(
            f"{id_}\taccepted: the test has it so\n"
            for id_ in (*ALIVE, *IDLE)))
        self.mutate(0)

        # A better test: what it kills does not belong into the list
        self.write("tests/unit/test_tiny.c", TEST.replace(
            "assert_int_equal(tiny_twice",
            "assert_int_equal(tiny_idle(1), 6);\n"
            "\tassert_int_equal(tiny_twice"))
        said = self.mutate(0)
        for id_ in IDLE:
            self.assertIn("no survivor, remove from the list\t" + id_, said)
        self.assertNotIn("remove from the list\t" + ALIVE[0], said)

        # More than one in twenty cannot all be equivalent
        self.write("tests/mutants.txt", "".join(
            f"{id_}\tequivalent: never 9 or 10\n" for id_ in ALIVE))
        self.assertIn("more than 5 %", self.mutate(1))

    def test_fails_without_a_mutant(self) -> None:
        self.write("tests/unit/test_tiny.c", TEST.replace(", 8)", ", 9)"))
        self.assertIn("test_tiny fails without a mutant", self.mutate(1))


@unittest.skipUnless((VARNISH / "installed").exists(),
                     "no built Varnish: make varnish")
class Varnishd(Mutate):
    def setUp(self) -> None:
        super().setUp()
        self.write("src/varnishd/spd_part.c", PART)
        self.write("vtc/a00001_good.vtc", CASE_GOOD)
        self.write("vtc/a00002_bad.vtc", CASE_BAD)

    def sample(self, n: int, *argv: str) -> dict[str, str]:
        """The verdicts; the score is too low."""
        self.said = self.mutate(1, "--varnish", str(VARNISH), "--sample",
                                str(n), *argv, "src/varnishd")
        self.assertIn("src/varnishd: the score has to be 0.85", self.said)
        judged = self.judged()
        result = {r["id"]: r["result"] for r in judged}
        self.assertEqual(len(judged), len(result))  # none was judged twice
        return result

    def test_verdicts_and_a_larger_sample(self) -> None:
        few = self.sample(3)
        self.assertIn("do not judge, they are skipped or fail without a "
                      "mutant: a00002_bad\n", self.said)
        self.assertEqual(len(few), 3)

        subprocess.run(["git", "init", "-q"], cwd=self.top, check=True)
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b",
                        "commit", "-q", "--allow-empty", "-m", "a"],
                       cwd=self.top, check=True)
        path = self.top / "mutants.json"
        result = self.sample(400, "--record", str(path))
        self.assertEqual(result, result | few)
        self.assertEqual(result[ABORTS], "killed")
        self.assertEqual(result[UNREAD], "survived")
        self.assertIn(UNREAD, self.said)
        self.assertEqual(sorted(i for i, r in result.items()
                                if r == "not reached"),
                         [*(i.replace("perfctr/tiny", "varnishd/spd_part")
                            for i in IDLE), NO_ABORT])
        score = json.loads(path.read_text())["folders"]["src/varnishd"]
        self.assertEqual(score["of"], len(result))
        self.assertEqual(score["sample"], len(result))
        self.assertEqual(score["unreached"], 3)
        self.assertGreater(score["high"], score["score"])

        # The same again: nothing is judged anew
        self.sample(400)


if __name__ == "__main__":
    unittest.main()
