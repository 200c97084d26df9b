# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top: what its keys do: filter, freeze, a tenant's page, help."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sandpaper_top import ASCII, UNICODE, Choices, plain
from sandpaper_top.page import Details
from sandpaper_top.rates import History, Sample
from sandpaper_top.table import COLUMNS, NAME
from sandpaper_top.terminal import Line
from sandpaper_top.view import KEYS, View
from top_samples import many, row

LAST = [{"s": s, "completed_per_s": 10.0 * s, "cpu_part": 0.25,
         "refused_full_per_s": 0.0, "refused_late_per_s": 0.5,
         "wait_p99_s": 0.004} for s in (1, 10, 60)]
SHOP = Details("shop", {"tenant": "shop", "weight": 2, "oldest_wait_s": 0.125,
                        "mapped": True, "group": "(gold)", "last": LAST},
               ["The tenant waits for a slot. " * 9, "More cores would help."])


class Left(Exception):
    """The view was left."""


class Keys:
    """A view, and what it asks for."""

    def __init__(self) -> None:
        self.wanted: list[str | None] = []
        self.view = View(ASCII, Choices(sort="n"), self.wanted.append,
                         self.leave)
        self.sample("shop", "blog", "my-shop")

    @staticmethod
    def leave() -> None:
        raise Left

    def sample(self, *names: str, rps: float = 5.0) -> Sample:
        """Take a sample of these tenants."""
        made = replace(many(0, 0), rows=[row(n, rps=rps) for n in names])
        self.view.take(made)
        return made

    def __call__(self, *names: str) -> str:
        """Press keys; return what is shown after each is drawn."""
        for name in names:
            self.view.key(name)
            self.view.draw(100, 40)
        return self.text()

    def text(self, columns: int = 100, lines: int = 40) -> str:
        """Return what is shown."""
        return plain(self.view.draw(columns, lines))


@pytest.fixture
def keys() -> Keys:
    made = Keys()
    made.text()
    return made


def names_of(text: str) -> list[str]:
    """Return the names of the table."""
    return [word for line in text.split("\n") for word in line.split()[:1]
            if word in ("shop", "blog", "my-shop")]


def styles(lines: list[Line], style: str) -> str:
    """Return the text of this style."""
    return "".join(text for line in lines for s, text in line if s == style)


def test_a_filter_is_typed(keys: Keys) -> None:
    assert names_of(keys("/", "s", "h")) == ["my-shop", "shop"]
    assert "/sh_" in keys.text()
    assert names_of(keys("backspace", "backspace", "s", "*")) == ["shop"]
    assert "/s*_" not in keys("enter")
    assert names_of(keys.text()) == ["shop"]
    assert names_of(keys("esc")) == ["blog", "my-shop", "shop"]
    assert names_of(keys("/", "q", "h", " ")) == []  # no keys while one types
    assert len(names_of(keys("esc"))) == 3


def test_it_ends_with_q_and_esc(keys: Keys) -> None:
    for name in ("q", "Q", "esc"):
        with pytest.raises(Left):
            keys(name)
    keys("enter")
    with pytest.raises(Left):
        keys("q")


def test_frozen_figures_stand_still(keys: Keys) -> None:
    keys.sample("shop", rps=11)
    assert "frozen at 12:00:00" in keys(" ")
    keys.sample("shop", rps=222)
    assert " 11 " in keys.text() and " 222 " not in keys.text()
    text = keys(" ")
    assert " 222 " in text and "frozen" not in text


def test_frozen_bars_stand_still(keys: Keys) -> None:
    made = row("shop")
    made.history = History()
    made.until = made.history.add(10, 0, 0, 0)
    keys.view.take(replace(many(0, 0), rows=[made]))
    before = keys(" ")
    later = replace(made, until=made.history.add(99, 0, 0, 0))
    keys.view.take(replace(many(0, 0), rows=[later]))
    assert keys.text() == before
    assert keys(" ") != before


def test_a_page_is_frozen_too(keys: Keys) -> None:
    keys("n", "enter", " ")
    assert keys.wanted == ["shop"]
    keys.view.take(SHOP)  # the first is shown
    assert "oldest_wait_s" in keys.text()
    keys.view.take(Details("shop", {"weight": 77}))
    assert "77" not in keys.text()
    assert "77" in keys(" ")


def test_the_page_of_a_tenant(keys: Keys) -> None:
    text = keys("down", "down", "down", "enter")
    assert keys.wanted == ["shop"]
    assert text.startswith("shop") and "come in a moment" in text
    keys.view.take(Details("blog", {"weight": 777}))  # asked for before
    assert "777" not in keys.text()
    keys.view.take(SHOP)
    text = keys.text()
    for wanted in (r"^shop   of the group \(gold\)$", "^The tenant waits for",
                   r"^More cores would help\.$", "^the last +1 s +10 s +60 s$",
                   "^completed_per_s +10 +100 +600$",
                   "^cpu_part +25 % +25 % +25 %$",
                   "^refused_late_per_s +0.5 +0.5 +0.5$",
                   "^wait_p99_s +4.0 ms +4.0 ms +4.0 ms$",
                   "^req/s +now 5.0 ", "^wait p99 +now ",
                   "^weight +2 +mapped +true$", "^oldest_wait_s +0.125 "):
        assert re.search(wanted, text, re.MULTILINE), (wanted, text)
    assert "refused_full" not in text  # there were none
    assert names_of(keys("esc")) == ["blog", "my-shop", "shop"]
    assert keys.wanted == ["shop", None]


def test_left_and_right_go_to_other_tenants(keys: Keys) -> None:
    keys("down", "enter", "right", "right", "right", "left")
    assert keys.wanted == ["blog", "my-shop", "shop", "shop", "my-shop"]
    assert keys.view.choices.chosen == "my-shop"


def test_a_tenant_that_is_not_known(keys: Keys) -> None:
    keys("enter")
    keys.view.take(Details("blog", error="Tenant blog is not known"))
    assert "Tenant blog is not known" in keys.text()


def test_pages_fit_in_each_terminal(keys: Keys) -> None:
    keys("n", "enter")
    keys.view.take(SHOP)
    seen = set()
    for columns, lines in ((40, 8), (80, 24), (250, 80)):
        for _ in range(100):
            found = keys.view.draw(columns, lines)
            assert len(found) == lines
            assert max(map(len, plain(found).split("\n"))) <= columns
            seen.add((columns, plain(found[:1])))
            keys.view.key("down")
        assert "oldest_wait_s" in plain(found)  # the last lines are reached
        keys.view.key("home")
    assert len(seen) > 20


def test_the_chosen_row_is_marked(keys: Keys) -> None:
    assert styles(keys.view.draw(80, 24), "chosen") == ""
    keys("down", "down")
    assert styles(keys.view.draw(80, 24), "chosen").startswith("my-shop")
    keys("home")
    assert styles(keys.view.draw(80, 24), "chosen") == ""


def test_the_help_has_all_keys(keys: Keys) -> None:
    text = keys("h")
    for key in (*(k for k, _ in KEYS), *(c.key for c in (NAME, *COLUMNS))):
        assert f"\n{key} " in f"\n{text}", key
    assert "who fills the queue" in text
    keys("x")  # goes back, and does nothing else
    assert keys.view.choices.sort == "n"
    assert len(names_of(keys.text())) == 3
    keys("h")
    for _ in range(50):
        keys.view.key("down")
        assert max(map(len, keys.text(40, 8).split("\n"))) <= 40
    assert "group" in keys.text(40, 8)


def test_i_shows_who_fills_the_queue() -> None:
    view = View(UNICODE, Choices(), lambda _: None, lambda: None)
    rows = [row(n, waiting=w, rps=9 - w) for n, w in (("a", 1), ("b", 3),
                                                      ("c", 2))]
    view.take(replace(many(0, 0), rows=rows))
    view.key("i")
    view.draw(100, 30)
    assert view.choices.order == ["b", "c", "a"]


def test_keys_that_come_before_a_redraw() -> None:
    wanted: list[str | None] = []
    view = View(UNICODE, Choices(), wanted.append, lambda: None)
    view.take(replace(many(0, 0), rows=[
        row("a", used=0.9, waiting=1), row("b", waiting=2), row("c")]))
    view.draw(100, 30)
    for name in ("i", "enter", "esc", "/", "c", "enter", "home", "enter"):
        view.key(name)
    assert wanted == ["b", None, "c"]
