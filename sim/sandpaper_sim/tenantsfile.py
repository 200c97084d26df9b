# SPDX-License-Identifier: BSD-2-Clause
"""Files of tenants, read by src/tenants/file.c itself, as varnishd reads them;
and the tenant of a Host, by src/tenants/hostmap.c."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _sandpaper_glue import ffi, lib

from .files import Wrong

NONE = "(none)"                 # requests without a Host
SHOWN = 10                      # errors, as sandpaper.reload shows


@ffi.def_extern()  # type: ignore[untyped-decorator]
def sim_file_error(priv: Any, line: int, why: Any) -> None:  # noqa: ANN401
    """FILE_Read() tells of an error."""
    path, errors = ffi.from_handle(priv)
    where = f"{path}:{line}" if line else str(path)
    errors.append(f"{where}: {ffi.string(why).decode(errors='replace')}")


@dataclass(frozen=True)
class Entry:
    """What a file says of a tenant, or of a group in parentheses."""

    name: str
    weight: float
    reservation: float              # 0: none
    limit: float                    # 0: none
    group: str                      # "": none


def without_port(host: str) -> str:
    """A Host as spd_host() in varnishd changes it before it looks it up."""
    bare = host.rstrip("0123456789")
    if bare.endswith(":"):
        host = bare[:-1]
    host = host[:lib.TEN_NAME_MAX]
    host = "".join(c.lower() if c.isascii() else c for c in host)
    return host[:-1] if len(host) > 1 and host.endswith(".") else host


class Tenants:
    """The tenants of some files, which are checked together."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._map = ffi.gc(ffi.new("struct hostmap *"), lib.MAP_Fini)
        lib.MAP_Init(self._map)
        errors: list[str] = []
        for path in paths:
            handle = ffi.new_handle((path, errors))
            lib.FILE_Read(self._map, str(path).encode(), lib.sim_file_error,
                          handle)
        if errors:
            more = len(errors) - SHOWN
            raise Wrong("\n".join(errors[:SHOWN] + (
                [f"and {more} more errors: sandpaper-check shows all"]
                if more > 0 else [])))

    def __iter__(self) -> Iterator[Entry]:
        t = self._map.first
        while t != ffi.NULL:
            yield entry(t)
            t = t.next

    def each(self, host: str) -> Entry | None:
        """What is declared for a Host that is a tenant by a pattern."""
        text = host.encode()[:lib.TEN_NAME_MAX]
        found = lib.MAP_Each(self._map, text, len(text))
        return entry(found) if found != ffi.NULL else None

    def tenant(self, host: str) -> str:
        """The name of a Host's tenant; host: as the client sent it."""
        if not host or host[0] == "(" or not (name := without_port(host)):
            return NONE
        text = name.encode()[:lib.TEN_NAME_MAX]
        found = ffi.new("char[]", lib.TEN_NAME_MAX + 1)
        lib.MAP_Name(self._map, text, len(text), found)
        return ffi.string(found).decode(errors="replace")


def entry(t: Any) -> Entry:  # noqa: ANN401
    """Of a struct map_tenant."""
    return Entry(name_of(t), t.weight, t.reservation, t.limit,
                 name_of(t.group) if t.group != ffi.NULL else "")


def name_of(t: Any) -> str:  # noqa: ANN401
    """Of a struct map_tenant; a group's is in parentheses."""
    name: str = ffi.string(t.name).decode()
    return name
