# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top as a program: what it prints, and what a bad terminal gets.

The varnishadm is made up: it goes away, is not Sandpaper's, or cuts answers.
test_top_live.py asks a real varnishd.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from common import TOOLS, ran
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
[ "$5" = sandpaper.show ] &&
    { echo "Command failed with error code 106" >&2
      echo "Tenant \\"shop.example\\" is not known"; exit 1; }
[ -p hold ] && cat hold
echo x >>count
n=$(wc -l <count)
for last; do :; done
end='], "cost_s": 0}'
[ -e cut ] && [ "$last" -gt "$(cat cut)" ] && end=
printf '[2, ["sandpaper.list", "-j"], 1.0, {"mode": "on", "policy": "mr3-rs",'
printf '"slots": 10, "running": 1, "waiting": 2, "tenants": 1,'
printf '"started": 1, "sums": {"cpu_s": %s, "bytes": 0},' $n
printf '"nic_rate_bps": 0, "nic_closed_s": 0, "keys": ["tenant", "weight",'
printf '"waiting", "running", "completed", "refused", "shed", "cpu_s",'
printf '"bytes", "wait_s"], "list": [["shop.example", 2, 2, 1,'
printf '%s, 0, 0, %s, 0, 0]' $((n * 50)) $n
printf "$end]\\n"
"""


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

    def terminal(self, *more: str, **given: Any  # noqa: ANN401
                 ) -> Terminal:
        found = Terminal([*self.command, *more], **given)
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


def test_a_filter_is_for_what_is_printed_too(view: View) -> None:
    assert "shop.example" in view.run("--filter", "SHOP*").stdout
    done = view.run("--filter", "shop?", "--once")
    assert "shop.example" not in done.stdout
    assert "0 of 1 match shop?" in done.stdout
    found = json.loads(view.run("--filter", "y", "--json", "--once").stdout)
    assert found["rows"] == []


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
    for wrong in (["--interval", "0"], ["-T", "x:1"], ["--bogus"],
                  ["--sort", "colour"]):
        done = view.run(*wrong, status=2)
        assert re.search(r"^sandpaper-top: .*\n$", done.stderr)


def test_live(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example .*[▁▂▃▄▅▆▇█]")
    t.type("n")
    t.expect("tenant▲")
    t.type("q")
    assert t.end() == 0


def test_an_answer_that_does_not_come_delays_no_key(view: View) -> None:
    hold = view.folder / "hold"
    t = view.terminal()
    t.expect("shop.example")
    asked = (view.folder / "count").stat().st_size
    os.mkfifo(hold)
    with hold.open("w"):  # varnishadm waits for the end of it
        for key, title in ("n", "tenant▲"), ("r", "req/s▼"), ("h", "freeze"):
            t.type(key)
            t.expect(title)
        t.type("qq")
        assert t.end() == 0
        hold.unlink()
    assert (view.folder / "count").stat().st_size <= asked + 2


def test_a_tenant_that_is_gone(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example")
    t.type("\r")
    t.expect("is not known")
    t.type("\x1b")
    t.expect("weight")
    t.type("q")
    assert t.end() == 0


def test_varnishd_that_goes_ends_the_view(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example")
    (view.folder / "up").unlink()
    assert t.end() == 1
    assert ("sandpaper-top: no answer from varnishd: Could not get "
            "hold of varnishd") in t.text


def test_small_terminals(view: View) -> None:
    t = view.terminal(columns=20, lines=5)
    t.expect("too small")
    t.type("q")
    assert t.end() == 0
    t = view.terminal(columns=40, lines=10)
    t.expect("shop.example +\\d+ +100 % +2")
    t.type("q")
    assert t.end() == 0


def test_bad_terminals(view: View) -> None:
    t = view.terminal(LC_ALL="C")
    t.expect("shop.example .*[_.:=+*#@-]")
    t.type("q")
    t.end()
    assert t.raw.isascii(), t.raw
    t = view.terminal(TERM="dumb")
    assert t.end() == 0
    assert "\x1b" not in t.raw


@pytest.mark.parametrize(("options", "environment", "coloured"), [
    ((), {}, True), ((), {"NO_COLOR": ""}, True),
    ((), {"NO_COLOR": "1"}, False), (("--no-color",), {}, False)])
def test_colours(view: View, options: tuple[str, ...],
                 environment: dict[str, str], coloured: bool) -> None:
    t = view.terminal(*options, **environment)
    t.expect("shop.example")
    t.type("\r")  # the page, too
    t.expect("is not known")
    t.type("q")
    assert t.end() == 0
    assert bool(COLOUR.search(t.raw)) == coloured


def test_ctrl_c(view: View) -> None:
    t = view.terminal()
    t.expect("shop.example")
    t.type("\x03")
    assert t.end() == 130
