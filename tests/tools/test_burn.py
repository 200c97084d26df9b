# SPDX-License-Identifier: BSD-2-Clause
"""A request that burns CPU for seconds: its tenant pays, others go on.

Tenant a.example burns, b.example does not.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from common import TIMEOUT, until

from varnishd import Varnishd, answered, status

BURNT = 2.0  # seconds, at least
SLACK = 0.5  # seconds: what VCL may cost beside it
STARVED = 5.0  # seconds with next to nothing of a core
VCL = """vcl 4.0;
import sandpaper;
import std;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_init {
	sandpaper.exempt("/exempt");
}
sub vcl_recv {
	if (req.url == "/burn" || req.url == "/exempt") { std.syslog(0, "burn"); }
	if (req.url == "/fetch") { return (pass); }
	return (synth(200));
}
sub vcl_backend_fetch {
	std.syslog(0, "burn");
	return (abandon);
}
"""


class Burner:
    """A request of a.example that burns as long as the test wants."""

    def __init__(self, varnishd: Varnishd) -> None:
        self.varnishd = varnishd

    def start(self, slots: int, url: str = "/burn") -> None:
        """Start varnishd; return when a.example burns."""
        v = self.varnishd
        v.start("sandpaper_cores=1", "sandpaper_new_hosts=tenant",
                f"sandpaper_workers_per_core={slots}", vcl=VCL,
                preload="burn", BURN_MS=int(BURNT * 1e3), BURN_NOW=v.now,
                BURN_GO=v.go)
        # The pipe has a reader already: a worker that waited for one would sleep,
        # and lose its slot
        now = os.open(v.now, os.O_RDONLY | os.O_NONBLOCK)
        self.client = v.ask("a.example", url)
        select.select([now], [], [], TIMEOUT)
        assert os.read(now, 64)
        os.close(now)

    def end(self, wanted: int = 200) -> float:
        """Let it end; return how many seconds it has burnt."""
        self.varnishd.go.write_text("x")
        burnt = int(self.varnishd.now.read_text()) * 1e-9
        assert status(self.client) == wanted
        return burnt

    def thread(self) -> int:
        """Return the thread that burns: no other one needs so much."""
        def busy() -> list[str]:
            return [t.name for t in task.iterdir() if int(
                (t / "schedstat").read_text().split()[0]) > SLACK * 1e9]

        task = Path(f"/proc/{self.varnishd.worker()}/task")
        until(busy, "no thread burns")
        return int(busy()[0])


@pytest.fixture
def burner(varnishd: Varnishd) -> Burner:
    return Burner(varnishd)


def test_others_are_answered_meanwhile(varnishd: Varnishd,
                                       burner: Burner) -> None:
    burner.start(slots=2)
    for _ in range(10):
        assert varnishd.get("b.example") == 200
    assert not select.select([burner.client], [], [], 0)[0]
    burner.end()
    varnishd.assert_alive()


def test_an_exempt_request_takes_no_open_slot(varnishd: Varnishd,
                                              burner: Burner) -> None:
    burner.start(slots=1, url="/exempt")
    for _ in range(10):
        assert varnishd.get("b.example") == 200
    assert not select.select([burner.client], [], [], 0)[0]
    burner.end()
    varnishd.assert_alive()


def test_all_slots_are_taken(varnishd: Varnishd, burner: Burner) -> None:
    burner.start(slots=1)
    other = varnishd.ask("b.example")
    varnishd.cli("debug.sandpaper.wait 1")
    assert varnishd.tenant("b.example")["waits_for"] == "slot"
    assert "waits_for" not in varnishd.tenant("a.example")
    burner.end()
    assert status(other) == 200
    varnishd.assert_alive()


def test_who_gets_no_core_keeps_its_slot(varnishd: Varnishd,
                                         burner: Burner) -> None:
    burner.start(slots=2)
    tid, core = burner.thread(), min(os.sched_getaffinity(0))
    os.sched_setaffinity(tid, {core})
    os.sched_setscheduler(tid, os.SCHED_IDLE, os.sched_param(0))
    others = [subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, "
         f"{{{core}}})\nwhile True: pass"]) for _ in range(4)]
    for other in others:
        varnishd.callback(other.wait)
        varnishd.callback(other.kill)
    time.sleep(STARVED)  # what is tested is that nothing happens
    for other in others:
        other.kill()
        other.wait()
    assert varnishd.counter("SANDPAPER.stalled") == 0
    burner.end()
    varnishd.assert_alive()


@pytest.mark.parametrize(("url", "wanted", "counter", "least"), [
    ("/burn", 200, "completed", 2), ("/fetch", 503, "fetches", 1)],
    ids=["request", "fetch"])
def test_its_tenant_is_charged(varnishd: Varnishd, burner: Burner, url: str,
                               wanted: int, counter: str, least: int) -> None:
    burner.start(2, url)
    assert varnishd.get("b.example") == 200
    burnt = burner.end(wanted)
    varnishd.await_counter(f"SANDPAPER.{counter}", least)
    assert burnt <= varnishd.tenant("a.example")["cpu_s"] < burnt + SLACK
    assert varnishd.tenant("b.example")["cpu_s"] < SLACK


def test_its_tenant_waits_for_its_debt(varnishd: Varnishd,
                                       burner: Burner) -> None:
    burner.start(slots=1)
    varnishd.cli("debug.sandpaper.freeze")
    waiting = []
    for n, host in enumerate(["a.example"] * 2 + ["b.example"] * 8):
        waiting.append(varnishd.ask(host))
        varnishd.cli(f"debug.sandpaper.wait {n + 1}")
    burner.end()
    varnishd.await_counter("SANDPAPER.completed", 1)
    varnishd.cli("debug.sandpaper.step 10")
    answered(waiting)
    varnishd.await_counter("SANDPAPER.completed", 11)
    assert [line.split()[3] for line in varnishd.served(11)] == [
        "a.example", *["b.example"] * 8, *["a.example"] * 2]
    varnishd.assert_alive()
