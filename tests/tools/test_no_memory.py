# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper's tables can't grow for a while: everybody is served."""

from __future__ import annotations

import json
import unittest

from preloaded import ROOT, Preloaded

TENANTS = 200  # more than the table has room for at first
VCL = """vcl 4.0;
backend be none;
sub vcl_recv { return (synth(200)); }
"""


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class NoMemory(Preloaded):
    """Neither connections nor tenants get room."""

    def setUp(self) -> None:
        super().setUp()
        self.no_memory = self.folder / "no_memory"
        self.varnishd("no_memory", "-f", self.vcl(VCL),
                      NO_MEMORY=str(self.no_memory))

    def serve(self, tenants: int) -> None:
        """Ask once for each of so many tenants."""
        for tenant in range(tenants):
            self.assertEqual(
                self.status(self.ask(f"t{tenant}.example")), 200)

    def test_connections(self) -> None:
        self.no_memory.touch()
        self.serve(1)
        self.assertEqual(self.counter("SANDPAPER.enqueued"), 0)
        self.no_memory.unlink()
        self.serve(1)
        self.await_counter("SANDPAPER.completed", 1)
        self.assert_alive()

    def test_tenants(self) -> None:
        self.serve(1)
        self.no_memory.touch()
        self.serve(TENANTS)
        self.await_counter("SANDPAPER.completed", TENANTS + 1)
        said = json.loads(self.cli("sandpaper.list -j"))[3]
        self.assertLess(said["tenants"], TENANTS)
        self.assertGreater(self.tenant("(other)")["requests"], 0)
        self.no_memory.unlink()
        self.serve(TENANTS)
        self.await_counter("SANDPAPER.completed", 2 * TENANTS + 1)
        said = json.loads(self.cli("sandpaper.list -j"))[3]
        self.assertGreaterEqual(said["tenants"], TENANTS)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
