# SPDX-License-Identifier: BSD-2-Clause
"""What the paper's text says in numbers (SEC '19), with its sections.

Its figures are bars and curves; only what the text gives is here.  It had 8
cores and 10 Gbit/s, the testbed has one core and 1.25 Gbit/s: SCALE makes its
times comparable, ratios and percentages are as they are.
"""

from __future__ import annotations

from .publishers import PAPER_CORES

SCALE = PAPER_CORES  # times are as much longer

# Figure 3, section 3.2: normalised throughputs under stock Varnish.
NORMALISED = {
    ("C1", "C2"): (0.62, 0.72),
    ("C1", "C3"): (0.55, 0.74),
    ("C1", "C4"): (0.50, 0.61),
    ("C3", "C4"): (0.68, 0.31),
}

# Section 6.2: p99 of the first beside the second, (stock, Sandpaper), s.
P99_S = {
    ("C1", "C3"): (0.03942, 0.10185),
    ("C3", "C1"): (4.83, 0.01989),
    ("C2", "C1"): (5.77, 0.41180),
}

# Section 6.4: throughput lost, of stock's.
LOST_NOOP = 0.17  # no-op VCL, 1 KB
LOST_REALISTIC = 0.09  # "less than 9 % on all realistic workloads"
LOST_FEW = 0.05  # "about 5 % with a handful of customers"
LOST_MANY = 0.086  # with MANY
MANY = 2000


def stock_ratio(a: str, b: str) -> float | None:
    """Return min/max of a pair's normalised throughputs under stock."""
    both = NORMALISED.get((a, b)) or NORMALISED.get((b, a))
    return min(both) / max(both) if both else None


def scaled_p99_s(name: str, beside: str, variant: str) -> float | None:
    """Return a customer's p99 under stock or sandpaper, times SCALE."""
    both = P99_S.get((name, beside))
    if both is None or variant not in ("stock", "sandpaper"):
        return None
    return SCALE * both[variant == "sandpaper"]


def lost(customer: str) -> float | None:
    """Return what a customer alone lost, at most."""
    if customer == "k0":
        return LOST_NOOP
    return LOST_REALISTIC if customer[0] in "Cc" else None
