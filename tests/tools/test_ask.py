# SPDX-License-Identifier: BSD-2-Clause
"""How the tools that watch varnishd ask it: pages, and what can go wrong.

Here the answers are made up; test_top_live.py asks a real varnishd.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from sandpaper_ask import (
    ATTEMPTS,
    PART,
    SELDOM,
    NotRunning,
    Refused,
    Room,
    ToolError,
    Varnishadm,
    quoted,
)


class Made(Varnishadm):
    """A varnishd with some tenants, which cuts an answer of too many."""

    def __init__(self, tenants: int, most: int = 100_000) -> None:
        super().__init__("varnishadm", ())
        self.names = [f"t{n:05}" for n in range(tenants)]
        self.most = most
        self.cuts = 0  # answers that were cut
        self.after = True  # it heeds -a
        self.started = [1]  # of each answer; the last goes on
        self.asked: list[tuple[str, ...]] = []

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.asked.append(words)
        after = words[words.index("-a") + 1].strip('"') * self.after
        rows = int(words[-1])
        names = [n for n in self.names if n > after][:rows]
        self.cuts += len(names) > self.most
        started = (self.started.pop(0) if len(self.started) > 1
                   else self.started[0])
        said: dict[str, Any] = {
            "started": started, "keys": ["tenant", "group"],
            "list": [[n, None] for n in names], "cost_s": 0.001}
        text = json.dumps([2, list(words), 1.0, said])
        return subprocess.CompletedProcess(
            words, 0, text[:50] if len(names) > self.most else text, "")


class Says(Varnishadm):
    """A varnishadm that always says the same."""

    def __init__(self, status: int, out: str, error: str = "") -> None:
        super().__init__("varnishadm", ())
        self.done = subprocess.CompletedProcess((), status, out, error)

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.done


class Begins(Made):
    """Its worker process begins between the first two questions."""

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        if not self.asked:
            self.asked.append(words)
            return subprocess.CompletedProcess(
                words, 1, "", "Unknown request.\nCommand failed")
        if words == ("status",):
            return subprocess.CompletedProcess(
                words, 0, "Child in state running", "")
        return super().ask(*words)


def names(adm: Varnishadm) -> list[str]:
    return [t["tenant"] for t in adm.snapshot(("weight",))["list"]]


@pytest.mark.parametrize(("tenants", "most"), [
    (0, 100_000), (1999, 100_000), (2000, 100_000), (10_000, 100_000),
    (10_000, 700), (3, 5)])
def test_each_tenant_comes_once(tenants: int, most: int) -> None:
    adm = Made(tenants, most)
    assert names(adm) == adm.names
    assert adm.asked[0] == ("sandpaper.list", "-j", "-t", "-a", r'"\x01"',
                            "-c", "weight", "2000")
    before = len(adm.asked)
    assert adm.snapshot()["list"] == [{"tenant": n} for n in adm.names]
    assert adm.rest_s == pytest.approx(
        (len(adm.asked) - before) * 0.001 / PART)
    before = len(adm.asked)
    assert names(adm) == adm.names  # it knows now how many have room
    assert len(adm.asked) - before <= tenants / min(2000, most / 2) + 1


def test_pages_grow_again() -> None:
    """Names were long for a while; a larger page is tried seldom."""
    adm = Made(3000, 700)
    for _ in range(SELDOM // 2):
        assert names(adm) == adm.names
    assert 2 < adm.cuts <= 2 + len(adm.asked) / SELDOM
    adm.most = 100_000
    for _ in range(SELDOM):
        assert names(adm) == adm.names
    assert adm.asked[-1][-1] == "2000"


def test_room_that_is_less_just_now_does_not_grow_at_once() -> None:
    room = Room(100)
    for _ in range(SELDOM - 1):
        room.fitted()
    assert room.less() == 50
    room.fitted()
    assert room.begin() == 50


def test_pages_that_do_not_go_on() -> None:
    """They end, whatever varnishd answers."""
    adm = Made(2000)
    adm.after = False
    with pytest.raises(ToolError, match="the page after t01999 is no other"):
        names(adm)


def test_a_worker_process_that_begins_just_now() -> None:
    adm = Begins(3)
    assert names(adm) == adm.names


def test_pages_of_two_worker_processes_are_not_mixed() -> None:
    adm = Made(3000)
    adm.started = [1, 2, 2, 2]
    assert names(adm) == adm.names
    assert len(adm.asked) == 4
    adm = Made(3000)
    adm.started = list(range(100))
    with pytest.raises(NotRunning):
        names(adm)
    assert len(adm.asked) == 2 * ATTEMPTS


def test_what_cannot_be_read() -> None:
    with pytest.raises(ToolError, match=r"sandpaper\.list gave no JSON"):
        names(Made(3000, 0))
    with pytest.raises(ToolError, match=r"sandpaper\.show gave no JSON"):
        Says(0, "x").show("a")
    for nonsense in ("", "[]", "3", '[{"list": 1}]', '["x"]'):
        with pytest.raises(ToolError, match="no JSON"):
            names(Says(0, nonsense))


def test_what_varnishd_refuses_is_told_apart() -> None:
    adm = Says(1, "Tenant x is\nnot known", "Command failed with error code 1")
    with pytest.raises(Refused, match=r"^Tenant x is not known$"):
        adm.show("x")
    with pytest.raises(ToolError, match="^no answer from varnishd: gone$"):
        Says(2, "", "gone\n").show("x")


def test_an_older_varnishd_is_named() -> None:
    adm = Says(1, '"-t" is no option: use -j first, then -a, -c, -f or -s',
               "Command failed with error code 106")
    with pytest.raises(ToolError, match="this varnishd is older"):
        names(adm)


def test_after_a_look_that_fails_there_is_no_rest() -> None:
    adm = Made(3000)
    names(adm)
    assert adm.rest_s > 0
    adm.most = 0
    with pytest.raises(ToolError, match="no JSON"):
        names(adm)
    assert adm.rest_s == 0


def test_the_reasons_are_below_the_fields() -> None:
    adm = Says(0, "tenant   x\nweight   1\n\nin the last   1 s\ncpu_part   0\n"
               "\nIt waits long.\nAdd cores.\n\n")
    assert adm.explain("x") == ["It waits long.", "Add cores."]
    assert Says(0, "tenant   x\nweight   1\n").explain("x") == []


def test_words_are_quoted_for_the_cli() -> None:
    assert quoted("") == '""'
    assert quoted('a"b \\é\udcff') == (
        r'"a\x22b\x20\x5c\xc3\xa9\xff"')
