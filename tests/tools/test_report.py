# SPDX-License-Identifier: BSD-2-Clause
"""The report: what it claims, that it stands alone, and what is no report."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import re
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

from report_samples import SampleRig, pair_results, samples, save
from sandpaper_bench.claims import claims
from sandpaper_bench.cli import main
from sandpaper_bench.nginx import NGINX
from sandpaper_bench.progress import Progress, duration
from sandpaper_bench.quick import where_it_ran
from sandpaper_bench.report import (
    check_plots,
    circumstances,
    read,
    run_facts,
    write,
)
from sandpaper_bench.table import table
from sandpaper_bench.testbed import TestbedError
from sandpaper_bench.variants import SWITCHES
from sandpaper_bench.varnish import STOCK

VOID = {"meta", "link", "br", "img"}
SILENT = {"table1", "utilization", "fetch", "policies", "overload",
          "haboob", "load-check", "of-tomorrow"}


class Page(HTMLParser):
    """Reads a page; an element that is not closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "srcset", "data",
                        "action"):
                self.links.append(value or "")
            for inner in re.findall(r"url\(([^)]*)\)", value or ""):
                self.links.append(inner)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        self.words += data


# The paper's figure, stock's, ours, its interval, the target, the verdict
EXPECTED = {
    "pairs": [
        "stock 0.74, 0.56, 0.98, 0.98 .. 0.98, at least 0.95, met",
        "about 27 ×, 1.0 ×, 0.9 ×, 0.9 .. 0.9 ×, at most 1.5 ×, met"],
    "alone": ["under 9 %, –, 1.3 %, 1.2 .. 1.4 %, at most 1 %, missed",
              "17 %, –, 1.3 %, 1.2 .. 1.4 %, at most 3 %, met"],
    "overhead": ["under 9 %, –, 1.3 %, 1.2 .. 1.4 %, at most 1 %, missed",
                 "17 %, –, 1.3 %, 1.2 .. 1.4 %, at most 3 %, met"],
    "workers": ["–, –, 0.98, 0.98 .. 0.98, at least 0.95, met"] * 2,
    "latency": ["–, 22.5 ×, 1.2 ×, 1.2 .. 1.2 ×, at most 2 ×, met"],
    "scale": ["8.6 % at 2000, –, 1.8 %, 1.7 .. 2.0 %, at most 2 %, "
              "unresolved"],
    "content-change": ["“isolated”, 0.40, 0.98, 0.98 .. 0.98, at least 0.95, "
                       "met"],
    "flash-crowd": ["“more resilient”, 0.40, 0.98, 0.98 .. 0.98, "
                    "at least 0.95, met"],
    "blackhole": ["–, 0.30, 0.96, 0.96 .. 0.96, at least 0.90, met",
                  "–, 1.0 ×, 1.0 ×, 1.0 .. 1.0 ×, at most 2 ×, met"],
    "alternates": ["–, 0.30, 0.96, 0.96 .. 0.96, at least 0.45, met",
                   "–, 1.0 ×, 1.0 ×, 1.0 .. 1.0 ×, at most 2 ×, met"],
    "parts": ["–, 150.0 ×, 1.4 ×, 1.3 .. 1.4 ×, at most 2 ×, met",
              "–, –, 1.1 ×, 1.1 .. 1.1 ×, at most 1.1 ×, met"],
    "compress": ["–, –, 1.60, 1.60 .. 1.60, at least 1.50, met",
                 "–, –, 0.95, 0.95 .. 0.95, at least 0.97, missed",
                 "–, –, 0.98, 0.98 .. 0.98, at least 0.97, met"],
    "soak": ["–, –, 0, 0 .. 0, 0, met"],
    "rate-unknown": ["stock 0.74, 0.56, 0.98, 0.98 .. 0.98, at least 0.90, "
                     "met"],
}
LOW, WIDE, HIGH = [0.01, 0.02], [0.01, 99.0], [98.0, 99.0]
# Experiment, number of the claim, its interval, and whether more is better
KINDS = (
    ("pairs", 0, "ratio_ci", True), ("pairs", 1, "stretch_ci_a", False),
    ("alone", 0, "ratio_ci", True), ("overhead", 1, "ratio_ci", True),
    ("workers", 1, "ratio_ci", True), ("latency", 0, "times_ci", False),
    ("scale", 0, "ratio_ci", True), ("flash-crowd", 0, "of_fair_ci", True),
    ("blackhole", 0, "kept_ci", True),
    ("blackhole", 1, "p99_times_ci", False), ("parts", 0, "times_ci", False),
    ("parts", 1, "cost_ci", False), ("compress", 2, "ratio_ci", True),
    ("rate-wrong", 0, "ratio_ci", True))
# Experiment, and the key of the control of its last claim
PARTS = {"alone": "k0", "overhead": "k0, sampled", "latency": "C3-C1",
         "blackhole": "sandpaper", "compress": "10 Gbit/s"}


class Claims(unittest.TestCase):
    """The verdict is the interval's, or the control's."""

    def verdicts(self, report: dict[str, Any]) -> list[str]:
        return [c.verdict for c in claims(report)]

    def test_each_experiment_claims_something(self) -> None:
        for name, report in samples().items():
            found = self.verdicts(report)
            self.assertEqual(bool(found), name not in SILENT, name)
            self.assertNotIn("invalid", found)

    def test_what_each_claim_says(self) -> None:
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                self.assertEqual(
                    [", ".join(list(vars(c).values())[1:])
                     for c in claims(samples()[name])], expected)

    def test_quick_is_pairs_in_short(self) -> None:
        found = samples()
        self.assertEqual(claims(found["quick"]), claims(found["pairs"]))
        self.assertEqual(table(found["quick"]).splitlines()[:-1],
                         table(found["pairs"]).splitlines()[:-1])

    def test_the_words_name_who_was_measured(self) -> None:
        found = {name: claims(report)[-1].what
                 for name, report in samples().items() if name not in SILENT}
        for name, words in (
                ("pairs", "(C1 with C3)"), ("overhead", "k0 alone (no-op VCL"),
                ("scale", "with 200 tenants and 2000 connections"),
                ("latency", "(C1 with C3)"), ("soak", "in 3600 s"),
                ("rate-unknown", "(C1 and C3), if the link's rate is not")):
            self.assertIn(words, found[name])

    def test_the_interval_decides(self) -> None:
        for name, number, field, more_is_better in KINDS:
            for interval, verdict in ((LOW, "missed"), (WIDE, "unresolved"),
                                      (HIGH, "met")):
                if not more_is_better:
                    verdict = {"met": "missed", "missed": "met"}.get(
                        verdict, verdict)
                report = samples()[name]
                for result in report["results"]:
                    result[field] = interval
                with self.subTest(name, field=field, interval=interval):
                    self.assertEqual(self.verdicts(report)[number], verdict)

    def test_the_worst_counts(self) -> None:
        for name, field, worst in (("pairs", "stretch_b", 3.0),
                                   ("rate-wrong", "ratio", 0.1),
                                   ("latency", "times", 9.0)):
            report = samples()[name]
            mine = [r for r in report["results"]
                    if r["variant"] == "sandpaper"]
            report["results"].append(mine[-1] | {
                field: worst, "a": "C2", "tenant": "C2"})
            self.assertIn("C2" if name != "pairs" else "C3 with C2",
                          claims(report)[-1].what)

    def test_stocks_figure_is_of_the_same(self) -> None:
        report = samples()["pairs"]
        report["results"].insert(0, report["results"][0] | {
            "a": "C2", "ratio": 0.1})
        self.assertEqual(claims(report)[0].stock, "0.56")

    def test_a_lost_request_is_one_too_many(self) -> None:
        report = samples()["soak"]
        report["results"][0]["lost"] = 1
        self.assertEqual(self.verdicts(report), ["missed"])

    def test_a_cost_that_was_not_measured_is_no_claim(self) -> None:
        report = samples()["parts"]
        report["results"][-1]["cost"] = None
        self.assertEqual(len(claims(report)), 1)

    def test_a_starved_connection_leaves_stretch_open(self) -> None:
        report = samples()["pairs"]
        for result in report["results"]:
            result["stretch_counts"] = False
        self.assertEqual(self.verdicts(report), ["met", "unresolved"])

    def test_too_few_turns_resolve_nothing(self) -> None:
        report = samples()["scale"]
        for result in report["results"]:
            result["ratio_ci"] = [0.0, 1e9]
        (found,) = claims(report)
        self.assertEqual((found.interval, found.verdict),
                         ("unknown", "unresolved"))

    def test_a_bad_control_makes_it_invalid(self) -> None:
        report = samples(invalid="scale")["scale"]
        self.assertFalse(report["valid"])
        self.assertEqual(self.verdicts(report), ["invalid"])
        self.assertIn("INVALID", table(report))

    def test_a_control_of_its_own_judges_alone(self) -> None:
        good, bad = (samples(invalid)["scale"]["control"]
                     for invalid in ("", "scale"))
        for name, part in PARTS.items():
            for control, invalid in (({part: bad, "x": good}, True),
                                     ({part: good, "x": bad}, False)):
                found = self.verdicts(samples()[name] | {"control": control})
                with self.subTest(name, invalid=invalid):
                    self.assertEqual(found[-1] == "invalid", invalid)


# The last row of each experiment's table
ROWS = {
    "table1": "C4 sandpaper 188 (1) 182 (8) 291.2 (0.00) 291.2 43516 link 0",
    "pairs": "C3 with C1 sandpaper 998 588 0.59 55.0 110.0 0.2 0.6 0.90",
    "workers": "C3 with C1, 100 100 slots 998 898 0.90 55.0 110.0 0.2 1.0 "
               "0.90",
    "alone": "k0 1000 988 0.987 0.99..0.99 400.0 405.0 0.90 0.90",
    "overhead": "k0 sampled 1000 988 0.987 0.99..0.99 400.0 405.0 0.90 0.90",
    "scale": "200 2000 1000 982 0.982 0.98..0.98 40.0 41.0 5",
    "policies": "2dfqe 90.0 10.0 20.0 20.00..20.00 40 0.200 0.100 0.700 0",
    "parts": "k0 sandpaper 250 5.0 6.0 8.1 1.36 1.33..1.38 5000 0",
    "overload": "beside open time 0.900 0.90..0.90 0.800 10.0 20.0 3 12 0.980 "
                "1.25 0.00 0.800",
    "load-check": "load 2 time 0.900 0.920 0.978 0.98..0.98 0.550 0.550 10.0 "
                  "10.0 20.0 19.0 1.05 1.05..1.05 -",
    "haboob": "1024 sandpaper 200.0 200.00..200.00 1700 600.0 800.0 900.0 "
              "0.9980 1.00..1.00 0",
    "compress": "10 Gbit/s auto 980 980.00..980.00 510 60000 0.50 0.05 20.0 0.980 "
                "0.98..0.98 0.980 0.98..0.98 0.97 over plain 0",
    "blackhole": "blackhole k0 sandpaper 1001 960 0.959 0.96..0.96 1.0 20.0 "
                 "20.0 0.10 0 9 +0.0 1000 -",
    "soak": "sandpaper 3600 0 0 0 0 0 0 0 0.10 +0.0 30 to 31 memory",
    "flash-crowd": "2 x connections sandpaper 1000 980 0.980 1.000 0.980 "
                   "0.98..0.98",
    "of-tomorrow": "C1 39.9",
}


class Circumstances(unittest.TestCase):
    """What a reader has to know of the machine."""

    def said(self, **machine: object) -> str:
        report = samples()["pairs"]
        report["machine"] |= machine
        return "\n".join(map(str, circumstances(report)))

    def test_what_limits_the_link(self) -> None:
        self.assertIn("1.25 Gbit/s (tbf)", self.said())
        self.assertIn("'1.25 Gbit/s'", self.said(link_shaped_by_tbf=False))
        self.assertIn("not shaped",
                      self.said(link_bits_per_second=None))

    def test_where_the_load_is(self) -> None:
        self.assertIn("load and origin on 1,2; nice", self.said())
        self.assertIn("load and origin on their machines; nice",
                      self.said(load_cores=[]))

    def test_what_quick_says_of_them(self) -> None:
        machine = samples()["quick"]["machine"] | {"mode": "hosts"}
        self.assertEqual(
            where_it_ran(machine | {"link_shaped_by_tbf": False}),
            "several machines, the client-facing link of 1.25 Gbit/s, TCP "
            "reno")
        self.assertIn("shaped to 1.25", where_it_ran(machine))
        self.assertIn("run as root",
                      where_it_ran(machine | {"link_bits_per_second": None}))


class Tables(unittest.TestCase):
    """A terminal and the page have the same table."""

    def test_the_cells_of_a_row(self) -> None:
        found = samples()
        found["scale"]["results"][-1] |= {"errors_baseline": 2,
                                          "errors_variant": 3}
        found["policies"]["results"][-1]["parts"] = [0.2, 0.1, 0.7]
        found["soak"]["results"][-1]["failed"] = "memory"
        found["parts"]["results"][-1] |= dict.fromkeys(
            ("cost", "cost_ci", "cpu_us_none", "cpu_us_many"))
        for name, expected in ROWS.items():
            *_, row, control = table(found[name]).splitlines()
            with self.subTest(name):
                self.assertEqual(" ".join(row.split()), expected)
                self.assertIn("A/A control: ", control)


class TimeLeft(unittest.TestCase):
    """What is left is the schedule, as fast as it went so far."""

    def test_what_is_there_takes_no_time(self) -> None:
        now = 0.0
        turns = Progress([10.0, 10.0, 10.0, 20.0], lambda: now)
        turns.skip()
        turns.tick()
        turns.skip()
        turns.tick()
        now = 11.0
        turns.tick()
        self.assertAlmostEqual(turns.left(), 22)

    def test_left(self) -> None:
        now = [0.0]
        turns = Progress([10.0, 10.0, 20.0], lambda: now[0])
        self.assertEqual(turns.left(), 40.0)
        now[0] = 15.0
        self.assertIn("1 of 3 turns, about 45 s left", turns.tick())
        turns.add([10.0])
        self.assertIn("2 of 4 turns, about 22 s left", turns.tick())

    def test_durations(self) -> None:
        self.assertEqual([duration(s) for s in (3.2, 100, 7500)],
                         ["3 s", "2 min", "2 h 5 min"])


class Files(unittest.TestCase):
    """What is no result is named in one line."""

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.folder = Path(tmp.name)

    def refused(self, what: str) -> None:
        with self.assertRaisesRegex(TestbedError, what) as caught:
            write(self.folder)
        self.assertNotIn("\n", str(caught.exception))
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            status = main(["report", "--json", str(self.folder)])
        self.assertEqual((status, said.getvalue()),
                         (2, f"sandpaper-bench: {caught.exception}\n"))
        self.assertFalse((self.folder / "report.html").exists())

    def test_no_folder(self) -> None:
        self.folder /= "nowhere"
        self.refused("nowhere: no such folder")

    def test_no_results(self) -> None:
        self.refused("has no results .* --json FOLDER")

    def test_what_is_broken(self) -> None:
        path = self.folder / "pairs.json"
        whole = json.dumps(samples()["pairs"])
        for text, what in ((whole[:-9], "not JSON"), ("[]", "lacks exp"),
                           ("{}", "lacks exp"), ("\xff", "not JSON"),
                           ('{"experiment": "pairs"}', "lacks began")):
            path.write_bytes(text.encode("latin1"))
            with self.assertRaisesRegex(TestbedError, f"pairs.json.*{what}"):
                read(path)

    def test_a_result_that_lacks_a_figure(self) -> None:
        report = samples()["pairs"]
        del report["results"][1]["ratio_ci"]
        (self.folder / "pairs.json").write_text(json.dumps(report))
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("python3-matplotlib is not installed")
        self.refused("pairs.json: .*ratio_ci")


class Words(unittest.TestCase):
    """What is said of a run."""

    def test_a_busy_machine(self) -> None:
        report = samples()["pairs"]
        report["machine"]["cores"] = 2
        for load, said in ((1.9, "load average at start 1.9$"),
                           (2.1, "2.1: the machine was busy, it has 2 cores")):
            report["machine"]["load_average_at_start"] = load
            self.assertRegex(run_facts(report)[0][1], said)

    def test_what_is_not_installed(self) -> None:
        with (patch("importlib.util.find_spec", return_value=None),
              self.assertRaisesRegex(
                  TestbedError, "no matplotlib.*run make bench-deps$")):
            check_plots()


@unittest.skipUnless(importlib.util.find_spec("matplotlib"),
                     "python3-matplotlib is not installed")
class Plots(unittest.TestCase):
    """What a plot shows, before it is drawn."""

    def shown(self, name: str, report: dict[str, Any]) -> dict[str, Any]:
        plots = importlib.import_module("sandpaper_bench.plots")
        return {s.name: [(p.place, round(p.value, 2), bool(p.interval))
                         for p in s.points]
                for s in plots.series_of(plots.DRAW[name][0], report)}

    def test_each_variant_has_a_look_of_its_own(self) -> None:
        looks = importlib.import_module("sandpaper_bench.plots").LOOKS
        names = (STOCK, NGINX, *SWITCHES)
        for what in ("colour", "marker"):
            self.assertEqual(len({getattr(looks[n], what) for n in names}),
                             len(names))

    def test_a_plot_shows_the_paper_and_the_target_too(self) -> None:
        pair, report = "C1 and C3", samples()["pairs"]
        report["results"][0]["ratio_ci"] = [0.0, 1e9]  # has no whisker
        self.assertEqual(self.shown("pairs", report), {
            "stock": [(pair, 0.56, False)], "Sandpaper": [(pair, 0.98, True)],
            "paper, stock": [(pair, 0.74, False)],
            "claimed: at least 0.95": [(pair, 0.95, False)]})
        self.assertEqual(self.shown("quick", samples()["quick"]),
                         self.shown("pairs", samples()["pairs"]))
        self.assertEqual(self.shown("scale", samples()["scale"]), {
            "Sandpaper": [(1, 1.85, True), (200, 1.85, True)],
            "paper (a handful, 2000)": [(1, 5.0, False), (2000, 8.6, False)],
            "claimed: at most 2 %": [(n, 2.0, False)
                                     for n in (1, 200, 2000)]})


@unittest.skipUnless(importlib.util.find_spec("matplotlib"),
                     "python3-matplotlib is not installed")
class Html(unittest.TestCase):
    """The page is well-formed and needs nothing from outside."""

    text: str
    page: Page

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            save(Path(tmp), invalid="latency")
            cls.text = write(Path(tmp)).read_text()
        cls.page = Page(cls.text)

    def test_every_element_is_closed(self) -> None:
        self.assertEqual(self.page.open, [])
        with self.assertRaises(AssertionError):
            Page("<p><b>x</p></b>")

    def test_ids_are_unique_and_links_lead_to_them(self) -> None:
        self.assertEqual(len(self.page.ids), len(set(self.page.ids)))
        for link in self.page.links:
            if link.startswith("#"):
                self.assertIn(link[1:], self.page.ids)

    def test_nothing_comes_from_outside(self) -> None:
        self.assertGreater(len(self.page.links), 20)
        for link in self.page.links:
            self.assertTrue(link.startswith(("#", "data:")), link)
        self.assertNotIn("script", self.page.tags)
        self.assertNotRegex(self.text, r"url\((?!#)|@import")

    def test_each_experiment_has_its_plot(self) -> None:
        for name in samples():
            self.assertIn(name, self.page.ids)
        self.assertGreaterEqual(self.page.tags.count("img"), 16)

    def test_an_invalid_control_is_marked(self) -> None:
        found = re.findall(r'<h2 id="([^"]*)">[^<]*<span class="invalid">',
                           self.text)
        self.assertEqual(found, ["latency"])
        self.assertIn("latency (invalid)", self.page.words)
        self.assertIn("latency against itself", self.page.words)

    def test_what_is_text_is_no_markup(self) -> None:
        self.assertIn("a CPU <of 3 & more>", self.page.words)

    def test_a_section_like_another_has_words_of_its_own(self) -> None:
        for words in ("the link's rate set twice too high",
                      "Both have 10 workers per core by default",
                      "of all. The number after the tenants"):
            self.assertIn(words, self.page.words)

    def test_the_json_is_there(self) -> None:
        self.assertEqual(sum(link.startswith("data:application/json")
                             for link in self.page.links), len(samples()))

    def test_the_page_is_the_same_for_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            (Path(tmp) / "pairs.json").write_text(json.dumps(
                SampleRig().report("pairs", {}, pair_results(SampleRig()))))
            first, again = (re.sub(r"Written [^.]*\.", "",
                                   write(Path(tmp)).read_text())
                            for _ in range(2))
        self.assertEqual(first, again)
        self.assertIn("Not measured: table1, random-pairs, alone, ", first)
        self.assertNotRegex(first, "Not measured: [^<]*quick")
        self.assertNotIn("Not measured", self.text)
