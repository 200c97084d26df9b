# SPDX-License-Identifier: BSD-2-Clause
"""2DFQ, Figure 6b: Figure 5's requests under 2DFQ, small ones on one thread
and large ones on the other."""

from __future__ import annotations

from ..figure import Context, Figure, Result
from .twodfq_fig5 import compare, plot

PAPER = {"2dfq": ["ac...d...c...d...", "babababababababab"]}


def run(_: Context) -> Result:
    """See Figure."""
    return compare(PAPER)


FIGURE = Figure("2dfq-fig6", "2DFQ's schedule of the tenants of 2dfq-fig5",
                run, plot)
