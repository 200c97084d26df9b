# SPDX-License-Identifier: BSD-2-Clause
"""The defaults of varnishd's parameters, from its own table."""

from __future__ import annotations

from _sandpaper_glue import ffi, lib


def default(name: str) -> float:
    """That of a parameter that is a number."""
    found = lib.sim_default(name.encode())
    assert found != ffi.NULL, name
    return float(ffi.string(found))
