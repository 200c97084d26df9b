# SPDX-License-Identifier: BSD-2-Clause
"""What varnishd allows of tenants and groups, checked by src/tenants/hostmap.c
itself, as it checks a VCL."""

from __future__ import annotations

from _sandpaper_glue import ffi, lib

WEIGHT_LEAST = 0.001


class Declared:
    """The tenants and groups of a VCL."""

    def __init__(self) -> None:
        self._map = ffi.gc(ffi.new("struct hostmap *"), lib.MAP_Fini)
        lib.MAP_Init(self._map)

    def refuses(self, name: str, weight: float, reservation: float,
                limit: float, *, group: bool = False) -> str:
        """Declare one more; return what is wrong with it, "" if nothing."""
        c_name = name.encode()
        if group:
            said = lib.MAP_Group(self._map, c_name, weight)
        else:
            said = lib.MAP_Tenant(self._map, c_name, weight, 0)
        if not said:
            said = lib.MAP_Limits(self._map, c_name, reservation, limit)
        return ffi.string(said).decode() if said else ""
