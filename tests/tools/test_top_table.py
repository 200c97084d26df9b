# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top: rates, the table, what is sorted and left out, the speed."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sandpaper_top import ASCII, UNICODE, Choices, is_utf8, picture, plain
from sandpaper_top.poller import pause
from sandpaper_top.rates import HISTORY, History, Rates, quantile
from sandpaper_top.table import (
    COLUMNS,
    NAME,
    Column,
    duration,
    fold,
    number,
    percent,
    sorted_rows,
)
from sandpaper_top.terminal import Glyphs, Live
from sandpaper_top.view import View
from top_samples import BOUNDS, answer, between, many, row, tenant

REDRAW = 0.1  # seconds, at most
TENANTS = 10_000


def two(requests: float, cpu_s: float, octets: float = 0) -> list[dict]:
    """Return two tenants; a has three quarters of the CPU time."""
    return [tenant("a", requests * 0.75, cpu_s * 0.75, octets * 0.25),
            tenant("b", requests * 0.25, cpu_s * 0.25, octets * 0.75)]


# Rates

def test_rates_are_of_the_interval() -> None:
    sample = between(answer(*two(100, 1)), answer(*two(300, 2)), 2.0)
    a, b = sample.rows
    assert (a.rps, b.rps, a.cpu) == (75, 25, 0.375)
    assert (sample.busiest, a.used, a.wait_s) == ("cpu", 0.75, 0.25)
    assert BOUNDS[9] < a.p99_s <= BOUNDS[10]


def test_a_full_net_is_the_busiest() -> None:
    sample = between(answer(*two(100, 1)), answer(*two(200, 2, 950)))
    assert (sample.busiest, sample.rows[0].used) == ("net", 0.25)


def test_a_group_does_not_count_twice() -> None:
    def said(n: float) -> dict:
        return answer(tenant("a", n, n, group="(g)"), tenant("b", n, n),
                      tenant("(g)", n, n, members=1))

    sample = between(said(1), said(2))
    assert sample.cpu == 2
    assert [r.used for r in sample.rows] == [0.5, 0.5, 0.5]


def test_what_began_again_counts() -> None:
    """A tenant, and the worker process."""
    old, new = answer(*two(1000, 10)), answer(*two(40, 1))
    assert between(old, new).rows[0].rps == 30
    larger = answer(*two(1200, 12), started=2000)
    assert between(old, larger).rows[0].rps == 900


def test_quantiles_are_linear_in_a_bucket() -> None:
    assert quantile([0, 100, 0], [1, 2], 0.5) == 1.5
    assert quantile([50, 50, 0], [1, 2], 0.5) == 1
    assert quantile([0, 0, 9], [1, 2], 0.99) == 2  # longer than all bounds
    assert quantile([0, 0, 0], [1, 2], 0.99) == 0


def test_a_history_is_bounded_and_stands_still() -> None:
    made = History()
    for n in range(3 * HISTORY):
        looks = made.add(n, 0, -n, 0)
    assert looks == 3 * HISTORY
    assert made.last("rps", 2, looks) == [looks - 2, looks - 1]
    assert made.last("waiting", 1, looks) == [1 - looks]
    assert made.last("rps", 2, looks - 10) == [looks - 12, looks - 11]
    assert len(made.last("rps", 10_000, looks)) == HISTORY
    assert made.last("rps", 5, 5) == []
    assert len(made._values) <= 1.25 * HISTORY * 4 + 4


def test_an_idle_tenant_has_no_history() -> None:
    idle = between(answer(*two(0, 0)), answer(*two(0, 0))).rows[0]
    assert (idle.history, idle.used, idle.past("rps", 9)) == (None, None, [])


def test_many_tenants_are_asked_for_less_often() -> None:
    assert pause(None, 0.2) == 1
    assert pause(None, 5) == 5
    assert pause(0.2, 5) == 0.2


# The table

def test_figures_are_short() -> None:
    assert [percent(p) for p in (None, 0, 0.0004, 0.004, 0.014, 1)] == [
        "-", "0 %", "0.0 %", "0.4 %", "1 %", "100 %"]
    assert [number(n) for n in (0, 0.31, 9.5, 42, 12345, 1.25e6)] == [
        "0", "0.3", "9.5", "42", "12.3k", "1.2M"]
    assert [duration(s) for s in (0, 0.0042, 0.5, 0.9996, 9.96)] == [
        "0.0 ms", "4.2 ms", "500 ms", "1.0 s", "10 s"]


def test_a_closed_group_is_one_row() -> None:
    rows = [row("shop"), row("x", "(new)"), row("(new)", members=1),
            row("y", "(g)"), row("(g)", members=1)]

    def names(groups: str) -> list[str]:
        return [r.name for r in fold(rows, groups)]

    assert names("new") == ["shop", "(new)", "y", "(g)"]
    assert names("all") == ["shop", "(new)", "(g)"]
    assert len(names("open")) == 5


@pytest.mark.parametrize("column", [NAME, *COLUMNS], ids=lambda c: c.title)
def test_each_column_sorts_in_both_directions(column: Column) -> None:
    low = row("a", "a", rps=1, used=0.1, weight=1, waiting=1, running=1,
              wait_s=1, p99_s=1, refused=1, cpu=1, bits=1)
    high = row("b", "b", rps=2, used=0.2, weight=2, waiting=2, running=2,
               wait_s=2, p99_s=2, refused=2, cpu=2, bits=2)
    choices = Choices(sort="none")
    found = []
    for _ in range(3):
        choices.sort_by(column.key)
        found.append([r.name for r in sorted_rows([low, high], choices)])
    first = ["a", "b"] if column.words else ["b", "a"]
    assert found == [first, first[::-1], first]


@pytest.mark.parametrize(("text", "names"), [
    ("shop", ["my-shop", "shop"]), ("SHOP*", ["shop"]), ("*o[gp]", [
        "blog", "my-shop", "shop"]), ("?", []), ("(", ["(new)"]),
    ("", ["(new)", "blog", "my-shop", "shop"])])
def test_a_filter(text: str, names: list[str]) -> None:
    rows = [row(n) for n in ("shop", "my-shop", "blog", "(new)")]
    choices = Choices(sort="n", filter=text)
    assert [r.name for r in sorted_rows(rows, choices)] == names


def test_the_chosen_row_stays_chosen_and_seen() -> None:
    sample = many(100, 1)
    choices = Choices(sort="n")

    def lines() -> str:
        return plain(picture(sample, choices, ASCII, 80, 24))

    lines()
    choices.move(1)
    assert choices.chosen == "tenant-00000.example"
    choices.move(1)
    choices.sort_by("n")  # it is the last but one now
    assert "tenant-00001" in lines()
    choices.move(-50)
    assert choices.chosen == "tenant-00051.example"
    assert "tenant-00051" in lines()
    choices.move(1000)
    assert "tenant-00000" in lines()


@pytest.mark.parametrize("g", [ASCII, UNICODE], ids=["ascii", "unicode"])
@pytest.mark.parametrize("key", [NAME.key, *(c.key for c in COLUMNS)])
def test_no_line_is_wider_than_the_terminal(g: Glyphs, key: str) -> None:
    sample = many(50, 300)
    sample.rows[0] = replace(sample.rows[0], name="x" * 100, waiting=20000,
                             group="(g)", refused=123456, wait_s=3600)
    for columns, lines in ((40, 8), (60, 10), (80, 24), (120, 40), (250, 80)):
        found = picture(sample, Choices(sort=key), g, columns, lines,
                        "a note")
        assert len(found) == lines
        above = plain(found[:-1]).split("\n")  # the keys are cut
        assert max(map(len, above)) <= columns, (columns, above)


@pytest.mark.parametrize(("key", "titles"), [
    ("u", ["req/s", "usedv"]), ("f", ["used", "refused/sv"]),
    ("n", ["req/s", "used"])])
def test_narrow_tables_keep_what_says_most(
        key: str, titles: list[str]) -> None:
    lines = picture(many(50, 9), Choices(sort=key), ASCII, 40, 10)
    title, = (t for t in plain(lines).split("\n")
              if t.startswith("tenant") and "used" in t)
    assert title.split()[1:] == titles


# What a terminal gets

def test_a_name_cannot_write_to_the_terminal() -> None:
    name = "a\x1b[2J\x9bé\u0301中\udcff"
    assert UNICODE.safe(name) == "a?[2J?é???"
    assert ASCII.safe(name) == "a?[2J?????"


def test_bars() -> None:
    assert UNICODE.spark([0, 1, 8], 4, 8) == " ▁▁█"
    assert ASCII.spark([8, 4], 1, 8) == "="
    assert UNICODE.tall([0, 1, 8, 16], 5, 2, 16) == ["    █", " ▁▁██"]


def test_the_locale_decides() -> None:
    for environment, utf8 in (
            ({"LANG": "de_DE.UTF-8"}, True), ({"LANG": "C"}, False),
            ({"LC_ALL": "C", "LANG": "C.utf8"}, False), ({}, False)):
        assert is_utf8(environment) == utf8, environment


# Ten thousand tenants

def redraw(live: Live) -> float:
    """Return the CPU time, in seconds, of a redraw."""
    live.redraw()
    start = time.thread_time()
    canvas = live.widget.render((200, 60), True)
    assert len(list(canvas.content())) == 60
    return time.thread_time() - start


def test_ten_thousand_tenants_are_drawn_in_time() -> None:
    """After each key: sorted, filtered, in a terminal of 200 x 60."""
    view = View(UNICODE, Choices(), lambda _: None, lambda: None)
    view.take(many(TENANTS, 120))
    live = Live(view.draw, view.key)
    for name in ("r", "n", "n", "u", "g", "end", "up", "/", "1", "*", "esc",
                 "enter", "esc"):
        view.key(name)
        assert min(redraw(live) for _ in range(3)) < REDRAW, name


def test_rates_of_ten_thousand_tenants() -> None:
    """Each of them had requests: so the poll is in time for the next."""
    rates = Rates()
    for look in range(3):
        said = answer(*(tenant(f"t{n}", look * n, look * n)
                        for n in range(TENANTS)))
        start = time.thread_time()
        rates.add(said, float(look))
        assert time.thread_time() - start < 1
