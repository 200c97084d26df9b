# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper's tables can't grow for a while: everybody is served."""

from __future__ import annotations

from pathlib import Path

import pytest

from varnishd import Varnishd

TENANTS = 200  # more than the table has room for at first


@pytest.fixture
def no_memory(varnishd: Varnishd) -> Path:
    """While there is this file, neither connections nor tenants get room."""
    file = varnishd.folder / "no_memory"
    varnishd.start(preload="refused", NO_MEMORY=file)
    return file


def serve(varnishd: Varnishd, tenants: int) -> None:
    """Ask once for each of so many tenants."""
    for tenant in range(tenants):
        assert varnishd.get(f"t{tenant}.example") == 200


def test_connections(varnishd: Varnishd, no_memory: Path) -> None:
    no_memory.touch()
    serve(varnishd, 1)
    assert varnishd.counter("SANDPAPER.enqueued") == 0
    no_memory.unlink()
    serve(varnishd, 1)
    varnishd.await_counter("SANDPAPER.completed", 1)
    varnishd.assert_alive()


def test_tenants(varnishd: Varnishd, no_memory: Path) -> None:
    serve(varnishd, 1)
    no_memory.touch()
    serve(varnishd, TENANTS)
    varnishd.await_counter("SANDPAPER.completed", TENANTS + 1)
    assert varnishd.state()["tenants"] < TENANTS
    assert varnishd.tenant("(other)")["completed"] > 0
    no_memory.unlink()
    serve(varnishd, TENANTS)
    varnishd.await_counter("SANDPAPER.completed", 2 * TENANTS + 1)
    assert varnishd.state()["tenants"] >= TENANTS
    varnishd.assert_alive()
