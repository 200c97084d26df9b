# SPDX-License-Identifier: BSD-2-Clause
"""The headers that are installed: VMODs of others include them."""

from __future__ import annotations

from pathlib import Path

from common import ROOT, needs_varnish, ran


@needs_varnish
def test_a_vmod_can_include_the_private_header(folder: Path) -> None:
    (header,) = Path(ROOT).glob("include/*/cache/cache_v*d.h")
    source = folder / "vmod.c"
    source.write_text(f'#include "cache/{header.name}"\n')
    ran("gcc", "-fsyntax-only", f"-I{header.parents[1]}", source)
