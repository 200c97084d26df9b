# SPDX-License-Identifier: BSD-2-Clause
"""A scenario is run, its log is replayed: under the same policy and weights it
has to give the same shares, under others those of the scenario under these."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import synthetic

from sandpaper_sim import cli, play
from sandpaper_sim.trace import read_csv
from sandpaper_sim.varnishlog import read_log

# Two cores, that are busy; shop and video would like more than they get.
SCENARIO = """\
cores = 2
seconds = 8
fetch_ms = { mean = 5 }

[[tenant]]
name = "shop"
weight = 1
connections = 40
cpu_us = { median = 2000, sigma = 0.7 }
link_us = 100

[[tenant]]
name = "video"
connections = 60
think_us = { mean = 2000 }
cpu_us = { mean = 600 }
link_us = { mean = 300 }
miss = 0.1

[[tenant]]
name = "api"
rate = 400
cpu_us = { median = 400, sigma = 0.5 }
"""
NEAR = 0.05                     # of what a replay has to say


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a log, recorded under mr3-rs."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "s.toml").write_text(SCENARIO)
    synthetic.write(folder / "s.toml", "mr3-rs", folder / "day.log")
    return folder


def replay(folder: Path, *argv: str) -> dict:
    out = folder / "out.json"
    cli.main(["replay", str(folder / "day.log"), "--jobs", "1",
              "--json", str(out), *argv])
    return json.loads(out.read_text())


def tenants(data: dict) -> dict[str, dict]:
    return {t["tenant"]: t for t in data["results"][0]["tenants"]}


@cache
def live(folder: Path, policy: str, text: str) -> list[dict]:
    """The scenario's own tenants."""
    file = folder / "live.toml"
    file.write_text(text)
    return play.simulate(str(file), "", policy, 1)["tenants"]


def shares(folder: Path, policy: str, text: str = SCENARIO,
           what: str = "share") -> dict[str, float]:
    return {t["tenant"]: t[what] for t in live(folder, policy, text)}


@pytest.mark.parametrize("policy", ["mr3-rs", "fifo", "2dfqe"])
def test_what_a_policy_would_have_done(day: Path, policy: str) -> None:
    got = tenants(replay(day, "--policy", policy))
    ran = shares(day, policy)
    for name, t in got.items():
        assert t["predicted"]["share"] == pytest.approx(
            ran[name], rel=NEAR), name
    if policy == "fifo":            # that it was not so all along
        assert ran["shop"] > 1.1 * got["shop"]["recorded"]["share"]


@pytest.mark.parametrize("weight", [0.25, 3])
def test_what_a_weight_would_have_done(day: Path, weight: float) -> None:
    got = tenants(replay(day, "--weight", f"shop={weight}"))
    ran = shares(day, "mr3-rs", SCENARIO.replace(
        "weight = 1", f"weight = {weight}"))
    for name, t in got.items():
        assert t["predicted"]["share"] == pytest.approx(
            ran[name], rel=NEAR), name
    assert abs(ran["shop"] / got["shop"]["recorded"]["share"] - 1) > 0.2


def test_what_a_limit_would_have_done(day: Path) -> None:
    got = tenants(replay(day, "--limit", "shop=0.1"))
    assert got["shop"]["predicted"]["share"] == pytest.approx(0.1, rel=NEAR)


def test_as_recorded(day: Path) -> None:
    """The log's own shares, and waits, are what the scenario had."""
    data = replay(day)
    got, ran = tenants(data), shares(day, "mr3-rs")
    for name, t in got.items():
        assert t["recorded"]["share"] == pytest.approx(ran[name], rel=0.01)
        assert t["predicted"]["wait_p50_ms"] == pytest.approx(
            t["recorded"]["wait_p50_ms"], rel=NEAR, abs=0.2)
    assert {n: t["loop"] for n, t in got.items()} == {
        "shop": "closed", "video": "closed", "api": "open"}
    assert data["parameters"]["serves"]["cores"] == 2
    assert data["parameters"]["capacity"] == [pytest.approx(1, abs=0.02), 1]


def test_a_server_that_has_other_work(day: Path) -> None:
    """The log has four fifths of the CPU time: that is the capacity, and with
    it as many requests are predicted."""
    out = day / "busy"
    out.mkdir()
    synthetic.write(day / "s.toml", "mr3-rs", out / "day.log", logged=0.8)
    got = replay(out, "--policy", "fifo", "--cores", "2")
    assert got["parameters"]["capacity"] == [pytest.approx(0.8, abs=0.02), 1]
    for name, share in shares(day, "fifo", what="cpu_share").items():
        assert tenants(got)[name]["predicted"]["cpu_share"] == pytest.approx(
            0.8 * share, rel=NEAR)


def test_what_is_said_of_loops(day: Path) -> None:
    """As an open loop shop gets no more than it asked for."""
    got = tenants(replay(day, "--policy", "fifo", "--open", "shop",
                         "--closed", "api=80"))
    assert got["shop"]["loop"] == "open"
    assert got["api"]["loop"] == "closed"
    assert got["shop"]["predicted"]["share"] <= \
        got["shop"]["recorded"]["share"]
    assert got["api"]["predicted"]["share"] > \
        2 * got["api"]["recorded"]["share"]


def test_the_trace_of_a_log(day: Path) -> None:
    """It is the same without connections; as it is, an open loop."""
    replay(day, "--trace", str(day / "day.csv"))
    log, trace = read_log(day / "day.log"), read_csv(day / "day.csv")
    assert trace.tenants == log.tenants
    same = ["arrival", "cpu", "net", "fetch", "tenant"]
    assert trace.rows[same].tolist() == log.rows[same].tolist()
    out = day / "out.json"
    cli.main(["replay", str(day / "day.csv"), "--jobs", "1", "--json",
              str(out), "--cores", "2", "--closed", "shop=40"])
    data = json.loads(out.read_text())
    assert {n: t["loop"] for n, t in tenants(data).items()} == {
        "shop": "closed", "video": "open", "api": "open"}
    assert "recorded" not in data["results"][0]["tenants"][0]


def test_connections_come_and_go(tmp_path: Path) -> None:
    """One from 0 on, one from 10 to 20 s: of 1 ms, then a pause of 1 ms."""
    lines = []
    for c, begin, end in ((1, 0, 30_000), (2, 10_000, 20_000)):
        for k, ms in enumerate(range(begin, end, 2)):
            v = c * 10**6 + k
            lines += [f"{v} Begin c req {c} rxreq",
                      f"{v} Timestamp c Enqueue: {ms / 1000:.6f} 0.0 0.0",
                      f"{v} Timestamp c Resp: {ms / 1000 + .001:.6f} 0 0",
                      f"{v} Sandpaper c a 0.0 0.001 0.0 0.001 1 m"]
    (tmp_path / "day.log").write_text("\n".join(lines))
    a = tenants(replay(tmp_path, "--cores", "2"))["a"]
    assert a["loop"] == "closed"
    # On two cores a request's 1 ms takes as long as it did.
    assert a["predicted"]["requests_per_s"] == pytest.approx(
        a["recorded"]["requests_per_s"], rel=0.01)


@pytest.mark.parametrize(("argv", "says"), [
    (["--policy", "best"], "--policy: policy 'best': there are mr3-rs, "),
    (["--weight", "shop"], "'shop': NAME=W, 0.0009"),
    (["--weight", "shop=0"], "'shop=0': NAME=W, 0.0009"),
    (["--weight", "shp=2"], "--weight shp: no such tenant; there are "),
    (["--limit", "shop=2"], "'shop=2': NAME=PART, 0 to 1"),
    (["--closed", "shop=x"], "--closed shop=x: NAME, or NAME=CONNECTIONS"),
    (["--closed", "api", "--open", "api"], "--open api: it is said to be"),
    (["--capacity", "disk=1"], "--capacity disk: cpu or link"),
    (["--cores", "0"], "'0': a whole number, 1 to 65535"),
    (["--warm", "60"], "--warm 60: 0 to less than "),
    (["--link", "x"], "invalid choice: 'x' (choose from ")])
def test_bad_arguments(argv: list[str], says: str, day: Path,
                       capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        replay(day, *argv)
    assert e.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert says in err


def test_bad_files(tmp_path: Path,
                   capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,tenant,cpu_s,link_s\n"
                                    "0,a,1,0\n1,a,-1,0\n")
    (tmp_path / "day.log").write_text("")
    for name, says in (("t.csv", "t.csv:3: cpu_s: '-1': a number, 0 to"),
                       ("day.log", "day.log: no request in it"),
                       ("no.log", "no.log: No such file")):
        with pytest.raises(SystemExit) as e:
            cli.main(["replay", str(tmp_path / name)])
        assert e.value.code == 2
        assert says in capsys.readouterr().err
