# SPDX-License-Identifier: BSD-2-Clause
"""Sandpaper goes off while a request is on its way through the gate."""

from __future__ import annotations

import time
import unittest
from pathlib import Path

from preloaded import HEADERS_FRAME, HELLO, ROOT, TIMEOUT, Preloaded

THREADS = 12  # of the only pool, always
TASKS = 2  # one thread accepts, and one is kept for fetches
SLOTS_OFF = 8192


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Off(Preloaded):
    """No thread is idle: sessions have them all."""

    def setUp(self) -> None:
        super().setUp()
        self.map = self.folder / "map"
        self.keeper = self.folder / "keeper"
        self.varnishd(
            "held_off", "-f", self.vcl(HELLO), "-p", "feature=+http2",
            "-p", "thread_pools=1", "-p", f"thread_pool_min={THREADS}",
            "-p", f"thread_pool_max={THREADS}", "-p", "timeout_idle=600",
            HELD_MAP=str(self.map), HELD_KEEPER=str(self.keeper))

    def await_file(self, file: Path) -> None:
        """Return when there is that file."""
        end = time.monotonic() + TIMEOUT
        while not file.exists():
            self.assertLess(time.monotonic(), end, file)
            time.sleep(0.01)

    def test_a_released_stream_without_a_thread_is_answered(self) -> None:
        sessions = [self.session() for _ in range(THREADS - TASKS)]
        self.map.touch()
        self.stream(sessions[0], "a.example")
        self.await_file(Path(f"{self.map}.held"))
        self.cli("param.set sandpaper off")
        self.await_counter("SANDPAPER.slots", SLOTS_OFF, SLOTS_OFF)
        self.keeper.touch()
        self.await_file(Path(f"{self.keeper}.held"))
        self.map.unlink()
        self.await_counter("SANDPAPER.stranded", 1)
        for other in sessions[1:]:
            other.close()
        self.await_counter("MAIN.sc_rem_close", THREADS - TASKS - 1)
        self.keeper.unlink()
        sessions[0].settimeout(TIMEOUT / 3)
        self.await_frame(sessions[0], HEADERS_FRAME)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
