# SPDX-License-Identifier: BSD-2-Clause
"""Varnish's counters when the lock of the sums is always held by another."""

from __future__ import annotations

from varnishd import Varnishd


def test_connections(varnishd: Varnishd) -> None:
    """The acceptor never ends its task, so it must sum while it runs."""
    varnishd.start(preload="refused", NO_TRYLOCK=varnishd.folder)
    assert varnishd.get("a.example") == 200
    varnishd.await_counter("MAIN.sess_conn", 1, 1)
