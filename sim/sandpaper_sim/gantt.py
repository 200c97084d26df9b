# SPDX-License-Identifier: BSD-2-Clause
"""Schedules as text, one sign a unit of time: a letter where a request
begins, dots while it goes on, blanks where nothing is served."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .releaser import Records


def line(begins: Iterable[tuple[int, int, str]], unit: int,
         units: int) -> str:
    """Of (begin, end, letter), ns, of one server."""
    signs = [" "] * units
    for begin, end, letter in begins:
        first, last = begin // unit, -(-end // unit)
        for i in range(first, min(last, units)):
            signs[i] = letter if i == first else "."
    return "".join(signs)


def of_threads(rows: Records, threads: int, unit: int, units: int,
               letters: str) -> list[str]:
    """A line a thread, that of thread 0 first."""
    return [line(((int(r["start"]), int(r["end"]), letters[r["tenant"]])
                  for r in rows if r["slot"] == i), unit, units)
            for i in range(threads)]


def lanes(spells: Sequence[tuple[int, int, str]], n: int,
          ) -> list[list[tuple[int, int, str]]]:
    """Spells on n servers, each on the first that is free."""
    on: list[list[tuple[int, int, str]]] = [[] for _ in range(n)]
    for spell in sorted(spells, key=lambda s: (s[0], s[2])):
        free = next(lane for lane in on
                    if not lane or lane[-1][1] <= spell[0])
        free.append(spell)
    return on


def draw(axes: Any, lines: Sequence[tuple[str, str]]) -> None:  # noqa: ANN401
    """Named lines as boxes, the first one at the top."""
    letters = sorted({c for _, text in lines for c in text} - {".", " "})
    for y, (_, text) in enumerate(lines):
        for x, c in enumerate(text):
            if c in letters:
                rest = text[x + 1:]
                wide = 1 + len(rest) - len(rest.lstrip("."))
                axes.barh(y, wide, left=x, height=0.9, edgecolor="black",
                          color=f"C{letters.index(c)}", linewidth=0.5)
                axes.text(x + wide / 2, y, c, ha="center", va="center")
    axes.set_yticks(range(len(lines)), [name for name, _ in lines])
    axes.invert_yaxis()
