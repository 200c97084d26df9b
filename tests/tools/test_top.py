# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-top: its figures, its table, and what a bad terminal gets."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

from terminal import COLOUR, Terminal

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

from sandpaper_bench.demo_live import top

PROGRAM = TOP / "tools" / "sandpaper-top"

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
printf '"nic_rate_bps": 0, "nic_held_s": 0, "list": [{"tenant": "shop.example",'
printf '"weight": 2, "waiting": 2, "running": 1, "requests": %s,' $((n * 50))
printf '"refused": 0, "shed": 0, "cpu_s": %s, "bytes": 0, "waited_s": 0' $n
printf "$end]\\n"
"""


def answer(requests: float, cpu_s: float, octets: float = 0,
           **more: Any) -> dict[str, Any]:
    """Return what sandpaper.list says of two tenants."""
    def tenant(name: str, part: float) -> dict[str, Any]:
        return {"tenant": name, "weight": 1, "waiting": 0, "running": 0,
                "requests": requests * part, "refused": 0, "shed": 0,
                "cpu_s": cpu_s * part, "bytes": octets * (1 - part),
                "waited_s": requests * part * 0.25}

    return {"mode": "on", "policy": "mr3-rs", "slots": 10, "running": 0,
            "waiting": 0, "tenants": 2, "nic_rate_bps": 8000,
            "nic_held_s": 0, "list": [tenant("a", 0.75), tenant("b", 0.25)],
            **more}


class Figures(unittest.TestCase):
    """Rates, and what the table makes of them."""

    def test_the_first_answer_is_no_sample(self) -> None:
        self.assertIsNone(top.Rates().add(answer(1, 1), 1.0))

    def test_rates_are_of_the_interval(self) -> None:
        rates = top.Rates()
        rates.add(answer(100, 1), 10.0)
        sample = rates.add(answer(300, 2), 12.0)
        a, b = sample.rows
        self.assertEqual((a.rps, b.rps), (75, 25))
        self.assertEqual((sample.busiest, a.used, a.wait_s),
                         ("cpu", 0.75, 0.25))

    def test_a_full_link_is_the_busiest(self) -> None:
        rates = top.Rates()
        rates.add(answer(100, 1), 0.0)
        sample = rates.add(answer(200, 2, octets=950), 1.0)
        self.assertEqual((sample.busiest, sample.rows[0].used),
                         ("net", 0.25))

    def test_counters_that_begin_again_count(self) -> None:
        rates = top.Rates()
        rates.add(answer(1000, 10), 0.0)
        self.assertEqual(rates.add(answer(40, 1), 1.0).rows[0].rps, 30)

    def test_new_hosts_are_one_row(self) -> None:
        def row(name: str, group: str) -> Any:
            return top.Row(name, group, 1, 5, 0.1, 0, 0, 1, 0, 0.5, 0)

        rows = [row("shop", ""), row("x", "(new)"), row("y", "(new)")]
        found = top.fold(rows)
        self.assertEqual([(r.name, r.rps, r.wait_s) for r in found],
                         [("shop", 5, 0.5), ("(new): 2 Hosts", 10, 0.5)])
        whole = [*rows, row("(new)", "")]
        self.assertEqual([r.name for r in top.fold(whole)],
                         ["shop", "(new)"])

    def test_a_name_cannot_write_to_the_terminal(self) -> None:
        name = "a\x1b[2J\x9bé"
        self.assertEqual(top.UNICODE.safe(name), "a?[2J?é")
        self.assertEqual(top.ASCII.safe(name), "a?[2J??")

    def test_bars(self) -> None:
        self.assertEqual(top.UNICODE.spark([0, 1, 8], 4, 8), " ▁▁█")
        self.assertEqual(top.ASCII.spark([8, 4], 1, 8), "=")

    def test_the_locale_decides(self) -> None:
        for environment, utf8 in (
                ({"LANG": "de_DE.UTF-8"}, True), ({"LANG": "C"}, False),
                ({"LC_ALL": "C", "LANG": "C.utf8"}, False), ({}, False)):
            self.assertEqual(top.is_utf8(environment), utf8, environment)

    def test_no_line_is_wider_than_the_terminal(self) -> None:
        rates = top.Rates()
        rates.add(answer(100, 1), 0.0)
        sample = rates.add(answer(200, 2), 1.0)
        for columns, lines in ((70, 8), (80, 24), (200, 50)):
            found = top.picture(sample, top.Choices(), top.ASCII, columns,
                                lines)
            self.assertEqual(len(found), lines)
            table = found[3:-1]
            self.assertLessEqual(
                max(len(text) for text in top.plain(table).split("\n")),
                columns)


class Program(unittest.TestCase):
    """The program, with a varnishadm that is made up."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        fake = self.folder / "varnishadm"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        (self.folder / "up").touch()
        self.command = [str(PROGRAM), "--varnishadm", str(fake),
                        "--interval", "0.1", "-n", "x"]

    def run_it(self, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *more], capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL, timeout=60)

    def terminal(self, **more: Any) -> Terminal:
        found = Terminal(self.command, **more)
        self.addCleanup(found.close)
        return found

    def test_without_a_terminal_it_prints_a_table(self) -> None:
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"shop.example +\d+ +100 % +2 ")
        self.assertNotIn("\x1b", done.stdout)

    def test_json(self) -> None:
        done = self.run_it("--json", "--once")
        found = json.loads(done.stdout)
        self.assertEqual(found["rows"][0]["name"], "shop.example")
        self.assertGreater(found["rows"][0]["rps"], 0)

    def test_an_answer_that_is_cut_is_asked_for_with_fewer_rows(self) -> None:
        (self.folder / "cut").write_text("30")
        self.assertEqual(self.run_it("--once").returncode, 0)
        (self.folder / "cut").write_text("0")
        done = self.run_it("--once")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "sandpaper-top: sandpaper.list gave no JSON\n"))

    def test_what_cannot_be_asked_is_one_line(self) -> None:
        (self.folder / "stock").touch()
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^sandpaper-top: .* not Sandpaper's\n$")
        (self.folder / "up").unlink()
        done = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^sandpaper-top: no answer .*\n$")
        for wrong in (["--interval", "0"], ["-T", "x:1"], ["--bogus"]):
            done = self.run_it(*wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertRegex(done.stderr, r"^sandpaper-top: .*\n$")

    def test_live(self) -> None:
        t = self.terminal()
        t.expect("shop.example .*[▁▂▃▄▅▆▇█]")
        t.type("n")
        t.type("q")
        self.assertEqual(t.end(), 0)

    def test_varnishd_that_goes_ends_the_view(self) -> None:
        t = self.terminal()
        t.expect("shop.example")
        (self.folder / "up").unlink()
        self.assertEqual(t.end(), 1)
        self.assertIn("sandpaper-top: no answer from varnishd: Could not get "
                      "hold of varnishd", t.text)

    def test_bad_terminals(self) -> None:
        t = self.terminal(columns=20, lines=5)
        t.expect("too small")
        t.type("q")
        self.assertEqual(t.end(), 0)
        t = self.terminal(LC_ALL="C")
        t.expect("shop.example .*[_.:=+*#@-]")
        t.type("q")
        t.end()
        self.assertTrue(t.raw.isascii(), t.raw)
        for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            t = self.terminal(**environment)
            t.expect("shop.example")
            t.type("q")
            self.assertEqual(t.end(), 0)
            self.assertEqual(bool(COLOUR.search(t.raw)), coloured,
                             environment)
        t = self.terminal(TERM="dumb")
        self.assertEqual(t.end(), 0)
        self.assertNotIn("\x1b", t.raw)

    def test_ctrl_c(self) -> None:
        t = self.terminal()
        t.expect("shop.example")
        t.type("\x03")
        self.assertEqual(t.end(), 130)


if __name__ == "__main__":
    unittest.main()
