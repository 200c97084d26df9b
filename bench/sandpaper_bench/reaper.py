# SPDX-License-Identifier: BSD-2-Clause
"""Whatever happens, what an experiment started is ended, and only that.

A small process holds the read end of a pipe and a list of what it is told to
undo.  When the pipe closes, because the experiment ended or died (SIGKILL
included), it ends the listed processes by pid, and what they have started in
their sessions, then removes namespaces and directories.  A pid is only ended while it has the start time it was listed
with, so a recycled pid is safe.

On another machine, `reaper.py NICE COMMAND ..` guards one program in the same
way: the pipe is an ssh connection's, on which hold.py sends a beat, as a
connection that is cut closes nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

PATIENCE = 5.0  # seconds between SIGTERM and SIGKILL
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SILENCE = 20.0  # seconds without a beat after which a guard gives up


def start_time(pid: int) -> str | None:
    """Return the start time of `pid` in ticks, None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def favour(pid: int, nice: int) -> None:
    """Set the priority of a session of ours, where the kernel lets us.

    With autogroups a process's own nice value only counts within its
    session.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, nice)
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def send(pid: int, started: str, number: signal.Signals) -> bool:
    """Signal `pid` if it is still the process listed; say if it was."""
    if start_time(pid) != started:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
    return True


def kill(pid: int, started: str) -> None:
    """SIGKILL `pid`, if it is still the one listed, and wait for its end."""
    with contextlib.suppress(ProcessLookupError):
        over = os.pidfd_open(pid)
        try:
            if send(pid, started, signal.SIGKILL):
                select.select([over], [], [], PATIENCE)
        finally:
            os.close(over)


def session(leader: int) -> dict[int, str]:
    """Return the other processes of a session, and when they started."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            started = start_time(pid)
            if pid != leader and started and os.getsid(pid) == leader:
                found[pid] = started
    return found


def ours(leader: int, started: str | None) -> dict[int, str]:
    """Return what is in the session that this process began.

    The process may be dead.  Its number is nobody else's while its session
    lasts, so whoever has the number now is in no session of ours.
    """
    return (session(leader) if start_time(leader) in (started, None)
            else {})


def end_processes(listed: dict[int, str]) -> None:
    """SIGTERM all listed, wait, SIGKILL what is left, theirs included."""
    theirs = {p: s for leader, started in listed.items()
              for p, s in ours(leader, started).items()}
    left = {p: s for p, s in listed.items() if send(p, s, signal.SIGTERM)}
    deadline = time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = {p: s for p, s in left.items() if start_time(p) == s}
    for pid, started in (theirs | left).items():
        kill(pid, started)


def watch() -> None:
    """The reaper itself: read orders from stdin, undo them at its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    processes: dict[int, str] = {}
    namespaces: list[str] = []
    folders: list[str] = []
    for line in sys.stdin:
        match line.split():
            case ["pid", pid, started]:
                processes[int(pid)] = started
            case ["gone", pid]:
                processes.pop(int(pid), None)
            case ["netns", name]:
                namespaces.append(name)
            case ["dir", path]:
                folders.append(path)
    end_processes(processes)
    for name in namespaces:
        subprocess.run(["ip", "netns", "del", name], check=False,
                       stderr=subprocess.DEVNULL)
    for path in folders:
        shutil.rmtree(path, ignore_errors=True)


def guard(nice: int, command: list[str]) -> int:
    """Run a command while beats come from stdin; return its status."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                               start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if nice:
        favour(process.pid, nice)
    started = start_time(process.pid)
    over = os.pidfd_open(process.pid)
    while True:
        ready, _, _ = select.select([0, over], [], [], SILENCE)
        if over in ready or not ready or not os.read(0, 4096):
            break
    if started is not None:
        end_processes({process.pid: started})
    return process.wait()


class Reaper:
    """The experiment's end of the pipe."""

    def __init__(self, nice: int = 0) -> None:
        self.nice = nice
        root = Path(__file__).resolve().parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sandpaper_bench.reaper"],
            cwd=root, stdin=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        self._calm = 0
        self._pending: int | None = None
        self._started: dict[int, str | None] = {}
        atexit.register(self.close)
        self._handlers = {number: signal.signal(number, self._exit)
                          for number in SIGNALS}

    def _exit(self, number: int, frame: FrameType | None) -> None:
        if self._calm:
            self._pending = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            sys.exit(128 + number)

    @contextlib.contextmanager
    def calm(self) -> Iterator[None]:
        """Make something and list it: a signal waits until both are done."""
        self._calm += 1
        try:
            yield
        finally:
            self._calm -= 1
        if self._pending is not None and not self._calm:
            number, self._pending = self._pending, None
            self._exit(number, None)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def netns(self, name: str) -> None:
        """List a network namespace, before it is made."""
        self._tell(f"netns {name}")

    def folder(self, path: Path) -> None:
        """List a directory of ours."""
        self._tell(f"dir {path}")

    def popen(
        self, command: list[str], log: Path | None = None
    ) -> subprocess.Popen[str]:
        """Start a process and list it; stderr goes to `log`."""
        with open(log or os.devnull, "a") as err, self.calm():
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=err, text=True, start_new_session=True,
            )
            started = start_time(process.pid)
            self._started[process.pid] = started
            self._tell(f"pid {process.pid} {started}")
        if self.nice:
            favour(process.pid, self.nice)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """End a process of ours, and its session, and unlist it."""
        theirs = ours(process.pid, self._started.pop(process.pid, None))
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid, started in theirs.items():
            kill(pid, started)
        if process.stdout is not None:
            process.stdout.close()
        self._tell(f"gone {process.pid}")

    def close(self) -> None:
        """Undo everything and wait until it is done, without interruption.

        The signals do afterwards what they did before.
        """
        atexit.unregister(self.close)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(guard(int(sys.argv[1]), sys.argv[2:]))
    watch()
