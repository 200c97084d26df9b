# SPDX-License-Identifier: BSD-2-Clause
"""`guard.py NICE BESIDE COMMAND ..` ends a program when its own stdin closes.

The kernel closes that pipe when the experiment at its other end has ended, for
whatever reason.  The guard then ends the program and all that the program
started.  It does the same when the process BESIDE ends (0: no process).
It runs on other machines, too, so it imports no module of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 5.0  # seconds between SIGTERM and SIGKILL
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def favour(pid: int, nice: int) -> None:
    """Set the priority of a process and its session, where we may.

    With autogroups a process's own nice value only counts within its
    session.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, nice)
        with open(f"/proc/{pid}/autogroup", "w") as autogroup:
            autogroup.write(str(nice))


def kill_children() -> None:
    """SIGKILL all children; their orphans become children, and follow.

    We wait for each child, so nobody else has its number before.
    """
    while True:
        with open("/proc/thread-self/children") as file:
            children = file.read().split()
        if not children:
            return
        for child in map(int, children):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def guard(nice: int, beside: int, command: Sequence[str]) -> int:
    """Run a command until it or what it needs ends; return its status.

    The command's own stdin closes when it is to end.
    """
    needed = [0, os.pidfd_open(beside)] if beside else [0]
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if nice:
        favour(process.pid, nice)
    select.select([*needed, os.pidfd_open(process.pid)], [], [])
    assert process.stdin is not None
    process.stdin.close()
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    process.kill()
    status = process.wait()
    kill_children()
    return status


if __name__ == "__main__":
    sys.exit(guard(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
