# SPDX-License-Identifier: BSD-2-Clause
"""Figures in the pages are those of the records, and say how old they are."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from docs import figures
from report_samples import samples
from sandpaper_bench import record
from sandpaper_bench.experiments import EXPERIMENTS
from sandpaper_bench.figures import SINGLE, TABLES, Figures
from sandpaper_bench.markdown import IS_OLD, NOT_YET, OLD
from sandpaper_bench.pedigree import MOVES, History

TOP = Path(__file__).resolve().parents[2]
BLOCK = "<!-- figures: scale -->\n<!-- end -->\n"
TYPED = "| what | figure |\n| --- | --- |\n| 7.7 | %s |\n"


def records(invalid: str = "") -> dict[str, Any]:
    """Return a record of each experiment."""
    found: dict[str, Any] = samples(invalid)
    for r in found.values():
        r |= {"commit": "abc1234", "dirty": False, "date": "2026-01-02",
              "command": f"bench/sandpaper-bench {r['experiment']} --quick"}
    found["tests"] = [{
        "what": "all", "command": "make check-all", "commit": "abc1234",
        "dirty": False,
        "date": "2026-01-02", "result": "2 passed"}]
    return found


class Names(unittest.TestCase):
    """A record has the name of what measured it."""

    def test_no_program_overwrites_the_record_of_an_experiment(self) -> None:
        programs = {path.name.removeprefix("record-")
                    for path in (TOP / "bench").glob("record-*")}
        self.assertEqual(programs & set(EXPERIMENTS), set())


class Tables(unittest.TestCase):
    """Each table renders whatever was measured."""

    def rendered(self, words: str, **more: Any) -> str:
        found = Figures(records() | more, lambda _: False)
        return found.render(words)

    def test_each_has_stock_sandpaper_and_a_control(self) -> None:
        for words in ("pairs", "overhead", "scale", "change content-change",
                      "change flash-crowd", "latency", "abuse",
                      "pairs rate-wrong"):
            text = self.rendered(words)
            with self.subTest(words):
                self.assertNotIn(NOT_YET.capitalize() + ": `bench", text)
                for wanted in ("stock", "control", "goal", "abc1234",
                               "4 cores", "Linux 6.1", "seed 1", "--quick"):
                    self.assertIn(wanted.lower(), text.lower())

    def test_its_rows(self) -> None:
        self.assertIn("| C1 and C3 | 0.56 (0.56 to 0.56) |",
                      self.rendered("pairs"))
        self.assertIn("| 200 | 2,000 | 1,000 |", self.rendered("scale"))
        text = self.rendered("abuse")
        self.assertIn("| random-hosts, with a map | 0.96 (0.96 to 0.96) | "
                      "0.50 |", text)
        self.assertIn(f"| blackhole | {NOT_YET} |",
                      self.rendered("abuse", blackhole=None))
        other = {"blackhole-9.0": records()["blackhole"]}
        text = self.rendered("abuse 9.0", **other)
        self.assertIn("| blackhole | 0.96 (0.96 to 0.96) | ", text)
        self.assertIn(f"| random-hosts | {NOT_YET} |", text.replace(
            ", with a map", ""))
        self.assertIn("| all | `make check-all` | abc1234 | 2026-01-02 | 2 "
                      "passed |", self.rendered("tests"))
        self.assertIn("| k0, no-op | 100 |", self.rendered("overhead"))

    def test_each_figure_of_the_readme_has_its_own_doubt(self) -> None:
        for bad in ("stock", "sandpaper"):
            found = records()["blackhole"]
            found["control"] = {
                variant: found["control"] | {"covers_one": variant != bad}
                for variant in ("stock", "sandpaper")}
            line = next(row for row in self.rendered(
                "headline", blackhole=found).splitlines()
                if "origin never answers" in row)
            _, _, stock, ours, *_ = line.split("|")
            with self.subTest(bad):
                self.assertEqual("not valid" in stock, bad == "stock", line)
                self.assertEqual("not valid" in ours, bad != "stock", line)

    def test_goals_that_are_missed(self) -> None:
        self.assertIn("| met |", self.rendered("scale"))
        for name, value in (("pairs", "ratio"),
                            ("change content-change", "of_fair")):
            found = records()
            for r in found[name.split()[-1]]["results"]:
                r[value] = 0.0
            self.assertIn("| missed |", self.rendered(name, **found))
        many = records()["scale"]
        many["results"][1]["ratio"] = 0.979
        self.assertIn("| missed |", self.rendered("scale", scale=many))
        ours = records()["slow-readers"]
        ours["results"][1]["failed"] = "kept, p99"
        self.assertIn("| kept, p99 |",
                      self.rendered("abuse", **{"slow-readers": ours}))

    def test_ten_connections_are_a_row_of_their_own(self) -> None:
        ten = records()["overhead"]
        ten["plan"]["connections"] = 10
        text = self.rendered("overhead", **{"overhead-ten": ten})
        self.assertIn("| k0, no-op | 10 |", text)
        self.assertIn("| k0, no-op | 100 |", text)

    def test_a_control_that_does_not_cover_one(self) -> None:
        text = Figures(records("pairs"), lambda _: False).render("pairs")
        self.assertIn("1.22 (1.20 to 1.23), not valid", text)
        self.assertIn("| not valid |", text)
        self.assertNotIn("| met |", text)

    def test_rounding_does_not_hide_that_it_does_not(self) -> None:
        found = records()["pairs"]
        found["control"] |= {"ratio": 0.9998, "ratio_ci": [0.9982, 0.9999],
                             "covers_one": False}
        self.assertIn("0.9998 (0.9982 to 0.9999), not valid",
                      self.rendered("pairs", pairs=found))

    def test_nothing_was_measured(self) -> None:
        nothing = Figures({}, lambda _: False)
        for name in TABLES:
            words = {"change": "change fetch"}.get(name, name)
            self.assertIn(NOT_YET, nothing.render(words).lower(), name)
        for name in SINGLE:
            words = {"abuses-missed": "abuses-missed p99"}.get(name, name)
            self.assertIn(NOT_YET, nothing.figure(words), name)

    def test_old_ones_are_marked(self) -> None:
        found = Figures(records(), lambda commit: commit == "abc1234")
        for name in ("headline", "pairs", "tests", "overhead", "abuse"):
            text = found.render(name)
            self.assertIn(f"abc1234{OLD}", text)
            self.assertEqual(text.endswith(IS_OLD), name != "headline")
        self.assertIn(OLD, found.figure("one-tenant"))


class Pages(unittest.TestCase):
    """The pages of a repository, and what is wrong with them."""

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.top = Path(tmp.name)
        (self.top / "bench" / "results").mkdir(parents=True)
        (self.top / "src").mkdir()
        (self.top / "src" / "a.c").write_text("1\n")
        self.page = self.top / "README.md"
        self.page.write_text(BLOCK)
        self.git("init", "-q")
        self.commit("first")

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.top), "-c", "user.name=a", "-c",
             "user.email=a@b.example", *words], check=True,
            capture_output=True, text=True).stdout.strip()

    def commit(self, what: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", what)
        self.head = self.git("rev-parse", "--short", "HEAD")

    def measured(self) -> None:
        """Record an experiment, as it is now."""
        record.write(records()["scale"] | {"commit": self.head},
                     folder=self.top / "bench" / "results")

    def wrong(self) -> list[str]:
        return [w.what for w in
                figures.check(self.top, ["README.md"])["README.md"]]

    def written(self) -> str:
        figures.write(self.top, ["README.md"])
        return self.page.read_text()

    def test_the_page_is_what_the_records_say(self) -> None:
        self.measured()
        self.assertEqual(self.wrong(), ["is not what bench/results/*.json "
                                        "say: make figures"])
        text = self.written()
        self.assertIn("| 200 | 2,000 |", text)
        self.assertEqual(self.wrong(), [])
        self.page.write_text(text.replace("2,000", "2,001"))
        self.assertEqual(len(self.wrong()), 1)
        self.assertEqual(self.written(), text)

    def test_a_figure_in_a_text(self) -> None:
        self.page.write_text("It has\n<!-- figure: one-tenant -->9.99\n"
                             "<!-- end --> of it.\n")
        self.measured()
        self.assertEqual(len(self.wrong()), 1)
        self.assertRegex(self.written(), r"-->0\.98 \(0\.98 to 0\.98\)<!-- e")
        self.assertEqual(self.wrong(), [])

    def test_a_typed_figure(self) -> None:
        for cell, bad in (("0.98", True), ("107 ms", True), ("5 %", True),
                          ("1.2 (1.1 to 1.3)", True), ("none", False),
                          ("12 passed", False), ("[a](b-1.2.md)", False)):
            self.page.write_text(TYPED % cell)
            self.assertEqual(bool(self.wrong()), bad, cell)
        self.page.write_text(f"```text\n{TYPED % '0.98'}```\n")
        self.assertEqual(self.wrong(), [])

    def test_marks_that_are_wrong(self) -> None:
        self.page.write_text("<!-- figures: none -->\n<!-- end -->\n")
        self.assertIn("no figure 'none'", self.wrong()[0])
        self.page.write_text("<!-- figures: scale -->\n")
        self.assertIn("has no <!-- end -->", self.wrong()[0])

    def test_an_old_commit_is_marked_when_code_has_changed(self) -> None:
        self.measured()
        old = self.head
        self.assertNotIn(OLD, self.written())
        self.commit("results and text alone do not make a figure old")
        self.assertEqual(self.wrong(), [])
        (self.top / "src" / "a.c").write_text("2\n")
        self.assertEqual(len(self.wrong()), 1)
        text = self.written()
        self.assertIn(f"commit {old}{OLD}", text)
        self.assertIn(IS_OLD, text)
        self.commit("the mark goes into the same commit")
        self.assertEqual(self.wrong(), [])
        self.measured()
        self.assertNotIn(OLD, self.written())

    def test_without_history_marks_stay_as_they_are(self) -> None:
        self.measured()
        (self.top / "src" / "a.c").write_text("2\n")
        old = self.written()
        self.commit("old")
        shallow = self.top / "shallow"
        self.git("clone", "-q", "--depth", "1", f"file://{self.top}",
                 str(shallow))
        self.assertFalse(History(shallow).known)
        shutil.rmtree(self.top / ".git")
        for top in (self.top, shallow):
            for text in (old, old.replace(OLD, "").replace(
                    IS_OLD.replace(OLD, ""), "")):
                (top / "README.md").write_text(text)
                found = figures.check(top, ["README.md"])["README.md"]
                self.assertEqual(found, [])
                self.assertEqual(figures.write(top, ["README.md"]), ([], []))

    def test_without_history_a_mark_in_a_text_stays(self) -> None:
        self.page.write_text("<!-- figure: one-tenant --><!-- end -->\n")
        self.head = "0123456"
        self.measured()
        text = self.written()
        self.assertIn(OLD, text)
        shutil.rmtree(self.top / ".git")
        self.assertEqual(self.wrong(), [])
        self.assertEqual(self.written(), text)

    def test_a_commit_that_is_not_known_is_old(self) -> None:
        self.head = "0123456"
        self.measured()
        self.assertIn(f"0123456{OLD}", self.written())


class Tree(unittest.TestCase):
    """This tree."""

    def test_each_file_that_moves_a_figure_is_there(self) -> None:
        for spec in MOVES:
            found = list(TOP.glob(spec.removeprefix(":(exclude)")))
            self.assertTrue(found, spec)

    def test_records_are_of_a_commit(self) -> None:
        for name, r in record.read().items():
            if name != "tests":
                self.assertTrue(r.get("commit") or r["machine"]["source"],
                                name)
                self.assertNotIn(str(TOP), json.dumps(r), name)
