# SPDX-License-Identifier: BSD-2-Clause
"""What counters, lists and the log say is what has happened."""

from __future__ import annotations

import json
import time
import unittest
from typing import Any

from preloaded import HELLO, PREFACE, ROOT, TIMEOUT, Preloaded

SESSIONS = 7
TENANTS_MAX = 10
HOSTS = 40
SIZE = 100_000  # bytes, a second on the link
LARGE = """vcl 4.1;
import std;
backend none none;
sub vcl_recv { return (synth(200)); }
sub vcl_synth {
	set resp.body = std.fileread("%s");
	return (deliver);
}
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Told(Preloaded):
    """A varnishd that does little."""

    def status_now(self) -> dict[str, Any]:
        """Return what sandpaper.list says before its tenants."""
        said: dict[str, Any] = json.loads(self.cli("sandpaper.list -j"))[3]
        return said

    def test_a_session_of_http2_has_a_thread(self) -> None:
        self.varnishd(
            "", "-f", self.vcl(HELLO), "-p", "feature=+http2",
            "-p", "thread_pools=1", "-p", "thread_pool_min=5",
            "-p", "sandpaper_cores=1", "-p", "sandpaper_workers_per_core=10")
        self.await_counter("SANDPAPER.threads_wanted", 1)
        before = self.counter("SANDPAPER.threads_wanted")
        for _ in range(SESSIONS):
            self.connect().sendall(PREFACE)
        self.await_counter("SANDPAPER.threads_wanted", before + SESSIONS)

    def test_more_tenants_than_there_may_be(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO),
                      "-p", "sandpaper_new_hosts=tenant",
                      "-p", f"sandpaper_tenants_max={TENANTS_MAX}")
        self.assertEqual(self.status_now()["overflows"], 0)
        waits = [self.connect() for _ in range(HOSTS)]
        self.cli("debug.sandpaper.freeze")
        for n, client in enumerate(waits):
            self.send(client, f"host{n}.example")
        self.cli("debug.sandpaper.wait", str(HOSTS))
        self.assertGreaterEqual(self.status_now()["overflows"],
                                HOSTS - TENANTS_MAX)
        self.cli("debug.sandpaper.thaw")
        for client in waits:
            self.assertEqual(self.status(client), 200)

    def test_how_long_the_link_was_closed(self) -> None:
        body = self.folder / "body"
        body.write_bytes(b"x" * SIZE)
        self.varnishd("", "-f", self.vcl(LARGE % body),
                      "-p", "sandpaper_new_hosts=tenant",
                      "-p", f"sandpaper_nic_rate={8 * SIZE}")
        self.assertEqual(self.status_now()["nic_held_s"], 0)
        # Two tenants: for one alone nothing is held
        for host in ("a.example", "b.example", "a.example", "b.example"):
            self.assertEqual(self.status(self.ask(host)), 200)
        end = time.monotonic() + TIMEOUT
        while self.status_now()["nic_held_s"] < 0.5:
            self.assertLess(time.monotonic(), end)

    def test_only_what_happened_to_hosts_is_logged(self) -> None:
        # Each look of the keeper, 0.1 s apart, could log what became of Hosts
        self.varnishd("", "-f", self.vcl(HELLO), "-p", "vsl_mask=+Debug")
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.await_counter("SANDPAPER.threads_wanted", 1)
        self.assertEqual([line for line in self.log(
            "-i", "Debug", "-g", "raw") if "Sandpaper: Host" in line], [])

    def test_an_idle_link_teaches_nothing(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO))
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.await_counter("SANDPAPER.threads_wanted", 1)
        self.assertEqual(self.counter("SANDPAPER.nic_learned"), 0)

    def test_nobody_waits_too_long_without_a_limit(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO),
                      "-p", "sandpaper_queue_timeout=0")
        self.cli("debug.sandpaper.freeze")
        client = self.ask("a.example")
        # The keeper has looked twice
        self.await_counter("SANDPAPER.oldest_wait_ms", 200)
        self.cli("debug.sandpaper.thaw")
        self.assertEqual(self.status(client), 200)

    def test_a_request_starts_with_its_first_byte(self) -> None:
        self.varnishd("", "-f", self.vcl(HELLO))
        client = self.connect()
        client.sendall(b"GET / HTTP/1.1\r\n")
        self.await_counter("SANDPAPER.lingering", 1)
        seen = time.time()
        client.sendall(b"Host: a.example\r\n\r\n")
        self.assertEqual(self.status(client), 200)
        self.served(1)
        start = next(line for line in self.log("-i", "Timestamp", "-g", "raw")
                     if "Start:" in line)
        self.assertLess(float(start.split("Start: ")[1].split()[0]), seen)

    def test_a_request_that_took_no_time_was_measured(self) -> None:
        self.varnishd("cpu_clocks", "-f", self.vcl(HELLO),
                      "-p", "sandpaper_sample=1",
                      "-p", "sandpaper_counter=thread-clock", CPU_STEP_NS="0")
        self.assertEqual(self.status(self.ask("a.example")), 200)
        said = self.served(1)
        self.assertEqual(len(said), 1)
        self.assertTrue(said[0].endswith(" m"), said)


if __name__ == "__main__":
    unittest.main()
