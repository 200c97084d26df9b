# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper-bench: estimates, turns, options, refusals, the tenants' VCL."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import math
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest.mock import MagicMock, patch

from sandpaper_bench.ask import chosen_pairs, chosen_sizes
from sandpaper_bench.cli import main, make_job, make_jobs, record_name
from sandpaper_bench.customers import (
    CUSTOMERS,
    MADE_UP_PAIRS,
    PAIRS,
    check_names,
    host,
    units_of,
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
from sandpaper_bench.latency import LatencyTurn, offered
from sandpaper_bench.load import Group, GroupResult
from sandpaper_bench.nginx import MODULES, PROGRAM, configuration
from sandpaper_bench.options import ALL, parser, shorten
from sandpaper_bench.publishers import PUBLISHERS
from sandpaper_bench.quick import introduction, summary
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.remote import obey
from sandpaper_bench.rig import Plan
from sandpaper_bench.runner import Control, Job, Part
from sandpaper_bench.testbed import (
    Proxy,
    Testbed,
    TestbedError,
    core_mask,
    one_line,
    parse_cores,
)
from sandpaper_bench.timeline import Line, check_phase
from sandpaper_bench.variants import make_variants
from sandpaper_bench.varnish import Variant, Varnish, check_parameters

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
            GroupResult("a", 100, 10.0, 0.0, p99, p99, 0, 0, 0, 0, 1, 1, 1.0,
                        1, 1, [])
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
        rig = MagicMock(plan=plan)
        rig.kept = lambda _turn, measure, _whole: measure()
        part = Part("", {name: MagicMock(run=lambda _lab, name=name:
                                         order.append(name)) for name in "AB"},
                    resolved=lambda found: len(found["A"]) >= resolved_at)
        part.run(rig)
        return order

    def test_order(self) -> None:
        self.assertEqual("".join(self.order(Plan(turns=4), 1)), "ABBAABBA")

    def test_more_turns_only_while_unresolved(self) -> None:
        plan = Plan(turns=2, max_turns=5)
        self.assertEqual(len(self.order(plan, 3)), 6)
        self.assertEqual(len(self.order(plan, 99)), 10)

    def test_controls_need_keys_of_their_own(self) -> None:
        for keys, good in ((["", ""], False), (["", "a"], False),
                           (["a", "b", "a"], False), (["a", "b"], True),
                           ([""], True), ([], True)):
            parts = [Part("", {}, controls=[Control("", "", list, key)])
                     for key in keys]
            with (contextlib.nullcontext() if good
                  else self.assertRaisesRegex(AssertionError, "key")):
                Job(MagicMock(), parts)


class CommandLine(unittest.TestCase):
    """What the options mean."""

    def test_cores(self) -> None:
        self.assertEqual(parse_cores("0,2-4"), [0, 2, 3, 4])
        self.assertEqual(core_mask([0, 2, 3, 4]), "1d")
        for text in ("2-1", "²", "", "0,"):
            with self.assertRaisesRegex(TestbedError, f"'{text}' are not"):
                parse_cores(text)

    def test_who_is_named_needs_no_varnish(self) -> None:
        for name in ("utilization", "overhead"):
            args = parser().parse_args([
                name, "--variants", "nginx,sandpaper", "--customers", "c1"])
            self.assertEqual(make_job(name, args, bed()).customers, ["c1"])

    def test_sizes_that_are_none(self) -> None:
        self.assertEqual(chosen_sizes("--slots", "1,200"), [1, 200])
        for text in ("", "0", "1,x", "-5", "1,,2", "²"):
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
        with self.assertRaisesRegex(TestbedError, "no variant 'other'"):
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
                ("quik", "no experiment 'quik': did you mean quick\\?"),
                ("zzz", "no experiment 'zzz': use quick, pairs, all or"),
                ("pairs --record a/b", "--record a/b: use a file's name"),
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
                ("pairs --proxy-cores 4095",
                 "--proxy-cores 4095: this process may use only cores [0-9,]+"),
                ("pairs --json /proc/none/a", "/proc/none"),
                ("pairs --pairs c1-c3,c1-c3", "--pairs names c1-c3 2 times"),
                ("alone --customers c1,k0,c1", "--customers names c1 2"),
                ("utilization --clients 5,1,5", "--clients names 5 2"),
                ("workers --slots 1,01", "--slots names 1 2"),
                ("pairs --variants stock,stock", "--variants names stock 2"),
                ("pairs --variants=", "no variant '': use some of"),
                ("pairs --prelude /none.vcl", "/none.vcl"),
                ("pairs --stock /none", "no /none/sbin/varnishd.*--stock"),
                ("pairs --variants off --sandpaper /none",
                 "no /none/sbin/varnishd.*--sandpaper DIR"),
                ("content-change --loopback", "run it as root"),
                ("report --json /none", "/none: no such folder")):
            with self.subTest(arguments):
                self.refused(what, *arguments.split())

    def test_names_of_records(self) -> None:
        one, two = MagicMock(), MagicMock()
        one.name, two.name = "pairs", "scale"
        self.assertEqual(record_name(one, [one], None), "pairs")
        self.assertEqual(record_name(one, [one], ""), "pairs")
        self.assertEqual(record_name(one, [one], "x"), "x")
        self.assertEqual(record_name(one, [one, two], ""), "pairs")
        self.assertEqual(record_name(two, [one, two], "x"), "scale-x")

    def test_too_few_cores(self) -> None:
        every = ",".join(map(str, os.sched_getaffinity(0)))
        self.refused("are too few: .* --load-cores", "pairs",
                     "--proxy-cores", every)

        self.refused("utilization needs 2 cores", "utilization",
                     "--proxy-cores", "0", "--load-cores", "0")

    def test_what_a_program_says_is_one_line(self) -> None:
        self.assertEqual(one_line("Error: a\n\n  b\n"), "Error: a; b")
        self.assertEqual(len(one_line("x" * 9000)), 502)


class Asking(unittest.TestCase):
    """A command that soon ends, here or on another machine."""

    def test_one_that_does_not_end_has_failed(self) -> None:
        with (patch("sandpaper_bench.testbed.COMMAND_SECONDS", 0.01),
              patch("sandpaper_bench.remote.COMMAND_SECONDS", 0.01)):
            for words, said in ((["sleep", "9"], "timed out after 0.01"),
                                (["/none"], "No such file.*/none")):
                here = bed(shaped=False).ask("proxy", words)
                there = obey(json.dumps({"command": words, "data": ""}))
                self.assertEqual((here.returncode, here.stdout, here.stderr),
                                 there)
                self.assertEqual(here.returncode, 127)
                self.assertRegex(here.stderr, said)


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
                # There gcc leaves what it wrote when it is killed
                self.assertIn(f"TMPDIR={varnish._folder}",
                              varnish._command())
            finally:
                reaper.close()


    def test_one_that_fails_is_asked_for_a_short_time(self) -> None:
        bed = MagicMock()
        varnish = Varnish(Variant("stock", Path("/")), bed, MagicMock(), "",
                          Proxy("proxy", "", 1, "", 2, 3))
        varnish._folder = Path("/none")
        varnish._process = MagicMock()
        varnish._process.poll.side_effect = [None, 2]
        bed.ask.return_value = MagicMock(returncode=1, stdout="", stderr="")
        with self.assertRaises(OSError):  # there is no log
            varnish._await_child()
        command = bed.ask.call_args.args[1]
        self.assertLess(int(command[command.index("-t") + 1]), 5)

    @unittest.skipUnless("VARNISH_ROOT" in os.environ, "needs a varnishd")
    def test_a_wrong_parameter_is_found_before_the_start(self) -> None:
        root = Path(os.environ["VARNISH_ROOT"])
        where = bed(shaped=False)
        for parameter, said in (
                ("nonsense=1", 'did not start: .*parameter "nonsense"'),
                ("thread_pool_min=x", "did not start: .*")):
            with self.assertRaisesRegex(TestbedError, said):
                check_parameters(Variant("sandpaper", root, (parameter,)),
                                 where, "proxy")
        check_parameters(Variant("sandpaper", root, ("thread_pool_min=9",)),
                         where, "proxy")


class Customers(unittest.TestCase):
    """The VCL does each customer's work and no other's."""

    def test_units_of_work(self) -> None:
        text = vcl(Proxy("proxy", "127.0.0.1", 1, "192.0.2.1", 80, 81),
                   units_of({}, 10))
        for name, units in (("c1", 44), ("k0", 0)):
            block = text.split(f'"^{name}-(main|twin)', 1)[1].split("}")[0]
            self.assertEqual(block.count("regsuball"), units, name)

    def test_pairs_are_of_customers(self) -> None:
        check_names([n for p in PAIRS + MADE_UP_PAIRS for n in p])
        for name in ("c9", "C1-twin-twin", "-twin", ""):
            with self.assertRaisesRegex(TestbedError, "no customer"):
                check_names([name])

    def test_the_quick_experiment_knows_all(self) -> None:
        text = introduction([("C1", "c1-twin")], 8)
        self.assertRegex(text, r"C1 .*Table 1\n *c1-twin .* 440 us of VCL")
        self.assertIn("neighbour, 8 connections each.\n", text)

    def test_a_median_of_pairs_is_one(self) -> None:
        def pair(ratio: float) -> dict[str, object]:
            return {"variant": "stock", "ratio": ratio, "p99_s_a": 0.1,
                    "p99_s_b": 0.2}
        self.assertEqual(summary([pair(0.84)]),
                         "stock: min/max 0.84, worst p99 200 ms")
        self.assertIn("min/max 0.92 (median of 2 pairs),",
                      summary([pair(0.84), pair(1.0)]))

    def test_its_introduction_has_colours_where_it_is_written(self) -> None:
        for out, err in ((True, False), (False, True)):
            with (patch("sys.stdout", MagicMock(isatty=lambda out=out: out)),
                  patch("sys.stderr", MagicMock(isatty=lambda err=err: err)),
                  patch.dict(os.environ)):
                os.environ.pop("NO_COLOR", None)
                self.assertEqual("\x1b[1m" in introduction(
                    [("c1", "c3")], 8), err)

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
            text = configuration(proxy, Path(folder), 2, units_of({}, 0.5))
            conf = Path(folder) / "nginx.conf"
            conf.write_text(text)
            if all(m.exists() for m in (PROGRAM, *MODULES)):
                subprocess.run([str(PROGRAM), "-t", "-q", "-c", str(conf)],
                               check=True, timeout=60)
        self.assertIn("worker_processes 2;", text)
        self.assertIn("server_name c1-main.example c1-twin.example;", text)
        self.assertIn("work(880)", text)
        self.assertEqual(text.count("{"), text.count("}"))
