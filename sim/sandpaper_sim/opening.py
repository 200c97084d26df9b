# SPDX-License-Identifier: BSD-2-Clause
"""How many slots are open: POOLMGR_Open() of src/poolmgr, the same object code
as in varnishd, whose keeper asks it as often as it is asked here."""

from __future__ import annotations

from _sandpaper_glue import ffi, lib

EVERY = lib.POOLMGR_EVERY       # ns


class Opening:
    """The open slots of W on so many cores; all of them at first."""

    def __init__(self, slots: int, cores: int) -> None:
        self._load = ffi.new("struct poolmgr_load *", {
            "slots": slots, "cores": cores, "open": slots})
        self._doubled = ffi.new("int64_t *")
        self._used = 0              # ns of CPU time, at the last look
        self.open = slots

    def look(self, running: int, used: int, now: int) -> bool:
        """After EVERY; True: more are open. used: ns of CPU time so far."""
        load = self._load
        load.full = running >= self.open
        load.busy = (used - self._used) * 100 // (load.cores * EVERY)
        self._used, before = used, self.open
        self.open = load.open = lib.POOLMGR_Open(load, self._doubled, now)
        return self.open > before
