# SPDX-License-Identifier: BSD-2-Clause
"""The wall clock is stepped, within clock_step: waits are as long as ever.

By more than anybody waits for here, so that a deadline by that clock is
either over at once or too late for the test.
"""

from __future__ import annotations

import struct
import unittest

from preloaded import ROOT, TIMEOUT, Preloaded

STEP = 2 * TIMEOUT  # seconds
VCL = """vcl 4.0;
backend be { .host = "127.0.0.1"; .port = "9"; }
sub vcl_recv { return (synth(200)); }
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class ClockStep(Preloaded):
    """Forward and backward, while something waits."""

    def start(self, *options: str) -> None:
        """Start varnishd, with a wall clock that is right."""
        self.file = self.folder / "step"
        self.step(0)
        self.varnishd("clock_step", "-f", self.vcl(VCL), "-p",
                      f"clock_step={2 * STEP}", *options,
                      CLOCK_STEP=str(self.file))

    def step(self, seconds: int) -> None:
        """Let the wall clock be off by so many seconds."""
        with self.file.open("r+b" if self.file.exists() else "wb") as f:
            f.write(struct.pack("=q", seconds * 1_000_000_000))

    def test_forward_while_a_request_waits(self) -> None:
        self.start("-p", f"sandpaper_queue_timeout={TIMEOUT}")
        self.cli("debug.sandpaper.freeze")
        client = self.ask("a.example")
        self.cli("debug.sandpaper.wait 1")
        self.await_counter("SANDPAPER.oldest_wait_ms", 1)
        before = self.counter("SANDPAPER.oldest_wait_ms")
        self.step(STEP)
        # The keeper has looked at it three times
        self.await_counter("SANDPAPER.oldest_wait_ms", before + 300,
                           TIMEOUT * 1000)
        self.cli("debug.sandpaper.thaw")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.completed", 1)
        self.assertEqual(self.counter("SANDPAPER.timed_out"), 0)
        self.assertLess(self.tenant("a.example")["waited_s"], TIMEOUT)
        self.assert_alive()

    def test_backward_while_a_request_waits(self) -> None:
        self.start("-p", "sandpaper_queue_timeout=1")
        self.cli("debug.sandpaper.freeze")
        client = self.ask("a.example")
        self.cli("debug.sandpaper.wait 1")
        self.step(-STEP)
        self.assertEqual(self.status(client), 503)
        self.assertEqual(self.counter("SANDPAPER.timed_out"), 1)
        self.assert_alive()

    def test_forward_while_a_connection_lingers(self) -> None:
        self.start("-p", f"timeout_linger={TIMEOUT}",
                   "-p", f"timeout_idle={TIMEOUT}")
        client = self.ask("a.example")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.lingering", 1)
        harvests = self.counter("SANDPAPER.harvests")
        self.step(STEP)
        self.assertEqual(self.status(self.ask("b.example")), 200)
        self.await_counter("SANDPAPER.harvests", harvests + 1)
        self.send(client, "a.example")
        self.assertEqual(self.status(client), 200)
        self.assertEqual(self.counter("MAIN.sess_herd"), 0)
        self.assert_alive()

    def test_backward_while_a_connection_lingers(self) -> None:
        self.start("-p", "timeout_linger=1")
        client = self.ask("a.example")
        self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.lingering", 1)
        self.step(-STEP)
        self.await_counter("SANDPAPER.lingering", 0, 0)
        self.send(client, "a.example")
        self.assertEqual(self.status(client), 200)
        self.assert_alive()

    def test_backward_while_half_requests_wait(self) -> None:
        self.start("-p", "sandpaper_cores=1", "-p", "timeout_idle=1")
        for _ in range(2):  # as many as may be parsed at a time
            client = self.connect()
            client.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
                           b"GET / HTTP/1.1\r\n")
            self.assertEqual(self.status(client), 200)
        self.await_counter("SANDPAPER.lingering", 2)
        self.step(-STEP)
        self.await_counter("SANDPAPER.lingering", 0, 0)
        self.assertEqual(self.status(self.ask("b.example")), 200)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
