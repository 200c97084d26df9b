# SPDX-License-Identifier: BSD-2-Clause
"""What the user asks of one experiment: the options, and where it runs.

`Ask` is all that an experiment sees of the command line.  A wrong value of an
option is an error here, before anything starts.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .customers import (
    CUSTOMERS,
    MADE_UP_PAIRS,
    PAIRS,
    check_names,
)
from .publishers import PUBLISHERS
from .rig import Plan
from .testbed import Testbed, TestbedError, is_number
from .varnish import Variant
from .vmod import supported


def check_once(option: str, values: Sequence[object]) -> None:
    """Is each value of an option named once?"""
    for value, times in Counter(values).items():
        if times > 1:
            raise TestbedError(f"{option} names {value} {times} times: name "
                               "it once")


def chosen_pairs(text: str) -> list[tuple[str, str]]:
    """Parse "c1-c3,c3-c4"."""
    found = []
    for item in text.split(","):
        a, dash, b = item.partition("-")
        if not dash or a == b:
            raise TestbedError(f"'{item}' is not a pair: use two customers, "
                               "such as c1-c3")
        check_names([a, b], described=True)
        found.append((a, b))
    check_once("--pairs", ["-".join(pair) for pair in found])
    return found


def chosen_sizes(option: str, text: str) -> list[int]:
    """Parse "1,10,100"."""
    sizes = [int(n) if is_number(n) else 0 for n in text.split(",")]
    if min(sizes) < 1:
        raise TestbedError(f"{option} '{text}' is not a list of numbers: use "
                           "numbers from 1, such as 1,10,100")
    check_once(option, sizes)
    return sizes


def named(chosen: Sequence[tuple[str, str]]) -> list[str]:
    """Return the customers of pairs."""
    return [name for pair in chosen for name in pair]


@dataclass(frozen=True)
class Ask:
    """One experiment with the options that hold for it."""

    name: str
    args: argparse.Namespace
    plan: Plan
    variants: Sequence[Variant]
    bed: Testbed
    few: bool = False  # is it a part of a quick `all`?

    @property
    def ours(self) -> Variant:
        """Return the last variant that is Sandpaper's."""
        return [v for v in self.variants if v.parameters][-1]

    def serves_publishers(self) -> bool:
        """Can C1 to C4 run?  A Varnish that is not there is refused later."""
        roots = {v.root for v in self.variants}
        return all(supported(root) for root in roots if root.exists())

    def realistic(self) -> list[str]:
        """Return C1 to C4, or those made-up customers that resemble them."""
        every = PUBLISHERS if self.serves_publishers() else CUSTOMERS
        return [name for name in every if name[0] in "Cc"]

    def pairs(self, usual: int | None = None) -> Sequence[tuple[str, str]]:
        """Return the pairs that --pairs names, or the first that run here."""
        if self.args.pairs is not None:
            return chosen_pairs(self.args.pairs)
        every = PAIRS if self.serves_publishers() else MADE_UP_PAIRS
        return every[:1 if self.few else usual]

    def customers(self, usual: Callable[[], Sequence[str]]) -> Sequence[str]:
        """Return the customers that --customers names, or the usual ones."""
        if self.args.customers is None:
            return usual()
        found: list[str] = self.args.customers.split(",")
        check_names(found, described=True)
        check_once("--customers", found)
        return found

    def victim(self) -> str:
        """Return the customer that --victim names."""
        name: str = self.args.victim
        check_names([name])
        return name

    def sizes(self, option: str) -> list[int]:
        """Return an option that is a list of numbers."""
        return chosen_sizes(f"--{option}", getattr(self.args, option))
