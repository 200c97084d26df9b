# SPDX-License-Identifier: BSD-2-Clause
"""The experiment `load-check`: vegeta's result, and who agrees."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import MagicMock, patch

import pytest
from report_samples import check_turn, samples
from sandpaper_bench import overloadfigures, vegeta
from sandpaper_bench.cli import make_job
from sandpaper_bench.load import Group, Measurement
from sandpaper_bench.loadcheck import (
    LOADS,
    ORDER,
    CheckTurn,
    result,
    value,
    windows,
)
from sandpaper_bench.markdown import Records
from sandpaper_bench.options import parser
from sandpaper_bench.overloadcases import TENANT
from sandpaper_bench.testbed import Testbed, TestbedError
from test_experiments import Rehearsal, plan
from test_overload_bench import SEEN, WINDOW_S

GROUP = Group(TENANT, "a.example", conns=7, target=0.5)
BEGAN = 1_700_000_000


def line(number: int, at: float, status: int, took: float) -> str:
    """Return a request as vegeta writes it."""
    return (f"{round((BEGAN + at) * 1e9)},{status},{round(took * 1e9)},0,5,,"
            f",,{number},GET,http://a/,\n")


def seen(*requests: tuple[int, float, int, float]) -> vegeta.GroupResult:
    """Return what is seen of these in 2 s after 1 s, with 4 a second."""
    found = vegeta.answers("".join(line(*r) for r in requests), 4)
    return vegeta.seen(found, GROUP, 2.0, 1.0)


def test_what_counts() -> None:
    found = seen((0, 0.0, 200, 0.1), (3, 0.75, 200, 0.3), (5, 1.25, 200, 0.4),
                 (6, 1.5, 200, 0.6), (7, 1.75, 503, 0.001),
                 (8, 2.0, 429, 0.001), (9, 2.25, 404, 0.001),
                 (10, 2.5, 0, 0.3), (11, 2.75, 200, 0.5))
    # Answers in the window, and requests that are due in it
    assert (found.due, found.rps) == (7, 3.0)
    assert (found.good, found.refused) == (2, 2)
    assert (found.not_200, found.errors) == (3, 1)
    assert (found.p50_s, found.p99_s, found.max_s) == (
        pytest.approx(0.4), pytest.approx(0.6), pytest.approx(0.6))
    assert (found.name, found.connections) == (TENANT, 7)


def test_a_request_that_is_sent_late() -> None:
    found = seen((4, 1.1, 200, 0.45), (5, 1.25, 200, 0.3),
                 (6, 1.6, 200, 0.1))
    # The second one is in time: the first is due a quarter of a second before
    assert found.max_s == pytest.approx(0.55)
    assert found.good == 2
    assert found.behind_s == pytest.approx(0.2 / 3)


def test_no_answers() -> None:
    found = seen()
    assert (found.due, found.rps, found.p99_s) == (0, 0.0, 0.0)


def test_quantiles() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [vegeta.quantile(values, q) for q in (0.5, 0.99, 1.0)] == [
        50.0, 99.0, 100.0]
    assert vegeta.quantile([3.0], 0.01) == 3.0


def test_its_command() -> None:
    bed, reaper = MagicMock(), MagicMock()
    bed.ask.return_value = MagicMock(returncode=0, stdout=line(0, 0, 200, 1))
    vegeta.attack(bed, reaper, "127.0.0.1:80", replace(
        GROUP, rate=150.4, path="/x"), 2.0, 1.5)
    assert bed.write.call_args.args[2] == (
        b"GET http://127.0.0.1:80/x\nHost: a.example\n")
    words = " ".join(bed.command.call_args.args[1])
    assert "-rate 150/1s -duration 3.5s -max-workers 7 " in words
    assert bed.ask.call_args.args[1][:4] == ["vegeta", "encode", "-to", "csv"]
    bed.ask.return_value = MagicMock(returncode=1, stderr="no\nsuch file\n")
    with pytest.raises(TestbedError, match="^vegeta: such file$"):
        vegeta.attack(bed, reaper, "127.0.0.1:80", GROUP, 2.0, 1.0)


def test_without_vegeta() -> None:
    with (patch("sandpaper_bench.vegeta.shutil.which", return_value=None),
          pytest.raises(TestbedError, match="^load-check needs vegeta, which "
                        "is not in PATH: install Go .* go install ")):
        make_job("load-check", parser().parse_args(["load-check"]),
                 MagicMock(shaped=True))


def test_what_is_asked_for() -> None:
    rig = Rehearsal()
    job = plan("load-check", "--controllers", "seda,time", "--turns", "1")
    rig.run(job)
    assert [v.name for v in job.ask.variants] == ["time"]
    assert (job.sleeps, rig.bed.sleeps) == (True, False)
    specs = [spec for _, _, [spec] in rig.load.asked]
    rates = [float(re.findall(r"rate=([\d.]+)", s)[0]) for s in specs]
    assert rates == [0, *[800] * 4, 0, *[1000] * 4, 0, *[2000] * 4, 0]
    for spec, rate in zip(specs, rates, strict=True):
        assert ("mode=open,conns=2000," in spec) == (rate > 0)
        assert ("even=1" in spec) == (rate > 0)


def test_a_load_that_sleeps() -> None:
    bed = Testbed(MagicMock(), [0], [1], loopback=True)
    assert bed.busy
    bed.sleeps = True
    assert not bed.busy


def test_a_turn() -> None:
    def window(**found: float) -> Measurement:
        return Measurement(WINDOW_S, 2.0, 0.5, 0.0, {
            TENANT: replace(SEEN, **found)})

    found = value([
        window(rps=1000.0) if n % (1 + len(ORDER)) == 0
        else window(good=1600.0 + 10 * n, due=4000, refused=1000 + n)
        for n in range(len(windows()))])
    assert [*found.found] == [f"load {load:g}" for load in LOADS]
    both = found.found["load 1"]
    assert [o.goodput for o in both.ours] == [0.83, 0.845]
    assert [o.goodput for o in both.other] == [0.835, 0.84]


def changed(**fields: float) -> CheckTurn:
    """Return a turn in which vegeta saw something else."""
    turn = check_turn(0.02)
    both = turn.found["load 2"]
    return replace(turn, found={"load 2": replace(both, other=[
        replace(offer, **fields) for offer in both.ours])})


def test_who_agrees() -> None:
    for turn, differs in (
            (changed(), ""), (changed(goodput=0.86), ""),
            (changed(goodput=0.85), "goodput"), (changed(refused=0.5), ""),
            (changed(refused=0.61), "refused"), (changed(p99_s=0.017), ""),
            (changed(p99_s=0.016), "p99"), (changed(p99_s=0.026), "p99"),
            (changed(goodput=0.0, p99_s=0.0), "goodput, p99")):
        assert result(1, "time", "load 2", [turn] * 3)["differs"] == differs


def test_the_median_of_the_turns_decides() -> None:
    turns = [changed(), changed(goodput=0.1), changed(goodput=0.9)]
    row = result(1, "time", "load 2", turns)
    assert (row["differs"], row["goodput_quotient"]) == ("", 1.0)


def test_the_table() -> None:
    record = samples()["load-check"] | {
        "commit": "abc1234", "dirty": False, "date": "2026-11-28",
        "command": "bench/sandpaper-bench load-check"}
    text = overloadfigures.check(Records({"load-check": record},
                                         lambda _: False))
    assert ("| load 2 | 0.90, 0.92 | 0.98 (0.98 to 0.98) | 0.55, 0.55 "
            "| 10.0, 10.0 | 20.0, 19.0 | 1.05 (1.05 to 1.05) | agree |") in text
    assert "load-check --record" in overloadfigures.check(
        Records({}, lambda _: False))
