# SPDX-License-Identifier: BSD-2-Clause
"""Scenarios: what they do, and what is said of a bad one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandpaper_sim import figure, play, releaser, scenario, theory
from sandpaper_sim.releaser import Estimator
from sandpaper_sim.scenario import Serves, read

Run = Callable[..., Any]
Refused = Callable[..., Any]
GOOD = """\
model = "threads"
workers = 2
policies = ["wfq"]
seconds = 1

[[tenant]]
name = "a"
connections = 4
cpu_us = 1000

# the other one
[[tenant]]
name = "b"
weight = 3
rate = 100
cpu_us = { median = 500, sigma = 1 }
"""
PROXY = """\
cores = 2
link = "blocks"
link_bits_per_s = 1e9
fetch_ms = 10
seconds = 1
[[tenant]]
name = "a"
connections = 4
cpu_us = 1000
"""


@pytest.fixture
def scenario_of(run: Run, tmp_path: Path) -> Run:
    """Call it with a text and options: the JSON of that scenario."""
    def of(text: str, *options: str) -> dict:
        (tmp_path / "s.toml").write_text(text)
        return run("scenario", str(tmp_path / "s.toml"), *options)
    return of


@pytest.fixture
def tenants(scenario_of: Run) -> Callable[[str], list[dict]]:
    """Call it with a text: tenants of that scenario, under one policy."""
    return lambda text: scenario_of(text)["results"][0]["tenants"]


def asking(settings: str, cpu_us: str, **more: str) -> str:
    """Some settings, and tenants with 30 connections each."""
    return settings + "".join(
        f'[[tenant]]\nname = "{name}"\nconnections = 30\ncpu_us = {cpu_us}\n'
        f"{fields}\n" for name, fields in more.items())


def assert_shares(found: list[dict], *shares: float) -> None:
    assert [t["share"] for t in found] == [
        pytest.approx(x, rel=0.03) for x in shares]


def test_loops(scenario_of: Run, tmp_path: Path) -> None:
    data = scenario_of(GOOD, "--plot", str(tmp_path / "a.svg"))
    assert data["figure"] == "scenario"
    a, b = data["results"][0]["tenants"]
    assert 80 <= b["requests_per_s"] <= 120
    # What b leaves of the threads is a's.
    assert a["share"] == pytest.approx(1 - b["share"], abs=0.005)


def test_the_command_says_seed_and_policy(scenario_of: Run) -> None:
    data = scenario_of("seed = 7\n" + GOOD, "--policy", "fifo",
               "--policy", "2dfq")
    assert data["seed"] == 7
    assert [r["policy"] for r in data["results"]] == ["fifo", "2dfq"]
    again = scenario_of(GOOD, "--policy", "fifo", "--seed", "7")
    assert again["results"] == data["results"][:1]
    other = scenario_of(GOOD, "--policy", "fifo", "--seed", "8")
    assert other["results"] != data["results"][:1]


def test_the_shipped_scenario_is_good() -> None:
    s = scenario.read(Path(__file__).parents[1] / "scenarios" /
                      "customers.toml")
    assert [a.name for a in s.tenants] == ["c1", "c2", "c3", "c4"]


def test_wait_of_mmc(tmp_path: Path) -> None:
    """M/M/2 at a load of 0.8: in all, as one tenant or two."""
    text = ('model = "threads"\nworkers = 2\npolicies = ["fifo"]\n'
            "seconds = 60\nwarm_seconds = 2\n")
    for name in "ab":
        text += (f'[[tenant]]\nname = "{name}"\nrate = 400\n'
                 "cpu_us = { mean = 2000 }\n")
    file = tmp_path / "s.toml"
    file.write_text(text)
    server = play.start(scenario.read(file), "fifo", 1)
    server.run(60 * 10**9)
    rows = server.releaser.records()
    assert (rows["start"] - rows["arrival"]).mean() / 1e6 == pytest.approx(
        theory.mmc_wait(0.8, 2.0, 2), rel=0.05)


ONE_CORE = "cores = 1\nseconds = 2\nwarm_seconds = 0.5\n"


def test_shares_by_weight(tenants: Run) -> None:
    """Three tenants that always wait, at one core: 1 to 2 to 5."""
    found = tenants(asking(ONE_CORE, "{ mean = 200 }", a="weight = 1",
                           b="weight = 2", c="weight = 5"))
    assert_shares(found, 1 / 8, 2 / 8, 5 / 8)
    # A lag of some requests' length.
    assert all(0 < t["lag_sd_ms"] < 5 for t in found)


def test_a_limit_and_a_reservation(tenants: Run) -> None:
    assert_shares(tenants(asking(
        ONE_CORE, "200", a="limit = 0.1", b="reservation = 0.6", c="")),
        0.1, 0.6, 0.3)


def test_groups(tenants: Run) -> None:
    """One of twice the weight, with two members of whom one has a limit."""
    assert_shares(tenants(asking(
        ONE_CORE + '[[group]]\nname = "r"\nweight = 2\n', "200",
        a='group = "r"\nlimit = 0.2', b='group = "r"', c="")),
        0.2, 0.4667, 0.3333)


def test_cpu_time_is_a_core_s(tenants: Run) -> None:
    """4 connections on 2 cores, 1 ms each: 2000/s; 125 kB at 1 Gbit/s: as
    many responses as the link sends in a second, 1000."""
    a, = tenants(PROXY)
    assert a["requests_per_s"] == pytest.approx(2000, rel=0.005)
    assert a["dominant"] == "cpu"
    a, = tenants(PROXY + "kbytes = 125\n")
    assert a["requests_per_s"] == pytest.approx(1000, rel=0.005)
    assert (a["dominant"], a["share"]) == (
        "link", pytest.approx(1, rel=0.005))


def test_misses_fetch(tenants: Run) -> None:
    """With one connection: 1 ms, and 10 ms more for half of them."""
    a, = tenants(PROXY.replace("connections = 4", """\
connections = 1
miss = 0.5""").replace("seconds = 1", "seconds = 20"))
    assert a["requests_per_s"] == pytest.approx(1000 / 6, rel=0.03)
    assert a["latency_p99_ms"] == pytest.approx(11)


@pytest.fixture
def bad_file(refused: Refused, tmp_path: Path) -> Refused:
    """Call it with what is said of a text: the file is refused, by name."""
    def check(says: str, text: str) -> None:
        file = tmp_path / "s.toml"
        file.write_text(text)
        assert f"{file}: " in refused(says, "scenario", str(file))
    return check


FIRST = '[[tenant]]\nname = "a"'
BLOCKS = GOOD[GOOD.index("\n[[tenant]]"):]


@pytest.mark.parametrize(("old", "new", "says"), [
    ("workers = 2", "", "workers: is missing"),
    ("workers = 2", "workers = 0",
     "workers: 0 is not allowed: use a whole number, 1 to 65535"),
    ("workers = 2", "workers = 2.5", "workers: 2.5 is not allowed"),
    ('"wfq"', '"best"', "policies: ['best'] is not allowed: use a list of "),
    ('["wfq"]', '"wfq"', "policies: 'wfq' is not allowed: use a list of so"),
    ('"wfq"', "", "policies: [] is not allowed: use a list of some of mr3-"),
    ("seconds = 1", "seconds = true", "seconds: True is not allowed: use a "),
    ("seconds = 1", "seconds = 1\nfast = 1", "fast: is not known: use one of"),
    ("seconds = 1", "seconds = 1\nwarm_seconds = 2",
     "warm_seconds: 2 is not allowed: use a number below 1"),
    ("seconds = 1", "seconds = 1\nwarm_seconds = 1", "warm_seconds: 1 is not"),
    ("seconds = 1", "seconds = nan", "seconds: nan is not allowed"),
    ("seconds = 1", "seconds = 0", "seconds: 0 is not allowed: use a number, "
     "0.001 to 1000000"),
    ("seconds = 1", "seconds = 1e-10", "seconds: 1e-10 is not allowed"),
    ("seconds = 1", 'estimator = "ewma\\n"\nseconds = 1',
     "estimator: 'ewma\\n' is not allowed: use one of "),
    ("seconds = 1", 'link = "held\\n"\nseconds = 1', "link: 'held\\n' is not"),
    ("seconds = 1", 'seconds = 1\n"$x" = 1', "$x: is not known: use one of"),
    ("seconds = 1", "seconds = ", "(at line 4, column 11)"),
    ("seconds = 1", 'options = ["fast"]\nseconds = 1',
     "options: ['fast'] is not allowed: use a list of some of settle, "),
    ("seconds = 1", 'estimator = "guess"\nseconds = 1',
     "estimator: 'guess' is not allowed: use one of ewma, "),
    ('"threads"', '"cores"', "model: 'cores' is not allowed: use one of pro"),
    ('"threads"', '"proxy"', "cores: is missing"),
    ("seconds = 1", 'link = "held"\nseconds = 1',
     'link: works only with model = "proxy"'),
    ("seconds = 1", "cores = 2\nseconds = 1", 'cores: works only with model'),
    ("seconds = 1", "link_bits_per_s = 2\nseconds = 1",
     "link_bits_per_s: works only with model"),
    ("seconds = 1", "fetch_ms = 2\nseconds = 1",
     "fetch_ms: works only with model"),
    ("connections = 4", "", "tenant 1: connections: use either"),
    ("connections = 4", "connections = 4\nrate = 1",
     "tenant 1: connections: use either"),
    ("weight = 3", "weight = 0", "tenant 2: weight: 0 is not allowed: use a "),
    ("weight = 3", "limit = 1.5",
     "tenant 2: limit: 1.5 is not allowed: use a number, 0.001 to 1\n"),
    ("weight = 3", "limit = 0", "tenant 2: limit: 0 is not allowed: use a n"),
    ("weight = 3", "weight = 0.0009", "use a number, 0.001 to 1024"),
    ("seconds = 1", 'estimator = "ewma"\nalpha = 0\nseconds = 1',
     "alpha: 0 is not allowed: use a number, 0.001 to 1\n"),
    ("weight = 3", "reservation = 0.9\nlimit = 0.2",
     "tenant 2: 'b': the reservation is above the limit: lower the reserv"),
    (FIRST, FIRST.replace('"a"', '"c"\nreservation = 0.8\nrate = 1\n'
                          'cpu_us = 1\n[[tenant]]\nname = "a"\n'
                          'reservation = 0.8'),
     "tenant 2: 'a': the sum of all reservations is above 1: lower one"),
    ('name = "b"', 'name = "(b)"', "tenant 2: '(b)': the name begins with a "
     "parenthesis: use another first character"),
    ('name = "b"', 'name = ""', "tenant 2: name: '' is not allowed: use a "
     "text in quotes, of one character or more"),
    (FIRST, '[[group]]\nname = "b"\n' + FIRST,
     "tenant 2: 'b': a group of this name is declared already: use another"),
    ("weight = 3", "reservation = 1.5", "tenant 2: reservation: 1.5 is not"),
    ("weight = 3", "wight = 3", "tenant 2: wight: is not known: use one of na"),
    ("weight = 3", 'group = "g"', "tenant 2: group: 'g' is not known: add it"),
    ("cpu_us = 1000", "cpu_us = -1",
     "tenant 1: cpu_us: -1 is not allowed: use a number above 0, "),
    ("cpu_us = 1000", "", "tenant 1: cpu_us: is missing"),
    ("cpu_us = 1000", "cpu_us = 1\nlink_us = 1",
     'tenant 1: link_us: works only with model = "proxy"'),
    ("cpu_us = 1000", "cpu_us = 1\nkbytes = 1",
     "tenant 1: kbytes: works only with link_bits_per_s"),
    ("cpu_us = 1000", "cpu_us = 1\nmiss = 1",
     "tenant 1: miss: works only with fetch_ms"),
    ("sigma = 1", "sigm = 1",
     "tenant 2: cpu_us: {'median': 500, 'sigm': 1} is not allowed"),
    (", sigma = 1", "", "tenant 2: cpu_us: {'median': 500} is not allowed"),
    ("sigma = 1", "sigma = inf", "'sigma': inf} is not allowed"),
    ("rate = 100", "rate = 100\nthink_us = 3",
     "tenant 2: think_us: works only with connections"),
    ('name = "b"', 'name = "a"', "tenant 'a': is there twice"),
    ('name = "b"', "name = 2", "tenant 2: name: 2 is not allowed: use a te"),
    ('name = "b"', "", "tenant 2: name: is missing"),
    (FIRST, "[x]\ny = 1", "x: is not known"),
    (FIRST, "[[x]]\ny = 1", "x: is not known"),
    (BLOCKS, "\ntenant = 3\n", "tenant: 3 is not allowed: use [[tenant]]"),
    (BLOCKS, "\ntenant = [3]\n", "3 is not allowed: use [[tenant]]"),
    (BLOCKS, "", "tenant: is missing")])
def test_bad_scenarios(old: str, new: str, says: str,
                       bad_file: Refused) -> None:
    assert GOOD.count(old) == 1
    bad_file(says, GOOD.replace(old, new))


@pytest.mark.parametrize(("more", "says"), [
    ("link_us = 3\nkbytes = 3", "kbytes: use either link_us or kbytes"),
    ("miss = 2", "miss: 2 is not allowed: use a number, 0 to 1\n")])
def test_bad_proxies(more: str, says: str, bad_file: Refused) -> None:
    bad_file(f"tenant 1: {says}", PROXY + more)


@pytest.mark.parametrize(("argv", "says"), [
    ([], "are required: FILE"), (["no"], "No such file"),
    (["."], "Is a directory"), (["b.toml"], "is not UTF-8"),
    (["s.toml", "--policy", "best"],
     "policy 'best' is not known: use one of mr3-rs, ")])
def test_bad_arguments(argv: list[str], says: str, tmp_path: Path,
                       refused: Refused) -> None:
    (tmp_path / "s.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_bytes(b"\xff")
    refused(says, "scenario", *(str(tmp_path / a) for a in argv[:1]),
            *argv[1:])


TRACED = ('model = "threads"\nworkers = 1\npolicies = ["fifo"]\n'
          'trace = "t.csv"\n')
TRACE = ("arrival_s,tenant,cpu_s,link_s\n"
         "5,a,2e-6,0.1\n5.000001,a,0.0000015,0\n\n5.000002,b,0.000003,0\n")


def test_trace(tmp_path: Path, tenants: Run) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    b, a = tenants(TRACED + '[[tenant]]\nname = "b"\nweight = 2\n')
    assert (b["tenant"], b["weight"], a["tenant"]) == ("b", 2, "a")
    # a: 0 to 2 and 2 to 3.5 us; b came at 2, is served from 3.5 to 6.5.
    assert a["latency_p50_ms"] == pytest.approx((2 + 2.5) / 2 / 1000)
    assert b["latency_p50_ms"] == pytest.approx(4.5 / 1000)
    assert b["wait_p99_ms"] == pytest.approx(1.5 / 1000)


def test_a_trace_is_part_of_the_digest(tmp_path: Path) -> None:
    found = set()
    (tmp_path / "s.toml").write_text(TRACED)
    for trace in (TRACE, TRACE + "6,b,0.000003,0\n"):
        (tmp_path / "t.csv").write_text(trace)
        found.add(read(tmp_path / "s.toml").digest)
    assert len(found) == 2


@pytest.mark.parametrize(("fields", "serves"), [
    ('cores = 2', Serves(20, 2, "held", None, releaser.ALL, 0)),
    ('cores = 2\nworkers = 3\nlink = "queue"\nrefresh_ms = 2.5\n'
     'estimator = "ewma"\noptions = ["settle"]',
     Serves(3, 2, "queue", Estimator("ewma", 0.9), releaser.SETTLE,
            2_500_000)),
    ('cores = 1\nestimator = "ewma"\nalpha = 0.25',
     Serves(10, 1, "held", Estimator("ewma", 0.25), releaser.ALL, 0))])
def test_what_serves(fields: str, serves: Serves, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(GOOD.replace('model = "threads"\nworkers = 2', fields))
    assert read(file).serves == serves


def test_a_trace_s_fetches(tmp_path: Path, scenario_of: Run) -> None:
    """Each request of a tenant has its own, whatever is between."""
    (tmp_path / "t.csv").write_text(
        "tenant,arrival_s,cpu_s,fetch_s,link_s\n"
        "b,0,1e-3,0,0\na,0,1e-3,0.02,0\na,0.1,1e-3,0,0\na,0.2,1e-3,0.05,0\n")
    data = scenario_of('cores = 1\ntrace = "t.csv"\n')
    b, a = data["results"][0]["tenants"]
    assert b["latency_p99_ms"] <= 2
    # The first one shared half of its CPU time with b's.
    assert a["latency_p50_ms"] == pytest.approx(1 + 20 + 0.5, abs=0.1)
    assert a["latency_p99_ms"] == pytest.approx(51, abs=0.1)


def test_a_trace_lacks_a_tenant(tmp_path: Path, bad_file: Refused) -> None:
    (tmp_path / "t.csv").write_text(TRACE)
    bad_file("tenant 1: name: 'c' is not in the trace: use one of a, b",
             TRACED + '[[tenant]]\nname = "c"\n')


def test_steps_do_not_change_the_result(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.toml").write_text(GOOD)
    found = [play.simulate(str(tmp_path / "s.toml"), "", "wfq", 1)]
    monkeypatch.setattr(play, "in_steps", lambda run, end, _name: run(end))
    found.append(play.simulate(str(tmp_path / "s.toml"), "", "wfq", 1))
    assert found[0] == found[1]


@pytest.mark.parametrize(("quiet", "says"), [
    (0.0, "wfq: 100 % simulated, about 00:00 left"), (3600.0, "")])
def test_a_long_simulation_says_how_far_it_is(
        quiet: float, says: str, monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(figure, "QUIET", quiet)
    monkeypatch.setattr(figure, "LINES", 0.0)
    until: list[int] = []
    figure.in_steps(until.append, 2501, "wfq")
    assert (until[0], until[-1]) == (3, 2501)
    said = capsys.readouterr().err
    assert says in said
    assert bool(said) == bool(says)
