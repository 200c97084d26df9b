# SPDX-License-Identifier: BSD-2-Clause
"""Varnish's counters when the lock of the sums is always held by another."""

from __future__ import annotations

import unittest

from preloaded import Preloaded

VCL = """
vcl 4.1;
backend be none;
sub vcl_recv { return (synth(200)); }
"""


class Counters(Preloaded):
    """Nothing that a thread has counted stays with it."""

    def test_connections(self) -> None:
        """The acceptor never ends its task, so it must sum while it runs."""
        self.varnishd("no_trylock", "-f", self.vcl(VCL))
        self.assertEqual(self.status(self.ask("a.example")), 200)
        self.await_counter("MAIN.sess_conn", 1, 1)


if __name__ == "__main__":
    unittest.main()
