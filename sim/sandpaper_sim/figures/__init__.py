# SPDX-License-Identifier: BSD-2-Clause
"""The figures, by name: one file each, and its name here."""

from __future__ import annotations

from ..figure import Figure
from . import (
    appendix_b,
    fetches,
    gaming,
    new_hosts,
    overload,
    red4mq_compress,
    red4mq_fair,
    red4mq_line,
    red4mq_more,
    red4mq_os,
    red4mq_senders,
    sandpaper_fig5,
    sandpaper_fig10,
    sandpaper_fig11,
    seda_degrade,
    seda_load,
    seda_spike,
    seda_threads,
    speed,
    tiers_goals,
    tiers_judge,
    tiers_sweep,
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
        appendix_b, gaming, new_hosts, overload, fetches)),
    *seda_threads.FIGURES, *seda_spike.FIGURES, *seda_load.FIGURES,
    *seda_degrade.FIGURES,
    *red4mq_os.FIGURES, *red4mq_line.FIGURES, *red4mq_fair.FIGURES,
    *red4mq_compress.FIGURES, *red4mq_senders.FIGURES,
    *red4mq_more.FIGURES,
    *(f.FIGURE for f in (tiers_judge, tiers_goals, tiers_sweep)),
    *(f.FIGURE for f in (
        twodfq_fig5, twodfq_fig6, twodfq_fig8, twodfq_fig9_10,
        twodfq_fig11_13, speed))]
FIGURES = {figure.name: figure for figure in ALL}
