# SPDX-License-Identifier: BSD-2-Clause
"""The papers' exact schedules, and that each figure does what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sandpaper_sim.figure import table
from sandpaper_sim.figures import crowd, twodfq_fig9_10, twodfq_fig11_13

Run = Callable[..., dict]


@pytest.fixture
def figure(run: Run, tmp_path: Path) -> Run:
    """Call it with a name and options: its JSON. It draws its plot, too."""
    def of(name: str, *options: str) -> dict:
        data = run(name, "--plot", str(tmp_path / "a.svg"), *options)
        assert (tmp_path / "a.svg").read_text().startswith("<?xml")
        assert list(data) == ["figure", "seed", "quick", "parameters",
                              "results", "paper"]
        return data
    return of


@pytest.mark.parametrize("name", ["2dfq-fig5", "2dfq-fig6"])
def test_schedules_of_2dfq(name: str, figure: Run) -> None:
    data = figure(name)
    assert all(r["same"] for r in data["results"])
    assert {r["policy"]: r["threads"] for r in data["results"]} == \
        data["paper"]["threads"]


def test_schedule_of_sandpaper(figure: Run) -> None:
    mr3, rs = figure("sandpaper-fig5")["results"]
    assert mr3["same"]
    assert (mr3["core_us"], rs["core_us"]) == (18, 24)


def test_small_tenants_beside_large_ones(figure: Run) -> None:
    data = figure("2dfq-fig8", "--quick")
    ratios = data["parameters"]["times_2dfq_at_50"]
    assert ratios["wfq"] >= 10
    assert ratios["wf2q"] >= 3.5
    # All tenants alike: the policies are, too.
    none = {r["policy"]: r["lag_sd_s"] for r in data["results"]
            if r["expensive"] == 0}
    assert none["wfq"] < 0.003 and none["2dfq"] < 0.003


def test_bounds(figure: Run) -> None:
    data = figure("sandpaper-fig10", "--quick")
    points = [r for r in data["results"] if "rfb_us" in r]
    assert len(points) == 6 * 3 * 3
    assert all(r["bound_us"] < r["rfb_us"] for r in points)
    by = {(*r["pair"], r["variant"], r["workers"]): r["bound_us"]
          for r in points}
    for (a, b, v, w), x in by.items():
        if a == "C1" and w == 120:
            assert x > by[a, b, v, 16]
    # What is not settled drifts apart; what is does not.
    for r in data["results"]:
        if r.get("variant") == "not settled":
            assert r["bound_us"][-1] > 3 * r["bound_us"][0]
        elif r.get("variant") == "settled":
            assert r["bound_us"][-1] < 3 * r["bound_us"][0]


def test_without_synchronisation_or_with_virtual_flows(figure: Run) -> None:
    data = figure("sandpaper-fig11", "--quick")
    for v in data["parameters"]["verdicts"]:
        assert v["rs_requests_per_s"] >= 0.995 * v["vf_requests_per_s"]
        assert v["rs_requests_per_s"] > v["vf_as_fair_requests_per_s"]


def test_unbounded(figure: Run) -> None:
    data = figure("unbounded", "--quick")
    by = {(r["policy"], r["queue"]): r for r in data["results"]}
    assert len(by) == 4
    slope = data["parameters"]["slope"]
    for policy in ("mr3-rs", "drfq"):
        r = by[policy, True]
        assert r["bound_us"][-1] == pytest.approx(
            slope * r["t_s"][-1] * 1e6, rel=0.01)
    for case in (("mr3", True), ("mr3-rs", False)):
        assert max(by[case]["bound_us"]) < data["parameters"]["rfb_us"]


def test_extra_workers(figure: Run) -> None:
    for r in figure("appendix-b", "--quick")["results"]:
        assert abs(r["mean"] - r["expected"]) < 3 * r["standard_error"]


def test_gaming(figure: Run) -> None:
    gain = {r["rule"]: r["gain"]
            for r in figure("gaming", "--quick")["results"]}
    assert gain.pop("mr3-rs") <= 1.05
    assert len(gain) == 3 and min(gain.values()) > 1.05


def test_what_was_found_is_kept(figure: Run, tmp_path: Path) -> None:
    def unbounded(*more: str) -> dict:
        return figure("unbounded", "--quick", *more)
    kept = "--keep", str(tmp_path / "kept")
    first = unbounded(*kept)
    files = sorted((tmp_path / "kept").iterdir())
    assert len(files) == 4
    files[0].unlink()           # as if interrupted before it was there
    times = {f: f.stat().st_mtime_ns for f in files[1:]}
    assert unbounded(*kept) == first == unbounded("--jobs", "2")
    assert {f: f.stat().st_mtime_ns for f in files[1:]} == times
    assert sorted((tmp_path / "kept").iterdir()) == files


def test_on_a_cluster(figure: Run) -> None:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False,
            dashboard_address=None) as cluster:
        far = figure("unbounded", "--quick", "--scheduler",
                     cluster.scheduler_address)
    assert far == figure("unbounded", "--quick")


def test_cheap_and_dear_tenants() -> None:
    first = {p: twodfq_fig9_10.quarters(
        twodfq_fig9_10.simulate("gap", 1.0, p, 1, 5, 10))[0]
        for p in twodfq_fig9_10.POLICIES}
    assert first["wfq"] > 10 * first["2dfq"]
    assert first["wf2q"] > 3 * first["2dfq"]


def test_tenants_that_cannot_be_predicted() -> None:
    """2DFQ^E against WFQ^E, two thirds unpredictable: t1's p99."""
    p99 = {v: twodfq_fig11_13.workload(0.66, v, 1, 20, 10)["p99_ms"][0]
           for v in ("wfqe", "2dfqe")}
    assert p99["wfqe"] > 3 * p99["2dfqe"]


def test_random_experiments_are_in_the_paper_s_ranges() -> None:
    many = [twodfq_fig11_13.parameters(n, 1) for n in range(150)]
    for key, least, most in (("threads", 2, 64), ("replayed", 0, 400),
                             ("speed", 0.5, 4), ("backlogged", 0, 100),
                             ("expensive", 0, 100),
                             ("unpredictable", 0, 100)):
        x = [m[key] for m in many]
        assert least <= min(x) < least + (most - least) / 10
        assert most - (most - least) / 10 < max(x) <= most
    found = twodfq_fig11_13.experiment(0, "2dfqe", 1, 1, 1)
    assert len(found["p99_ms"]) == len(crowd.FIXED)


def test_a_table() -> None:
    assert table(("name", "x"), [("a", 1.23456), ("longer", None)]) == [
        "name        x", "a       1.235", "longer      -"]
