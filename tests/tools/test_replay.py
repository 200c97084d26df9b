# SPDX-License-Identifier: BSD-2-Clause
"""tools/sandpaper-replay: the log of a live varnishd, whose mix of requests
changes, is replayed with the settings that it had. It has each request, and
what varnishd says that they cost.

SANDPAPER_REPLAY_SECONDS is how long the load takes, SANDPAPER_REPLAY_OUT a file
for the figures: see bench/results/2026-11-29-replay.md. With MEASURED seconds
the shares have to be the same, too. In a few seconds they differ by what other
programs do on the same cores: sim/tests/test_replay.py compares shares of a
simulated server, which is always the same."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from common import ROOT, TOOLS, TOP, needs_varnish, ran, until
from sandpaper_bench.load import Group, build_loadgen
from sandpaper_bench.work import (
    OTHERS,
    STACK,
    TEXT,
    UNIT_BYTES,
    UNIT_STACK,
)
from varnishd import HELLO, Varnishd

PROGRAM = TOOLS / "sandpaper-replay"
SECONDS = float(os.environ.get("SANDPAPER_REPLAY_SECONDS", "6"))
MEASURED = 600  # seconds
OUT = os.environ.get("SANDPAPER_REPLAY_OUT", "")
SHARE_NEAR = 0.05  # the largest error of a share
LOG_NEAR = 0.1  # of what varnishd counts: some work is not of a request
CORES = sorted(os.sched_getaffinity(0))
TENANTS = """\
(small) weight=1
shop    shop.example *.shop.example weight=2
blog    blog.example group=small
api     api.example  group=small
"""
# Work that logs nothing: a header for each unit would fill the log.
UNIT = ('\t\tif (regsuball(req.http.x, "([a-z]+)-([0-9a-z]+)", "\\2-\\1") == '
        '"") { return (fail); }\n')
CHEAP, SOME, DEAR = 100, 300, 700  # units
ROOM = (f"workspace_client={OTHERS + DEAR * UNIT_BYTES}",
        f"thread_pool_stack={STACK + (CHEAP + SOME + DEAR) * UNIT_STACK}",
        "cc_command=exec cc -O0 -fpic -shared -o %o %s")  # compiled sooner
VCL = HELLO.replace("sub vcl_recv {", f"""\
import sandpaper;
sub vcl_init {{ sandpaper.tenants_file("FILE"); }}
sub vcl_recv {{
	set req.http.x = "{TEXT}";
	if (req.url == "/cheap") {{
{UNIT * CHEAP}	}} else if (req.url == "/dear") {{
{UNIT * DEAR}	}} else {{
{UNIT * SOME}	}}
	unset req.http.x;
""")


FIRST = "first.shop.example"  # the Host of requests until the log has one
LAST = "last.shop.example"  # the Host of the last request
CONNECTIONS = 20 + 15 + 10 + 50


def record() -> list[str]:
    """Return the options of varnishlog that doc/operate.md records with."""
    page = (TOP / "doc" / "operate.md").read_text()
    command, = re.findall(
        r"(?ms)^varnishlog [^`]*? (-g raw [^`]*) -w /tmp/day.vsl$", page)
    return shlex.split(command.replace("\\\n", ""))


def groups() -> list[str]:
    """Who loads: shop always, blog with cheap and later with dear requests,
    api with a rate that changes."""
    def at(part: float) -> float:
        return part * SECONDS

    def group(name: str, tenant: str, **more: Any) -> Group:
        return Group(name, f"{tenant}.example", **more)

    return [g.spec() for g in (
        group("shop", "shop", conns=20),
        group("blog-cheap", "blog", path="/cheap", conns=15,
              since=at(0.15), till=at(0.6)),
        group("blog-dear", "blog", path="/dear", conns=10, since=at(0.45),
              till=at(0.85)),
        group("api", "api", mode="open", conns=50, rate=50,
              steps=f"{at(0.3)}:200/{at(0.7)}:100"))]


@dataclass
class Day:
    """A log, and what varnishd itself counted meanwhile."""

    log: Path
    tenants: Path
    firsts: int  # requests of FIRST
    cpu: dict[str, float]  # seconds, by tenant
    seen: dict[str, Any]  # by the load generator


@contextmanager
def recorded(varnishd: Varnishd, log: Path) -> Iterator[int]:
    """Write the log meanwhile, as a binary file.

    varnishlog takes a moment to begin: requests of FIRST are sent until the
    log has one.  Their number is returned.
    """
    firsts = 0

    def has_begun() -> bool:
        nonlocal firsts
        varnishd.get(FIRST)
        firsts += 1
        return log.exists() and FIRST.encode() in end_of(log)

    with subprocess.Popen(
            [f"{ROOT}/bin/varnishlog", "-n", f"{varnishd.folder}/n", "-w",
             str(log), *record()], stdin=subprocess.DEVNULL) as process:
        try:
            until(has_begun, "the log does not begin")
            yield firsts
            varnishd.get(LAST)
            until(lambda: LAST.encode() in end_of(log), "the log has no end")
        finally:
            process.send_signal(signal.SIGTERM)


def end_of(log: Path) -> bytes:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 65536))
        return file.read()


def cpu_of(varnishd: Varnishd) -> dict[str, float]:
    return {t["tenant"]: t["cpu_s"] for t in varnishd.state()["list"]
            if not t["tenant"].startswith("(")}


def live(varnishd: Varnishd) -> Day:
    """Load a varnishd on one core."""
    folder = varnishd.folder
    tenants, log = folder / "tenants", folder / "day.vsl"
    tenants.write_text(TENANTS)
    text = VCL.replace("FILE", str(tenants))
    varnishd.start(*ROOM, "sandpaper_cores=1", vcl=text,
                   before=("taskset", "-c", str(CORES[0])))
    with recorded(varnishd, log) as firsts:
        before = cpu_of(varnishd)
        done = subprocess.run(
            ["taskset", "-c", str(CORES[-1]), build_loadgen(), "-w", "0", "-t",
             str(SECONDS), f"127.0.0.1:{varnishd.port}", *groups()],
            capture_output=True, text=True, check=True)
        varnishd.assert_alive()
        after = cpu_of(varnishd)
    seen = json.loads(done.stdout.splitlines()[-1])
    return Day(log, tenants, firsts, {n: after[n] - before.get(n, 0.0)
                              for n in after}, seen)


def replayed(*arguments: object) -> dict[str, Any]:
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def parts(of: dict[str, float]) -> dict[str, float]:
    """Return parts of their sum."""
    return {n: x / sum(of.values()) for n, x in of.items()}


def shares(found: dict[str, Any], what: str) -> dict[str, float]:
    """Return each tenant's part of the CPU time of all."""
    return parts({t["tenant"]: t[what]["cpu_part"]
                  for t in found["tenants"]})


def keep(day: Day, found: dict[str, Any], took: float) -> None:
    """Write the figures, if somebody wants them."""
    if OUT:
        lines = sum(1 for _ in day.log.open("rb"))
        Path(OUT).write_text(json.dumps(
            {"seconds": SECONDS, "replay_s": took, "varnishd_cpu_s": day.cpu,
             "loadgen": day.seen, "log_bytes": day.log.stat().st_size,
             "lines": lines, "replay": found}, indent=1))
        shutil.copy(day.log, f"{OUT}.vsl")
        shutil.copy(day.tenants, f"{OUT}.tenants")


@needs_varnish
@pytest.mark.timeout(SECONDS * 4 + 600)
def test_a_live_log_is_replayed(varnishd: Varnishd) -> None:
    day = live(varnishd)
    began = time.monotonic()
    found = replayed(day.log, "--tenants", day.tenants, "--varnishlog",
                     f"{ROOT}/bin/varnishlog")
    keep(day, found, time.monotonic() - began)
    log, again = shares(found, "log"), shares(found, "replay")
    asked = sum(g["sent_in_all"] for g in day.seen["groups"])
    requests = found["log"]["requests"]
    assert asked - CONNECTIONS <= requests <= asked + 1 + day.firsts
    assert found["log"]["cores"] == 1
    assert {t["tenant"]: (t["weight"], t["group"])
            for t in found["tenants"]} == {
        "shop": (2, None), "blog": (1, "(small)"), "api": (1, "(small)")}
    assert all(again.values())
    assert log == {n: pytest.approx(x, rel=LOG_NEAR)
                   for n, x in parts(day.cpu).items()}
    if SECONDS >= MEASURED:
        assert again == {n: pytest.approx(log[n], rel=SHARE_NEAR) for n in log}
    same_as_text(day, found)


def same_as_text(day: Day, found: dict[str, Any]) -> None:
    """The text of the log, by request, on stdin, says the same."""
    text = ran(f"{ROOT}/bin/varnishlog", "-r", day.log, "-g", "request",
               timeout=None).stdout
    done = ran(PROGRAM, "-", "--tenants", day.tenants, "--json", given=text,
               timeout=None)
    again = json.loads(done.stdout)
    assert again["log"] == found["log"] | {"file": "-"}
    assert again["tenants"] == found["tenants"]


def test_without_the_simulator(folder: Path) -> None:
    copy = folder / "tools" / "sandpaper-replay"
    copy.parent.mkdir()
    shutil.copy(PROGRAM, copy)
    assert ran(copy, "x.log", status=2).stderr == (
        "sandpaper-replay: the simulator is not built: run make sim in "
        f"{folder}\n")


@needs_varnish
def test_errors_of_a_file_of_tenants_are_those_of_sandpaper_check(
        folder: Path) -> None:
    file = folder / "tenants"
    file.write_text("a weight=0\n\nb b:80 weigth=1\nc group=none\n")
    checked = ran(f"{ROOT}/bin/sandpaper-check", file, status=1).stderr
    said = ran(PROGRAM, folder / "x.log", "--tenants", file, status=2).stderr
    assert said == "".join(f"sandpaper-replay: {line}\n"
                           for line in checked.splitlines()[:-1])
