# SPDX-License-Identifier: BSD-2-Clause
"""What a request is charged: costs are set by the test."""

from __future__ import annotations

import socket
import time
import unittest
from typing import Any, NamedTuple

from preloaded import (
    HEADERS_FRAME, PING, PING_FRAME, ROOT, TIMEOUT, Preloaded)

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
WORK = ('\t\tset req.http.x = "0123456789abcdefghij";\n'
        + "\t\tset req.http.x = req.http.x + req.http.x;\n" * 6
        + '\t\tset req.http.y = regsuball(req.http.x, "[a-j]", "-");\n' * 50)
VCL = f"""vcl 4.1;
import std;
backend origin {{ .host = "127.0.0.1"; .port = "%d"; }}
sub vcl_recv {{
	if (req.url == "/held") {{ return (pass); }}
	if (req.url == "/fetch") {{ return (hash); }}
	if (req.url == "/burn") {{ std.syslog(0, "burn"); }}
	if (req.url == "/work") {{
{WORK}	}}
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
{WORK.replace("req.", "bereq.")}	}}
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


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Charges(Preloaded):
    """Requests wait for an origin that is the test."""

    def start(self, *options: str, preload: str = "", **env: str) -> None:
        """Start varnishd with the policy whose accounts are simplest."""
        self.origin = self.enterContext(
            socket.create_server(("127.0.0.1", 0)))
        self.origin.settimeout(TIMEOUT)
        self.varnishd(
            preload, "-f", self.vcl(VCL % self.origin.getsockname()[1]),
            "-p", "sandpaper_new_hosts=tenant",
            "-p", f"sandpaper_cores={CORES}",
            "-p", "workspace_client=1m", "-p", "sandpaper_policy=sfq",
            *options, **env)

    def cost(self, tenant: str, us: int) -> None:
        """Set what a tenant's requests cost."""
        self.cli(f"debug.sandpaper.cost {tenant} {us} 0")

    def held(self, host: str) -> tuple[socket.socket, socket.socket]:
        """Return a client, and the origin's end of its request."""
        client = self.ask(host, "/held")
        return client, self.asked()

    def asked(self) -> socket.socket:
        """Return the origin's end of a request."""
        peer, _ = self.origin.accept()
        return self.enterContext(peer)

    def answer(self, peer: socket.socket) -> None:
        """Answer it."""
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                     b"Connection: close\r\n\r\n")

    def end(self, client: socket.socket, peer: socket.socket) -> None:
        """Answer it, and see that the client has the answer."""
        self.answer(peer)
        self.assertEqual(self.status(client), 200)

    def account(self, tenant: str) -> int:
        """Return its account, in us, without fetches and the like."""
        us: int = round(self.tenant(tenant)["account_s"] * 10) * SECOND // 10
        return us

    def settled(self, after: int) -> tuple[int, str]:
        """Return the account after a request, and how that was measured.

        It costs 1 s when it is released, `after` at its end.
        """
        self.cost("a.example", SECOND)
        done = self.counter("SANDPAPER.completed")
        client, peer = self.held("a.example")
        self.cost("a.example", after)
        self.end(client, peer)
        self.await_counter("SANDPAPER.completed", done + 1)
        record = self.served(done + 1)[-1].split()
        return self.account("a.example"), record[-1]

    def busy(self, *options: str, **env: str) -> int:
        """Start it; return the account after a request as dear as thought."""
        self.start(*options, **env)
        for tenant in ("a.example", "b.example"):
            self.cost(tenant, SECOND)
            self.held(tenant)  # who has no request has no account
        return self.settled(SECOND)[0]

    def test_completion_settles(self) -> None:
        account = self.busy()
        self.assertEqual(self.settled(5 * SECOND)[0], account + 4 * SECOND)

    def test_what_is_measured_stands_for_others(self) -> None:
        account = self.busy("-p", "sandpaper_sample=0.5", "-p",
                            "sandpaper_counter=thread-clock", **NO_RSEQ)
        seen = set()
        for _ in range(TRIES):
            settled, measured = self.settled(2 * SECOND)
            # What it cost more, and that twice: for one that is not measured
            more = {"e": SECOND, "m": 2 * SECOND}[measured]
            self.assertEqual(settled, account + more)
            seen.add(measured)
            if len(seen) == 2:
                return
        self.fail(f"of {TRIES} requests all were '{seen}'")

    def test_cpu_is_divided_by_the_cores(self) -> None:
        self.start("-p", "sandpaper_sample=1")
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.await_counter("SANDPAPER.completed", 1)
        a = self.tenant("a.example")
        record = self.served(1)[-1].split()
        cpu = float(record[-5])  # of the request alone, in whole us
        self.assertAlmostEqual(a["estimate_cpu_s"], cpu / CORES, delta=1e-6)

    def test_what_is_settled_is_divided_by_the_cores(self) -> None:
        account = self.busy("-p", "sandpaper_sample=1")
        self.cost("a.example", 0)  # from now on what it really costs
        before = self.tenant("a.example")
        self.assertEqual(self.status(self.ask("a.example", "/work")), 200)
        self.await_counter("SANDPAPER.completed", 2)
        after = self.tenant("a.example")
        cpu = after["cpu_s"] - before["cpu_s"]
        charged = after["account_s"] - (account / SECOND - 1)
        self.assertGreater(charged, cpu / CORES / 2)
        self.assertLess(charged, cpu / CORES * 2)

    def cpu(self, tenant: str) -> float:
        """Return the CPU time that it was charged, in seconds."""
        cpu: float = self.tenant(tenant)["cpu_s"]
        return cpu

    def test_a_fetch_is_charged_to_its_tenant(self) -> None:
        self.start("-p", "workspace_backend=1m", "-p", "sandpaper_sample=1")
        self.assertEqual(self.status(self.ask("b.example", "/work")), 200)
        self.await_counter("SANDPAPER.completed", 1)
        work = self.cpu("b.example")  # a fetch does the same
        before = 0.0
        for fetches, background in ((1, False), (2, True)):
            client = self.ask("a.example", "/fetch")
            peer = self.asked()
            if background:
                self.assertEqual(self.status(client), 200)
                self.answer(peer)
            else:
                self.end(client, peer)
            self.await_counter("SANDPAPER.fetches", fetches)
            charged = self.cpu("a.example") - before
            self.assertGreater(charged, work / 2, f"fetch {fetches}")
            before += charged
        self.assertLess(self.cpu("b.example"), 1.5 * work)

    def risen(self, what: str, above: float) -> dict[str, Any]:
        """Return what is said of a.example, once this is above that."""
        end = time.monotonic() + TIMEOUT
        while (said := self.tenant("a.example"))[what] <= above:
            self.assertLess(time.monotonic(), end, f"{what} does not rise")
        return said

    def clocked(self, sample: float, step: int, *options: str) -> None:
        """Start it: each measurement of CPU time is of so many ns."""
        self.start("-p", "sandpaper_counter=thread-clock", "-p",
                   f"sandpaper_sample={sample}", *options,
                   preload="cpu_clocks", CPU_STEP_NS=str(step), **NO_RSEQ)

    def records(self) -> list[Record]:
        """Return all Sandpaper records, once all requests are done."""
        return [Record(*map(float, line.split()[-6:-2]))
                for line in self.served(self.counter("SANDPAPER.enqueued"))]

    def test_the_log_has_the_wait_and_the_charge(self) -> None:
        self.start()
        self.cost("a.example", 3 * SECOND)
        self.cli("debug.sandpaper.freeze")
        asked = time.monotonic()
        client = self.ask("a.example")
        self.await_counter("SANDPAPER.oldest_wait_ms", 200)
        self.cli("debug.sandpaper.thaw")
        self.assertEqual(self.status(client), 200)
        said, = self.records()
        self.assertEqual(said.charge, 3)
        self.assertGreaterEqual(said.wait, 0.2)
        self.assertLessEqual(said.wait, time.monotonic() - asked)

    def test_what_was_measured_before_a_waiting_list_counts(self) -> None:
        self.clocked(1, MS, "-p", "workspace_backend=1m")
        first = self.ask("a.example", "/fetch")
        peer = self.asked()
        second = self.ask("a.example", "/fetch")
        self.await_counter("MAIN.busy_sleep", 1)
        self.end(first, peer)
        self.assertEqual(self.status(second), 200)
        # Either may be done first
        self.assertEqual(sorted(r.cpu for r in self.records()),
                         [0.001, 0.002])

    def test_the_leading_resource_is_dominant(self) -> None:
        page = self.folder / "page"
        page.write_bytes(b"x" * PAGE)
        self.clocked(1, MS, "-p", f"sandpaper_nic_rate={LINK}")
        for url in (*5 * ("/",), f"/file{page}"):
            self.assertEqual(self.status(self.ask("a.example", url)), 200)
        net = max(r.net for r in self.records())
        said = self.tenant("a.example")
        # Five times as much CPU time: the next request needs that, too, though
        # the last one and so the estimate of bytes say more
        self.assertEqual(said["dominant"], "cpu")
        self.assertEqual(said["estimate_cpu_s"], 1e-3 / CORES)
        self.assertGreater(net * 0.9, said["estimate_cpu_s"])
        self.assertEqual(said["estimate_net_s"], said["estimate_cpu_s"])

    def test_the_residual_is_charged(self) -> None:
        self.clocked(1, 0)
        end = time.monotonic() + TIMEOUT
        while not self.counter("SANDPAPER.residual_ns"):
            self.assertLess(time.monotonic(), end, "no residual")
            self.assertEqual(self.status(self.ask("b.example")), 200)
        done = self.counter("SANDPAPER.enqueued")
        self.await_counter("SANDPAPER.completed", done)
        least = self.counter("SANDPAPER.residual_ns") * 1e-9
        self.end(*self.held("a.example"))
        self.await_counter("SANDPAPER.fetches", 1)
        self.await_counter("SANDPAPER.completed", done + 1)
        most = self.counter("SANDPAPER.residual_ns") * 1e-9
        record, = (line.split() for line in self.served(done + 1)
                   if " a.example " in line)
        self.assertGreaterEqual(float(record[-5]), least - 1e-6)
        self.assertLessEqual(float(record[-5]), most + 1e-6)
        # The request's, and the fetch's
        self.assertGreaterEqual(self.cpu("a.example"), 2 * least - 1e-6)
        self.assertLessEqual(self.cpu("a.example"), 2 * most + 1e-6)

    def test_what_was_measured_is_no_residual(self) -> None:
        # Requests are said to take longer than the core has, for seconds
        self.clocked(1, 100 * MS)
        while self.counter("MAIN.uptime") < 4:
            self.assertEqual(self.status(self.ask("b.example")), 200)
        self.assertEqual(self.counter("SANDPAPER.residual_ns"), 0)

    def test_a_part_that_is_measured_stands_for_others(self) -> None:
        self.clocked(1 / 2, MS)
        client = self.ask("a.example")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", 1)
        before = after = self.cpu("a.example")
        for byte in b"G" + TRIES * b"E":
            client.sendall(bytes([byte]))
            after = self.cpu("a.example")
            if after > before:
                break
        self.assertGreater(after, before)
        parts = (after - before) / (2e-9 * MS)
        self.assertAlmostEqual(parts, round(parts))

    def test_a_part_is_divided_by_the_cores(self) -> None:
        self.clocked(1, MS)
        client = self.ask("a.example")
        self.assertEqual(self.status(client), 200)
        for tenant in ("a.example", "b.example"):
            self.cost(tenant, SECOND)
            self.held(tenant)  # who has no request has no account
        self.cost("a.example", 0)  # from now on what it really costs
        before = self.tenant("a.example")
        client.sendall(b"G")
        after = self.risen("cpu_s", before["cpu_s"])
        self.assertAlmostEqual(
            after["account_s"] - before["account_s"],
            (after["cpu_s"] - before["cpu_s"]) / CORES, places=6)

    def test_what_goes_on_is_divided_by_the_cores(self) -> None:
        self.start(preload="burn", BURN_MS="0", BURN_NOW=str(self.now),
                   BURN_GO=str(self.go))
        self.cost("b.example", SECOND)
        self.held("b.example")  # who has no request has no account
        self.cost("a.example", 1)
        began = time.monotonic()
        client = self.ask("a.example", "/burn")
        self.now.read_text()
        before = self.tenant("a.example")["account_s"]
        after = self.risen("account_s", before + LONG)["account_s"]
        # A thread uses one core at most
        self.assertLess(after - before, (time.monotonic() - began) / CORES)
        self.go.write_text("x")
        self.now.read_text()
        self.assertEqual(self.status(client), 200)

    def pinged(self, session: socket.socket) -> None:
        """Let a session do much, and end."""
        for _ in range(PINGS // 100):
            session.sendall(100 * PING)
            for _ in range(100):
                self.await_frame(session, PING_FRAME)
        session.close()
        self.await_counter("MAIN.sc_*", 1)

    def test_what_a_session_did_is_not_the_next_tenants(self) -> None:
        self.start("-p", "feature=+http2", "-p", "thread_pools=1")
        first, second = self.session(), self.session()
        self.stream(first, "a.example")
        self.await_frame(first, HEADERS_FRAME)
        self.await_counter("SANDPAPER.completed", 1)
        self.pinged(first)
        # The thread that was idle last runs it
        self.stream(second, "b.example")
        self.await_frame(second, HEADERS_FRAME)
        self.await_counter("SANDPAPER.completed", 2)
        self.assertLess(self.cpu("b.example"), self.cpu("a.example") / 4)

    def test_what_was_served_while_off_is_nobodys(self) -> None:
        self.start("-p", "timeout_linger=60", "-p", "sandpaper_sample=1")
        self.assertEqual(self.status(self.ask("b.example", "/work")), 200)
        client = self.ask("a.example")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", 2)
        self.cli("param.set sandpaper off")
        self.await_counter("SANDPAPER.slots", SLOTS_OFF, SLOTS_OFF)
        for _ in range(WHILE_OFF):
            self.send(client, "a.example", "/work")
            self.assertEqual(self.status(client), 200)
        self.cli("param.set sandpaper on")
        self.await_counter("SANDPAPER.slots", 1, SLOTS_OFF - 1)
        self.send(client, "a.example")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", 3)
        self.assertLess(self.cpu("a.example"), 2 * self.cpu("b.example"))


if __name__ == "__main__":
    unittest.main()
