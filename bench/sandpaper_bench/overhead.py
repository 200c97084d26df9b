# SPDX-License-Identifier: BSD-2-Clause
"""`overhead`: what a tenant alone pays, and for which part (paper, 6.4).

`alone`, side by side with the baseline, for the hooks without Sandpaper
(`sandpaper=off`), with costs sampled as by default, and with every request's
measured.  Where restartable sequences make measuring free the last two are
the same: every request is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .lab import Lab, progress
from .pairs import alone

SETTINGS = {
    "off": ("sandpaper=off",),
    "sampled": (),
    "every request": ("sandpaper_sample=1",),
}


def overhead(lab: Lab, names: Sequence[str]) -> dict[str, Any]:
    """Compare each customer alone under each setting with the baseline."""
    planned = lab.variants
    base, ours = planned
    results: list[dict[str, Any]] = []
    controls: dict[str, Any] = {}
    try:
        for setting, parameters in SETTINGS.items():
            progress(f"costs: {setting}")
            lab.variants = [base, replace(
                ours, name=setting,
                parameters=(*ours.parameters, *parameters))]
            found = alone(lab, list(names))
            results += [{"setting": setting} | r for r in found["results"]]
            controls |= {
                f"{name}, {setting}":
                c | {"what": f"{c['what']}, with {setting}"}
                for name, c in found["control"].items()}
    finally:
        lab.variants = planned
    return lab.report("overhead", controls, results)
