# SPDX-License-Identifier: BSD-2-Clause
"""A user's files: an error in one gives one line, and a file is written as a
whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Wrong(Exception):
    """What a user got wrong, in one line."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise Wrong for a file that cannot be read."""
    try:
        yield
    except OSError as e:
        raise Wrong(f"{path}: {e.strerror}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{path}: is not UTF-8: convert it") from None


def replace(file: Path, write: Callable[[str], object]) -> None:
    """The whole file at once, or nothing of it."""
    handle, new = tempfile.mkstemp(dir=file.absolute().parent,
                                   suffix=file.suffix)
    os.close(handle)
    try:
        write(new)
        os.chmod(new, 0o644)
        os.replace(new, file)
    except BaseException:
        os.unlink(new)
        raise
