# SPDX-License-Identifier: BSD-2-Clause
"""All experiments by name, in the order in which `all` runs them."""

from __future__ import annotations

from . import (
    abuse,
    alone,
    compress,
    fetch,
    haboob,
    latency,
    loadcheck,
    overhead,
    overload,
    pairs,
    parts,
    policies,
    quick,
    scale,
    soak,
    table1,
    timeline,
    utilization,
    workers,
)

EXPERIMENTS = {e.name: e for e in (
    table1.EXPERIMENT,
    pairs.PAIRS,
    pairs.RANDOM,
    alone.EXPERIMENT,
    overhead.EXPERIMENT,
    workers.EXPERIMENT,
    utilization.EXPERIMENT,
    latency.EXPERIMENT,
    scale.EXPERIMENT,
    timeline.CONTENT_CHANGE,
    timeline.FLASH_CROWD,
    fetch.EXPERIMENT,
    policies.EXPERIMENT,
    parts.EXPERIMENT,
    overload.EXPERIMENT,
    haboob.EXPERIMENT,
    compress.EXPERIMENT,
    loadcheck.EXPERIMENT,
    *abuse.EXPERIMENTS,
    *pairs.RATES,
    soak.EXPERIMENT,
    quick.EXPERIMENT,
)}
