# SPDX-License-Identifier: BSD-2-Clause
"""The lines of a log that varnishlog has recorded: its text, from a file or
from stdin, or the binary file of `varnishlog -w`, which varnishlog itself turns
into text. They are read once, one after the other, and stderr shows how far."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from tqdm import tqdm

from .figure import LINES, QUIET
from .files import Wrong, reading

MAGIC = b"VSL"                  # how a file of `varnishlog -w` begins
# The docs have this command, too: a test compares them.
COMMAND = ("varnishlog", "-g", "raw", "-i", "Begin,Timestamp,Sandpaper", "-I",
           "ReqHeader:(?i)^host:")
STDIN = Path("-")
BUILT = Path(__file__).resolve().parents[2] / "build/7.7/root/bin/varnishlog"
EVERY = 20_000                  # lines from one look at the progress to another


def watched(lines: Iterable[str], size: int | None,
            at: Callable[[], int]) -> Iterator[str]:
    """The lines; say how much is read if it takes long. size: bytes."""
    form = ("{desc}: {percentage:.0f} %, about {remaining} left" if size
            else "{desc}: {n_fmt} lines")
    with tqdm(desc="reading the log", total=size, leave=False, delay=QUIET,
              bar_format=form, unit_scale=not size,
              mininterval=0.1 if sys.stderr.isatty() else LINES) as bar:
        for n, line in enumerate(lines):
            if n % EVERY == 0:
                bar.update((at() if size else n) - bar.n)
            yield line


def varnishlog(program: str) -> str:
    """The program that reads a binary log; Wrong."""
    found = shutil.which(program) if program else \
        shutil.which("varnishlog") or (str(BUILT) if BUILT.exists() else None)
    if not found:
        raise Wrong(f"{program or 'varnishlog'}: there is no such program, "
                    "which a binary log needs: put Sandpaper's varnishlog into "
                    "PATH, or name it with --varnishlog")
    return found


def said_by(process: subprocess.Popen[str], path: Path) -> Iterator[str]:
    """The lines that varnishlog writes; Wrong, if it then fails."""
    assert process.stdout and process.stderr
    yield from watched(process.stdout, None, lambda: 0)
    error = process.stderr.read().strip().splitlines()
    if process.wait() and error:
        raise Wrong(f"{path}: varnishlog: {error[-1]}")


@contextmanager
def from_binary(path: Path, program: str) -> Iterator[Iterator[str]]:
    """The text of a binary log, as long as this is open."""
    command = [varnishlog(program), "-r", str(path), *COMMAND[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace") as process:
        try:
            yield said_by(process, path)
        finally:
            process.kill()


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """The file, or stdin."""
    if path == STDIN:
        yield cast(io.BufferedReader, sys.stdin.buffer)
    else:
        with path.open("rb") as file:
            yield file


def size_of(file: BinaryIO, path: Path) -> int | None:
    """In bytes, if that can be known."""
    return path.stat().st_size if file.seekable() and path != STDIN else None


@contextmanager
def log_lines(path: Path, program: str = "") -> Iterator[Iterator[str]]:
    """The lines of a log; path: "-" is stdin. Wrong."""
    with reading(path), opened(path) as file:
        if not file.peek(len(MAGIC)).startswith(MAGIC):
            with io.TextIOWrapper(file, encoding="utf-8",
                                  errors="replace") as text:
                yield watched(text, size_of(file, path), file.tell)
            return
        if path == STDIN:
            raise Wrong("stdin has a binary log: write it into a file, and "
                        "give the name of the file")
    with from_binary(path, program) as lines:
        yield lines
