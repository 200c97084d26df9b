# SPDX-License-Identifier: BSD-2-Clause
"""Files are written as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


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
