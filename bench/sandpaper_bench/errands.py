# SPDX-License-Identifier: BSD-2-Clause
"""Errands on another machine: commands that soon end, over one connection.

A login shell for each would take longer than what is measured.  `errands.py`
is the far end: it takes orders from stdin, one a line, and answers each on
stdout.  An order may say how to undo it, which is done when stdin closes or
has had no beat for a while.  Errands is the near end.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

BEAT = 2.0  # seconds
SILENCE = 20  # seconds without a beat after which the far end gives up
PATIENCE = 10.0  # seconds for undoing what does not work at once
ERRAND_SECONDS = 30.0
FAREWELL = 15.0  # seconds for the far end to undo everything


class Gone(Exception):
    """The far end does not answer any more."""


def silent(number: int, frame: FrameType | None) -> None:
    """No beat came."""
    raise TimeoutError


def obey(line: str) -> tuple[int, str, str]:
    """Run an order's command; return its status, stdout and stderr."""
    order = json.loads(line)
    try:
        done = subprocess.run(
            order["command"], input=base64.b64decode(order["data"]),
            capture_output=True, check=False, timeout=ERRAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


def undo(command: list[str]) -> None:
    """Run a command until it works, or patience ends."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if subprocess.run(command, check=False).returncode == 0:
            return
        time.sleep(0.1)


def serve() -> None:
    """Be the far end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, silent)
    to_undo: list[list[str]] = []
    with contextlib.suppress(TimeoutError, OSError):
        print("ready", flush=True)
        signal.alarm(SILENCE)
        for line in sys.stdin:
            signal.alarm(0)
            if line.strip():
                answer = obey(line)
                if answer[0] == 0:
                    to_undo += filter(None, [json.loads(line)["undo"]])
                print(json.dumps(answer), flush=True)
            signal.alarm(SILENCE)
    signal.alarm(0)
    for command in reversed(to_undo):
        undo(command)


class Errands:
    """The near end: one machine, reached by `command`."""

    def __init__(self, command: list[str], log: Path) -> None:
        with open(log, "a") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=err, text=True, start_new_session=True)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _heard(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while not self._over.wait(BEAT):
                with self._lock:
                    self._say("")

    def failure(self) -> int | None:
        """Wait for the far end; return ssh's status if it does not come."""
        while line := self._heard():
            if line == "ready\n":  # whatever a login shell said before
                return None
        return self._process.wait()

    def run(
        self, command: Sequence[str], data: bytes = b"",
        undo: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, with `data` on its stdin; undo it at the end."""
        order = {"command": command, "undo": undo,
                 "data": base64.b64encode(data).decode()}
        with self._lock:
            with contextlib.suppress(OSError):
                self._say(json.dumps(order))
            answer = self._heard()
        if not answer:
            raise Gone
        return subprocess.CompletedProcess(command, *json.loads(answer))

    def close(self) -> None:
        """Have everything undone, and wait until it is."""
        self._over.set()
        self._thread.join()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(FAREWELL)
        assert self._process.stdout is not None
        self._process.stdout.close()


if __name__ == "__main__":
    serve()
