# SPDX-License-Identifier: BSD-2-Clause
"""What requests cost in a window: the CPU time that Sandpaper charges.

sandpaper.list is read before and after the window; stock has no such list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .load import Group, Measurement
from .rig import Rig
from .runner import Window
from .varnish import Varnish, listed


@dataclass(frozen=True)
class Costed:
    """A window, and CPU us a request by group: of those that were served."""

    window: Measurement
    cpu_us: dict[str, float]


class Costing(Window):
    """A window in which costs are read, too."""

    def costed(
        self, rig: Rig, varnish: Varnish, groups: list[Group],
        others: Sequence[Group] = (),
    ) -> Costed:
        """Measure all groups, and what the first ones cost."""
        if not varnish.variant.parameters:
            return Costed(self.loaded(rig, varnish, [*groups, *others]), {})
        before = listed(varnish)
        window = self.loaded(rig, varnish, [*groups, *others])
        after = listed(varnish)
        found = {}
        for group in groups:
            new, old = (of.get(group.host, {}) for of in (after, before))
            served = new.get("requests", 0) - old.get("requests", 0)
            if served:
                found[group.name] = 1e6 / served * (
                    new["cpu_s"] - old.get("cpu_s", 0.0))
        return Costed(window, found)

    def measure(
        self, rig: Rig, running: Sequence[Varnish], found: Sequence[Any]
    ) -> Any:
        """Measure it; `found` is of the windows before."""
        return self.costed(rig, running[0], self.asked(rig, found))
