# SPDX-License-Identifier: BSD-2-Clause
"""`overhead`: what a tenant alone pays, and for which part (paper, 6.4).

`alone`, side by side with the baseline, for the hooks without Sandpaper
(`sandpaper=off`), with costs sampled as by default, and with every request's
measured.  Where restartable sequences make measuring free the last two are
the same: every request is.
"""

from __future__ import annotations

from .alone import alone_part
from .ask import Ask
from .customers import NOOP
from .runner import Experiment, Job, renamed

SETTINGS = {
    "off": ("sandpaper=off",),
    "sampled": (),
    "every request": ("sandpaper_sample=1",),
}


def plan(ask: Ask) -> Job:
    """Plan each customer alone under each setting and the baseline."""
    names = ask.customers(
        lambda: [NOOP] if ask.few else [*ask.realistic(), NOOP])
    ours = ask.variants[1]
    return Job(ask, [
        alone_part(ask, name, renamed(ours, setting, *parameters), setting)
        for setting, parameters in SETTINGS.items() for name in names], names)


EXPERIMENT = Experiment("overhead", plan, compares_two=True)
