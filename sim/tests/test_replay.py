# SPDX-License-Identifier: BSD-2-Clause
"""A scenario is run, its log is replayed: under the same policy and weights it
has to give the same shares, under others those of the scenario under these."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from sandpaper_sim import play
from sandpaper_sim.recorded import loop_of
from sandpaper_sim.releaser import Records
from sandpaper_sim.server import pool
from sandpaper_sim.trace import REQUEST, Trace, read_csv
from sandpaper_sim.varnishlog import one_at_a_time, read_log
from sandpaper_sim.workload import generator, trace

# Two cores, that are busy; shop and video would like more than they get.  That
# video uses as much of the link as of the CPU it must not: such a tie is
# broken by chance, and eight seconds differ by 5 % from one seed to the next.
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
link_us = { mean = 200 }
miss = 0.1

[[tenant]]
name = "api"
rate = 400
cpu_us = { median = 400, sigma = 0.5 }
"""
Run = Callable[..., Any]
NEAR = 0.02                     # of what a replay has to say


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a log, recorded under mr3-rs."""
    folder = tmp_path_factory.mktemp("day")
    (folder / "s.toml").write_text(SCENARIO)
    synthetic.write(folder / "s.toml", "mr3-rs", folder / "day.log")
    return folder


@pytest.fixture
def replay(run: Run) -> Run:
    """Call it with a log's folder and options: the JSON of the replay."""
    return lambda folder, *argv: run("replay", str(folder / "day.log"), *argv)


def tenants(data: dict) -> dict[str, dict]:
    return {t["tenant"]: t for t in data["results"][0]["tenants"]}


def assert_predicted(got: dict[str, dict], ran: dict[str, float],
                     what: str = "share") -> None:
    assert {name: t["predicted"][what] for name, t in got.items()} == {
        name: pytest.approx(ran[name], rel=NEAR) for name in got}


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
def test_what_a_policy_would_have_done(
        day: Path, policy: str, replay: Run) -> None:
    got = tenants(replay(day, "--policy", policy))
    ran = shares(day, policy)
    assert_predicted(got, ran)
    if policy == "fifo":            # that it was not so all along
        assert ran["shop"] > 1.1 * got["shop"]["recorded"]["share"]


# With a small weight, a tenant's requests are long against its share: its share
# of eight seconds has a standard deviation of 2 % from seed to seed.
@pytest.mark.parametrize(("weight", "seconds"), [(0.25, 40), (3, 8)])
def test_what_a_weight_would_have_done(
        tmp_path: Path, weight: float, seconds: int, replay: Run) -> None:
    text = SCENARIO.replace("seconds = 8", f"seconds = {seconds}")
    (tmp_path / "s.toml").write_text(text)
    synthetic.write(tmp_path / "s.toml", "mr3-rs", tmp_path / "day.log")
    got = tenants(replay(tmp_path, "--weight", f"shop={weight}"))
    ran = shares(tmp_path, "mr3-rs", text.replace(
        "weight = 1", f"weight = {weight}"))
    assert_predicted(got, ran)
    assert abs(ran["shop"] / got["shop"]["recorded"]["share"] - 1) > 0.2


def test_what_a_limit_would_have_done(day: Path, replay: Run) -> None:
    got = tenants(replay(day, "--limit", "shop=0.1"))
    assert got["shop"]["predicted"]["share"] == pytest.approx(0.1, rel=NEAR)


def test_a_busy_link(tmp_path: Path, replay: Run) -> None:
    """Two that need the link most, and one that leaves it to them. A replay
    draws from the costs of each second: of 5 s its shares differ by 3 %."""
    text = "cores = 2\nseconds = 20\nlink_bits_per_s = 1e9\n"
    for name, n, more in (
            ("image", 80, "cpu_us = 150\nkbytes = { mean = 30 }"),
            ("film", 60, "cpu_us = 100\nkbytes = { median = 60, sigma = 0.7 }"),
            ("cgi", 40, "cpu_us = { mean = 3000 }\nkbytes = 2")):
        text += (f'[[tenant]]\nname = "{name}"\nconnections = {n}\n'
                 + more + "\n")
    (tmp_path / "s.toml").write_text(text)
    synthetic.write(tmp_path / "s.toml", "mr3-rs", tmp_path / "day.log")
    got = tenants(replay(tmp_path, "--weight", "image=3"))
    ran = shares(tmp_path, "mr3-rs", text.replace(
        'name = "image"', 'name = "image"\nweight = 3'))
    assert [t["predicted"]["dominant"] for t in got.values()] == [
        {"image": "link", "film": "link", "cgi": "cpu"}[n] for n in got]
    assert_predicted(got, ran)
    assert ran["image"] > 1.4 * got["image"]["recorded"]["share"]


def test_as_recorded(day: Path, replay: Run) -> None:
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


def test_a_server_that_has_other_work(day: Path, replay: Run) -> None:
    """The log has four fifths of the CPU time: that is the capacity, and with
    it as many requests are predicted."""
    out = day / "busy"
    out.mkdir()
    synthetic.write(day / "s.toml", "mr3-rs", out / "day.log", logged=0.8)
    got = replay(out, "--policy", "fifo", "--cores", "2")
    assert got["parameters"]["capacity"] == [pytest.approx(0.8, abs=0.02), 1]
    assert_predicted(tenants(got), {
        name: 0.8 * share for name, share in shares(
            day, "fifo", what="cpu_share").items()}, "cpu_share")


def test_what_is_said_of_loops(day: Path, replay: Run) -> None:
    """As an open loop shop gets no more than it asked for."""
    got = tenants(replay(day, "--policy", "fifo", "--open", "shop",
                         "--closed", "api=80"))
    assert got["shop"]["loop"] == "open"
    assert got["api"]["loop"] == "closed"
    assert got["shop"]["predicted"]["share"] <= \
        1.001 * got["shop"]["recorded"]["share"]
    assert got["api"]["predicted"]["share"] > \
        2 * got["api"]["recorded"]["share"]


def named(trace: Trace) -> list[tuple]:
    """Its requests, with names: a tenant's number is its place in the file."""
    same = ["arrival", "cpu", "net", "fetch"]
    return [(trace.tenants[t], *row) for t, row in zip(
        trace.rows["tenant"], trace.rows[same].tolist(), strict=True)]


def test_the_trace_of_a_log(day: Path, replay: Run, run: Run) -> None:
    """It is the same without connections; as it is, an open loop."""
    replay(day, "--trace", str(day / "day.csv"))
    log, trace = read_log(day / "day.log"), read_csv(day / "day.csv")
    assert named(trace) == named(log)
    data = run("replay", str(day / "day.csv"), "--cores", "2", "--closed",
               "shop=40")
    assert {n: t["loop"] for n, t in tenants(data).items()} == {
        "shop": "closed", "video": "open", "api": "open"}
    assert "recorded" not in data["results"][0]["tenants"][0]


def test_connections_come_and_go(tmp_path: Path, replay: Run) -> None:
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


def rows_of(requests: list[tuple[int, int, int]]) -> Records:
    """Of one tenant: (arrival, end, connection)."""
    rows = np.zeros(len(requests), REQUEST)
    for row, (arrival, end, connection) in zip(rows, requests, strict=True):
        row["arrival"], row["end"] = arrival, end
        row["connection"] = connection
    return rows


@pytest.mark.parametrize(("response", "pause", "closed"), [
    (10, 0, True), (10, 9, True), (10, 11, False)])
def test_a_closed_loop_waits_most_of_its_time(
        response: int, pause: int, closed: bool) -> None:
    cycle = response + pause
    loop = loop_of(rows_of([
        (k * cycle, k * cycle + response, c)
        for k in range(20) for c in range(5)]), None)
    assert loop.closed == closed
    assert set(loop.thinks) == {pause}
    assert loop.joins == [0] * 5


def test_an_open_loop_s_pool_of_connections_is_open() -> None:
    """Poisson arrivals at 0.8 of M/M/1, on the connection last used."""
    rng = generator(1, "pool")
    at = np.cumsum(rng.exponential(1.25e6, 20_000)).astype(int).tolist()
    server = pool("fifo", 1)
    server.tenant()
    trace(server, [(t, 0, int(c), 0) for t, c in zip(
        at, rng.exponential(1e6, len(at)), strict=True)])
    server.run(10**12)
    done = server.releaser.records()
    rows = rows_of([(int(r["arrival"]), int(r["end"]), 0) for r in done])
    rows["connection"] = one_at_a_time(rows)
    assert rows["connection"].max() < 100
    assert not loop_of(rows, None).closed


def test_without_keep_alive_it_is_open() -> None:
    assert not loop_of(rows_of(
        [(k, k + 10, k) for k in range(20)]), None).closed


@pytest.mark.parametrize(("argv", "says"), [
    (["--policy", "best"], "--policy: policy 'best' is not known: use "),
    (["--weight", "shop"], "'shop' is not allowed: use NAME=W, 0.001"),
    (["--reservation", "shop=0.9", "--limit", "shop=0.1"],
     "tenant shop: the reservation is above the limit: lower the "),
    (["--reservation", "shop=0.9", "--reservation", "api=0.9"],
     "the sum of all reservations is above 1: lower one of them"),
    (["--weight", "shop=0"], "'shop=0' is not allowed: use NAME=W, 0"),
    (["--weight", "shp=2"], "--weight shp: the file has no such tenant"),
    (["--limit", "shop=2"], "'shop=2' is not allowed: use NAME=PART, 0.001"),
    (["--limit", "shop=0"], "'shop=0' is not allowed: use NAME=PART, 0.001"),
    (["--closed", "shop=x"], "--closed shop=x is not allowed: use "),
    (["--closed", "api", "--open", "api"], "--open api: --closed names it"),
    (["--capacity", "disk=1"], "--capacity disk is not known: use cpu"),
    (["--trace", "/no/such/t.csv"], "there is no folder /no/such"),
    (["--cores", "0"], "'0' is not allowed: use a whole number, 1 to"),
    (["--warm", "60"], "--warm 60 is not allowed: use 0 to less "),
    (["--link", "x"], "invalid choice: 'x' (choose from ")])
def test_bad_arguments(argv: list[str], says: str, day: Path,
                       refused: Run) -> None:
    refused(says, "replay", str(day / "day.log"), *argv)


@pytest.mark.parametrize(("name", "says"), [
    ("t.csv", "t.csv:3: cpu_s: '-1' is not allowed: "),
    ("day.log", "day.log: has no request: record"),
    ("no.log", "no.log: No such file")])
def test_bad_files(name: str, says: str, tmp_path: Path,
                   refused: Run) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,tenant,cpu_s,link_s\n"
                                    "0,a,1,0\n1,a,-1,0\n")
    (tmp_path / "day.log").write_text("")
    refused(says, "replay", str(tmp_path / name))
