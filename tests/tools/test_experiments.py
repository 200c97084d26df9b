# SPDX-License-Identifier: BSD-2-Clause
"""Each experiment, run without a varnishd: its plan is what it does."""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import resource
import tempfile
import time
import unittest
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, patch

from report_samples import SampleRig
from sandpaper_bench.abuse import FLOOD_RPS
from sandpaper_bench.abuses import ABUSES
from sandpaper_bench.alone import AloneTurn
from sandpaper_bench.cli import make_job
from sandpaper_bench.customers import PAIRS, check_names
from sandpaper_bench.experiments import EXPERIMENTS
from sandpaper_bench.fetch import LENT, THREADS, Watched, Watcher, within
from sandpaper_bench.journal import Journal
from sandpaper_bench.load import (
    PHASE_SECONDS,
    Group,
    GroupResult,
    Interleaved,
    Measurement,
    WorkerDied,
)
from sandpaper_bench.options import parser
from sandpaper_bench.parts import FEW, MANY
from sandpaper_bench.rig import Plan
from sandpaper_bench.runner import RUN, START, Job, Turn
from sandpaper_bench.scale import descriptors, possible
from sandpaper_bench.sections import SECTIONS
from sandpaper_bench.specweb import File
from sandpaper_bench.testbed import Testbed, TestbedError
from sandpaper_bench.varnish import Variant

BENCH = Path(__file__).resolve().parents[2] / "bench"
LOOKS = [(0.0, {LENT: 1, THREADS: 9})] * 100


class RehearsedLoad:
    """A load generator that only says how long it would take."""

    def __init__(self) -> None:
        self.seed = 1
        self.seconds = 0.0
        self.asked: list[tuple[int, float, list[str]]] = []

    def see(self, group: Group, seconds: float) -> GroupResult:
        """Return what a group saw: as much as a flood has."""
        sent = int(FLOOD_RPS * seconds)
        return GroupResult(
            group.name, group.conns, 1000.0, 0.01, 0.02, 0.03, 0, 0, 1000, 0,
            90, 110, 100.0, sent, sent, [50] * 900)

    def took(
        self, seconds: float, groups: Sequence[Group]
    ) -> dict[str, GroupResult]:
        """Count a run."""
        self.seconds += seconds + RUN
        self.asked.append((self.seed, seconds, [g.spec() for g in groups]))
        return {g.name: self.see(g, seconds) for g in groups}

    def prime(self, *_: object) -> None:
        """It is part of the start."""

    def check(self, *_: object) -> None:
        """Nothing dies."""

    def measure(
        self, _varnish: object, groups: list[Group], seconds: float,
        warmup: float = 1.0, _drain: float = 0.0,
    ) -> Measurement:
        """Return a window."""
        return Measurement(seconds, seconds / 2, 0.1, 0.0,
                           self.took(warmup + seconds, groups))

    def in_phases(
        self, phases: Sequence[tuple[object, list[Group]]], seconds: float,
        warmup: float, always: Sequence[Group] = (),
        length: float = PHASE_SECONDS,
    ) -> Interleaved:
        """Return phases; loadgen rounds up to whole turns of them."""
        turn = len(phases) * length
        whole = turn * sum(math.ceil(round(s / turn, 6))
                           for s in (warmup, seconds))
        every = [g for _, groups in phases for g in groups]
        self.took(whole, [*every, *always])
        return Interleaved(
            seconds, 0.0, [{g.name: self.see(g, whole) for g in groups}
                           for _, groups in phases],
            [400.0] * len(phases), {g.name: self.see(g, whole)
                                    for g in always})

    def disturbed(
        self, _varnish: object, groups: list[Group], seconds: float,
        _drain: float,
    ) -> dict[str, GroupResult]:
        """Return what they saw meanwhile."""
        return self.took(seconds, groups)


class Rehearsal(SampleRig):
    """A rig whose clock is what its windows would take."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self.load: Any = RehearsedLoad()
        self.bed: Any = MagicMock(rate_bps=1.25e9, mode="namespaces",
                                  proxy_cores=[0],
                                  describe=self.bed.describe)
        self.path = path
        self.ends: list[float] = []

    @contextlib.contextmanager
    def varnish(  # type: ignore[override]
        self, variant: Variant, second: bool = False,
        described: Sequence[str] = (),
    ) -> Iterator[MagicMock]:
        """Start a varnishd that does nothing."""
        self.load.seconds += START
        varnish = MagicMock(variant=variant)
        varnish.proxy.listen = f"proxy{int(second)}:80"
        varnish.gauges = lambda names: dict.fromkeys(names, 0)
        varnish.threads.return_value = varnish.rss_bytes.return_value = 1
        varnish.heap_bytes.return_value = 1
        varnish.descriptors.return_value = 30
        varnish.panicked.return_value = False
        varnish.restarted.return_value = False
        varnish.cli.side_effect = self.said
        yield varnish

    def said(self, *words: str) -> str:
        """Return what a CLI command says."""
        if words[0] == "debug.sandpaper.lock":
            return ("CPU: 1 holds, the longest 2 us by f, 99.99 % up to 1 us\n"
                    "wall: 1 holds, the longest 2 us by f, 99.99 % up to 1 us")
        return json.dumps([0, [], 0, {"list": [
            {"tenant": "k0-main.example", "cpu_s": 1.0, "requests": 9}]}])

    def prepare(self, _: Sequence[str]) -> None:
        """C1 to C4 are ready."""

    def attack(
        self, varnish: Any, group: Group, seconds: float, warmup: float
    ) -> Measurement:
        """Return a window of vegeta."""
        found: Measurement = self.load.measure(varnish, [group], seconds,
                                               warmup)
        return found

    def serve(self, _: Sequence[File]) -> None:
        """Have no origin."""

    def publish(self, _: Mapping[str, bytes]) -> None:
        """Have no origin."""

    def headers(self, name: str, _: str) -> Path:
        """Return where headers would be."""
        return Path(f"{name}.headers")

    def tick(self) -> None:
        """Remember when a turn ended."""
        self.ends.append(self.load.seconds)
        super().tick()

    def sleep(self, seconds: float) -> None:
        """Let the clock jump."""
        self.load.seconds += seconds

    def run(self, job: Job) -> dict[str, Any]:
        """Run a job; return its report."""
        with (patch("sandpaper_bench.fetch.Watcher", MagicMock(
                return_value=MagicMock(looks=lambda: LOOKS))),
              patch("sandpaper_bench.soak.time.sleep", self.sleep),
              patch.object(Variant, "version", lambda _: "varnish-7.7.0"),
              contextlib.redirect_stderr(io.StringIO()) as said):
            report = job.run(self, Journal({}, self.path))
        self.said_last = said.getvalue()
        return report


def plan(name: str, *options: str) -> Job:
    """Return an experiment's job on a testbed of namespaces, not up."""
    bed = Testbed(MagicMock(), [0], [1], loopback=True)
    bed.mode = "namespaces"
    args = parser().parse_args([name, *options])
    with (patch("sandpaper_bench.ask.supported", return_value=True),
          patch("sandpaper_bench.policies.build_vmod", return_value="/v.so"),
          patch.object(Variant, "program", "/bin/true"),
          patch("sandpaper_bench.vegeta.shutil.which", return_value="/v"),
          contextlib.redirect_stderr(io.StringIO())):
        return make_job(name, args, bed)


class Plans(unittest.TestCase):
    """What an experiment is planned to take is what its windows take."""

    def test_the_schedule_is_the_sum_of_what_is_run(self) -> None:
        for name in EXPERIMENTS:
            with self.subTest(name):
                job, rig = plan(name, "--turns", "2"), Rehearsal()
                report = rig.run(job)
                took = [b - a for a, b in zip(
                    [0.0, *rig.ends], rig.ends, strict=False)]
                self.assertEqual(len(took), len(job.schedule))
                for planned, seconds in zip(job.schedule, took, strict=True):
                    self.assertAlmostEqual(planned, seconds, places=6)
                self.assertIn(f"{len(took)} of {len(took)} turns",
                              rig.said_last)
                self.assertEqual(report["experiment"], name)
                json.dumps(report, allow_nan=False)

    def test_what_each_has_to_say(self) -> None:
        for name, experiment in EXPERIMENTS.items():
            with self.subTest(name):
                report = Rehearsal().run(plan(name, "--turns", "1"))
                self.assertNotEqual(report["results"], [])
                self.assertEqual(report["control"] == {},
                                 name in ("quick", "soak"))
                self.assertGreater(len(experiment.text(report)), 80)

    def test_the_cores_are_those_of_the_experiment(self) -> None:
        rig, job = Rehearsal(), plan("utilization", "--turns", "1")
        rig.bed.proxy_cores, describe = [0], rig.bed.describe
        rig.bed.describe = lambda: describe() | {
            "proxy_cores": rig.bed.proxy_cores}
        self.assertEqual(rig.run(job)["machine"]["proxy_cores"], [0, 1])
        self.assertEqual(rig.bed.proxy_cores, [0])

    def test_a_baseline_that_answers_nothing(self) -> None:
        phases = [{"k0": RehearsedLoad().see(Group("k0", "a"), 1.0)}] * 4
        phases[0] = phases[3] = {"k0": replace(phases[0]["k0"], rps=0.0)}
        part = plan("alone", "--customers", "k0").parts[0]
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            part.note("turn 1", AloneTurn(
                Interleaved(1.0, 0.0, phases, [1.0] * 4, {}), "k0"))
        self.assertIn("ratio 0.000", said.getvalue())

    def test_gauges_of_a_window(self) -> None:
        looks = [(at, {LENT: round(at)}) for at in (1.0, 2.0, 5.0, 6.0)]
        self.assertEqual(within(looks, 2.0, 5.5), [{LENT: 2}, {LENT: 5}])
        with self.assertRaisesRegex(TestbedError, "in a window of 1.5 s"):
            within(looks, 2.5, 4.0)

    def test_a_worker_that_died_is_said_not_its_gauges(self) -> None:
        gone = MagicMock()
        gone.gauges.side_effect = TestbedError("varnishstat: it is not there")
        rig = MagicMock()

        def dies(*_: object, **__: object) -> None:
            while not gone.gauges.called:
                time.sleep(0.01)
            raise WorkerDied

        rig.measure.side_effect = dies
        with self.assertRaises(WorkerDied):
            Watched([], gauges=[THREADS]).measure(rig, [gone], [])
        watcher = Watcher(gone, [THREADS])
        watcher.start()
        watcher.join()
        watcher.stop()
        with self.assertRaisesRegex(TestbedError, "it is not there"):
            watcher.looks()

    def test_each_window_is_in_the_journal(self) -> None:
        for name in ("fetch", "parts", "content-change", "flash-crowd"):
            job, rig = plan(name, "--turns", "1"), Rehearsal()
            with tempfile.TemporaryDirectory() as tmp:
                rig.path = Path(tmp) / name
                rig.run(job)
                lines = rig.path.read_text().splitlines()
            self.assertEqual(sum('"window":' in line for line in lines),
                             len(rig.load.asked), name)

    def test_turns_beyond_the_plan_are_in_the_schedule(self) -> None:
        job = plan("pairs", "--pairs", "c1-c3", "--turns", "1",
                   "--max-turns", "2")
        rig = Rehearsal()
        rig.run(job)  # of so few turns no interval is known
        self.assertEqual(len(rig.turns.schedule), len(rig.ends))
        self.assertEqual(len(rig.ends), len(job.schedule) + 2)
        self.assertEqual(rig.turns.schedule, [
            *job.schedule[:2], *job.schedule[:2], *job.schedule[2:]])

    def test_what_all_leaves_out_is_in_the_readme(self) -> None:
        rows = [line for line in (BENCH / "README.md").read_text().split("\n")
                if line.startswith(("| `all` |", "| `make bench` |"))]
        self.assertEqual(len(rows), 2)
        for name, experiment in EXPERIMENTS.items():
            if not (experiment.in_all or name in ABUSES
                    or name in ("quick", "soak")):
                for row in rows:
                    self.assertIn(f"`{name}`", row)

    def test_the_times_in_the_readme_are_those_of_the_plans(self) -> None:
        seconds = {name: plan(name).seconds for name in EXPERIMENTS}
        minutes = {name: round(s / 60) for name, s in seconds.items()}
        whole = round(sum(seconds[n] for n, e in EXPERIMENTS.items()
                          if e.in_all) / 60)
        text = " ".join((BENCH / "README.md").read_text().split())
        said = re.search(r"By plan, (.*?) Each other", text)
        assert said is not None
        named = dict(re.findall(r"`([\w-]+)`(?: takes)? (\d+)", said[1]))
        self.assertIn("pairs", named)
        for name, number in named.items():
            self.assertEqual(int(number), minutes[name], name)
        others = [m for n, m in minutes.items() if n not in named]
        self.assertIn(f"Each other one takes {min(others)} to {max(others)}. "
                      f"`all` takes {whole // 60} h {whole % 60} min.", text)
        for command, takes in (
                ("quick", f"{minutes['quick']} minutes"),
                ("EXPERIMENT",
                 f"[{min(others)} to {max(minutes.values())} minutes]"),
                ("abuse",
                 f"{round(sum(seconds[n] for n in ABUSES) / 3600)} hours")):
            self.assertRegex(text, rf"\| `bench/sandpaper-bench {command}` "
                             rf"\| [^|]* \| {re.escape(takes)}")

    def test_the_connections_of_parts_are_those_in_the_texts(self) -> None:
        row = next(line for line in (BENCH / "README.md").read_text().split(
            "\n") if line.startswith("| `parts` |"))
        for text in (SECTIONS["parts"].about, SECTIONS["parts"].legend, row):
            self.assertEqual({*re.findall(r"\d[\d,]+\d", text)},
                             {f"{FEW:,}", f"{MANY:,}"})

    def test_descriptors_that_a_process_may_have(self) -> None:
        for hard, may, allowed in (
                (90, False, 90), (90, True, 100), (100, False, 100),
                (200, False, 100), (resource.RLIM_INFINITY, False, 100)):
            with (patch("resource.getrlimit", return_value=(1, hard)),
                  patch("resource.setrlimit",
                        side_effect=None if may else ValueError)):
                self.assertEqual(descriptors(100), allowed)

    def test_too_few_descriptors(self) -> None:
        with (patch("resource.getrlimit", return_value=(1, 150)),
              patch("resource.setrlimit", side_effect=ValueError)):
            with self.assertRaisesRegex(TestbedError, "parts needs 16000 "
                                        "descriptors, and ulimit -Hn says 150"):
                plan("parts")
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(possible([1, 5]), [1, 2])
        self.assertIn("ulimit -Hn is 150: it allows 2 tenants",
                      said.getvalue())


    def test_policies_have_the_prelude_that_was_given(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".vcl") as file:
            file.write("# mine\n")
            file.flush()
            job = plan("policies", "--prelude", file.name)
        for turn in job.parts[0].turns.values():
            assert isinstance(turn, Turn)
            self.assertIn("# mine\nimport std;", turn.servers[0].prelude)

    def test_policies_need_the_vmod_of_their_tenants(self) -> None:
        with (patch("sandpaper_bench.ask.supported", return_value=False),
              self.assertRaisesRegex(TestbedError, "policies needs "
                                     "bench/vmod_customers.* 7.7 or 9.0")):
            make_job("policies", parser().parse_args(
                ["policies", "--stock", "/", "--sandpaper", "/"]),
                MagicMock(shaped=True))

    def test_its_customers_are_some(self) -> None:
        for name in EXPERIMENTS:
            check_names(plan(name).customers, described=True)
        self.assertEqual(len(plan("pairs").customers), 2 * len(PAIRS))


class Continued(unittest.TestCase):
    """An experiment that was interrupted goes on as it would have."""

    def test_arrivals_are_the_same(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            path = Path(tmp) / "fetch.windows.jsonl"
            first, job = Rehearsal(path), plan("fetch")
            whole = first.run(job)
            seeds = [seed for seed, _, _ in first.load.asked]
            self.assertEqual(len(set(seeds)), len(seeds))
            self.assertEqual(first.load.seed, 1)
            lines = path.read_text().splitlines(keepends=True)
            # The head, and five turns, each of a window
            path.write_text("".join(lines[:11]))
            second = Rehearsal(path)
            self.assertEqual(second.run(job)["results"], whole["results"])
            self.assertEqual([seed for seed, _, _ in second.load.asked],
                             seeds[5:])

    def test_a_control_of_many_windows_loses_one(self) -> None:
        job = plan("pairs", "--pairs", "c1-c3", "--turns", "4")
        control = job.parts[-1]
        with tempfile.TemporaryDirectory() as tmp:
            path = Path(tmp) / "pairs.windows.jsonl"
            rig = Rehearsal(path)
            rig.plan = Plan(turns=4)
            rig.begin([], Journal({}, path))
            measure, left = rig.load.measure, iter([True, True, False])

            def interrupted(*rest: Any) -> Measurement:
                if not next(left):
                    raise KeyboardInterrupt
                found: Measurement = measure(*rest)
                return found

            rig.load.measure = interrupted
            with self.assertRaises(KeyboardInterrupt):
                control.run(rig)
            rig.load.measure = measure
            rig.begin([], Journal({}, path))
            rig.load.asked.clear()
            with contextlib.redirect_stderr(io.StringIO()):
                control.run(rig)
            self.assertEqual(len(rig.load.asked), 2)
