# SPDX-License-Identifier: BSD-2-Clause
"""The report: what it claims, that it stands alone, and what is no report."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import re
import tempfile
import unittest
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from report_samples import (
    SampleLab,
    abuse_turn,
    alone_turn,
    equal_window,
    latency_turn,
    line,
    look,
    pair_results,
    pair_turns,
    parts_turn,
    policies_turn,
    samples,
    save,
    scale_turn,
    table1_turn,
    utilization_turn,
)
from sandpaper_bench.claims import claims
from sandpaper_bench.cli import (
    EXPERIMENTS,
    main,
    make_job,
    make_plan,
    parser,
)
from sandpaper_bench.fetch import fetch
from sandpaper_bench.journal import Journal
from sandpaper_bench.pace import Pace, duration
from sandpaper_bench.report import read, write
from sandpaper_bench.table import table
from sandpaper_bench.testbed import TestbedError

VOID = {"meta", "link", "br", "img"}
SILENT = {"table1", "utilization", "fetch", "policies", "of-tomorrow"}


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


class Claims(unittest.TestCase):
    """The verdict is the interval's, or the control's."""

    def test_each_experiment_claims_something(self) -> None:
        for name, report in samples().items():
            found = claims(report)
            self.assertEqual(bool(found), name not in SILENT, name)
            self.assertNotIn("invalid", [c.verdict for c in found])

    def test_a_claim_has_the_papers_figure_and_stocks(self) -> None:
        fair = claims(samples()["pairs"])[0]
        self.assertIn("0.74", fair.paper)
        self.assertEqual((fair.stock, fair.ours), ("0.56", "0.98"))
        self.assertEqual((fair.target, fair.verdict),
                         ("at least 0.95", "met"))

    def test_more_than_the_target_is_missed(self) -> None:
        c1, noop = claims(samples()["alone"])
        self.assertEqual((c1.target, c1.verdict), ("at most 1 %", "missed"))
        self.assertEqual((noop.target, noop.verdict), ("at most 3 %", "met"))

    def test_a_starved_connection_leaves_stretch_open(self) -> None:
        report = samples()["pairs"]
        for result in report["results"]:
            result["stretch_counts"] = False
        self.assertEqual(claims(report)[-1].verdict, "unresolved")

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
        self.assertEqual([c.verdict for c in claims(report)], ["invalid"])
        self.assertIn("INVALID", table(report))

    def test_a_control_of_its_own_judges_alone(self) -> None:
        good, bad = samples()["alone"], samples(invalid="alone")["alone"]
        good["control"] = {"C1": good["control"], "k0": bad["control"]}
        self.assertEqual([c.verdict for c in claims(good)],
                         ["missed", "invalid"])


# What each experiment does once a turn.
TURNS = {
    "pairs.pair_turn": lambda lab, v, a, b: pair_turns(v.name)[0],
    "workers.pair_turn": lambda lab, v, a, b: pair_turns(v.name)[0],
    "table1.table1_turn": lambda lab, v, name: table1_turn(name),
    "utilization.turn": lambda lab, v, name, clients: utilization_turn(
        name, clients),
    "fetch.fetch_turn": lambda lab, v, miss, seconds: look(9),
    "pairs.alone_turn": lambda lab, name: alone_turn(name, 0),
    "latency.latency_turn": lambda lab, v, a, b: latency_turn(0.1, 0),
    "parts.parts_turn": lambda lab, v, victim: parts_turn(8e-3, 42.0, 0),
    "policies.turn": lambda lab, v: policies_turn(),
    "policies.with_policy": lambda v, policy: replace(v, name=policy),
    "scale.scale_turn": lambda lab, a, b, tenants: scale_turn(0),
    "timeline.line": lambda lab, v, always, phases, fair=1.0: line(
        90, len(phases)),
    "timeline.predicted": lambda *_: 1.0,
    "abuse.Case.turn": lambda *_: abuse_turn(900, 0),
}


class Progress(unittest.TestCase):
    """What is left is the schedule, as fast as it went so far."""

    def test_an_experiment_has_as_many_turns_as_its_schedule(self) -> None:
        args = parser().parse_args(["all", "--pairs", "C1-C3"])
        for name in EXPERIMENTS:
            lab = SampleLab()
            lab.plan = make_plan(args, name)
            lab.varnish = MagicMock()  # type: ignore[method-assign]
            lab.load = MagicMock()
            lab.measure = MagicMock(  # type: ignore[method-assign]
                side_effect=equal_window)
            with (contextlib.ExitStack() as stack, self.subTest(name),
                  contextlib.redirect_stderr(io.StringIO()) as said):
                for what, turn in TURNS.items():
                    stack.enter_context(
                        patch(f"sandpaper_bench.{what}", turn))
                job = make_job(name, args, lab.bed)
                lab.begin(job.schedule)
                report = job.run(lab)
                self.assertEqual(lab.pace.done, len(job.schedule))
                self.assertIn("about 0 s left", said.getvalue())
                self.assertEqual(report["experiment"], name)
                self.assertNotEqual(report["control"], {})

    def test_what_is_there_takes_no_time(self) -> None:
        now = 0.0
        pace = Pace([10.0, 10.0, 10.0, 20.0], lambda: now)
        pace.skip()
        pace.tick()
        pace.skip()
        pace.tick()
        now = 11.0
        pace.tick()
        self.assertAlmostEqual(pace.left(), 22)

    def test_arrivals_are_the_same_after_an_interruption(self) -> None:
        lab, seeds = SampleLab(), []
        lab.load = MagicMock(seed=1)

        def turn(*_: Any, **__: Any) -> Any:
            seeds.append(lab.load.seed)
            return look(9)

        with (tempfile.TemporaryDirectory() as tmp,
              patch("sandpaper_bench.fetch.fetch_turn", turn),
              contextlib.redirect_stderr(io.StringIO())):
            path = Path(tmp) / "fetch.windows.jsonl"
            lab.begin([], Journal({}, path))
            whole = fetch(lab)
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(lines[:6]))  # the head, five turns
            self.assertEqual(len(set(seeds)), len(seeds))
            expected = seeds[5:]
            seeds.clear()
            lab.begin([], Journal({}, path))
            self.assertEqual(fetch(lab)["results"], whole["results"])
        self.assertEqual(seeds, expected)

    def test_left(self) -> None:
        now = [0.0]
        pace = Pace([10.0, 10.0, 20.0], lambda: now[0])
        self.assertEqual(pace.left(), 40.0)
        now[0] = 15.0
        self.assertIn("1 of 3 turns, about 45 s left", pace.tick())
        pace.tick()
        pace.tick()
        self.assertIn("4 turns", pace.tick())

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
        self.refused("has no results")

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

    def test_the_json_is_there(self) -> None:
        self.assertEqual(sum(link.startswith("data:application/json")
                             for link in self.page.links), len(samples()))

    def test_the_page_is_the_same_for_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            (Path(tmp) / "pairs.json").write_text(json.dumps(
                SampleLab().report("pairs", {}, pair_results(SampleLab()))))
            first, again = (re.sub(r"Written [^.]*\.", "",
                                   write(Path(tmp)).read_text())
                            for _ in range(2))
        self.assertEqual(first, again)
        self.assertIn("Not measured: table1, alone, ", first)
        self.assertNotIn("Not measured", self.text)


if __name__ == "__main__":
    unittest.main()
