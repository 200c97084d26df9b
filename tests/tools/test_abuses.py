# SPDX-License-Identifier: BSD-2-Clause
"""The abuses: their table, what fails one, and what is done to varnishd."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import unittest
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock, patch

from sandpaper_bench.abuse import (
    PROOF,
    Case,
    abuse_result,
    abused,
    dead_turn,
    failed,
    prove,
    settled,
)
from sandpaper_bench.abuses import ABUSES, Abuse
from sandpaper_bench.customers import units_of, vcl
from sandpaper_bench.faults import Faults, do, waits
from sandpaper_bench.load import Group, GroupResult, WorkerDied, build_loadgen
from sandpaper_bench.newhosts import (
    EVERY,
    HOSTILE,
    newcomer_script,
    proven_script,
    quotients,
    turns_script,
)
from sandpaper_bench.options import parser
from sandpaper_bench.soak import (
    REST_SECONDS,
    Holds,
    Phase,
    SoakTurn,
    calm,
    mixed,
    taken,
    unaccounted,
)
from sandpaper_bench.soak import failed as soak_failed
from sandpaper_bench.soak import result as soak_result
from sandpaper_bench.testbed import Proxy, TestbedError
from sandpaper_bench.variants import make_variants
from sandpaper_bench.varnish import Variant, without_stacks
from sandpaper_bench.work import with_work

ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 60  # seconds
GOOD = {"kept": 1.0, "fair": 1.0, "p99_times": 1.0, "settled_s": 0.1,
        "lost": 0, "died": 0, "undone": 0, "threads_most": 100,
        "memory_grown_mb": 1.0}


def counters(**values: int) -> dict[str, int]:
    """Return counters as varnishstat names them."""
    names = ("enqueued", "released", "completed", "cancelled", "refused",
             "shed", "waiting", "running", "lent")
    return {f"SANDPAPER.{n}": values.get(n, 0) for n in names}


SMAPS = """\
1000-9000 rw-p 00000000 00:00 0
Rss:        7 kB
Anonymous:  5 kB
9000-a000 ---p 00000000 00:00 0
Anonymous:  0 kB
a000-f000 rw-p 00000000 00:00 0
Anonymous: 99 kB
VmFlags: rd wr mr mw me ac sd
f000-ff00 rw-p 00000000 00:00 0
Anonymous:  9 kB
7f00a000-7f00b000 ---p 00000000 00:10 12  /lib/a.so
Anonymous:  0 kB
7f00b000-7f00c000 rw-p 00001000 00:10 12  /lib/a.so
Anonymous: 20 kB
"""


class Table(unittest.TestCase):
    """Each entry is something that can be run."""

    def test_loadgen_takes_every_group(self) -> None:
        program = build_loadgen()
        for name, abuse in (ABUSES | HOSTILE).items():
            for group in abuse.groups:
                done = subprocess.run(
                    [str(program), "-t", "0.01", "-w", "0", "127.0.0.1:1",
                     group.spec().replace("mark=7", "mark=0")],
                    capture_output=True, text=True, check=False,
                    timeout=TIMEOUT)
                self.assertEqual(done.returncode, 0, f"{name} {done.stderr}")

    @unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
    def test_varnishd_takes_the_vcl_of_all(self) -> None:
        proxy = Proxy("proxy", "127.0.0.1", 1, "127.0.0.1", 80, 81)
        parts = dict.fromkeys(
            a.vcl for a in (ABUSES | HOSTILE).values())
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "vcl"
            file.write_text(vcl(proxy, units_of({}, 100),
                                with_work("".join(parts), 100)))
            done = subprocess.run(
                [f"{ROOT}/sbin/varnishd", "-C", "-f", str(file), "-n",
                 f"{folder}/n"], capture_output=True, text=True,
                check=False, timeout=TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_fair_is_a_part_of_all(self) -> None:
        for name, abuse in ABUSES.items():
            self.assertTrue(0 < abuse.kept * abuse.fair < 1, name)
            if abuse.fair < 1:
                self.assertTrue(abuse.greedy, name)
            if abuse.firewall:
                self.assertTrue(abuse.needs, name)

    def test_a_soak_has_them_in_small(self) -> None:
        bed = MagicMock(mode="loopback")
        some = taken(bed)
        self.assertEqual(set(ABUSES) - set(some), {
            "dropped-acks", "blackhole", "probes", "restart",
            "no-descriptors"})
        groups = mixed(some)
        self.assertEqual(len({g.name for g in groups}), len(groups))
        self.assertLessEqual(max(g.conns for g in groups), 10)
        self.assertEqual({g.mark for g in groups}, {0})


class InventedHosts(unittest.TestCase):
    """Clients that invent Hosts, with and without a map."""

    def variant(self, name: str) -> Variant:
        args = parser().parse_args([name, "--variants", "sandpaper"])
        return make_variants(name, args, shaped=True)[0]

    def test_each_case_comes_with_and_without_a_map(self) -> None:
        found = {n for n in ABUSES if "-hosts-" in n}
        self.assertEqual(found, {
            f"{kind}{rest}" for kind in (
                "new-hosts-paced-404", "new-hosts-closed-404",
                "new-hosts-paced-200", "new-hosts-closed-200",
                "lasting-hosts-paced-200", "lasting-hosts-closed-200")
            for rest in ("", "-map")})

    def test_who_asks_what(self) -> None:
        for name, abuse in ABUSES.items():
            if "-hosts-" not in name:
                continue
            group, = abuse.groups
            self.assertEqual(group.conns, 400)
            self.assertEqual((group.mode, group.rate),
                             ("paced", 10) if "paced" in name
                             else ("closed", 0))
            self.assertEqual((group.random_host, group.hosts),
                             (0, 400) if "lasting" in name else (1, 0))
            self.assertIn("404" if "404" in name else "200", group.host)

    def test_without_a_map_the_settings_are_the_default(self) -> None:
        for name, abuse in ABUSES.items():
            variant = self.variant(name)
            rule = [p for p in variant.parameters if "new_hosts" in p]
            self.assertEqual(rule, [] if abuse.new else [
                "sandpaper_new_hosts=tenant"], name)
            self.assertEqual("sandpaper." in variant.prelude, abuse.mapped,
                             name)
            self.assertFalse(abuse.new and abuse.mapped, name)

    def test_what_the_victim_keeps(self) -> None:
        new = ABUSES["new-hosts-paced-404"]
        good = GOOD | {"fair": new.fair, "kept": 0.851, "p99_times": 3.9}
        self.assertEqual(failed(new, good), [])
        self.assertEqual(failed(new, good | {"kept": 0.849}), ["kept"])
        self.assertEqual(failed(new, good | {"p99_times": 4.1}), ["p99"])
        mapped = ABUSES["new-hosts-paced-404-map"]
        self.assertEqual(failed(mapped, GOOD | {
            "fair": mapped.fair, "kept": 0.451}), [])

    def test_what_an_abuse_needs_is_added(self) -> None:
        found = abused(Variant("it", Path(), ("a=1",), "# mine\n"),
                       Abuse(vcl="# its\n", parameters=("b=2",)))
        self.assertEqual(found.parameters, ("a=1", "b=2"))
        self.assertEqual(found.prelude, "# mine\n# its\n")

    def test_the_victim_is_proven_first(self) -> None:
        group = Group("k0", "k0-main.example")
        listed = '[2, ["sandpaper.list"], 1.5, {"list": [{%s}]}]'
        new = '"tenant": "k0-main.example", "group": "(new)"'
        said = [listed % new, listed % new,
                listed % '"tenant": "k0-main.example"']
        load, varnish = MagicMock(), MagicMock()
        varnish.cli.side_effect = [""] * PROOF + said + [""]
        prove(load, varnish, group)
        self.assertEqual(varnish.cli.call_count, PROOF + len(said) + 1)
        varnish.cli.assert_called_with("debug.sandpaper.age", "60")
        load.prime.assert_called_with(varnish, [group])
        self.assertEqual(load.prime.call_count, PROOF)

    def test_who_is_never_proven_is_said(self) -> None:
        varnish = MagicMock()
        varnish.cli.return_value = '[2, [], 1, {"list": []}]'
        with (patch("sandpaper_bench.abuse.PROOF_PATIENCE", 0),
              self.assertRaisesRegex(TestbedError, "a.example is no tenant")):
            prove(MagicMock(), varnish, Group("a", "a.example"))

    def test_only_where_the_rule_holds(self) -> None:
        on = Variant("sandpaper", Path("/"), ("sandpaper=on",))
        for name, variant, times in (
                ("new-hosts-paced-404", on, 1),
                ("new-hosts-paced-404-map", on, 0), ("connects", on, 0),
                ("new-hosts-paced-404", Variant("stock", Path("/")), 0)):
            case = Case(MagicMock(), ABUSES[name], Group("k0", "a"), variant)
            with patch("sandpaper_bench.abuse.prove") as proved:
                case._prime(MagicMock())
            self.assertEqual(proved.call_count, times, name)

    def test_a_proven_victim_in_time(self) -> None:
        script = proven_script(60, [10, 60])
        abuse, = EVERY["new-hosts-closed-404"].groups
        groups = script.groups(Group("k0", "a"), 1000, [abuse])
        times = {g.name: (g.since, g.till) for g in groups}
        self.assertEqual(times["abuser 0 0"], (70, 137))
        self.assertEqual(times["closed alone"], (60, 66))
        self.assertEqual(times["open alone"], (66, 70))
        self.assertEqual(times["closed 10 s"], (77, 83))
        self.assertEqual(times["closed 60 s"], (127, 133))
        self.assertEqual(times["closed alone again"], (140, 146))
        # One of the victim's groups asks at any time, from the start on
        at = 0.0
        for g in groups[1:]:
            self.assertEqual(g.since, at)
            at = g.till
        self.assertEqual(at, script.seconds)

    def test_turns_in_time(self) -> None:
        script = turns_script(1, 2)
        groups = script.groups(Group("k0", "a"), 0, [Group("x", "x")])
        times = {g.name: (g.since, g.till) for g in groups}
        self.assertEqual(times["abuser 0 0"], (7, 22))
        self.assertEqual(times["closed abused 0"], (10, 16))
        self.assertEqual(times["closed alone 0 again"], (25, 31))
        self.assertEqual(times["closed alone 1"], (31, 37))
        self.assertEqual(times["abuser 0 1"], (37, 52))
        rps = {"alone": 100, "abused": 80, "abused again": 90,
               "alone again": 120}
        found = quotients({"windows": {
            name: {"rps": rps[name.translate({ord(c): None for c in "01"})
                              .replace("closed ", "").replace("  ", " ")
                              .strip()], "p99_ms": 1}
            for name in times if name.startswith("closed")}})
        self.assertEqual(found, {
            "kept": 170 / 220, "p99 times": 1, "control": 1.2})

    def test_a_newcomer_in_time(self) -> None:
        script = newcomer_script(10, [60])
        groups = script.groups(Group("k0", "a"), 0, [Group("x", "x")])
        times = {g.name: (g.since, g.till) for g in groups}
        self.assertEqual(times, {
            "abuser 0 0": (0, 70), "closed first": (10, 16),
            "until 60 s": (16, 64), "closed 60 s": (64, 70),
            "until alone": (70, 73), "closed alone": (73, 79)})

    def test_quotients(self) -> None:
        def window(rps: float, p99: float) -> dict[str, float]:
            return {"rps": rps, "p99_ms": p99}

        self.assertEqual(quotients({"windows": {
            "closed alone": window(90, 1), "open alone": window(45, 1),
            "closed 10 s": window(80, 5), "open 10 s": window(45, 4),
            "closed alone again": window(110, 3),
            "open alone again": window(45, 3)}}), {
                "kept 10 s": 0.8, "p99 times 10 s": 2.5,
                "open p99 times 10 s": 2, "control": 110 / 90})


SAID = """\
CPU time: 12 holds, the longest 30.600 us by SPD_Gate, 99.99 % up to 25.100 us
         1.024 us 11
        32.768 us 1
wall clock: 12 holds, the longest 70.100 us by SPD_Begin, 99.99 % up to 70.000 us
        65.536 us 11
       131.072 us 1
"""


class Criteria(unittest.TestCase):
    """Each criterion fails alone."""

    def test_each(self) -> None:
        kind = Abuse(threads=100, memory_mb=16)
        self.assertEqual(failed(kind, GOOD), [])
        for name, value in (("kept", 0.89), ("p99_times", 2.1),
                            ("settled_s", 1.1), ("lost", 1), ("died", 1),
                            ("undone", 1), ("threads_most", 301),
                            ("memory_grown_mb", 16.1)):
            self.assertEqual(len(failed(kind, GOOD | {name: value})), 1, name)
        self.assertEqual(failed(Abuse(fair=0.5), GOOD | {
            "kept": 0.46, "fair": 0.5, "threads_most": 9999,
            "memory_grown_mb": 99}), [])

    def test_a_varnishd_that_died_fails(self) -> None:
        rig = MagicMock()
        rig.plan.seed = 1
        found = abuse_result(rig, "connects", "k0", "sandpaper",
                             [dead_turn(Group("k0", "a.example"))])
        self.assertEqual(found["failed"], "kept, settled, died")

    def test_settled(self) -> None:
        varnish = MagicMock()
        varnish.gauges.side_effect = [{"a": 1, "b": 0}, {"a": 0, "b": 0}]
        self.assertLess(settled(varnish, ["a", "b"]), 1)
        self.assertEqual(varnish.gauges.call_count, 2)

    def test_every_request_is_accounted_for(self) -> None:
        self.assertEqual(unaccounted(counters(
            enqueued=10, released=8, completed=4, cancelled=3, waiting=1,
            running=1, lent=1)), 0)
        self.assertEqual(unaccounted(counters(enqueued=10, completed=9)), 1)

    def test_a_soak(self) -> None:
        victim = GroupResult("k0", 100, 10.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0,
                             0.0, 0, 0, [])
        good = Phase(victim, 0.1, counters(), (30, 35), 100 * 2**20,
                     218, 700 * 2**20, 99, died=False, undone=0,
                     holds=Holds(9, 2e-4, "spd_dispatch", 1e-4, 2e-4))
        self.assertEqual(soak_failed([good, good]), [])
        for name, change in (
                ("died", {"died": True}), ("deeds", {"undone": 1}),
                ("lost", {"victim": replace(victim, unanswered=1)}),
                ("counters", {"counters": counters(enqueued=1)}),
                ("settled", {"settled_s": 2.0}),
                ("memory", {"rest_bytes": 105 * 2**20}),
                ("threads", {"rest_threads": 229}),
                ("lock", {"holds": replace(good.holds, cpu_s=1.1e-4)}),
                ("descriptors", {"descriptors": (30, 90)})):
            bad = replace(good, **change)
            if name == "memory":  # once is no leak
                self.assertEqual(soak_failed([good, bad, bad]), [])
                worse = replace(bad, rest_bytes=110 * 2**20)
                self.assertEqual(soak_failed([good, bad, worse]), [name])
                continue
            self.assertEqual(soak_failed([good, good, bad]), [name])
            if name != "threads":
                self.assertEqual(soak_failed([bad, good, good]), [name])

    def test_a_soak_in_which_a_process_dies_fails(self) -> None:
        rig, varnish = MagicMock(), MagicMock()
        rig.varnish.return_value.__enter__.return_value = varnish
        rig.plan.seconds = 180.0
        rig.load.check.side_effect = WorkerDied
        rig.load.disturbed.return_value = {"k0": GroupResult(
            "k0", 100, 10.0, 0.0, 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, [])}
        varnish.restarted.return_value = True
        varnish.descriptors.return_value = 30
        with patch("sandpaper_bench.soak.Faults") as faults:
            faults.return_value.__enter__.return_value = MagicMock(
                rss_bytes=2**20, threads=9, errors=[])
            phases = SoakTurn(Variant("sandpaper", Path()), 100).run(rig)
        found = soak_result("sandpaper", 180.0, phases)
        self.assertEqual((found["failed"], found["soaked_s"]), ("died", 60.0))
        json.dumps(found, allow_nan=False)

    def test_a_rest(self) -> None:
        varnish = MagicMock()
        varnish.descriptors.return_value = 32
        varnish.heap_bytes.return_value = 50 * 2**20
        varnish.threads.return_value = 218
        varnish.restarted.return_value = varnish.panicked.return_value = False
        # A fetch that goes on ends while the counters are read
        varnish.gauges.side_effect = [
            {"SANDPAPER.running": 0}, counters(enqueued=3, lent=2),
            counters(enqueued=3, completed=1, lent=1),
            counters(enqueued=3, completed=2, lent=1),
            counters(enqueued=3, completed=2, lent=1)]
        varnish.cli.return_value = SAID
        faults = MagicMock(rss_bytes=700 * 2**20, threads=9, errors=["a: no"])
        with patch("sandpaper_bench.soak.time.sleep") as sleep:
            phase = calm(varnish, faults, MagicMock(), 30)
        sleep.assert_called_once_with(REST_SECONDS)
        self.assertEqual(unaccounted(phase.counters), 0)
        self.assertEqual(phase.descriptors, (32, 32))
        self.assertEqual(
            phase.holds, Holds(12, 3.06e-5, "SPD_Gate", 2.51e-5, 7e-5))
        self.assertEqual((phase.rest_bytes, phase.rest_threads),
                         (50 * 2**20, 218))
        self.assertEqual(phase.most_bytes, 700 * 2**20)
        self.assertEqual((phase.most_threads, phase.died, phase.undone),
                         (9, False, 1))

    def test_memory_without_stacks(self) -> None:
        self.assertEqual(without_stacks(SMAPS), (5 + 9 + 20) * 1024)

    def test_a_process_that_dies_in_a_rest(self) -> None:
        varnish = MagicMock()
        varnish.restarted.return_value = True
        varnish.gauges.return_value = {}
        varnish.cli.return_value = SAID
        varnish.heap_bytes.side_effect = TestbedError("it has no /proc")
        faults = MagicMock(rss_bytes=700 * 2**20, threads=9, errors=[])
        with patch("sandpaper_bench.soak.time.sleep"):
            phase = calm(varnish, faults, MagicMock(lost=0), 30)
        self.assertEqual(soak_failed([phase]), ["died"])


class Actions(unittest.TestCase):
    """What is done to a varnishd, and how it ends."""

    def setUp(self) -> None:
        self.varnish = MagicMock(vcl_file=Path("/a.vcl"))
        self.varnish.threads.return_value = 7
        self.varnish.rss_bytes.return_value = 1

    def asked(self) -> list[str]:
        return [" ".join(c.args) for c in self.varnish.cli.mock_calls]

    def test_words(self) -> None:
        for action in ("vcl.load a {vcl}", "signal STOP", "descriptors 30",
                     "start"):
            do(self.varnish, action)
        self.assertEqual(do(self.varnish, "wait 5"), 5)
        self.assertEqual(self.asked(), ["vcl.load a /a.vcl", "start"])
        self.varnish.signal.assert_called_once_with("STOP")
        self.varnish.limit_descriptors.assert_called_once_with(30)
        self.varnish.adopt.assert_called_once_with()
        self.assertEqual(waits(["wait 5", "stop", "wait 2.5"]), 7.5)

    def test_what_was_begun_is_ended(self) -> None:
        for once in (False, True):
            self.varnish.cli.reset_mock()
            with Faults(self.varnish, ["a", "b", "c"], once) as faults:
                while not faults.done:
                    time.sleep(0.01)
            self.assertEqual(self.asked()[-3:], ["a", "b", "c"])
            self.assertEqual(len(self.asked()) % 3, 0)
        self.assertEqual(faults.threads, 7)

    def test_once_is_once_even_if_there_is_no_time(self) -> None:
        with Faults(self.varnish, ["a", "b"], once=True):
            pass
        self.assertEqual(self.asked(), ["a", "b"])
        with Faults(self.varnish, []):
            pass

    def test_what_can_not_be_done_is_said(self) -> None:
        self.varnish.cli.side_effect = TestbedError("no")
        with Faults(self.varnish, ["a"], once=True) as faults:
            pass
        self.assertEqual(faults.errors, ["a: no"])
