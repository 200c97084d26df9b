# SPDX-License-Identifier: BSD-2-Clause
"""Tests of how reports of sanitizers and of the lock witness are read."""

from __future__ import annotations

from pathlib import Path

import pytest
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
    report, = sanitize.parse(RACE.format(first=first, caller=caller))
    return report


def test_what_a_system_call_reads_is_its_callers() -> None:
    """SPD_Writev stands in place of writev(2), whose data is Varnish's."""
    send = "spd_send sandpaper/varnishd/hook_write.c:1"
    flush = ("SPD_Writev sandpaper/varnishd/hook_write.c:2 (varnishd+0x1)\n"
             "    #3 V1L_Flush http1/cache_http1_line.c:3")
    report = race(send, flush)
    assert not report.ours
    assert report.title == "data race: V1L_Flush / beta"
    itself = sanitize.parse(
        RACE.format(first=send, caller=flush).replace(
            "    #0 memcpy ../libsanitizer/sanitizer_common.inc:887 "
            "(libtsan.so.2+0x5)\n", ""))
    assert itself[0].ours
    assert race(flush.replace("SPD_Writev", "spd_take")).ours


def stock(folder: Path, text: str) -> sanitize.Stock:
    file = folder / "stock.txt"
    file.write_text(text)
    return sanitize.Stock(file)


def test_a_race_of_varnish() -> None:
    r = race(ALPHA)
    assert not r.ours, "what made a thread, or slept, is no part"
    assert r.title == "data race: alpha / beta"


def test_a_race_of_ours(folder: Path) -> None:
    r = race(OURS)
    assert r.ours
    assert not stock(folder, f"{r.title}\tno excuse\n").knows(r)


def test_a_caller_of_ours(folder: Path) -> None:
    r = race(ALPHA, caller=OURS)
    assert r.ours
    assert not stock(folder, "").knows(r)
    assert not stock(folder, "data race: alpha / gamma\ty\n").knows(r)
    assert stock(folder, "data race: alpha / beta\ty\n").knows(r)


def test_a_line_without_reason(folder: Path) -> None:
    with pytest.raises(SystemExit):
        stock(folder, "data race: alpha / beta\n")


def test_use_after_free() -> None:
    (r,) = sanitize.parse(USE_AFTER_FREE)
    assert r.ours
    assert r.title == "heap-use-after-free: REL_Cancel / Req_Release"


def test_each_leak_is_a_report() -> None:
    ours, stock = sanitize.parse(LEAKS)
    assert ours.title == "Direct leak: SPD_MapOf"
    assert ours.ours
    assert stock.title == "Indirect leak: VSB_new"
    assert not stock.ours


def test_undefined_behaviour() -> None:
    (r,) = sanitize.parse(UNDEFINED)
    assert r.ours
    assert r.title == "shift exponent N is negative: NIC_Release"


def record(path: str) -> str:
    return f"**** v1    vsl|          0 Witness         -  {path}\n"


def test_edges() -> None:
    found = witness.edges([
        record("lck_sess,a,1 lck_objhdr,b,2 lck_sandpaper,c,3"),
        record("lck_wstat?,t,9 lck_sandpaper,c,4"),
        "**** v1    vsl|          0 Debug           -  sess,a,1 x,b,2\n",
        record("Unlock sess @ x <y>")])
    assert found == {
        ("sess", "objhdr"): {"b:2"}, ("sess", "sandpaper"): {"c:3"},
        ("objhdr", "sandpaper"): {"c:3"}}


def test_a_record_cut_short() -> None:
    with pytest.raises(ValueError):
        witness.edges([record("sess,a,1 objhdr,b")])


def test_cycle() -> None:
    assert not witness.cycle([("a", "b"), ("b", "c"), ("a", "c"), ("c", "c")])
    assert witness.cycle([("a", "b"), ("b", "c"), ("c", "b")]) == [
        "b", "c", "b"]


def test_a_leaf() -> None:
    says, wrong = witness.verdict({("sess", "sandpaper"): {"f:1"}})
    assert (says, wrong) == (["sess -> sandpaper: f:1"], [])
    _, wrong = witness.verdict({("sess", "sandpaper"): {"f:1"},
                                ("sandpaper", "pool"): {"g:2"}})
    assert wrong == ["sandpaper is held while pool is taken: g:2"]


def test_a_silent_witness() -> None:
    assert len(witness.verdict({})[1]) == 1
