# SPDX-License-Identifier: BSD-2-Clause
"""The order of locks, as Varnish's witness saw it (debug=+witness).

A record is the path of locks that a thread holds, the newest last, each as
`lck_class,function,line`; `lck_class?` was tried and may not be held. What was
taken while another class was held is an edge. An order is safe if its graph
has no cycle.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

OURS = "sandpaper"
RECORD = re.compile(r"\*+ +\S+ +(?:\S+ +)?vsl\| +\d+ Witness +- +(.*)")
LOCK = re.compile(r"(?:lck_)?([^\s,?]+)(\??),(\w+),(\d+)$")

Edges = dict[tuple[str, str], set[str]]


def edges(lines: Iterable[str]) -> Edges:
    """Pairs of classes, and at which `function:line` the second was taken."""
    found: Edges = defaultdict(set)
    for line in lines:
        m = RECORD.match(line)
        if m is None or m[1].startswith("Unlock "):
            continue
        path = [LOCK.match(word) for word in m[1].split()]
        if None in path:
            raise ValueError("not a record of the lock witness: "
                             f"{line.rstrip()}")
        held: list[str] = []
        for lock in path:
            assert lock is not None
            name, tried, function, number = lock.groups()
            if not tried:
                for h in held:
                    found[h, name].add(f"{function}:{number}")
                held.append(name)
    return dict(found)


def cycle(graph: Iterable[tuple[str, str]]) -> list[str]:
    """Classes of one cycle of two or more classes, the first again at the
    end; none: []. Two locks of one class are ordered by who nests them, which
    a graph of classes can't tell."""
    after: dict[str, list[str]] = defaultdict(list)
    for a, b in sorted(graph):
        if a != b:
            after[a].append(b)
    done: set[str] = set()

    def walk(path: list[str]) -> list[str]:
        if path[-1] in path[:-1]:
            return path[path.index(path[-1]):]
        if path[-1] in done:
            return []
        for b in after[path[-1]]:
            if found := walk([*path, b]):
                return found
        done.add(path[-1])
        return []

    for a in sorted(after):
        if found := walk([a]):
            return found
    return []


def verdict(found: Edges) -> tuple[list[str], list[str]]:
    """What to print, and what is wrong."""
    says = [f"{a} -> {b}: {', '.join(sorted(where))}"
            for (a, b), where in sorted(found.items()) if OURS in (a, b)]
    wrong = [f"{a} is held while {b} is taken: {', '.join(sorted(where))}"
             for (a, b), where in sorted(found.items()) if a == OURS]
    ring = cycle(found)
    if ring:
        wrong.append("the order of locks has a cycle: " + " -> ".join(ring))
    if not any(b == OURS for _, b in found):
        wrong.append(f"no record has a lock held while {OURS} is taken: "
                     "check that varnishd runs with debug=+witness")
    return says, wrong
