# SPDX-License-Identifier: BSD-2-Clause
"""Which new Hosts are proven at a start, and which later.

`debug.sandpaper.age` makes them older: nothing waits for a minute here.
"""

from __future__ import annotations

import json
import unittest

from preloaded import HELLO, ROOT, Preloaded

START = 60  # seconds after a start without an age and tokens, NEW_START
PROOF = 10  # seconds with a good answer, NEW_PROOF
MANY = 25  # more than NEW_FEW


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class NewHosts(Preloaded):
    """Many Hosts begin at the same time."""

    def proven(self, *before: int) -> int:
        """Return how many of many are proven after their proof."""
        self.varnishd("", "-f", self.vcl(HELLO))
        client = self.connect()
        self.send(client, "first.example")
        self.assertEqual(self.status(client), 200)
        for seconds in before:
            self.cli(f"debug.sandpaper.age {seconds}")
        for _ in range(PROOF):
            for n in range(MANY):
                self.send(client, f"{n}.example")
                self.assertEqual(self.status(client), 200)
            self.cli("debug.sandpaper.age 1")
        # Each look proves one
        for _ in range(MANY):
            self.cli("debug.sandpaper.age 1")
        proven: int = json.loads(
            self.cli("sandpaper.list -j"))[3]["proven_hosts"]
        return proven

    def test_at_a_start(self) -> None:
        self.assertEqual(self.proven(), MANY)

    def test_later(self) -> None:
        # A new Host does not make it a start again
        self.assertEqual(self.proven(START), 0)


if __name__ == "__main__":
    unittest.main()
