# SPDX-License-Identifier: BSD-2-Clause
"""The static files of SPECweb99, and how often each is asked for.

A directory has 36 files: nine sizes in each of four classes.  A class has 35,
50, 14 or 1 % of the requests.  In a class the middle sizes are the most popular
ones.  Directories, and the files of a class, are as popular as in Zipf's law:
the n-th has 1/n of the requests of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

UNIT = 102.4  # bytes: the smallest file of class 0
CLASSES = (0.35, 0.5, 0.14, 0.01)  # parts of the requests
# The files of a class, the most popular one first: numbers of UNIT
FILES = (5, 4, 6, 3, 7, 2, 8, 9, 1)


@dataclass(frozen=True)
class File:
    """One file."""

    path: str  # without "/" at its begin
    size: int  # bytes
    weight: float  # requests, compared with those of other files


def files(directories: int) -> Iterator[File]:
    """Return the files of so many directories."""
    for directory in range(1, directories + 1):
        for number, part in enumerate(CLASSES):
            for rank, size in enumerate(FILES, 1):
                yield File(
                    f"specweb/{directory}/class{number}_{size}",
                    int(UNIT * 10 ** number * size),
                    part / rank / directory)


def mean_bytes() -> float:
    """Return the mean size of the files that are asked for."""
    some = list(files(1))
    return (sum(f.size * f.weight for f in some)
            / sum(f.weight for f in some))
