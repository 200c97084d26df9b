# SPDX-License-Identifier: BSD-2-Clause
"""The testbed's own parts: estimates, turns, load generator, origin."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import MagicMock, patch

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from sandpaper_bench import record
from sandpaper_bench.ask import chosen_pairs, chosen_sizes
from sandpaper_bench.cli import main, make_jobs, run_jobs
from sandpaper_bench.customers import (
    CUSTOMERS,
    MADE_UP_PAIRS,
    PAIRS,
    check_names,
    host,
    vcl,
)
from sandpaper_bench.estimate import (
    bootstrap,
    control,
    covers_one,
    fold,
    fold_interval,
    known,
    median_quotient,
    verdict,
)
from sandpaper_bench.journal import (
    SUFFIX,
    Journal,
    calibration,
    decode,
    encode,
)
from sandpaper_bench.lab import Plan
from sandpaper_bench.latency import LatencyTurn, offered
from sandpaper_bench.load import Group, Seen, build_loadgen
from sandpaper_bench.nginx import MODULES, PROGRAM, configuration
from sandpaper_bench.options import ALL, parser, shorten
from sandpaper_bench.publishers import PUBLISHERS
from sandpaper_bench.quick import introduction
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.resume import make_head, published
from sandpaper_bench.runner import Part
from sandpaper_bench.testbed import (
    Proxy,
    Testbed,
    TestbedError,
    core_mask,
    free_port,
    one_line,
    parse_cores,
)
from sandpaper_bench.timeline import Line, check_phase
from sandpaper_bench.variants import make_variants
from sandpaper_bench.varnish import Variant, Varnish

TIMEOUT = 60  # seconds, for what should take one


class Estimates(unittest.TestCase):
    """Medians, intervals and what they say of a claim."""

    def test_median_quotient(self) -> None:
        turns = [(50.0, 100.0), (1.0, 200.0), (600.0, 1000.0)]
        self.assertEqual(median_quotient(turns), 0.5)
        self.assertEqual(median_quotient([(1.0, 0.0)]), 0.0)

    def test_interval_is_reproducible_and_within_the_turns(self) -> None:
        turns = [(90.0 + i, 100.0) for i in range(9)]
        low, high = bootstrap(turns, median_quotient, seed=7)
        self.assertEqual((low, high), bootstrap(turns, median_quotient, 7))
        self.assertLess(low, 0.94)
        self.assertGreater(high, 0.94)
        self.assertGreaterEqual(low, 0.90)
        self.assertLessEqual(high, 0.98)

    def test_two_turns_say_nothing_of_their_spread(self) -> None:
        interval = bootstrap([(1.0, 1.0)] * 2, median_quotient, seed=1)
        self.assertEqual(interval, (0.0, math.inf))
        self.assertEqual(fold_interval(*interval), (0.0, 1.0))
        self.assertFalse(known(interval) or known(fold_interval(*interval)))
        self.assertTrue(known((0.0, 0.9)))
        self.assertEqual(verdict(fold_interval(*interval), 0.9),
                         "unresolved")

    def test_fold_is_min_over_max(self) -> None:
        self.assertEqual(fold(2.0), 0.5)
        self.assertEqual(fold(0.5), 0.5)
        self.assertEqual(fold(0.0), 0.0)

    def test_folded_interval_reaches_one_only_if_it_covers_one(self) -> None:
        self.assertEqual(fold_interval(0.8, 0.9), (0.8, 0.9))
        self.assertEqual(fold_interval(1.25, 2.0), (0.5, 0.8))
        self.assertEqual(fold_interval(0.8, 2.0), (0.5, 1.0))

    def test_a_control_is_valid_when_its_interval_covers_one(self) -> None:
        for interval, valid in (((0.97, 1.02), True), ((1.0, 1.1), True),
                                ((0.9, 1.0), True), ((0.9982, 0.9999), False),
                                ((1.0001, 1.2), False)):
            self.assertEqual(covers_one(interval), valid, interval)

    def test_no_margin_is_added_to_a_control(self) -> None:
        for ratio, covers in ((1.0, True), (0.9998, False), (1.004, False)):
            found = control("a", [(ratio, 1.0)] * 5, 1)
            self.assertEqual(found["covers_one"], covers)

    def test_latency_is_judged_by_the_share(self) -> None:
        alone, both = (
            Seen("a", 100, 10.0, 0.0, p99, p99, 0, 0, 0, 0, 1, 1, 1.0, 1, 1,
                 [])
            for p99 in (0.01, 0.03))
        turn = LatencyTurn({"a": 10.0}, {"a": alone}, alone, {"a": both})
        self.assertAlmostEqual(turn.times("a"), 1.5)
        group = offered(Group("a", "a.example"), 0.0)
        self.assertIn("mode=open,conns=100,rate=1.0", group.spec())

    def test_a_time_line_skips_what_was_asked_before(self) -> None:
        static = [9] * 10 + [4] * 20 + [7] * 10 + [5] * 20
        line = Line(static, [[1] * 30 + [0] * 30, [0] * 30 + [2] * 30], 2,
                    fair=1.0)
        self.assertEqual((line.phase(0), line.phase(1)), (40, 50))
        self.assertEqual(line.kept(1), 1.25)
        self.assertEqual(line.series()["dynamic"], [1] * 30 + [2] * 30)

    def test_a_time_line_without_slices_that_count(self) -> None:
        check_phase(2.1)
        for seconds in (0.5, 1.0, 2.05):
            with self.assertRaisesRegex(TestbedError, f"{seconds:g}"):
                check_phase(seconds)

    def test_verdict(self) -> None:
        self.assertEqual(verdict((0.91, 1.0), 0.9), "met")
        self.assertEqual(verdict((0.5, 0.8), 0.9), "missed")
        self.assertEqual(verdict((0.8, 0.95), 0.9), "unresolved")


class Turns(unittest.TestCase):
    """Variants take turns A B B A."""

    def order(self, plan: Plan, resolved_at: int) -> list[str]:
        order: list[str] = []
        lab = MagicMock(plan=plan)
        lab.kept = lambda _turn, measure, _whole: measure()
        part = Part("", {name: MagicMock(run=lambda _lab, name=name:
                                         order.append(name)) for name in "AB"},
                    resolved=lambda found: len(found["A"]) >= resolved_at)
        part.run(lab)
        return order

    def test_order(self) -> None:
        self.assertEqual("".join(self.order(Plan(turns=4), 1)), "ABBAABBA")

    def test_more_turns_only_while_unresolved(self) -> None:
        plan = Plan(turns=2, max_turns=5)
        self.assertEqual(len(self.order(plan, 3)), 6)
        self.assertEqual(len(self.order(plan, 99)), 10)


class CommandLine(unittest.TestCase):
    """What the options mean."""

    def test_cores(self) -> None:
        self.assertEqual(parse_cores("0,2-4"), [0, 2, 3, 4])
        self.assertEqual(core_mask([0, 2, 3, 4]), "1d")

    def test_sizes_that_are_none(self) -> None:
        self.assertEqual(chosen_sizes("--slots", "1,200"), [1, 200])
        for text in ("", "0", "1,x", "-5", "1,,2"):
            with self.assertRaisesRegex(TestbedError, "--slots .* not a list"):
                chosen_sizes("--slots", text)

    def test_a_pair_that_is_none(self) -> None:
        for text in ("c1", "c1-c1", ""):
            with self.assertRaisesRegex(TestbedError, "not a pair"):
                chosen_pairs(text)
        with self.assertRaisesRegex(TestbedError, "no customer c9: use"):
            chosen_pairs("c1-c9")

    def test_stock_gets_no_parameter_of_sandpaper(self) -> None:
        args = parser().parse_args(["pairs", "--param", "sandpaper_mtu=9000"])
        stock, ours = make_variants("pairs", args, shaped=True)
        self.assertEqual(stock.parameters, ())
        self.assertIn("sandpaper=on", ours.parameters)
        self.assertIn("sandpaper_nic_rate=1250M", ours.parameters)
        self.assertIn("sandpaper_mtu=9000", ours.parameters)

    def test_what_sandpaper_is_told_of_the_link(self) -> None:
        for name, shaped, rate in (("rate-wrong", True, "2500M"),
                                   ("rate-unknown", True, "0"),
                                   ("pairs", False, "0")):
            ours = make_variants(name, parser().parse_args([name]), shaped)[1]
            self.assertIn(f"sandpaper_nic_rate={rate}", ours.parameters)

    def test_unknown_variant(self) -> None:
        args = parser().parse_args(["pairs", "--variants", "stock,other"])
        with self.assertRaisesRegex(TestbedError, "no variant other"):
            make_variants("pairs", args, shaped=True)


def bed(shaped: bool = True, cores: int = 2) -> Testbed:
    """Return a testbed, not up, that has so many cores."""
    load = list(range(1, cores)) or [0]
    found = Testbed(MagicMock(), [0], load, loopback=True)
    found.mode = "namespaces" if shaped else "loopback"
    return found


class Durations(unittest.TestCase):
    """What the plan takes is known before, and within what is promised."""

    def seconds(self, where: Testbed, *more: str) -> dict[str, float]:
        args = parser().parse_args([ALL, *more])
        if args.quick:
            shorten(args)
        with contextlib.redirect_stderr(io.StringIO()):
            return {job.name: job.seconds for job in make_jobs(args, where)}

    def test_all_takes_under_three_hours_and_quick_a_quarter(self) -> None:
        # A third as much again is for windows that are measured twice.
        self.assertLess(4 / 3 * sum(self.seconds(bed()).values()), 3 * 3600)
        self.assertLess(
            4 / 3 * sum(self.seconds(bed(), "--quick").values()), 15 * 60)

    def test_what_the_machine_lacks_is_left_out(self) -> None:
        every = set(self.seconds(bed()))
        for where, what in ((bed(shaped=False), "content-change"),
                            (bed(cores=1), "utilization")):
            self.assertEqual(every - set(self.seconds(where)), {what})
        with patch("sandpaper_bench.ask.supported", return_value=False):
            left = self.seconds(bed(), "--stock", "/", "--sandpaper", "/")
        self.assertEqual(every - set(left), {"table1"})


class Refusals(unittest.TestCase):
    """What can't run ends in one line that names it, and status 2."""

    def refused(self, what: str, *arguments: str) -> None:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            try:
                status: object = main(list(arguments))
            except SystemExit as end:
                status = end.code
        lines = [line for line in said.getvalue().splitlines()
                 if line.startswith("sandpaper-bench: ")]
        self.assertEqual(status, 2, said.getvalue())
        self.assertRegex("\n".join(lines), f"^.*{what}.*$")
        self.assertEqual(said.getvalue().splitlines()[-1:], lines)

    def test_arguments(self) -> None:
        for arguments, what in (
                ("fairness", "'fairness'"),
                ("pairs --seconds two", "'two'"),
                ("pairs --turns 0", "--turns 0: use at least 1"),
                ("pairs --pairs c1-c9", "no customer c9"),
                ("alone --customers c9", "no customer c9"),
                ("alone --variants stock", "two variants"),
                ("overhead --customers C9", "no customer C9"),
                ("overhead --variants sandpaper", "overhead compares two"),
                ("utilization --variants stock", "--variants stock,sandpap"),
                ("fetch --variants stock", "--variants stock,sandpaper"),
                ("utilization --clients 0", "--clients '0'"),
                ("slow-readers --victim c9", "no customer c9"),
                ("workers --variants stock", "--variants stock,sandpaper"),
                ("pairs --proxy-cores x", "cores 'x'"),
                ("pairs --proxy-cores 4095", "may use"),
                ("pairs --json /proc/none/a", "/proc/none"),
                ("abuse --record x", "a name is for one experiment"),
                ("pairs --prelude /none.vcl", "/none.vcl"),
                ("pairs --stock /none", "no /none/sbin/varnishd.*--stock"),
                ("content-change --loopback", "run it as root"),
                ("report --json /none", "/none: no such folder")):
            with self.subTest(arguments):
                self.refused(what, *arguments.split())

    def test_too_few_cores(self) -> None:
        every = ",".join(map(str, os.sched_getaffinity(0)))
        self.refused("are too few: .* --load-cores", "pairs",
                     "--proxy-cores", every)

        self.refused("utilization needs 2 cores", "utilization",
                     "--proxy-cores", "0", "--load-cores", "0")

    def test_what_a_program_says_is_one_line(self) -> None:
        self.assertEqual(one_line("Error: a\n\n  b\n"), "Error: a; b")
        self.assertEqual(len(one_line("x" * 9000)), 502)


VARNISHD = """#!/bin/sh
echo "Error: Could not get socket $8: Address already in use" >&2
echo "(-? gives usage)" >&2
exit 2
"""


class Starting(unittest.TestCase):
    """A varnishd that does not start says why."""

    def test_a_port_in_use_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            program = Path(tmp) / "sbin" / "varnishd"
            program.parent.mkdir()
            program.write_text(VARNISHD)
            program.chmod(0o755)
            (Path(tmp) / "bin").mkdir()
            (Path(tmp) / "bin" / "varnishadm").symlink_to("/bin/false")
            reaper = Reaper()
            try:
                core = [min(os.sched_getaffinity(0))]
                bed = Testbed(reaper, core, core, loopback=True)
                proxy = Proxy("proxy", "127.0.0.1", 80, "127.0.0.1", 81, 82)
                varnish = Varnish(Variant("stock", Path(tmp)), bed, reaper,
                                  "", proxy)
                with (self.assertRaisesRegex(
                        TestbedError, "varnishd did not start: Error: .*"
                        "Address already in use; .*usage.$"), varnish):
                    pass
                self.assertFalse(varnish._folder.exists())
            finally:
                reaper.close()


class Records(unittest.TestCase):
    """What --record writes."""

    def setUp(self) -> None:
        self.report: dict[str, Any] = {
            "experiment": "pairs", "commit": "abc1234", "control": {},
            "results": [], "windows": [{"turn": "a"}, {"turn": "b"}]}

    def test_the_newest_takes_the_place_of_the_last(self) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            for name, file in (("", "pairs.json"), ("", "pairs.json"),
                               ("pairs-nginx", "pairs-nginx.json")):
                path = record.write(self.report, name, Path(tmp))
                self.assertEqual(path, Path(tmp) / file)
            self.assertEqual(record.read(Path(tmp)), {
                "pairs": self.report, "pairs-nginx": self.report})
            self.assertIn('\n  {"turn": "b"}\n', path.read_text())

    def test_no_folder(self) -> None:
        with tempfile.TemporaryDirectory() as tmp, \
                self.assertRaisesRegex(TestbedError, "--record: .*missing"):
            record.check(Path(tmp) / "missing")

    def test_on_request(self) -> None:
        job = MagicMock(seconds=1.0)
        job.name, job.run.return_value = "pairs", self.report
        for words, count in (([], 0), (["--record"], 1)):
            args = parser().parse_args(["pairs", *words])
            with patch("sandpaper_bench.cli.record.write") as write, \
                    contextlib.redirect_stdout(io.StringIO()), \
                    contextlib.redirect_stderr(io.StringIO()):
                run_jobs(args, [job], MagicMock(), [Journal()], None)
            self.assertEqual(write.call_count, count)


class Continuing(unittest.TestCase):
    """A journal has each window, and an interrupted run goes on."""

    HEAD: ClassVar[dict[str, Any]] = {"code": {"code": "abc1234"}, "machine": {"cores": 2},
                      "options": {"seconds": 4.5, "seed": 1}}

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.path = Path(tmp.name) / f"fake{SUFFIX}"
        self.measured: list[int] = []

    def journal(self, **options: Any) -> Journal:
        head = self.HEAD | {"options": self.HEAD["options"] | options}
        found = Journal(head, self.path, {"command": "first"})
        found.begin({"unit_us": 2.5})
        return found

    def experiment(
        self, journal: Journal, killed_at: int = 0, whole: bool = False
    ) -> list[Any]:
        """Take three turns of two windows; an interrupt comes in one."""
        def window() -> Seen:
            if len(self.measured) + 1 == killed_at:
                raise KeyboardInterrupt
            self.measured.append(len(self.measured) + 1)
            return Seen("it", 1, self.measured[-1] / 3, 0, 0, 0, 0, 0, 0, 0,
                        0, 0, 0.0, 0, 0, [1, 2])

        return [journal.turn(f"turn {n}", lambda: (
            journal.window(window), journal.window(window)), whole)
            for n in range(3)]

    def test_each_window_is_on_the_disk_before_the_next(self) -> None:
        with patch("os.fsync", wraps=os.fsync) as synced:
            self.experiment(self.journal())
        lines = [json.loads(line) for line in
                 self.path.read_text().splitlines()]
        self.assertEqual([(x.get("turn"), x.get("window"))
                          for x in lines[1:4]],
                         [("turn 0", 1), ("turn 0", 2), ("turn 0", None)])
        self.assertEqual(synced.call_count, len(lines))

    def test_killed_between_windows_it_loses_one(self) -> None:
        whole = self.experiment(self.journal())
        for killed_at in range(1, 7):
            self.path.unlink()
            self.measured.clear()
            with self.assertRaises(KeyboardInterrupt):
                self.experiment(self.journal(), killed_at)
            journal = self.journal()
            found = self.experiment(journal)
            self.assertEqual(found, whole, killed_at)
            self.assertEqual(self.measured, [1, 2, 3, 4, 5, 6])
            self.assertEqual(journal.runs, 2)

    def test_a_turn_of_one_varnishd_is_measured_again(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.experiment(self.journal(), 4, whole=True)
        found = self.experiment(self.journal(), whole=True)
        self.assertEqual([[round(s.rps * 3) for s in turn] for turn in found],
                         [[1, 2], [4, 5], [6, 7]])

    def test_a_process_that_is_killed_while_it_writes(self) -> None:
        with self.assertRaises(KeyboardInterrupt):
            self.experiment(self.journal(), 4)
        with self.path.open("a") as file:
            file.write('{"turn":"turn 1","win')
        self.experiment(self.journal())
        self.assertEqual(self.measured, [1, 2, 3, 4, 5, 6])
        for line in self.path.read_text().splitlines():
            json.loads(line)

    def test_another_run_is_named(self) -> None:
        self.experiment(self.journal())
        with self.assertRaisesRegex(
                TestbedError, r"fake.* of another run \(options seconds was "
                r"4.5, is 2.0\): .*--anew"):
            self.journal(seconds=2.0)
        with self.assertRaisesRegex(TestbedError, "code code was abc1234, is "
                                    "def5678; machine cores was 2, is 4"):
            Journal(self.HEAD | {"code": {"code": "def5678"},
                                 "machine": {"cores": 4}}, self.path)

    def test_it_goes_on_with_the_first_run_s_units(self) -> None:
        self.journal()
        found = Journal(self.HEAD, self.path, {"command": "second"})
        found.begin({"unit_us": 9.9})
        self.assertEqual(found.calibration, {"unit_us": 2.5})
        self.assertEqual(found.about, {"command": "first"})
        folder = self.path.parent
        code, machine = self.HEAD["code"], self.HEAD["machine"]
        self.assertEqual(calibration(folder, code, machine),
                         {"unit_us": 2.5})
        self.assertEqual(calibration(folder, {}, machine), {})

    def test_each_kind_of_turn_comes_back(self) -> None:
        for value in (
                Line([1], [[2]], 1, 1.0), {25: Seen(
                    "a", 1, 0.1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, [])}):
            text = json.dumps(encode(value))
            self.assertEqual(decode(json.loads(text)), value)

    def test_a_command_as_it_is_published(self) -> None:
        for words in ("pairs --quick --json /tmp/a --record --seed 2",
                      "pairs --quick --record b --anew --seed 2 --json=c",
                      f"pairs --quick --seed 2 --record --json {BENCH}/a"):
            self.assertEqual(published("bench/x", words.split()),
                             "bench/x pairs --quick --seed 2")
        self.assertEqual(published("x", ["--json", "/tmp/my a", "--seed",
                                         "2"]), "x --seed 2")
        self.assertEqual(published("x", ["--stock", f"{BENCH}/a"]),
                         "x --stock bench/a")

    def test_what_decides_whether_it_is_the_same_run(self) -> None:
        where = bed()

        def head(*words: str) -> dict[str, Any]:
            args = parser().parse_args(list(words))
            args.command = " ".join(words)
            return make_head("pairs", args, where,
                             {"code": "a", "changes": None}, [])

        first = head("pairs")
        for same in ("pairs --json x --record y", "all",
                     "pairs --pairs c1-c3"):
            self.assertEqual(head(*same.split()), first)
        for other in ("pairs --seed 2", "pairs --turns 9", "pairs --quick",
                      "pairs --param a=b", "pairs --seconds 4",
                      "pairs --rate 2e9"):
            self.assertNotEqual(head(*other.split()), first)


class Customers(unittest.TestCase):
    """The VCL does each customer's work and no other's."""

    def test_units_of_work(self) -> None:
        text = vcl(Proxy("proxy", "127.0.0.1", 1, "192.0.2.1", 80, 81),
                   unit_us=10)
        for name, units in (("c1", 44), ("k0", 0)):
            block = text.split(f'"^{name}-(main|twin)', 1)[1].split("}")[0]
            self.assertEqual(block.count("regsuball"), units, name)

    def test_pairs_are_of_customers(self) -> None:
        check_names([n for p in PAIRS + MADE_UP_PAIRS for n in p])
        for name in ("c9", "C1-twin-twin", "-twin", ""):
            with self.assertRaisesRegex(TestbedError, "no customer"):
                check_names([name])

    def test_the_quick_experiment_knows_all(self) -> None:
        text = introduction([("C1", "c1-twin")])
        self.assertRegex(text, r"C1 .*Table 1\n *c1-twin .* 440 us of VCL")

    def test_all_pairs_of_the_paper(self) -> None:
        apart = {frozenset(p) for p in PAIRS if "-twin" not in p[1]}
        self.assertEqual(apart, set(map(
            frozenset, itertools.combinations(PUBLISHERS, 2))))
        self.assertEqual({(a, f"{a}-twin") for a in PUBLISHERS},
                         {p for p in PAIRS if "-twin" in p[1]})

    def test_no_two_customers_share_a_host(self) -> None:
        names = [n + twin for n in CUSTOMERS | PUBLISHERS
                 for twin in ("", "-twin")]
        self.assertEqual(len({host(n).lower() for n in names}), len(names))
        for name in CUSTOMERS:
            self.assertEqual(len(host(name)), len(host(f"{name}-twin")))


class NginxToo(unittest.TestCase):
    """The paper's other proxy has the same customers."""

    def test_its_configuration_is_one(self) -> None:
        proxy = Proxy("proxy", "127.0.0.1", 8080, "127.0.0.1", 8081, 8082)
        with tempfile.TemporaryDirectory() as folder:
            text = configuration(proxy, Path(folder), 2, 0.5)
            conf = Path(folder) / "nginx.conf"
            conf.write_text(text)
            if all(m.exists() for m in (PROGRAM, *MODULES)):
                subprocess.run([str(PROGRAM), "-t", "-q", "-c", str(conf)],
                               check=True, timeout=60)
        self.assertIn("worker_processes 2;", text)
        self.assertIn("server_name c1-main.example c1-twin.example;", text)
        self.assertIn("work(880)", text)
        self.assertEqual(text.count("{"), text.count("}"))


class Loadgen(unittest.TestCase):
    """The load generator against the real origin, on loopback."""

    origin: subprocess.Popen[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = build_loadgen()
        cls.port = free_port()
        cls.origin = subprocess.Popen(
            [sys.executable, str(BENCH / "origin.py"), "127.0.0.1",
             str(cls.port)], stdout=subprocess.PIPE, text=True)
        assert cls.origin.stdout is not None
        assert cls.origin.stdout.readline() == "ready\n"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.origin.kill()
        cls.origin.wait()
        assert cls.origin.stdout is not None
        cls.origin.stdout.close()

    def run_loadgen(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.program), *args], text=True,
                              capture_output=True, timeout=TIMEOUT,
                              check=False)

    def load(
        self, group: str, seconds: float = TIMEOUT // 2
    ) -> dict[str, Any]:
        done = self.run_loadgen("-w", "0", "-t", str(seconds),
                                f"127.0.0.1:{self.port}", group)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["start", "end"])
        found: dict[str, Any] = json.loads(lines[2])["groups"][0]
        return found

    def test_what_is_asked_after_the_window_does_not_wait_in_it(self) -> None:
        for _ in range(20):  # each misses with 3 in 8
            seen = self.load("host=a,path=/bytes/100,conns=8", 0.02)
            self.assertLess(seen["max_s"], 1)

    def test_closed_loop_counts_each_answer_once(self) -> None:
        seen = self.load("host=a,path=/bytes/5000,conns=4,limit=400")
        self.assertEqual(seen["answered_in_all"], 400)
        self.assertEqual(seen["requests"], 400)
        self.assertEqual(sum(seen["slices"]), 400)
        self.assertEqual(seen["conn_mean"], 100)
        self.assertLessEqual(seen["conn_min"], 100)
        self.assertGreaterEqual(seen["conn_max"], 100)
        self.assertGreater(seen["bytes"], 400 * 5000)
        self.assertEqual(seen["bytes"] % 400, 0)
        self.assertEqual((seen["errors"], seen["not_200"]), (0, 0))
        self.assertLessEqual(seen["p50_s"], seen["p99_s"])

    def test_it_may_never_sleep(self) -> None:
        # Asks once a second: without -b it sleeps in between.
        def run(*options: str) -> int:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = self.run_loadgen(
                *options, "-w", "0", "-t", "1", f"127.0.0.1:{self.port}",
                "mode=open,rate=1,host=a,path=/bytes/9")
            self.assertEqual(done.returncode, 0, done.stderr)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_nvcsw - before.ru_nvcsw

        self.assertGreater(run(), 50)  # a tick is 10 ms
        self.assertLess(run("-b"), 20)

    def test_groups_load_in_their_phases_only(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1", "-p", "2", "-l", "0.2", "-q", "0.1",
            f"127.0.0.1:{self.port}",
            "name=a,host=a,path=/bytes/9,conns=2,phase=0",
            "name=b,host=b,path=/bytes/9,conns=2,phase=1",
            f"name=c,host=c,path=/bytes/9,to=127.0.0.1:{self.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[2])
        self.assertGreaterEqual(found["window_s"], 1.2)  # whole turns
        slices = [g["slices"] for g in found["groups"]]
        self.assertGreater(min(len(s) for s in slices), 11)
        # Of 0.1 s: settle, count, in turns.  On a busy machine a slice may
        # count nothing.
        for s, mine in zip(slices[:2], (1, 3), strict=True):
            self.assertGreater(sum(s[mine:12:4]), 0)
            self.assertEqual([n for i, n in enumerate(s[:12])
                              if n and i % 4 != mine], [])

    def test_other_statuses_are_counted(self) -> None:
        seen = self.load("host=a,path=/nothing,conns=2,limit=20")
        self.assertEqual((seen["requests"], seen["not_200"]), (20, 20))

    def test_open_loop_answers_what_was_due(self) -> None:
        seen = self.load("host=a,path=/bytes/9,mode=open,conns=20,rate=2000,"
                         "limit=100")
        self.assertGreaterEqual(seen["answered_in_all"], 100)
        self.assertEqual(seen["errors"], 0)

    def test_resets_read_no_whole_answer(self) -> None:
        seen = self.load("host=a,path=/bytes/10000000,mode=reset,conns=1,"
                         "rate=100,limit=5")
        self.assertEqual(seen["answered_in_all"], 5)
        self.assertEqual(seen["bytes"], 0)

    @contextlib.contextmanager
    def loaded(self, group: str) -> Iterator[socket.socket]:
        """Yield a server that the generator connects to meanwhile."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", str(TIMEOUT),
                 f"127.0.0.1:{server.getsockname()[1]}", group],
                stdout=subprocess.DEVNULL)
            try:
                yield server
            finally:
                load.kill()
                load.wait()

    def test_hosts_take_turns_by_connection(self) -> None:
        with self.loaded("host=many,conns=6,hosts=3") as server:
            peers = [server.accept()[0] for _ in range(6)]
            hosts = []
            for peer in peers:
                peer.settimeout(TIMEOUT)
                hosts.append(peer.recv(4096).split(b"\r\n")[1])
                peer.close()
        self.assertEqual(sorted(hosts), [
            b"Host: h%d.many" % n for n in (0, 0, 1, 1, 2, 2)])

    def test_what_is_still_owed_at_the_end_is_waited_for(self) -> None:
        for wait, unanswered in (("0", 1), (str(TIMEOUT), 0)):
            done = self.run_loadgen(
                "-w", "0", "-t", "0.2", "-d", wait,
                f"127.0.0.1:{self.port}", "host=a,path=/drip/100/200")
            seen = json.loads(done.stdout.splitlines()[2])["groups"][0]
            self.assertEqual(seen["unanswered"], unanswered)
            self.assertEqual((seen["waiting"], seen["errors"]), (1, 0))

    def test_an_answer_that_comes_twice(self) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", "1",
                 f"127.0.0.1:{server.getsockname()[1]}",
                 "host=a,mode=open,rate=1,conns=1"],
                stdout=subprocess.PIPE, text=True)
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                peer.recv(8192)
                peer.send(answer)
                peer.send(answer)
                out, _ = load.communicate(timeout=TIMEOUT)
        found = json.loads(out.splitlines()[2])["groups"][0]
        # An error if it came in one read with the first one.
        self.assertEqual(found["extra"] + found["errors"], 1)

    def test_connects_and_closes(self) -> None:
        seen = self.load("host=a,mode=connect,conns=10,rate=1000,limit=300")
        self.assertGreaterEqual(seen["answered_in_all"], 300)
        self.assertEqual(seen["errors"], 0)

    def test_pipelined_requests_are_answered_each(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "0.2", "-d", str(TIMEOUT),
            f"127.0.0.1:{self.port}", "host=a,path=/bytes/100,mode=pipe")
        seen = json.loads(done.stdout.splitlines()[2])["groups"][0]
        self.assertGreater(seen["sent_in_all"], 100)
        self.assertEqual(seen["answered_in_all"], seen["sent_in_all"])
        self.assertEqual((seen["unanswered"], seen["extra"]), (0, 0))

    def test_a_client_that_pauses(self) -> None:
        seen = self.load("host=a,path=/bytes/9,mode=paced,conns=5,rate=20",
                         1.0)
        # Each begins in another part of its period, and keeps to it
        self.assertLessEqual(seen["sent"], 5 * 21)
        self.assertGreater(seen["requests"], 5 * 2)
        self.assertLessEqual(seen["conn_max"], 21)
        self.assertEqual(seen["errors"], 0)

    def test_groups_that_load_for_some_time(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1.2", "-q", "0", f"127.0.0.1:{self.port}",
            "host=a,path=/bytes/9,from=0.4,till=0.8",
            "host=b,path=/bytes/9,mode=open,rate=500,conns=9,from=0.4,till=0.8")
        self.assertEqual(done.returncode, 0, done.stderr)
        for g in json.loads(done.stdout.splitlines()[2])["groups"]:
            self.assertEqual(sum(g["slices"][:4]), 0)
            self.assertGreater(sum(g["slices"][4:8]), 0)
            self.assertEqual(sum(g["slices"][8:]), 0)
            # Of its own time, not of all
            self.assertAlmostEqual(g["rps"], g["requests"] / 0.4, delta=1)

    def test_a_time_that_ends_before_it_begins(self) -> None:
        done = self.run_loadgen("127.0.0.1:1", "host=a,from=2,till=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("from 2 till 1", done.stderr)

    def test_each_stream_has_a_new_host(self) -> None:
        with self.loaded("host=xx,mode=h2,streams=20,random_host=1") as server:
            peer = server.accept()[0]
            peer.settimeout(TIMEOUT)
            got = b""
            while got.count(b".xx") < 20:
                more = peer.recv(65536)
                self.assertTrue(more)
                got += more
            peer.close()
        self.assertEqual(len(set(re.findall(rb"[0-9a-f]{16}[.]xx", got))), 20)

    def test_a_group_that_rests(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1.2", f"127.0.0.1:{self.port}",
            "host=a,path=/bytes/9,on=0.2,off=0.2",
            "host=b,path=/bytes/9,on=0.2,off=0.2,shift=0.2")
        found = json.loads(done.stdout.splitlines()[2])["groups"]
        # Slices of 0.1 s.  A busy machine may take one whole time away.
        for g, loads, rests in zip(found, (0, 2), (3, 1), strict=True):
            times = [sum(g["slices"][i:i + 2]) for i in range(loads, 12, 4)]
            self.assertGreater(sum(t > 0 for t in times), 1, g)
            self.assertEqual(sum(g["slices"][rests:12:4]), 0, g)

    def test_each_so_many_requests_are_dear(self) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        _, asked = self.answers("conns=1,path=/a,every=2", *[answer] * 4)
        self.assertEqual([b"/a?dear " in a for a in asked],
                         [False, True, False, True])

    def test_bodies_drip(self) -> None:
        with self.loaded("host=a,mode=post,rate=100,conns=1") as server:
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                said = b""
                while not said.endswith(b"\r\n\r\nxx"):
                    said += peer.recv(1)
        self.assertTrue(said.startswith(b"POST / HTTP/1.1\r\nHost: a\r\n"))
        self.assertIn(b"Content-Length: 1000000\r\n", said)

    def h2(self, group: str, frames: bytes) -> tuple[dict[str, Any], bytes]:
        """Answer an h2 connection with `frames`; return what it sent."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", "1",
                 f"127.0.0.1:{server.getsockname()[1]}",
                 f"host=a,conns=1,{group}"],
                stdout=subprocess.PIPE, text=True)
            said = b""
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                for byte in frames:  # wherever a frame is cut
                    peer.send(bytes([byte]))
                while piece := peer.recv(65536):
                    said += piece
                out, _ = load.communicate(timeout=TIMEOUT)
        return json.loads(out.splitlines()[2])["groups"][0], said

    def test_h2_streams(self) -> None:
        settings = bytes(3) + b"\x04\x00" + bytes(4)
        ok = bytes([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88])
        bad = bytes([0, 0, 1, 1, 4, 0, 0, 0, 3, 0x8d])
        data = bytes([0, 0, 2, 0, 1, 0, 0, 0, 3]) + b"ab"
        reset = bytes([0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 7])
        seen, said = self.h2("mode=h2,streams=10",
                             settings + ok + bad + data + reset)
        self.assertEqual(seen["answered_in_all"], 3)
        self.assertEqual(seen["not_200"], 2)
        self.assertEqual(seen["sent_in_all"], 13)
        self.assertEqual(seen["unanswered"], 10)
        self.assertTrue(said.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        self.assertIn(bytes(3) + b"\x04\x01" + bytes(4), said)

    def test_h2_floods(self) -> None:
        seen, said = self.h2("mode=h2-reset,rate=100", b"")
        self.assertGreater(seen["sent_in_all"], 10)
        self.assertLessEqual(seen["sent_in_all"], 101)
        self.assertIn(bytes([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]), said)
        _, said = self.h2("mode=h2-ping,rate=100", b"")
        self.assertIn(b"\x00\x00\x08\x06\x00\x00\x00\x00\x00sandpapr", said)

    def answers(self, group: str, *said: bytes) -> tuple[
            dict[str, Any], list[bytes]]:
        """Load one connection, answer with `said`; return what was asked."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", str(TIMEOUT),
                 f"127.0.0.1:{server.getsockname()[1]}",
                 f"host=a,limit={len(said)},{group}"],
                stdout=subprocess.PIPE, text=True)
            asked = []
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                for answer in said:
                    asked.append(peer.recv(8192))
                    with contextlib.suppress(ConnectionError):
                        for byte in answer:  # wherever the answer is cut
                            peer.send(bytes([byte]))
                out, _ = load.communicate(timeout=TIMEOUT)
        found: dict[str, Any] = json.loads(out.splitlines()[2])["groups"][0]
        return found, asked

    def test_chunked_answers(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        seen, _ = self.answers(
            "conns=1", head + b"1a\r\n" + b"0\r\n" * 8 + b"xx\r\n0\r\n\r\n",
            head + b"0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
        self.assertEqual((seen["answered_in_all"], seen["errors"]), (3, 0))

    def test_an_answer_that_is_not_chunked_as_it_says(self) -> None:
        seen, _ = self.answers(
            "conns=1", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
            b"\r\ntwo\r\n")
        self.assertEqual((seen["answered_in_all"], seen["errors"]), (0, 1))

    def test_sets_of_headers_take_turns(self) -> None:
        file = self.program.parent / "test.headers"
        file.write_text("A: 1\nB: 2\n\nC: 3, 4\n")
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        _, asked = self.answers(f"headers={file}", answer, answer, answer)
        start = b"GET / HTTP/1.1\r\nHost: a\r\n"
        self.assertEqual(asked, [start + rest for rest in (
            b"A: 1\r\nB: 2\r\n\r\n", b"C: 3, 4\r\n\r\n",
            b"A: 1\r\nB: 2\r\n\r\n")])

    def test_who_waits_at_the_end_is_a_latency(self) -> None:
        seen = self.load("host=a,path=/drip/1000/1,conns=1", seconds=2)
        self.assertEqual((seen["requests"], seen["waiting"]), (0, 1))
        self.assertGreater(seen["p99_s"], 0)
        self.assertEqual(seen["p99_s"], seen["max_s"])

    def test_who_never_reads_gets_no_answer(self) -> None:
        seen = self.load("host=a,path=/bytes/10000000,mode=stall,conns=3",
                         seconds=1)
        self.assertEqual((seen["requests"], seen["errors"]), (0, 0))

    def test_bad_arguments_are_named(self) -> None:
        for group, what in (("mode=fast,host=a", "mode 'fast' is not known"),
                            ("hots=a", "key 'hots' is not known"),
                            ("host", "'host' is not valid: use key=value"),
                            ("mode=open,host=a", "needs a rate"),
                            ("host=a,phase=1", "phase 1 is not allowed: use"),
                            ("host=a,headers=/nowhere", "'/nowhere': No"),
                            ("host=a,headers=/dev/null", "has no headers"),
                            ("conns=3", "needs host")):
            done = self.run_loadgen("127.0.0.1:1", group)
            self.assertEqual(done.returncode, 2, group)
            self.assertIn(what, done.stderr)


if __name__ == "__main__":
    unittest.main()
