# SPDX-License-Identifier: BSD-2-Clause
"""Whatever happens, what an experiment started is ended, and only that.

What the Reaper starts has a pipe as its stdin.  The experiment alone has the
other end.  The kernel closes the pipe when the experiment ends, also by
SIGKILL.  Two things end when their stdin closes: a program under its guard
(guard.py), and a shell that does something and then undoes it (held()).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import IO

from .guard import SIGNALS

GUARD = Path(__file__).resolve().with_name("guard.py")
FAREWELL = 30.0  # seconds for a guard to end its program
HELD = "held"
NICE = -10  # of what measures
TRIES = 100  # to remove a folder, at 0.1 s each


def guarded(
    command: Sequence[str], nice: int = 0, beside: int = 0,
    python: str = sys.executable,
) -> list[str]:
    """Return the command that runs a program under its guard."""
    return [python, str(GUARD), str(nice), str(beside), *command]


def held(do: str, undo: str, at_once: bool = False) -> list[str]:
    """Return a program that runs a shell command, and another one at its end.

    If the first command fails, the second one undoes its part.  What is done
    `at_once` has no part: if it fails, there is nothing to undo.
    """
    then = f"echo {HELD} && cat; {undo}"
    return ["sh", "-c", 'exec 2>&1; trap "" TERM; '
            + (f"{do} && {{ {then}; }}" if at_once else f"{do} && {then}")]


def held_folder(path: Path) -> list[str]:
    """Return a program that makes a folder, and removes it at its end."""
    folder = shlex.quote(str(path))
    return held(f"mkdir -p {folder} && chmod 755 {folder}",
                f"n=0; until rm -rf {folder} || [ $((n += 1)) -ge {TRIES} ]; "
                "do sleep 0.1; done")


def memory() -> str:
    """Return where varnishd's files go: in memory where possible."""
    folder = "/dev/shm"
    with contextlib.suppress(OSError):
        if (os.access(folder, os.W_OK)
                and not os.statvfs(folder).f_flag & os.ST_NOEXEC):
            return folder
    return tempfile.gettempdir()


class Reaper:
    """The experiment's ends of the pipes."""

    def __init__(self, nice: int = 0) -> None:
        self.nice = nice
        self._pipes: dict[subprocess.Popen[str], IO[bytes]] = {}
        self._cores = os.sched_getaffinity(0)  # a testbed leaves us fewer
        atexit.register(self.close)
        self._handlers = {number: signal.signal(number, self._exit)
                          for number in SIGNALS}

    @staticmethod
    def _ignore_signals() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _exit(self, number: int, frame: FrameType | None) -> None:
        """Begin the end; no second signal interrupts it."""
        self._ignore_signals()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    def popen(
        self, command: list[str], log: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start what ends when its stdin closes; stderr goes to `log`."""
        theirs, ours = os.pipe()
        pipe = open(ours, "wb")
        with open(log or os.devnull, "a") as err, open(theirs) as stdin:
            process = subprocess.Popen(
                command, stdin=stdin, stdout=subprocess.PIPE, stderr=err,
                text=True, start_new_session=True)
        self._pipes[process] = pipe
        return process

    def hold(self, command: list[str]) -> str:
        """Start a program of held(); return why it failed, if it did."""
        process, said = self.popen(command), ""
        assert process.stdout is not None
        for line in process.stdout:
            if line == f"{HELD}\n":
                return ""
            said += line
        return said or "no reason was given"

    @cached_property
    def top(self) -> Path:
        """The folder for all files of this run; it is removed at the end."""
        name = f"sandpaper-bench-{os.getpid()}-{secrets.token_hex(4)}"
        top = Path(memory(), name)
        if failure := self.hold(held_folder(top)):
            raise OSError(failure)
        return top

    def folder(self) -> Path:
        """Make a folder in `top` that every user can read."""
        folder = Path(tempfile.mkdtemp(dir=self.top))
        folder.chmod(0o755)
        return folder

    def end(self, process: subprocess.Popen[str]) -> None:
        """End a process of ours, and what it started."""
        if process in self._pipes:
            self._pipes[process].close()
        try:
            process.wait(FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        self._pipes.pop(process, None)

    def close(self) -> None:
        """Undo everything, the last first, without interruption.

        We may use the same cores as before.

        The signals do afterwards what they did before.
        """
        self._ignore_signals()
        for process in reversed(list(self._pipes)):
            self.end(process)
        os.sched_setaffinity(0, self._cores)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        atexit.unregister(self.close)
