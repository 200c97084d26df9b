# SPDX-License-Identifier: BSD-2-Clause
"""The figures, by name: one file each, and its name here."""

from __future__ import annotations

from ..figure import Figure
from . import (
    appendix_b,
    gaming,
    new_hosts,
    overload,
    sandpaper_fig5,
    sandpaper_fig10,
    sandpaper_fig11,
    seda_degrade,
    seda_load,
    seda_spike,
    seda_threads,
    speed,
    twodfq_fig5,
    twodfq_fig6,
    twodfq_fig8,
    twodfq_fig9_10,
    twodfq_fig11_13,
    unbounded,
)

ALL: list[Figure] = [
    *(f.FIGURE for f in (
        sandpaper_fig5, sandpaper_fig10, sandpaper_fig11, unbounded,
        appendix_b, gaming, new_hosts, overload)),
    *seda_threads.FIGURES, *seda_spike.FIGURES, *seda_load.FIGURES,
    *seda_degrade.FIGURES,
    *(f.FIGURE for f in (
        twodfq_fig5, twodfq_fig6, twodfq_fig8, twodfq_fig9_10,
        twodfq_fig11_13, speed))]
FIGURES = {figure.name: figure for figure in ALL}
