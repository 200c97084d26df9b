# SPDX-License-Identifier: BSD-2-Clause
"""The figures, by name: one file each, and one line here."""

from __future__ import annotations

from ..figure import Figure
from . import (
    sandpaper_fig5,
    speed,
    twodfq_fig5,
    twodfq_fig6,
    twodfq_fig8,
)

FIGURES: dict[str, Figure] = {f.name: f for f in (
    sandpaper_fig5.FIGURE,
    twodfq_fig5.FIGURE,
    twodfq_fig6.FIGURE,
    twodfq_fig8.FIGURE,
    speed.FIGURE,
)}
