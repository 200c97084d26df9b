# SPDX-License-Identifier: BSD-2-Clause
"""Hypothesis: the same examples each time. SANDPAPER_PROPERTIES=long tries
fifty times as many."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

for name, examples in (("short", 40), ("long", 2000)):
    settings.register_profile(
        name, max_examples=examples, derandomize=True, deadline=None,
        database=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("SANDPAPER_PROPERTIES", "short"))
