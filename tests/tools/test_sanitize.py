# SPDX-License-Identifier: BSD-2-Clause
"""Tests of how reports of sanitizers and of the lock witness are read."""

from __future__ import annotations

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import sanitize
import witness

RACE = """==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x7b0 by thread T5 (mutexes: write M1):
    #0 memcpy ../libsanitizer/sanitizer_common.inc:887 (libtsan.so.2+0x5)
    #1 {first} (varnishd+0x1)
    #2 {caller} (varnishd+0x2)

  Previous read of size 8 at 0x7b0 by main thread:
    #0 beta cache/cache_b.c:2 (varnishd+0x3)

  As if synchronized via sleep:
    #0 nanosleep ../tsan_interceptors_posix.cpp:358 (libtsan.so.2+0x6)
    #1 spd_keeper sandpaper/varnishd/spd_keeper.c:9 (varnishd+0x7)

  Thread T5 'sandpaper' (tid=8, running) created by main thread at:
    #0 pthread_create ../tsan_interceptors_posix.cpp:1 (libtsan.so.2+0x8)
    #1 SPD_Init sandpaper/varnishd/spd_keeper.c:413 (varnishd+0x9)

SUMMARY: ThreadSanitizer: data race cache/cache_a.c:1 in alpha
==================
"""
ALPHA = "alpha cache/cache_a.c:1"
OURS = "spd_take sandpaper/varnishd/spd_slot.c:1"
USE_AFTER_FREE = """=================================================================
==9==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x5
READ of size 8 at 0x60 thread T3
    #0 0x55 in REL_Cancel /x/src/releaser/releaser.c:10
    #1 0x56 in spd_event sandpaper/varnishd/spd_poll.c:1 (varnishd+0x2)

0x60 is located 0 bytes inside of 64-byte region [0x60,0xa0)
freed by thread T1 here:
    #0 0x57 in __interceptor_free ../libsanitizer/asan/asan_malloc.cpp:1
    #1 0x58 in Req_Release cache/cache_req.c:1 (varnishd+0x3)

SUMMARY: AddressSanitizer: heap-use-after-free /x/src/releaser/releaser.c:10
"""
LEAKS = """=================================================================
==9==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 24 byte(s) in 1 object(s) allocated from:
    #0 0x57 in __interceptor_calloc ../libsanitizer/asan/asan_malloc.cpp:1
    #1 0x58 in SPD_MapOf sandpaper/varnishd/spd_hostmap.c:1

Indirect leak of 8 byte(s) in 1 object(s) allocated from:
    #0 0x57 in __interceptor_calloc ../libsanitizer/asan/asan_malloc.cpp:1
    #1 0x58 in VSB_new cache/vsb.c:1 (varnishd+0x3)

SUMMARY: AddressSanitizer: 32 byte(s) leaked in 2 allocation(s).
"""
SAID = "***  v1    debug|Info: Child (77) said "
UNDEFINED = (
    f"{SAID}nic.c:12:9: runtime error: shift exponent -70 is negative\n"
    f"{SAID}    #0 0x55 in NIC_Release /x/src/perfctr/nic.c:12\n")


def race(first: str, caller: str = "main a.c:1") -> sanitize.Report:
    reports = sanitize.parse(RACE.format(first=first, caller=caller))
    assert len(reports) == 1
    return reports[0]


class Reports(unittest.TestCase):
    def test_what_a_system_call_reads_is_its_callers(self) -> None:
        """SPD_Writev stands in place of writev(2), whose data is Varnish's."""
        send = "spd_send sandpaper/varnishd/hook_write.c:1"
        flush = ("SPD_Writev sandpaper/varnishd/hook_write.c:2 (varnishd+0x1)\n"
                 "    #3 V1L_Flush http1/cache_http1_line.c:3")
        report = race(send, flush)
        self.assertFalse(report.ours)
        self.assertEqual(report.title, "data race: V1L_Flush / beta")
        itself = sanitize.parse(
            RACE.format(first=send, caller=flush).replace(
                "    #0 memcpy ../libsanitizer/sanitizer_common.inc:887 "
                "(libtsan.so.2+0x5)\n", ""))
        self.assertTrue(itself[0].ours)
        self.assertTrue(race(flush.replace("SPD_Writev", "spd_take")).ours)

    def stock(self, text: str) -> sanitize.Stock:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as f:
            f.write(text)
            f.flush()
            return sanitize.Stock(Path(f.name))

    def test_a_race_of_varnish(self) -> None:
        r = race(ALPHA)
        self.assertFalse(r.ours, "what made a thread, or slept, is no part")
        self.assertEqual(r.title, "data race: alpha / beta")

    def test_a_race_of_ours(self) -> None:
        r = race(OURS)
        self.assertTrue(r.ours)
        listed = self.stock(f"{r.title}\tno excuse\n")
        self.assertFalse(listed.knows(r))

    def test_a_caller_of_ours(self) -> None:
        r = race(ALPHA, caller=OURS)
        self.assertTrue(r.ours)
        self.assertFalse(self.stock("").knows(r))
        self.assertFalse(self.stock("data race: alpha / gamma\ty\n").knows(r))
        self.assertTrue(self.stock("data race: alpha / beta\ty\n").knows(r))

    def test_a_line_without_reason(self) -> None:
        with self.assertRaises(SystemExit):
            self.stock("data race: alpha / beta\n")

    def test_use_after_free(self) -> None:
        (r,) = sanitize.parse(USE_AFTER_FREE)
        self.assertTrue(r.ours)
        self.assertEqual(r.title,
                         "heap-use-after-free: REL_Cancel / Req_Release")

    def test_each_leak_is_a_report(self) -> None:
        ours, stock = sanitize.parse(LEAKS)
        self.assertEqual(ours.title, "Direct leak: SPD_MapOf")
        self.assertTrue(ours.ours)
        self.assertEqual(stock.title, "Indirect leak: VSB_new")
        self.assertFalse(stock.ours)

    def test_undefined_behaviour(self) -> None:
        (r,) = sanitize.parse(UNDEFINED)
        self.assertTrue(r.ours)
        self.assertEqual(r.title, "shift exponent N is negative: NIC_Release")


def record(path: str) -> str:
    return f"**** v1    vsl|          0 Witness         -  {path}\n"


class Witness(unittest.TestCase):
    def test_edges(self) -> None:
        found = witness.edges([
            record("lck_sess,a,1 lck_objhdr,b,2 lck_sandpaper,c,3"),
            record("lck_wstat?,t,9 lck_sandpaper,c,4"),
            "**** v1    vsl|          0 Debug           -  sess,a,1 x,b,2\n",
            record("Unlock sess @ x <y>")])
        self.assertEqual(found, {
            ("sess", "objhdr"): {"b:2"}, ("sess", "sandpaper"): {"c:3"},
            ("objhdr", "sandpaper"): {"c:3"}})

    def test_a_record_cut_short(self) -> None:
        with self.assertRaises(ValueError):
            witness.edges([record("sess,a,1 objhdr,b")])

    def test_cycle(self) -> None:
        self.assertEqual(witness.cycle([("a", "b"), ("b", "c"), ("a", "c"),
                                        ("c", "c")]), [])
        self.assertEqual(witness.cycle([("a", "b"), ("b", "c"), ("c", "b")]),
                         ["b", "c", "b"])

    def test_a_leaf(self) -> None:
        says, wrong = witness.verdict({("sess", "sandpaper"): {"f:1"}})
        self.assertEqual((says, wrong), (["sess -> sandpaper: f:1"], []))
        _, wrong = witness.verdict({("sess", "sandpaper"): {"f:1"},
                                    ("sandpaper", "pool"): {"g:2"}})
        self.assertEqual(wrong, ["sandpaper is held while pool is taken: g:2"])

    def test_a_silent_witness(self) -> None:
        self.assertEqual(len(witness.verdict({})[1]), 1)


if __name__ == "__main__":
    unittest.main()
