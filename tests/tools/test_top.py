# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top: its figures, its table, and what a bad terminal gets."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from common import TOOLS, ran
from sandpaper_bench.demo_live import top
from terminal import COLOUR, Terminal

PROGRAM = TOOLS / "sandpaper-top"

# A varnishadm that answers as long as a file `up` is beside it.  Each answer
# has 50 requests more than the last.
FAKE = """#!/bin/sh
cd "$(dirname "$0")"
[ -e up ] || { echo "Could not get hold of varnishd" >&2; exit 2; }
[ -e stock ] && [ "$5" = sandpaper.list ] &&
    { echo "Command failed with error code 101 Unknown request." >&2; exit 1; }
[ -e stock ] && { echo "Child in state running"; exit 0; }
echo x >>count
n=$(wc -l <count)
for last; do :; done
end='}]}'
[ -e cut ] && [ "$last" -gt "$(cat cut)" ] && end=
printf '[2, ["sandpaper.list", "-j"], 1.0, {"mode": "on", "policy": "mr3-rs",'
printf '"slots": 10, "running": 1, "waiting": 2, "tenants": 1,'
printf '"nic_rate_bps": 0, "nic_closed_s": 0, "list": [{"tenant": "shop.example",'
printf '"weight": 2, "waiting": 2, "running": 1, "completed": %s,' $((n * 50))
printf '"refused": 0, "shed": 0, "cpu_s": %s, "bytes": 0, "wait_s": 0' $n
printf "$end]\\n"
"""


def answer(requests: float, cpu_s: float, octets: float = 0,
           **more: Any) -> dict[str, Any]:
    """Return what sandpaper.list says of two tenants."""
    def tenant(name: str, part: float) -> dict[str, Any]:
        return {"tenant": name, "weight": 1, "waiting": 0, "running": 0,
                "completed": requests * part, "refused": 0, "shed": 0,
                "cpu_s": cpu_s * part, "bytes": octets * (1 - part),
                "wait_s": requests * part * 0.25}

    return {"mode": "on", "policy": "mr3-rs", "slots": 10, "running": 0,
            "waiting": 0, "tenants": 2, "nic_rate_bps": 8000,
            "nic_closed_s": 0, "list": [tenant("a", 0.75), tenant("b", 0.25)],
            **more}


# Rates, and what the table makes of them.

def test_the_first_answer_is_no_sample() -> None:
    assert top.Rates().add(answer(1, 1), 1.0) is None


def test_rates_are_of_the_interval() -> None:
    rates = top.Rates()
    rates.add(answer(100, 1), 10.0)
    sample = rates.add(answer(300, 2), 12.0)
    a, b = sample.rows
    assert (a.rps, b.rps) == (75, 25)
    assert (sample.busiest, a.used, a.wait_s) == ("cpu", 0.75, 0.25)


def test_a_full_link_is_the_busiest() -> None:
    rates = top.Rates()
    rates.add(answer(100, 1), 0.0)
    sample = rates.add(answer(200, 2, octets=950), 1.0)
    assert (sample.busiest, sample.rows[0].used) == ("net", 0.25)


def test_counters_that_begin_again_count() -> None:
    rates = top.Rates()
    rates.add(answer(1000, 10), 0.0)
    assert rates.add(answer(40, 1), 1.0).rows[0].rps == 30


def test_new_hosts_are_one_row() -> None:
    def row(name: str, group: str) -> Any:
        return top.Row(name, group, 1, 5, 0.1, 0, 0, 1, 0, 0.5, 0)

    rows = [row("shop", ""), row("x", "(new)"), row("y", "(new)")]
    found = top.fold(rows)
    assert [(r.name, r.rps, r.wait_s) for r in found] == [
        ("shop", 5, 0.5), ("(new): 2 Hosts", 10, 0.5)]
    whole = [*rows, row("(new)", "")]
    assert [r.name for r in top.fold(whole)] == ["shop", "(new)"]


def test_a_name_cannot_write_to_the_terminal() -> None:
    name = "a\x1b[2J\x9bé"
    assert top.UNICODE.safe(name) == "a?[2J?é"
    assert top.ASCII.safe(name) == "a?[2J??"


def test_bars() -> None:
    assert top.UNICODE.spark([0, 1, 8], 4, 8) == " ▁▁█"
    assert top.ASCII.spark([8, 4], 1, 8) == "="


def test_the_locale_decides() -> None:
    for environment, utf8 in (
            ({"LANG": "de_DE.UTF-8"}, True), ({"LANG": "C"}, False),
            ({"LC_ALL": "C", "LANG": "C.utf8"}, False), ({}, False)):
        assert top.is_utf8(environment) == utf8, environment


def test_no_line_is_wider_than_the_terminal() -> None:
    rates = top.Rates()
    rates.add(answer(100, 1), 0.0)
    sample = rates.add(answer(200, 2), 1.0)
    for columns, lines in ((70, 8), (80, 24), (200, 50)):
        found = top.picture(sample, top.Choices(), top.ASCII, columns, lines)
        assert len(found) == lines
        table = found[3:-1]
        assert max(map(len, top.plain(table).split("\n"))) <= columns


# The program, with a varnishadm that is made up.

class View(ExitStack):
    """What the program shows in a terminal or without one."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        fake = folder / "varnishadm"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        (folder / "up").touch()
        self.command = [str(PROGRAM), "--varnishadm", str(fake),
                        "--interval", "0.1", "-n", "x"]

    def run(self, *more: str, status: int = 0
            ) -> subprocess.CompletedProcess[str]:
        return ran(*self.command, *more, status=status)

    def terminal(self, **more: Any) -> Terminal:  # noqa: ANN401
        found = Terminal(self.command, **more)
        self.callback(found.close)
        return found


@pytest.fixture
def view(folder: Path) -> Iterator[View]:
    with View(folder) as made:
        yield made


def test_without_a_terminal_it_prints_a_table(view: View) -> None:
    done = view.run()
    assert re.search(r"shop.example +\d+ +100 % +2 ", done.stdout)
    assert "\x1b" not in done.stdout


def test_json(view: View) -> None:
    done = view.run("--json", "--once")
    found = json.loads(done.stdout)
    assert found["rows"][0]["name"] == "shop.example"
    assert found["rows"][0]["rps"] > 0


def test_an_answer_that_is_cut_is_asked_for_with_fewer_rows(
        view: View) -> None:
    (view.folder / "cut").write_text("30")
    view.run("--once")
    (view.folder / "cut").write_text("0")
    done = view.run("--once", status=1)
    assert done.stderr == "sandpaper-top: sandpaper.list gave no JSON\n"


def test_what_cannot_be_asked_is_one_line(view: View) -> None:
    (view.folder / "stock").touch()
    done = view.run(status=1)
    assert re.search(r"^sandpaper-top: .* not Sandpaper's\n$", done.stderr)
    (view.folder / "up").unlink()
    done = view.run(status=1)
    assert re.search(r"^sandpaper-top: no answer .*\n$", done.stderr)
    for wrong in (["--interval", "0"], ["-T", "x:1"], ["--bogus"]):
        done = view.run(*wrong, status=2)
        assert re.search(r"^sandpaper-top: .*\n$", done.stderr)


def test_live(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example .*[▁▂▃▄▅▆▇█]")
    t.type("n")
    t.type("q")
    assert t.end() == 0


def test_varnishd_that_goes_ends_the_view(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example")
    (view.folder / "up").unlink()
    assert t.end() == 1
    assert ("sandpaper-top: no answer from varnishd: Could not get "
            "hold of varnishd") in t.text


def test_bad_terminals(view: View) -> None:
    t = view.terminal(columns=20, lines=5)
    t.expect("too small")
    t.type("q")
    assert t.end() == 0
    t = view.terminal(LC_ALL="C")
    t.expect("shop.example .*[_.:=+*#@-]")
    t.type("q")
    t.end()
    assert t.raw.isascii(), t.raw
    for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        t = view.terminal(**environment)
        t.expect("shop.example")
        t.type("q")
        assert t.end() == 0
        assert bool(COLOUR.search(t.raw)) == coloured, environment
    t = view.terminal(TERM="dumb")
    assert t.end() == 0
    assert "\x1b" not in t.raw


def test_ctrl_c(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example")
    t.type("\x03")
    assert t.end() == 130
