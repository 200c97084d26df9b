# SPDX-License-Identifier: BSD-2-Clause
"""What the report says of each experiment: sections.toml, read and checked.

The table of a terminal and that of the page have the same columns.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .abuses import ABUSES

EACH_ABUSE = "abuse"


@dataclass(frozen=True)
class Section:
    """Words and columns; a column is its head and its cells' template."""

    title: str
    about: str = ""
    columns: Sequence[tuple[str, str]] = ()
    legend: str = ""


def load(path: Path) -> dict[str, Section]:
    """Return the section of each experiment, in the order of the page."""
    words = tomllib.loads(path.read_text(encoding="utf-8"))
    found = {}
    for name, own in words.items():
        has = words.get(own.get("like"), {}) | own
        for each in ABUSES if name == EACH_ABUSE else [name]:
            found[each] = Section(
                has["title"].format(name=each), line(has["about"]),
                [(head, cell) for head, cell in has["columns"]],
                line(f"{has['legend']} {has.get('note', '')}"))
    return found


def line(text: str) -> str:
    """Return a text without its line breaks."""
    return " ".join(text.split())


SECTIONS = load(Path(__file__).with_suffix(".toml"))
