# SPDX-License-Identifier: BSD-2-Clause
"""tools/sandpaper-replay: its options, what it prints, and what it assumes. The
logs are those that a simulated server would have written."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic

from sandpaper_sim import varnishlog, whatif
from sandpaper_sim.logfile import COMMAND, log_lines
from sandpaper_sim.opening import EVERY, Opening
from sandpaper_sim.recorded import (
    NEAR,
    WINDOW,
    Near,
    capacities,
    parts,
    step_of,
)
from sandpaper_sim.releaser import Records
from sandpaper_sim.replay import Plan, replayed
from sandpaper_sim.scenario import Serves
from sandpaper_sim.server import MS, SECOND, proxy
from sandpaper_sim.tenantsfile import Tenants
from sandpaper_sim.trace import REQUEST
from sandpaper_sim.varnishlog import Reader, read_log
from sandpaper_sim.workload import Constant, closed, generator, stream

TOP = Path(__file__).resolve().parents[2]
# Two tenants want more than there is, on two cores; a third one little.
SCENARIO = """\
cores = 2
seconds = 6
[[tenant]]
name = "shop"
connections = 40
cpu_us = { median = 2000, sigma = 0.5 }
link_us = 100
[[tenant]]
name = "blog"
connections = 20
cpu_us = { mean = 1000 }
link_us = 50
[[tenant]]
name = "api"
rate = 200
cpu_us = 400
"""
Replay = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whatif")
    (folder / "s.toml").write_text(SCENARIO)
    synthetic.write(folder / "s.toml", "mr3-rs", folder / "day.log")
    return folder / "day.log"


@pytest.fixture
def replay(capsys: pytest.CaptureFixture[str]) -> Replay:
    """Call it with arguments: the JSON, its tenants by name."""
    def run(*argv: object) -> dict[str, Any]:
        whatif.main([*map(str, argv), "--json"])
        said = json.loads(capsys.readouterr().out)
        return said | {"of": {t["tenant"]: t for t in said["tenants"]}}
    return run


@pytest.fixture
def wrong(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Call it with arguments: what it says, with status 2."""
    def run(*argv: object) -> str:
        with pytest.raises(SystemExit) as e:
            whatif.main([*map(str, argv)])
        assert e.value.code == 2
        said = capsys.readouterr()
        assert said.out == ""
        return said.err
    return run


def cpu(found: dict[str, Any], name: str, what: str = "replay") -> float:
    part: float = found["of"][name][what]["cpu_part"]
    return part


# What is replayed

def test_the_same_settings_give_the_same_shares(
        day: Path, replay: Replay) -> None:
    found = replay(day)
    for name in ("shop", "blog", "api"):
        assert cpu(found, name) == pytest.approx(
            cpu(found, name, "log"), rel=0.05)
    assert found["log"]["cores"] == 2
    assert found["log"]["cores_from"].startswith("the busiest ten seconds")
    assert replay(day, "--log-cores", 4)["log"] | {"cores_from": ""} == \
        found["log"] | {"cores": 4, "cores_from": "", "cpu_capacity":
                        pytest.approx(0.5, abs=0.02)}
    assert found["replay"] | {"not_in_files": None} == {
        "policy": "mr3-rs", "cores": 2, "slots": 20, "net_rate_bps": None,
        "not_in_files": None}


def test_slots_close(day: Path, replay: Replay) -> None:
    """The server that wrote the log had 20 open slots, and here 16 close. So
    requests wait for longer before they run."""
    shop = replay(day)["of"]["shop"]
    assert shop["replay"]["wait_mean_s"] > 1.15 * shop["log"]["wait_mean_s"]


def test_a_weight(day: Path, replay: Replay) -> None:
    found = replay(day, "--weight", "shop=3")
    assert cpu(found, "shop") / cpu(found, "blog") == pytest.approx(3, rel=0.1)


def test_cores_and_slots(day: Path, replay: Replay) -> None:
    """With four cores there is more of everything, for those who want it."""
    found = replay(day, "--cores", 4, "--workers-per-core", 5)
    assert (found["replay"]["cores"], found["replay"]["slots"]) == (4, 20)
    for name in ("shop", "blog"):
        log, again = (found["of"][name][k] for k in ("log", "replay"))
        assert again["requests"] > 1.5 * log["requests"]
        assert again["wait_mean_s"] < log["wait_mean_s"]
    assert cpu(found, "api") == pytest.approx(
        cpu(found, "api", "log") / 2, rel=0.02)


def test_a_slow_net(day: Path, replay: Replay) -> None:
    """A request of 9 bytes is 73 on the wire: 5.96 ms of 100 kbit/s."""
    found = replay(day, "--net-rate", "100k")
    assert found["replay"]["net_rate_bps"] == 100_000
    assert sum(t["replay"]["net_part"] for t in found["tenants"]) == \
        pytest.approx(0.98, abs=0.03)
    done = sum(t["replay"]["requests"] for t in found["tenants"])
    assert done == pytest.approx(6 / (73 * 8 / 98_000), rel=0.03)


def test_a_file_of_tenants(day: Path, replay: Replay) -> None:
    """One group has blog and api: shop gets half, and blog what api leaves."""
    file = day.parent / "tenants"
    file.write_text("(small) weight=1\nblog group=small\nshop x.example\n"
                    "other group=small\n")
    found = replay(day, "--tenants", file)
    assert found["of"]["blog"]["group"] == "(small)"
    assert found["of"]["shop"]["group"] is None
    assert found["replay"]["not_in_files"] == ["api"]
    found = replay(day, "--tenants", file, "--weight", "(small)=3")
    assert cpu(found, "blog") > 1.8 * cpu(found, "shop")


def test_an_option_goes_before_the_file(day: Path, replay: Replay) -> None:
    file = day.parent / "tenants"
    file.write_text("shop weight=8 limit=0.2\nblog\napi\n")
    found = replay(day, "--tenants", file, "--weight", "shop=4")
    assert found["of"]["shop"]["weight"] == 4
    assert cpu(found, "shop") == pytest.approx(0.2, rel=0.05)


def with_hosts(day: Path) -> str:
    """The log with a Host for each tenant, as clients write it."""
    lines = []
    tenants = {line.split()[0]: line.split()[3]
               for line in day.read_text().splitlines()
               if line.split()[1] == "Sandpaper"}
    for line in day.read_text().splitlines():
        vxid, tag, *_ = line.split()
        lines.append(line)
        if tag == "Begin":
            lines += [f"{vxid} ReqHeader c HOST: {tenants[vxid]}.Example:80",
                      f"{vxid} ReqHeader c Host: later.example"]
    return "\n".join(lines) + "\n"


def test_another_map(day: Path, replay: Replay) -> None:
    """The Host says the tenant, if the log has it."""
    log, file = day.parent / "hosts.log", day.parent / "tenants"
    log.write_text(with_hosts(day))
    file.write_text("all *.example\napi api.example\n")
    found = replay(log, "--tenants", file)
    before = replay(log)
    assert set(found["of"]) == {"all", "api"}
    assert found["of"]["all"]["log"]["requests"] == sum(
        before["of"][n]["log"]["requests"] for n in ("shop", "blog"))
    assert set(before["of"]) == {"shop", "blog", "api"}
    file.write_text("api api.example\n")
    assert set(replay(log, "--tenants", file)["of"]) == {"api", "(unknown)"}


def test_each_host_is_a_tenant(day: Path, replay: Replay) -> None:
    """By one line of the file, which says their weight and group."""
    log, file = day.parent / "hosts.log", day.parent / "tenants"
    log.write_text(with_hosts(day))
    file.write_text("(all)\n*all *.example weight=3 group=all\n")
    found = replay(log, "--tenants", file)
    assert {(n, t["weight"], t["group"]) for n, t in found["of"].items()} == {
        (f"{n}.example", 3, "(all)") for n in ("shop", "blog", "api")}
    assert found["replay"]["not_in_files"] == []


@pytest.mark.parametrize(("host", "tenant"), [
    ("A.Example", "a"), ("a.example.:8080", "a"), ("a.example:", "a"),
    ("a.example:80x", "(unknown)"), ("z.y", "(unknown)"), ("", "(none)"),
    (":80", "(none)"), ("(a", "(none)")])
def test_the_tenant_of_a_host(host: str, tenant: str, tmp_path: Path) -> None:
    """As spd_host() has it."""
    (tmp_path / "t").write_text("a a.example\n")
    assert Tenants([tmp_path / "t"]).tenant(host) == tenant


# Logs

def grouped(text: str, before: str = "-   ") -> str:
    """As `varnishlog` prints it by default."""
    groups: dict[str, list[str]] = {}
    for line in text.splitlines():
        vxid, tag, side, rest = line.split(None, 3)
        if side == "c":
            groups.setdefault(vxid, []).append(f"{before}{tag:14} {rest}")
    return "\n\n".join(
        f"*   << Request  >> {vxid}\n" + "\n".join(lines)
        for vxid, lines in groups.items()) + "\n\n*   << BeReq    >> 9\n" \
        "-   Begin          bereq 8 fetch\n-   Sandpaper      x\n"


def rows_of(text: str) -> Records:
    return Reader(Path("log")).read(io.StringIO(text)).rows


def test_logs_in_groups(day: Path) -> None:
    lines = day.read_text().splitlines()[:4000]
    last = max(n for n, line in enumerate(lines) if "Sandpaper" in line)
    text = "\n".join(lines[:last + 1]) + "\n"
    raw, by_request = rows_of(text), rows_of(grouped(text))
    assert len(raw) > 100
    assert raw.tolist() == by_request.tolist()
    verbose = "\n".join(
        line if line[:1] in "*" else
        f"-   {'9':>10} {line[4:18]} c {line[19:]}"
        for line in grouped(text).splitlines())
    assert raw.tolist() == rows_of(verbose).tolist()


def test_a_tenant_named_c() -> None:
    text = ("*   << Request  >> 3\n-   Begin req 2 rxreq\n"
            "-   Timestamp Enqueue: 1.000000 0 0\n"
            "-   Sandpaper c 0.1 0.2 0 0.3 5 m\n")
    row, = rows_of(text)
    assert (row["cpu"], row["bytes"]) == (200 * MS, 5)


def test_the_last_line_is_cut_off(day: Path, replay: Replay) -> None:
    log = day.parent / "cut.log"
    text = day.read_text()
    log.write_text(text[:text.rindex(" 9 m")])
    found = replay(log)
    assert found["log"]["requests"] == replay(day)["log"]["requests"] - 1
    assert found["log"]["left_out"] == 1


def test_requests_that_were_not_done(
        day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = day.parent / "refused.log"
    log.write_text("7 Begin c req 2 rxreq\n" + day.read_text())
    whatif.main([str(log)])
    assert "\nrequests without a Sandpaper record: 1. They were" in \
        capsys.readouterr().out


def request_lines(vxid: int, *, enqueued: bool, done: bool) -> str:
    """Of a raw log; without `done` it was refused."""
    session = 2 if done or vxid == 1 else 1000 + vxid
    return f"{vxid} Begin c req {session} rxreq\n" + (
        f"{vxid} Timestamp c Req: 1.0 0 0\n") + (
        f"{vxid} Timestamp c Enqueue: 1.000000 0 0\n" * enqueued) + (
        f"{vxid} Sandpaper c shop 0.1 0.2 0 0.3 5 m\n" * done)


@pytest.mark.parametrize("enqueued", [False, True])
def test_refused_requests_take_no_memory(
        enqueued: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that never entered a queue remove none of the others."""
    monkeypatch.setattr(varnishlog, "UNDONE", 10)
    reader = Reader(Path("log"))

    def lines() -> Iterator[str]:
        yield request_lines(1, enqueued=True, done=False)
        for n in range(100):
            yield request_lines(3 + 2 * n, enqueued=True, done=True)
            if n < 8 or not enqueued:
                yield request_lines(4 + 2 * n, enqueued=enqueued, done=False)
            assert len(reader.open) + len(reader.begun) <= 11
            assert len(reader.connections.of) == 1
        yield "1 Sandpaper c shop 0.1 0.2 0 0.3 5 m\n"

    trace = reader.read(line for text in lines()
                        for line in text.splitlines(keepends=True))
    assert len(trace.rows) == 101
    assert (trace.undone, trace.left_out) == (8 if enqueued else 100, 0)


def test_too_many_requests_are_under_way(monkeypatch: pytest.MonkeyPatch
                                         ) -> None:
    """The oldest ones are left out, and counted once."""
    monkeypatch.setattr(varnishlog, "UNDONE", 10)
    reader = Reader(Path("log"))
    trace = reader.read(io.StringIO("".join(
        request_lines(n, enqueued=True, done=False) for n in range(100))
        + "".join(f"{n} Sandpaper c shop 0.1 0.2 0 0.3 5 m\n"
                  for n in range(50, 100))))
    assert (len(trace.rows), trace.left_out, trace.undone) == (10, 40, 50)


def test_a_restart_goes_on() -> None:
    for enqueued in (False, True):
        row, = rows_of(
            request_lines(3, enqueued=enqueued, done=False)
            + "4 Begin c req 3 restart\n"
            + "4 Timestamp c Enqueue: 2.0 0 0\n" * (not enqueued)
            + "4 Sandpaper c shop 0.1 0.2 0 0.3 5 m\n")
        assert (row["arrival"], row["connection"]) == (
            SECOND if enqueued else 2 * SECOND, 0)


def test_stdin(day: Path, monkeypatch: pytest.MonkeyPatch,
               wrong: Callable[..., str]) -> None:
    def given(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(
            io.BufferedReader(io.BytesIO(data))))
    given(day.read_bytes())
    with log_lines(Path("-")) as lines:
        assert "".join(lines) == day.read_text()
    given(b"VSL2" + bytes(100))
    assert "stdin has a binary log: write it into a file" in wrong("-")


@pytest.mark.parametrize("page", ["doc/operate.md", "sim/README.md"])
def test_the_docs_have_the_command_that_records(page: str) -> None:
    text = (TOP / page).read_text().replace("\\\n", "")
    options = " ".join(shlex.join(COMMAND[1:]).split())
    assert options in " ".join(text.split())


# Models

def test_costs_are_of_the_same_time() -> None:
    near = Near(np.array([0, 1, 2, NEAR, NEAR + 1, 5 * NEAR]))
    assert [near(5) for _ in range(4)] == [0, 1, 2, 0]
    assert [near(NEAR) for _ in range(3)] == [3, 4, 3]
    assert [near(3 * NEAR) for _ in range(2)] == [4, 3]     # nothing there
    assert [near(5 * NEAR), near(9 * NEAR), near(9 * NEAR)] == [5, 5, 5]


def test_capacity_of_each_step() -> None:
    """One core, of which half is used in the second of four steps."""
    step, end = 2 * SECOND, 8 * SECOND - 1
    n = (end + 1) // WINDOW
    rows = np.zeros(n, REQUEST)
    rows["arrival"] = np.arange(n) * WINDOW
    rows["start"] = rows["end"] = rows["arrival"] + WINDOW
    rows["cpu"] = WINDOW
    rows["cpu"][(rows["end"] >= step) & (rows["end"] < 2 * step)] //= 2
    waits_not = rows["end"] >= 3 * step
    rows["start"][waits_not] = rows["arrival"][waits_not]
    found = capacities(rows, 1, end, step, (0.7, 1))
    assert found[:, 0].tolist() == [1, 0.5, 1, 0.7]


def test_nothing_ended_in_a_busy_step() -> None:
    """Its capacity is not 0, by which costs could not be divided."""
    assert parts(0.0, 0.0, 10, 1) == (0.01, 1.0)


def test_cores_have_the_capacity_of_each_step(day: Path) -> None:
    """All of it for 3 s, and then the half."""
    plan = Plan(Serves(20, 2), capacities=((1.0, 1.0), (0.5, 1.0)),
                step=3 * SECOND)
    found = replayed(read_log(day), plan, "mr3-rs")["tenants"]
    assert sum(t["predicted"]["cpu_share"] for t in found) == pytest.approx(
        0.75, abs=0.01)


def test_a_byte_costs_what_it_costs_in_varnishd() -> None:
    """73 bytes with the header, at 0.98 of the rate."""
    rows = np.zeros(1, REQUEST)
    rows["bytes"] = 9
    assert whatif.at_rate(rows, 100_000)["net"].tolist() == [5_959_184]


def test_a_step_has_enough_requests() -> None:
    for n, seconds in ((10_000, 1), (400, 5), (10, 10)):
        assert step_of(np.zeros(n, REQUEST), 10 * SECOND) == seconds * SECOND


def test_slots_close_as_in_varnishd() -> None:
    opening = Opening(20, 2)
    busy = 2 * EVERY
    used, now = 0, 10 * SECOND
    for opened in (10, 5, 4, 4):
        used += busy
        assert not opening.look(20, used, now)
        assert opening.open == opened
    assert opening.look(4, used, now)           # full, and no core was used
    assert opening.open == 8


def test_fewer_run_at_a_time_while_slots_are_closed() -> None:
    def running(closing: bool) -> int:
        server = proxy("mr3-rs", 20, 2, closing=closing)
        closed(server, server.tenant(), 50, stream(
            Constant(MS), generator(1, "costs")))
        server.run(5 * SECOND)
        return server.releaser.stat(0)["running"]
    assert running(False) == 20
    assert running(True) == 4


# What is printed

def test_the_table(day: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whatif.main([str(day), "--weight", "shop=2", "--policy", "fifo"])
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0].startswith("log: 6.0 s, ")
    assert "replay: fifo, cores 2, slots 20" in lines
    head = next(n for n, line in enumerate(lines) if line[:6] == "tenant")
    rows = [line.split() for line in lines[head + 1:head + 7]]
    assert sorted(row[:3] for row in rows[::2]) == [
        ["api", "1", "log"], ["blog", "1", "log"], ["shop", "2", "log"]]
    assert [row[0] for row in rows[1::2]] == ["replay"] * 3
    assert all(len(line) <= 80 for line in lines[head:head + 7])
    loops = "closed loops (a request comes when the one before is answered): "
    assert {loops + "shop, blog", loops + "blog, shop"} & {*lines}
    assert "A replay cannot know:" in lines


@pytest.mark.parametrize(("argv", "says"), [
    (["--policy", "best"], "--policy: policy 'best' is not known: use one of"),
    (["--weight", "shp=2"], "--weight shp: the file has no such tenant: use"),
    (["--weight", "shop=0"], "'shop=0' is not allowed: use NAME=W, 0.001 to"),
    (["--cores", "0"], "'0' is not allowed: use a whole number, 1 to 4096"),
    (["--workers-per-core", "x"], "'x' is not allowed: use a whole number"),
    (["--net-rate", "1T"], "'1T' is not allowed: use bits/s, 10k to 10000G"),
    (["--net-rate", "1k"], "'1k' is not allowed: use bits/s, 10k to 10000G"),
    (["--reservation", "shop=0.9", "--limit", "shop=0.1"],
     "tenant shop: the reservation is above the limit"),
    (["--tenants", "/no/such"], "/no/such: the file cannot be opened")])
def test_bad_arguments(argv: list[str], says: str, day: Path,
                       wrong: Callable[..., str]) -> None:
    said = wrong(day, *argv)
    assert said.startswith("sandpaper-replay: ")
    assert says in said
    assert said.count("\n") == 1


def test_bad_tenants(day: Path, tmp_path: Path,
                     wrong: Callable[..., str]) -> None:
    """A line for each error, with the line of the file."""
    (tmp_path / "t").write_text("shop weight=0\n\nblog limt=1\n" + "x y=\n" * 9)
    lines = wrong(day, "--tenants", tmp_path / "t").splitlines()
    assert len(lines) == 11
    assert f"{tmp_path}/t:1: \"shop\": the weight is not allowed" in lines[0]
    assert f'{tmp_path}/t:3: there is no setting "limt"' in lines[1]
    assert lines[-1].endswith("and 1 more errors: sandpaper-check shows all")


def test_bad_logs(tmp_path: Path, wrong: Callable[..., str]) -> None:
    log = tmp_path / "day.log"
    log.write_text("3 Begin c req 2 rxreq\n3 Sandpaper c a 0 0\n")
    assert f"{log}:2: Sandpaper: has 3 fields, not 7" in wrong(log)
    log.write_text("3 Timestamp c Enqueue: 1.0 0 0\n"
                   "3 Sandpaper c a 0 0 0 0 much m\n")
    assert f"{log}:2: Sandpaper: bytes: 'much' is not allowed" in wrong(log)
    assert "No such file" in wrong(tmp_path / "none.log")


def test_a_binary_log_needs_varnishlog(
        tmp_path: Path, wrong: Callable[..., str]) -> None:
    log, program = tmp_path / "day.vsl", tmp_path / "varnishlog"
    log.write_bytes(b"VSL2" + bytes(16))
    assert "no-varnishlog: there is no such program" in wrong(
        log, "--varnishlog", "no-varnishlog")
    program.write_text("#!/bin/sh\necho 'Not a VSL file' >&2\nexit 1\n")
    program.chmod(0o755)
    assert wrong(log, "--varnishlog", program) == (
        f"sandpaper-replay: {log}: varnishlog: Not a VSL file\n")


def test_a_trace_in_csv_has_predictions_alone(
        tmp_path: Path, replay: Replay, wrong: Callable[..., str]) -> None:
    file = tmp_path / "t.csv"
    file.write_text("arrival_s,tenant,cpu_s,link_s\n0,a,0.001,0\n1,a,0.001,0\n")
    found = replay(file, "--cores", 2)
    assert found["of"]["a"]["log"] is None
    assert found["of"]["a"]["replay"]["requests"] == 2
    assert "--net-rate: a trace in CSV has no bytes" in wrong(
        file, "--net-rate", "1G")
