# SPDX-License-Identifier: BSD-2-Clause
"""Short commands on another machine, over one connection.

A login shell for each would take longer than what is measured.  `remote.py
CORE ..` is the far end: it takes orders from stdin, one a line, and answers
each on stdout.  Commands use none of these cores, if there are others.  The
far end ends when stdin closes, or has had no beat for a while, and the guards
of programs on that machine end with it.  Remote is the near end.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

BEAT = 2.0  # seconds
SILENCE = 20  # seconds without a beat after which the far end gives up
COMMAND_SECONDS = 60.0  # more than varnishadm waits (varnish.py)
READY = "ready"


class Gone(Exception):
    """The far end does not answer any more."""


def obey(line: str) -> tuple[int, str, str]:
    """Run an order's command; return its status, stdout and stderr."""
    order = json.loads(line)
    try:
        done = subprocess.run(
            order["command"], input=base64.b64decode(order["data"]),
            capture_output=True, check=False, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 127, "", str(error)
    return (done.returncode, done.stdout.decode(errors="replace"),
            done.stderr.decode(errors="replace"))


def serve(measured: Iterable[int] = ()) -> None:
    """Be the far end; silence kills it (SIGALRM).

    What it starts stays off the `measured` cores, where that is possible.
    """
    if others := os.sched_getaffinity(0) - set(measured):
        os.sched_setaffinity(0, others)
    print(READY, os.getpid(), flush=True)
    signal.alarm(SILENCE)
    for line in sys.stdin:
        signal.alarm(0)
        if line.strip():
            print(json.dumps(obey(line)), flush=True)
        signal.alarm(SILENCE)


class Remote:
    """The near end: one machine, where `command` runs the far end."""

    pid = 0  # of the far end

    def __init__(self, command: list[str], log: Path) -> None:
        with open(log, "a") as err:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=err, text=True, start_new_session=True)
        self._lock = threading.Lock()
        threading.Thread(target=self._beat, daemon=True).start()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _heard(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _beat(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                time.sleep(BEAT)
                with self._lock:
                    self._say("")

    def failure(self) -> int | None:
        """Wait for the far end; return ssh's status if it does not come."""
        while line := self._heard():
            word, _, pid = line.partition(" ")
            if word == READY:  # whatever a login shell said before
                self.pid = int(pid)
                return None
        return self._process.wait()

    def run(
        self, command: Sequence[str], data: bytes = b""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, with `data` on its stdin."""
        order = {"command": command,
                 "data": base64.b64encode(data).decode()}
        with self._lock:
            with contextlib.suppress(OSError):
                self._say(json.dumps(order))
            answer = self._heard()
        if not answer:
            raise Gone
        return subprocess.CompletedProcess(command, *json.loads(answer))


if __name__ == "__main__":
    serve(map(int, sys.argv[1:]))
