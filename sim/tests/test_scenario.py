# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios and traces: what they do, and what is said of a bad one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandpaper_sim import cli, scenario, traces

GOOD = """\
model = "threads"
workers = 2
policies = ["wfq"]
seconds = 1

[[tenant]]
name = "a"
connections = 4
cpu_us = 1000

[[tenant]]
name = "b"
weight = 3
rate = 100
cpu_us = { median = 500, sigma = 1 }
"""
HEAD = "time_s,tenant,cpu_us,net_us\n"


def run(folder: Path, text: str, *more: str) -> dict:
    (folder / "s.toml").write_text(text)
    out = folder / "out.json"
    cli.main([str(folder / "s.toml"), "--jobs", "1", "--json", str(out),
              *more])
    return json.loads(out.read_text())


def test_loops(tmp_path: Path) -> None:
    data = run(tmp_path, GOOD, "--plot", str(tmp_path / "a.svg"))
    assert data["figure"] == "s.toml"
    a, b = data["results"][0]["tenants"]
    assert 80 <= b["requests_per_s"] <= 120
    # What b leaves of two threads is a's.
    assert a["cpu_share"] == pytest.approx(2 - b["cpu_share"], abs=0.01)


def test_the_shipped_scenario_is_good() -> None:
    s = scenario.read(Path(__file__).parents[1] / "scenarios" /
                      "customers.toml")
    assert [a.name for a in s.askers] == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(("old", "new", "says"), [
    ("workers = 2", "", ":1: workers: is missing"),
    ("workers = 2", "workers = 0", ":2: workers: 0: a whole number, 1 to "),
    ("workers = 2", "workers = 2.5", ":2: workers: 2.5: a whole number"),
    ('"wfq"', '"best"', ":3: policies: 'best': one of mr3-rs, "),
    ("seconds = 1", "seconds = true", ":4: seconds: True: a number, "),
    ("seconds = 1", "seconds = 1\nfast = 1", ":5: fast: unknown; there are"),
    ("seconds = 1", "seconds = 1\nwarm_seconds = 2",
     ":5: warm_seconds: 2: a number, 0 to 1"),
    ("seconds = 1", "seconds = ", "(at line 4, column 11)"),
    ('"threads"', '"cores"', ":1: model: 'cores': one of proxy, threads"),
    ('"threads"', '"proxy"', ":1: cores: is missing"),
    ("connections = 4", "", ":6: connections: say either"),
    ("connections = 4", "connections = 4\nrate = 1", ":8: connections: say"),
    ("weight = 3", "weight = 0", ":13: weight: 0: a number, "),
    ("weight = 3", "wight = 3", ":13: wight: unknown; there are name, "),
    ("cpu_us = 1000", "cpu_us = -1", ":9: cpu_us: -1: a number above 0"),
    ("sigma = 1", "sigm = 1", ":15: cpu_us: {'median': 500, 'sigm': 1}: a"),
    ("rate = 100", "rate = 100\nthink_us = 3", ":15: think_us: only a"),
    ('name = "b"', 'name = "a"', ":12: name: 'a': there is one already"),
    ('name = "b"', "name = 2", ":12: name: 2: a text")])
def test_bad_scenarios(old: str, new: str, says: str, tmp_path: Path,
                       capsys: pytest.CaptureFixture[str]) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(SystemExit) as e:
        run(tmp_path, GOOD.replace(old, new))
    assert e.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert f"{tmp_path}/s.toml" in err and says in err


TRACED = ('model = "threads"\nworkers = 1\npolicies = ["fifo"]\n'
          'trace = "t.csv"\n')


def test_trace(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        HEAD + "5.000002,b,3,0\n5,a,2,1\n\n5.000001,a,1.5,0\n")
    data = run(tmp_path, TRACED + '[[tenant]]\nname = "b"\nweight = 2\n')
    b, a = data["results"][0]["tenants"]
    assert (b["tenant"], b["weight"], a["tenant"]) == ("b", 2, "a")
    # a: 0 to 2 and 2 to 3.5 us; b came at 2, is served from 3.5 to 6.5.
    assert a["mean_ms"] == pytest.approx((2 + 2.5) / 2 / 1000)
    assert b["mean_ms"] == pytest.approx(4.5 / 1000)


@pytest.mark.parametrize(("text", "says"), [
    ("time_s,tenant,cpu_us\n", ":1: net_us: is missing; the columns are"),
    ("time_s,tenant,cpu_us,net_us,net_us\n", ":1: net_us: is there twice"),
    (HEAD + "0,a,1,0\n1,a,-2,0\n", ":3: cpu_us: '-2': a number, 0 to "),
    (HEAD + "0,a,1,x\n", ":2: net_us: 'x': a number"),
    (HEAD + "nan,a,1,1\n", ":2: time_s: 'nan': a number"),
    (HEAD + "0,,1,1\n", ":2: tenant: is empty"),
    (HEAD + "0,a,1\n", ":2: 3 fields; line 1 names 4"),
    (HEAD, "t.csv: no request in it")])
def test_bad_traces(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(traces.Wrong) as e:
        traces.read(file)
    assert str(e.value).startswith(str(file)) and says in str(e.value)


def test_no_such_trace(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(TRACED)
    with pytest.raises(scenario.Wrong, match=r"t\.csv: No such file"):
        scenario.read(tmp_path / "s.toml")


LOG = """\
         2 Begin          c sess 0 HTTP/1
         3 Timestamp      c Start: 1763800000.000000 0.000000 0.000000
         3 Timestamp      c Enqueue: 1763800000.000100 0.000100 0.000100
         5 Timestamp      c Enqueue: 1763800000.000050 0.000100 0.000100
         5 Sandpaper      c b.example 0.000010 0.000200 0.000300 0.000100 9 m
         3 Timestamp      c Release: 1763800000.000200 0.000200 0.000100
         3 Sandpaper      c a.example 0.000100 0.000040 0.000020 0.000040 1 e
         7 Timestamp      c Enqueue: 1763800000.000400 0.000100 0.000100
"""


def test_log(tmp_path: Path) -> None:
    file = tmp_path / "day.log"
    file.write_text(LOG)
    assert traces.read(file) == [
        traces.Row(0, "b.example", 200_000, 300_000),
        # A time since 1970 as a float is exact to some 0.2 us.
        traces.Row(pytest.approx(50_000, abs=500), "a.example", 40_000,
                   20_000)]


def test_bad_log(tmp_path: Path) -> None:
    file = tmp_path / "day.log"
    file.write_text(LOG.replace(" 9 m", ""))
    with pytest.raises(traces.Wrong, match=":5: Sandpaper: 5 fields, not 7"):
        traces.read(file)
