# SPDX-License-Identifier: BSD-2-Clause
"""The figures, by name: one file each, and one line here."""

from __future__ import annotations

from ..figure import Figure
from . import (
    appendix_b,
    gaming,
    new_hosts,
    sandpaper_fig5,
    sandpaper_fig10,
    sandpaper_fig11,
    speed,
    twodfq_fig5,
    twodfq_fig6,
    twodfq_fig8,
    twodfq_fig9_10,
    twodfq_fig11_13,
    unbounded,
)

FIGURES: dict[str, Figure] = {f.name: f for f in (
    sandpaper_fig5.FIGURE,
    sandpaper_fig10.FIGURE,
    sandpaper_fig11.FIGURE,
    unbounded.FIGURE,
    appendix_b.FIGURE,
    gaming.FIGURE,
    new_hosts.FIGURE,
    twodfq_fig5.FIGURE,
    twodfq_fig6.FIGURE,
    twodfq_fig8.FIGURE,
    twodfq_fig9_10.FIGURE,
    twodfq_fig11_13.FIGURE,
    speed.FIGURE,
)}
