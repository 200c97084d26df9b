# SPDX-License-Identifier: BSD-2-Clause
"""What a request is charged: costs are set by the test.

Requests wait for an origin that is the test.
"""

from __future__ import annotations

import socket
import time
from itertools import pairwise
from typing import Any, NamedTuple

import client as http
import pytest
from common import until

from varnishd import PING, Varnishd, await_frame, respond, status, work

# Where a measurement takes a system call, only some requests are measured
NO_RSEQ = {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
SECOND = 1_000_000  # us, as debug.sandpaper.cost takes them
MS = 1_000_000  # ns
LINK = 1_000_000_000  # bits/s
PAGE = 46_000  # bytes: 0.4 ms of LINK
CORES = 4
LONG = 0.2  # seconds on each core
TRIES = 64  # one in two is measured
PINGS = 5000  # of HTTP/2
SLOTS_OFF, WHILE_OFF = 8192, 20
VCL = f"""vcl 4.1;
import std;
backend origin {{ .host = "127.0.0.1"; .port = "%d"; }}
sub vcl_recv {{
	if (req.url == "/held") {{ return (pass); }}
	if (req.url == "/fetch") {{ return (hash); }}
	if (req.url == "/burn") {{ std.syslog(0, "burn"); }}
	if (req.url == "/work") {{
{work(50)}	}}
	return (synth(200));
}}
sub vcl_synth {{
	if (req.url ~ "^/file") {{
		set resp.body = std.fileread(regsub(req.url, "^/file", ""));
		return (deliver);
	}}
}}
sub vcl_backend_fetch {{
	if (bereq.url == "/fetch") {{
{work(50).replace("req.", "bereq.")}	}}
}}
sub vcl_backend_response {{
	set beresp.ttl = 1ms;
	set beresp.grace = 1h;
	return (deliver);
}}
"""


class Record(NamedTuple):
    """What the log says of a request, s."""

    wait: float
    cpu: float
    net: float
    charge: float


class Charges:
    """What a varnishd charges its tenants."""

    def __init__(self, varnishd: Varnishd, origin: socket.socket) -> None:
        self.varnishd = varnishd
        self.origin = origin

    def start(self, *params: str, **options: Any) -> None:  # noqa: ANN401
        """Start varnishd with the policy whose accounts are simplest."""
        self.varnishd.start(
            "sandpaper_new_hosts=tenant", f"sandpaper_cores={CORES}",
            "workspace_client=1m", "sandpaper_policy=sfq", *params,
            vcl=VCL % self.origin.getsockname()[1], **options)

    def clocked(self, sample: float, step: int, *params: str) -> None:
        """Start it: each measurement of CPU time is of so many ns."""
        self.start("sandpaper_counter=thread-clock",
                   f"sandpaper_sample={sample}", *params,
                   preload="cpu_clocks", CPU_STEP_NS=step, **NO_RSEQ)

    def cost(self, tenant: str, us: int) -> None:
        """Set what a tenant's requests cost."""
        self.varnishd.cli(f"debug.sandpaper.cost {tenant} {us} 0")

    def held(self, host: str) -> tuple[socket.socket, socket.socket]:
        """Return a client, and the origin's end of its request."""
        client = self.varnishd.ask(host, "/held")
        return client, self.asked()

    def asked(self) -> socket.socket:
        """Return the origin's end of a request."""
        return self.varnishd.enter_context(self.origin.accept()[0])

    def end(self, client: socket.socket, peer: socket.socket) -> None:
        """Answer a request, and see that the client has the answer."""
        respond(peer)
        assert status(client) == 200

    def account(self, tenant: str) -> int:
        """Return its account, in us, without fetches and the like."""
        account: float = self.varnishd.tenant(tenant)["account_s"]
        return round(account * 10) * SECOND // 10

    def cpu(self, tenant: str) -> float:
        """Return the CPU time that it was charged, in seconds."""
        cpu: float = self.varnishd.tenant(tenant)["cpu_s"]
        return cpu

    def settled(self, after: int) -> tuple[int, str]:
        """Return the account after a request, and how that was measured.

        It costs 1 s when it is released, `after` at its end.
        """
        self.cost("a.example", SECOND)
        done = self.varnishd.counter("SANDPAPER.completed")
        client, peer = self.held("a.example")
        self.cost("a.example", after)
        self.end(client, peer)
        self.varnishd.await_counter("SANDPAPER.completed", done + 1)
        record = self.varnishd.served(done + 1)[-1].split()
        return self.account("a.example"), record[-1]

    def both_wait(self) -> None:
        """Both tenants have a request: without one there is no account."""
        for tenant in ("a.example", "b.example"):
            self.cost(tenant, SECOND)
            self.held(tenant)

    def busy(self, *params: str, **options: Any) -> int:  # noqa: ANN401
        """Start it; return the account after a request as dear as thought."""
        self.start(*params, **options)
        self.both_wait()
        return self.settled(SECOND)[0]

    def risen(self, what: str, above: float) -> dict[str, Any]:
        """Return what is said of a.example, once this is above that."""
        until(lambda: self.varnishd.tenant("a.example")[what] > above,
              f"{what} does not rise")
        return self.varnishd.tenant("a.example")

    def records(self) -> list[Record]:
        """Return all Sandpaper records, once all requests are done."""
        return [Record(*map(float, line.split()[-6:-2]))
                for line in self.varnishd.served(
                    self.varnishd.counter("SANDPAPER.enqueued"))]


@pytest.fixture
def charges(varnishd: Varnishd, origin: socket.socket) -> Charges:
    return Charges(varnishd, origin)


def test_completion_settles(charges: Charges) -> None:
    account = charges.busy()
    assert charges.settled(5 * SECOND)[0] == account + 4 * SECOND


def test_what_is_measured_stands_for_others(charges: Charges) -> None:
    account = charges.busy("sandpaper_sample=0.5",
                           "sandpaper_counter=thread-clock", **NO_RSEQ)
    seen = set()
    for _ in range(TRIES):
        settled, measured = charges.settled(2 * SECOND)
        # What it cost more, and that twice: for one that is not measured
        more = {"e": SECOND, "m": 2 * SECOND}[measured]
        assert settled == account + more
        seen.add(measured)
        if len(seen) == 2:
            break
    assert seen == {"e", "m"}


def test_cpu_is_divided_by_the_cores(varnishd: Varnishd,
                                     charges: Charges) -> None:
    charges.start("sandpaper_sample=1")
    assert varnishd.get("a.example") == 200
    varnishd.await_counter("SANDPAPER.completed", 1)
    estimate = varnishd.tenant("a.example")["estimate_cpu_s"]
    record = varnishd.served(1)[-1].split()
    cpu = float(record[-5])  # of the request alone, in whole us
    assert estimate == pytest.approx(cpu / CORES, abs=1e-6)


def test_what_is_settled_is_divided_by_the_cores(
        varnishd: Varnishd, charges: Charges) -> None:
    account = charges.busy("sandpaper_sample=1")
    charges.cost("a.example", 0)  # from now on what it really costs
    before = varnishd.tenant("a.example")
    assert varnishd.get("a.example", "/work") == 200
    varnishd.await_counter("SANDPAPER.completed", 2)
    after = varnishd.tenant("a.example")
    cpu = after["cpu_s"] - before["cpu_s"]
    charged = after["account_s"] - (account / SECOND - 1)
    assert cpu / CORES / 2 < charged < cpu / CORES * 2


def test_a_fetch_is_charged_to_its_tenant(varnishd: Varnishd,
                                          charges: Charges) -> None:
    charges.start("workspace_backend=1m", "sandpaper_sample=1")
    sums = [0.0]  # a fetch does the same work
    while len(sums) < 4:
        assert varnishd.get("b.example", "/work") == 200
        varnishd.await_counter("SANDPAPER.completed", len(sums))
        sums.append(charges.cpu("b.example"))
    work = min(b - a for a, b in pairwise(sums))
    before = 0.0
    for fetches, background in ((1, False), (2, True)):
        client = varnishd.ask("a.example", "/fetch")
        peer = charges.asked()
        if background:
            assert status(client) == 200
            respond(peer)
        else:
            charges.end(client, peer)
        varnishd.await_counter("SANDPAPER.fetches", fetches)
        charged = charges.cpu("a.example") - before
        assert charged > work / 2, f"fetch {fetches}"
        before += charged
    assert charges.cpu("b.example") < sums[-1] + work / 2


def test_the_log_has_the_wait_and_the_charge(varnishd: Varnishd,
                                             charges: Charges) -> None:
    charges.start()
    charges.cost("a.example", 3 * SECOND)
    varnishd.cli("debug.sandpaper.freeze")
    asked = time.monotonic()
    client = varnishd.ask("a.example")
    varnishd.await_counter("SANDPAPER.oldest_wait_ms", 200)
    varnishd.cli("debug.sandpaper.thaw")
    assert status(client) == 200
    said, = charges.records()
    assert said.charge == 3 * CORES  # CPU time of all cores
    assert 0.2 <= said.wait <= time.monotonic() - asked


def test_what_was_measured_before_a_waiting_list_counts(
        varnishd: Varnishd, charges: Charges) -> None:
    charges.clocked(1, MS, "workspace_backend=1m")
    first = varnishd.ask("a.example", "/fetch")
    peer = charges.asked()
    second = varnishd.ask("a.example", "/fetch")
    varnishd.await_counter("MAIN.busy_sleep", 1)
    charges.end(first, peer)
    assert status(second) == 200
    # Either may be done first
    assert sorted(r.cpu for r in charges.records()) == pytest.approx(
        [0.001, 0.002], abs=1e-4)


def test_the_leading_resource_is_dominant(varnishd: Varnishd,
                                          charges: Charges) -> None:
    page = varnishd.folder / "page"
    page.write_bytes(b"x" * PAGE)
    charges.clocked(1, MS, f"sandpaper_nic_rate={LINK}")
    for n, url in enumerate((*5 * ("/",), f"/file{page}")):
        assert varnishd.get("a.example", url) == 200
        varnishd.await_counter("SANDPAPER.completed", n + 1)
    net = max(r.net for r in charges.records())
    said = varnishd.tenant("a.example")
    # Five times as much CPU time: the next request needs that, too, though
    # the last one and so the estimate of bytes say more
    assert said["dominant"] == "cpu"
    # And the CPU time outside of workers, if the keeper has measured it
    assert 1e-3 <= said["estimate_cpu_s"] * CORES <= 1.1e-3
    assert net * 0.9 > said["estimate_cpu_s"]
    assert said["estimate_net_s"] == said["estimate_cpu_s"]


def test_the_residual_is_charged(varnishd: Varnishd,
                                 charges: Charges) -> None:
    def residual() -> float:
        return varnishd.counter("SANDPAPER.residual_ns") * 1e-9

    def charged_some() -> bool:
        assert varnishd.get("b.example") == 200
        return residual() > 0

    charges.clocked(1, 0)
    until(charged_some, "a residual")
    done = varnishd.counter("SANDPAPER.enqueued")
    varnishd.await_counter("SANDPAPER.completed", done)
    least = residual()
    charges.end(*charges.held("a.example"))
    varnishd.await_counter("SANDPAPER.fetches", 1)
    varnishd.await_counter("SANDPAPER.completed", done + 1)
    most = residual()
    record, = (line.split() for line in varnishd.served(done + 1)
               if " a.example " in line)
    assert least - 1e-6 <= float(record[-5]) <= most + 1e-6
    # The request's, and the fetch's
    charged = charges.cpu("a.example")
    assert 2 * least - 1e-6 <= charged <= 2 * most + 1e-6


def test_what_was_measured_is_no_residual(varnishd: Varnishd,
                                          charges: Charges) -> None:
    # Requests are said to take longer than the core has, for seconds
    charges.clocked(1, 100 * MS)
    while varnishd.counter("MAIN.uptime") < 4:
        assert varnishd.get("b.example") == 200
    assert varnishd.counter("SANDPAPER.residual_ns") == 0


def test_a_part_that_is_measured_stands_for_others(
        varnishd: Varnishd, charges: Charges) -> None:
    charges.clocked(1 / 2, MS)
    client = varnishd.connect()
    assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.completed", 1)
    before = after = charges.cpu("a.example")
    for byte in b"G" + TRIES * b"E":
        client.sendall(bytes([byte]))
        after = charges.cpu("a.example")
        if after > before:
            break
    assert after > before
    parts = (after - before) / (2e-9 * MS)
    assert parts == pytest.approx(round(parts), abs=1e-7)


def test_a_part_is_divided_by_the_cores(varnishd: Varnishd,
                                        charges: Charges) -> None:
    charges.clocked(1, MS)
    client = varnishd.connect()
    assert varnishd.get("a.example", client=client) == 200
    charges.both_wait()
    charges.cost("a.example", 0)  # from now on what it really costs
    before = varnishd.tenant("a.example")
    client.sendall(b"G")
    after = charges.risen("cpu_s", before["cpu_s"])
    assert after["account_s"] - before["account_s"] == pytest.approx(
        (after["cpu_s"] - before["cpu_s"]) / CORES, abs=1e-6)


def test_what_goes_on_is_divided_by_the_cores(varnishd: Varnishd,
                                              charges: Charges) -> None:
    charges.start(preload="burn", BURN_MS=0, BURN_NOW=varnishd.now,
                  BURN_GO=varnishd.go)
    charges.cost("b.example", SECOND)
    charges.held("b.example")  # who has no request has no account
    charges.cost("a.example", 1)
    began = time.monotonic()
    client = varnishd.ask("a.example", "/burn")
    varnishd.now.read_text()
    before = varnishd.tenant("a.example")["account_s"]
    after = charges.risen("account_s", before + LONG)["account_s"]
    # A thread uses one core at most
    assert after - before < (time.monotonic() - began) / CORES
    varnishd.go.write_text("x")
    varnishd.now.read_text()
    assert status(client) == 200


def test_what_a_session_did_is_not_the_next_tenants(
        varnishd: Varnishd, charges: Charges) -> None:
    charges.start("feature=+http2", "thread_pools=1")
    first, second = varnishd.session(), varnishd.session()
    first.sendall(http.get_stream("a.example"))
    await_frame(first, http.HEADERS)
    varnishd.await_counter("SANDPAPER.completed", 1)
    for _ in range(PINGS // 100):
        first.sendall(100 * PING)
        for _ in range(100):
            await_frame(first, http.PING)
    first.close()
    varnishd.await_counter("MAIN.sc_*", 1)
    # The thread that was idle last runs it
    second.sendall(http.get_stream("b.example"))
    await_frame(second, http.HEADERS)
    varnishd.await_counter("SANDPAPER.completed", 2)
    assert charges.cpu("b.example") < charges.cpu("a.example") / 4


def test_what_was_served_while_off_is_nobodys(varnishd: Varnishd,
                                              charges: Charges) -> None:
    charges.start("timeout_linger=60", "sandpaper_sample=1")
    assert varnishd.get("b.example", "/work") == 200
    client = varnishd.connect()
    assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.completed", 2)
    varnishd.cli("param.set sandpaper off")
    varnishd.await_counter("SANDPAPER.slots", SLOTS_OFF, SLOTS_OFF)
    for _ in range(WHILE_OFF):
        assert varnishd.get("a.example", "/work", client) == 200
    varnishd.cli("param.set sandpaper on")
    varnishd.await_counter("SANDPAPER.slots", 1, SLOTS_OFF - 1)
    assert varnishd.get("a.example", client=client) == 200
    varnishd.await_counter("SANDPAPER.completed", 3)
    assert charges.cpu("a.example") < 2 * charges.cpu("b.example")
