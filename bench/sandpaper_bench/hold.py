# SPDX-License-Identifier: BSD-2-Clause
"""`hold.py COMMAND ..`: an ssh that runs a guarded program elsewhere.

Its stdin has a beat as long as the experiment wants the program, see guard()
in reaper.py; SIGTERM ends both in good order, and so does the end, whatever
it is, of who started this.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from types import FrameType

BEAT = 2.0  # seconds
FAREWELL = 15.0  # seconds for the other end to end its program


def leave(number: int, frame: FrameType | None) -> None:
    """End as if the command had."""
    sys.exit(128 + number)


def hold(command: list[str]) -> int:
    """Run the command, and let go of it at the end; return its status."""
    parent = os.getppid()
    signal.signal(signal.SIGTERM, leave)
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.stdin is not None
    try:
        while os.getppid() == parent:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(BEAT)
            process.stdin.write(b"\n")
            process.stdin.flush()
    except BrokenPipeError:
        pass
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(FAREWELL)
    return 1


if __name__ == "__main__":
    sys.exit(hold(sys.argv[1:]))
