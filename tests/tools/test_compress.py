# SPDX-License-Identifier: BSD-2-Clause
"""The experiment `compress`: its page, rules, links and figures."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import pytest
from common import ROOT, needs_varnish
from report_samples import (
    SampleRig,
    compress_results,
    compress_turn,
    samples,
)
from sandpaper_bench import compress, compressfigures
from sandpaper_bench.cli import main, make_job
from sandpaper_bench.compress import (
    AUTO,
    COMPRESSED,
    HEADERS,
    PLAIN,
    RATES,
    RULE,
    SIZE,
    Linked,
    compared,
    text,
    vcl,
)
from sandpaper_bench.markdown import NOT_YET, Records
from sandpaper_bench.options import parser
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.runner import Job
from sandpaper_bench.table import link_text
from sandpaper_bench.testbed import (
    RATE_BPS,
    Testbed,
    TestbedError,
    may_make_namespaces,
)
from test_experiments import Rehearsal, plan

NIC_RATE = "sandpaper_nic_rate="
LINKS = ["200 Mbit/s", "1 Gbit/s", "10 Gbit/s"]
needs_namespaces = pytest.mark.skipif(
    not may_make_namespaces() or len(os.sched_getaffinity(0)) < 2,
    reason="needs root and two cores")


def turns_of(job: Job, variant: str) -> list[Linked]:
    """Return a variant's turn with each link."""
    found = [p.turns[variant] for p in job.parts]
    assert all(isinstance(turn, Linked) for turn in found)
    return found  # type: ignore[return-value]


def test_the_page_is_text_that_compresses() -> None:
    for seed in range(1, 5):
        page = text(seed)
        assert len(page) == SIZE
        assert page == text(seed)
        assert 0.43 < len(zlib.compress(page, 6)) / SIZE < 0.45
    assert text(1) != text(2)


def test_the_rule_is_that_of_the_example() -> None:
    example = compress.EXAMPLE.read_text()
    [its] = RULE.findall(example)
    assert its == "sandpaper.save(net)"
    for rule in ("", "false", "true"):
        found = vcl(rule)
        assert (its in found) == (rule == "")
        assert f" {rule}) {{" in found or not rule
        assert "vcl 4.1" not in found
        assert "backend shop" not in found
        for line in example.splitlines():
            if line.startswith(("sub ", "import ")):
                assert line in found


def test_an_example_without_the_rule(tmp_path: Path) -> None:
    changed = tmp_path / "compress.vcl"
    changed.write_text("vcl 4.1;\n")
    with (patch.object(compress, "EXAMPLE", changed),
          pytest.raises(TestbedError, match="has no rule that can")):
        vcl("true")


def test_links() -> None:
    assert [compress.link(rate) for rate in RATES] == LINKS
    job = plan("compress")
    assert [p.name for p in job.parts] == LINKS
    for turn, rate in zip(turns_of(job, AUTO), RATES, strict=True):
        assert turn.rate_bps == rate
        assert [p for p in turn.servers[0].parameters if NIC_RATE in p] == [
            f"{NIC_RATE}{rate / 1e6:.0f}M"]


def test_param_is_stronger() -> None:
    job = plan("compress", "--param", f"{NIC_RATE}0")
    for turn in turns_of(job, PLAIN):
        # varnishd takes the last value of a parameter
        assert [p for p in turn.servers[0].parameters if NIC_RATE in p][
            -1] == f"{NIC_RATE}0"


def test_what_is_asked_for() -> None:
    rig = Rehearsal()
    job = plan("compress", "--turns", "1")
    rig.run(job)
    specs = [spec for _, _, [spec] in rig.load.asked]
    # Plain twice, with each link
    assert len(specs) == 4 * len(RATES)
    for spec in specs:
        assert "conns=50," in spec
        assert "headers=shop.headers" in spec
    assert {s for _, s, _ in rig.load.asked} == {4.5 + 1.0 + 1.0}
    assert rig.bed.shaped_to.call_count == 3 * len(RATES)
    assert [*job.pages] == ["text"]
    assert len(job.pages["text"]) == SIZE


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    job = plan("compress", "--turns", "2")
    first, second = (Rehearsal(tmp_path / "windows") for _ in range(2))
    whole = first.run(job)
    assert second.run(job)["results"] == whole["results"]
    assert second.load.asked == []


def test_the_order_of_turns() -> None:
    part = plan("compress").parts[0]
    assert [name for number in (1, 2) for name, _ in part.order(number)] == [
        PLAIN, COMPRESSED, AUTO, AUTO, COMPRESSED, PLAIN]
    assert [turn.before is not None for turn in part.turns.values()] == [
        True, False, False]  # type: ignore[attr-defined]


def test_the_origin_serves_the_page(tmp_path: Path) -> None:
    rig, put = SampleRig(), {}
    rig._origin = SimpleNamespace(  # type: ignore[assignment]
        folder=tmp_path, put=put.__setitem__)
    rig.bed.bring = lambda role, path: None  # type: ignore[method-assign]
    rig.publish({"text": b"abc"})
    assert put == {"text": b"abc"}
    assert rig.headers("shop", HEADERS).read_text() == HEADERS


def test_where_it_cannot_run() -> None:
    for mode in ("loopback", "hosts"):
        bed = Testbed(MagicMock(), [0], [1], loopback=True)
        bed.mode = mode
        with (contextlib.redirect_stderr(io.StringIO()),
              pytest.raises(TestbedError, match="^compress needs links of "
                            "several rates: run it as root")):
            make_job("compress", parser().parse_args(["compress"]), bed)


def test_it_needs_sandpaper() -> None:
    with pytest.raises(TestbedError, match="compress needs Sandpaper's "
                       "congestion: use --variants"):
        plan("compress", "--variants", "stock")


def test_a_result() -> None:
    row = compress.result(
        COMPRESSED, 1e9, [compress_turn(x, 44.0) for x in (
            400.0, 500.0, 450.0)], 1, 1)
    assert (row["link"], row["rps"], row["bytes"]) == (
        "1 Gbit/s", 450.0, 44_000)
    assert row["rps_ci"] == [400.0, 500.0]
    assert (row["busy"], row["cpu_us"]) == (0.5, pytest.approx(1111.1))
    assert row["ratio"] is row["goal"] is None


def test_the_better_of_both() -> None:
    def found(plain: float, other: float) -> dict[str, Any]:
        return compared(1e9, {
            name: [compress_turn(rate)] * 3 for name, rate in (
                (PLAIN, plain), (COMPRESSED, other), (AUTO, 900.0))}, 1)

    for plain, other, best, ratio in (
            (1000.0, 450.0, PLAIN, 0.9), (450.0, 1000.0, COMPRESSED, 0.9),
            (600.0, 450.0, PLAIN, 1.5)):
        row = found(plain, other)
        assert (row["best"], row["over_best"]) == (best, ratio)
        assert row["over_plain"] == 900.0 / plain
        assert (row["ratio"], row["goal"]) == (ratio, 0.97)
        assert row["against"] == compress.BEST


def test_the_ratio_is_that_of_each_turn() -> None:
    # Twice as fast a machine in the second turn changes no quotient
    row = compared(200e6, {name: [compress_turn(rate * x) for x in (
        1, 2, 1)] for name, rate in (
            (PLAIN, 200.0), (COMPRESSED, 400.0), (AUTO, 380.0))}, 1)
    assert (row["over_plain"], row["over_best"]) == (1.9, 0.95)
    assert row["over_plain_ci"] == [1.9, 1.9]
    assert (row["against"], row["goal"]) == (PLAIN, 1.5)


def record(*auto: float) -> dict[str, Any]:
    """Return a record in which `auto` has so many times plain's rate."""
    good = {"what": "it", "turns": 4, "ratio": 1.0, "ratio_ci": [0.99, 1.01],
            "covers_one": True}
    return samples()["compress"] | {
        "results": compress_results(SampleRig(), auto or (1.6, 0.95, 0.98)),
        "control": {name: {**good, "what": name} for name in LINKS},
        "commit": "abc1234", "dirty": False, "date": "2026-11-28",
        "command": "bench/sandpaper-bench compress"}


def table_of(found: dict[str, Any]) -> str:
    """Return the tables of a record."""
    return compressfigures.compress(
        Records({"compress": found}, lambda _: False))


def test_the_table() -> None:
    said = table_of(record())
    for line in (
            "| 200 Mbit/s | 1,000 (1000 to 1000) | 800 (800 to 800) | 1,600 "
            "(1600 to 1600) | 1.60 (1.60 to 1.60) | 1.60 (1.60 to 1.60) | "
            "over plain 1.5 | met |",
            "| over the better of both 0.97 | missed |",
            "| over plain 0.97 | met |",
            "| 10 Gbit/s | 500, 625, 510 | 100.0, 44.0, 60.0 |",
            "link of 0.2, 1, 10 Gbit/s", "commit abc1234",
            "Control, 1 Gbit/s: 1.00"):
        assert line in said


def test_a_bad_control_is_of_its_link() -> None:
    found = record()
    found["control"]["1 Gbit/s"] |= {"ratio_ci": [0.98, 0.99],
                                     "covers_one": False}
    said = table_of(found)
    assert said.count("| met |") == 2
    assert said.count("| not valid |") == 1


def test_without_a_record() -> None:
    said = compressfigures.compress(Records({}, lambda _: False))
    assert NOT_YET in said.lower()
    assert "`bench/sandpaper-bench compress --record`" in said


def test_links_of_a_report() -> None:
    machine = {"machine": {"link_bits_per_second": RATE_BPS}, "results": []}
    assert link_text(record()) == "0.2, 1, 10 Gbit/s"
    assert link_text(machine) == "1.25 Gbit/s"
    machine["machine"] = {"link_bits_per_second": None}
    assert link_text(machine) == ""


def limits(bed: Testbed) -> list[int]:
    """Return the limits of the links, bits/s."""
    found = []
    for p in bed.proxies:
        said = subprocess.run(
            bed.inside(p.role, ["tc", "-j", "qdisc", "show", "dev",
                                "client"]),
            capture_output=True, text=True, check=True)
        [tbf] = [q for q in json.loads(said.stdout) if q["kind"] == "tbf"]
        found.append(tbf["options"]["rate"] * 8)
    return found


@needs_namespaces
def test_a_link_of_another_rate() -> None:
    cores, reaper = sorted(os.sched_getaffinity(0)), Reaper()
    bed = Testbed(reaper, cores[:1], cores[1:])
    try:
        bed.up()
        assert limits(bed) == [RATE_BPS] * 2
        with contextlib.suppress(KeyError), bed.shaped_to(200e6):
            assert limits(bed) == [200e6] * 2
            raise KeyError
        assert limits(bed) == [RATE_BPS] * 2
    finally:
        reaper.close()
        os.sched_setaffinity(0, cores)


@needs_varnish
@needs_namespaces
def test_it_runs(tmp_path: Path) -> None:
    """Plain answers fill the slow link, and compressed ones are small."""
    cores = sorted(os.sched_getaffinity(0))
    try:
        with patch.dict(compress.RATES, {200e6: (PLAIN, 1.5)}, clear=True):
            assert main([
                "compress", "--sandpaper", ROOT, "--turns", "1",
                "--seconds", "1", "--warmup", "0", "--unit-us", "4",
                "--json", str(tmp_path), "--proxy-cores", str(cores[0])]) == 0
    finally:
        os.sched_setaffinity(0, cores)
    report = json.loads((tmp_path / "compress.json").read_text())
    plain, small, auto = report["results"]
    assert sum(r["errors"] for r in report["results"]) == 0
    # An answer may be in the window only in part
    assert plain["bytes"] == pytest.approx(SIZE, rel=0.2)
    assert small["bytes"] == pytest.approx(0.44 * SIZE, rel=0.2)
    assert 0.8 * small["bytes"] < auto["bytes"] < 1.2 * plain["bytes"]
    assert plain["rps"] * SIZE * 8 < 1.2 * 200e6
