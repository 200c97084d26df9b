# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper goes off while a request is on its way through the gate.

No thread is idle: sessions have them all.
"""

from __future__ import annotations

from pathlib import Path

import client as http
from common import SOON, until

from varnishd import Varnishd, await_frame

THREADS = 12  # of the only pool, always
TASKS = 2  # one thread accepts, and one is kept for fetches
SLOTS_OFF = 8192


def test_a_released_stream_without_a_thread_is_answered(
        varnishd: Varnishd) -> None:
    map_, keeper = varnishd.folder / "map", varnishd.folder / "keeper"
    varnishd.start(
        "feature=+http2", "thread_pools=1", f"thread_pool_min={THREADS}",
        f"thread_pool_max={THREADS}", "timeout_idle=600", preload="held",
        HELD_MAP=map_, HELD_KEEPER=keeper)
    sessions = [varnishd.session() for _ in range(THREADS - TASKS)]
    map_.touch()
    sessions[0].sendall(http.get_stream("a.example"))
    until(Path(f"{map_}.held").exists, "no worker reads the map")
    varnishd.cli("param.set sandpaper off")
    varnishd.await_counter("SANDPAPER.slots", SLOTS_OFF, SLOTS_OFF)
    keeper.touch()
    until(Path(f"{keeper}.held").exists, "the keeper does not pause")
    map_.unlink()
    varnishd.await_counter("SANDPAPER.stranded", 1)
    for other in sessions[1:]:
        other.close()
    varnishd.await_counter("MAIN.sc_rem_close", THREADS - TASKS - 1)
    keeper.unlink()
    sessions[0].settimeout(SOON)
    await_frame(sessions[0], http.HEADERS)
    varnishd.assert_alive()
