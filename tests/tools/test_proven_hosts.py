# SPDX-License-Identifier: BSD-2-Clause
"""Which new Hosts are proven at a start, and which later.

`debug.sandpaper.age` makes them older: nothing waits for a minute here.
"""

from __future__ import annotations

from varnishd import Varnishd

START = 60  # seconds after a start without an age and tokens, NEW_START
PROOF = 10  # seconds with a good answer, NEW_PROOF
MANY = 25  # more than NEW_FEW


def proven(varnishd: Varnishd, *before: int) -> int:
    """Return how many of many are proven after their proof."""
    varnishd.start()
    client = varnishd.connect()
    assert varnishd.get("first.example", client=client) == 200
    for seconds in before:
        varnishd.cli(f"debug.sandpaper.age {seconds}")
    for seconds in range(PROOF):
        for n in range(MANY):
            assert varnishd.get(f"{n}.example", client=client) == 200
        varnishd.await_counter("SANDPAPER.completed",
                               1 + (1 + seconds) * MANY)
        varnishd.cli("debug.sandpaper.age 1")
    # Each look proves one
    for _ in range(MANY):
        varnishd.cli("debug.sandpaper.age 1")
    return int(varnishd.state()["proven_hosts"])


def test_at_a_start(varnishd: Varnishd) -> None:
    assert proven(varnishd) == MANY


def test_later(varnishd: Varnishd) -> None:
    # A new Host does not make it a start again
    assert proven(varnishd, START) == 0
