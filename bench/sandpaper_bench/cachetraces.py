# SPDX-License-Identifier: BSD-2-Clause
"""Traces of requests that a user hands over, for bench/cache/traces.

Three formats are read: oracleGeneral (libCacheSim's records, trace.h), text
(webcachesim's lines "time id size") and CSV.  All become oracleGeneral, with
objects numbered in order of their first request.  An object that comes with
another size is another object: the cache has to fetch it again.
"""

from __future__ import annotations

import argparse
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from .command import SUFFIXES
from .pedigree import digest
from .testbed import TestbedError

RECORD = struct.Struct("<IQIq")  # of a trace (trace.h)
NEVER = -1  # when an object comes next, which no policy here asks for
LARGEST = 2**32 - 1  # bytes of an object
BLOCK = 65536  # records that are read at once
HEAD = 4096  # bytes that show the format
COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ": "xz", b"BZh": "bzip2",
              b"\x28\xb5\x2f\xfd": "zstd"}  # the first bytes of a file
FORMATS = ("oracleGeneral", "text", "csv")
Columns = tuple[int, int, int]  # of the time, the object and the size, from 1
FIRST: Columns = (1, 2, 3)
Request = tuple[object, int]  # the object and its size


class Trace(NamedTuple):
    """A trace, as oracleGeneral in a file of our own."""

    name: str
    path: Path
    form: str
    requests: int
    objects: int
    bytes: int  # of all objects
    asked_bytes: int  # of all requests
    sha256: str  # of the file that was handed over


def format_of(path: Path, head: bytes) -> str:
    """Return the format of a file that begins with these bytes."""
    if not head:
        raise TestbedError(f"{path}: the file is empty: use a trace with one "
                           "request or more")
    for first, program in COMPRESSED.items():
        if head.startswith(first):
            raise TestbedError(f"{path}: the file is compressed: decompress "
                               f"it with {program} first")
    if b"\0" in head:
        return "oracleGeneral"
    line = head.partition(b"\n")[0]
    return "csv" if b"," in line or b"\t" in line else "text"


def is_number(word: str) -> bool:
    """Return whether a word is a time: a number of any unit."""
    return re.fullmatch(r"[0-9]+(\.[0-9]*)?", word) is not None


def size_of(where: str, word: str | int) -> int:
    """Return the size that a word says."""
    size = int(word) if isinstance(word, int) or (
        word.isascii() and word.isdigit() and len(word) < 20) else -1
    if not 0 < size <= LARGEST:
        raise TestbedError(
            f"{where}: {str(word)[:40]!r} is not a size: use a whole number "
            f"of bytes from 1 to {LARGEST}, or remove this request")
    return size


def records(path: Path, data: BinaryIO) -> Iterator[Request]:
    """Return the requests of oracleGeneral."""
    length = path.stat().st_size
    if length % RECORD.size:
        raise TestbedError(
            f"{path}: record {length // RECORD.size + 1} ends after "
            f"{length % RECORD.size} of {RECORD.size} bytes: is the file "
            "complete, and in the format oracleGeneral?")
    n = 0
    while block := data.read(RECORD.size * BLOCK):
        for _, name, size, _ in RECORD.iter_unpack(block):
            n += 1
            yield name, size_of(f"{path}: record {n}", size)


def lines(path: Path, data: BinaryIO, form: str,
          columns: Columns) -> Iterator[Request]:
    """Return the requests of a text or of CSV.  A first line of CSV without
    numbers names the columns.  Empty lines do not count."""
    if form == "text":
        columns = FIRST
    time, name, size = (column - 1 for column in columns)
    separator = None
    for n, line in enumerate(data, 1):
        text = line.decode(errors="replace").strip("\r\n")
        if form == "csv" and separator is None:
            separator = "," if "," in text else "\t"
        words = [word.strip() for word in text.split(separator)]
        if not text.strip():
            continue
        where = f"{path}: line {n}"
        if form == "text" and len(words) != len(FIRST):
            raise TestbedError(f"{where}: {len(words)} words: use \"time id "
                               "size\"")
        if len(words) < max(columns):
            raise TestbedError(
                f"{where}: {len(words)} columns, and column {max(columns)} is "
                "needed: correct the line, or see --columns")
        if form == "csv" and n == 1 and not (
                is_number(words[time]) or is_number(words[size])):
            continue
        if not is_number(words[time]):
            raise TestbedError(f"{where}: {words[time][:40]!r} is not a time: "
                               "use a number")
        if not words[name]:
            raise TestbedError(f"{where}: column {name + 1} is empty: name an "
                               "object")
        yield words[name], size_of(where, words[size])


def converted(name: str, path: Path, to: Path, form: str | None = None,
              columns: Columns = FIRST) -> Trace:
    """Write a trace as oracleGeneral to a file, and return what it has."""
    objects: dict[Request, int] = {}
    requests = asked = 0
    try:
        with path.open("rb") as data, to.open("wb") as out:
            form = form or format_of(path, data.read(HEAD))
            data.seek(0)
            for request in (records(path, data) if form == "oracleGeneral"
                            else lines(path, data, form, columns)):
                number = objects.setdefault(request, len(objects))
                out.write(RECORD.pack(requests & LARGEST, number, request[1],
                                      NEVER))
                requests += 1
                asked += request[1]
    except OSError as error:
        raise TestbedError(f"{path}: {error.strerror}: use a file that can be "
                           "read") from error
    if requests == 0:
        raise TestbedError(f"{path}: the file has no request")
    return Trace(name, to, form, requests, len(objects),
                 sum(size for _, size in objects), asked, digest(path))


def write_text(trace: Trace, to: Path) -> None:
    """Write a trace as webcachesim's text."""
    with trace.path.open("rb") as data, to.open("w", encoding="ascii") as out:
        while block := data.read(RECORD.size * BLOCK):
            out.writelines(f"{time} {number} {size}\n" for time, number, size,
                           _ in RECORD.iter_unpack(block))


class Size(NamedTuple):
    """The size of a cache, in bytes or as a part of all objects' bytes."""

    text: str
    number: float
    part: bool

    def of(self, trace: Trace) -> int:
        """Return the bytes of a cache for this trace."""
        size = int(self.number * (trace.bytes if self.part else 1))
        if size == 0:
            raise TestbedError(
                f"--sizes {self.text}: no byte of the {trace.bytes} bytes of "
                f"all objects of {trace.name}: use a larger part")
        return size


def size(text: str) -> Size:
    """Read the size of a cache: argparse's type."""
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?)([kMG%]?)", text)
    number = float(found[1]) if found else 0
    part = text.endswith("%")
    if found and not part:
        number *= SUFFIXES.get(found[2], 1)
    if not (0 < number <= 100 if part else 1 <= number <= 1e15):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not allowed: use bytes from 1, such as 500M or 2G, "
            "or a part of the bytes of all objects up to 100%, such as 1%")
    return Size(text, number / 100 if part else number, part)


def sizes(text: str) -> list[Size]:
    """Read sizes with commas between."""
    return [size(word) for word in text.split(",")]


def columns(text: str) -> Columns:
    """Read the columns of CSV: argparse's type."""
    words = text.split(",")
    if len(words) != len(FIRST) or not all(
            re.fullmatch("[1-9][0-9]{0,2}", word) for word in words):
        raise argparse.ArgumentTypeError(
            f"'{text}' is not allowed: use the numbers of the columns of the "
            "time, the object and the size, such as 1,2,3")
    time, name, size = map(int, words)
    return time, name, size
