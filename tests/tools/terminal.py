# SPDX-License-Identifier: BSD-2-Clause
"""A program in a terminal of its own, for the tests of what is shown there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

ESCAPE = re.compile(r"\x1b(\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>78])|[\x0e\x0f]")
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|38;5)(?:;\d+)*m")
SECONDS = 60.0  # for what takes a few


class Terminal:
    """A program whose stdin, stdout and stderr are a terminal."""

    def __init__(self, command: Sequence[str], columns: int = 100,
                 lines: int = 30, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", lines, columns, 0, 0))

        def lead() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        base: Mapping[str, str] = {
            k: v for k, v in os.environ.items()
            if not k.startswith("LC_") and k not in ("LANG", "NO_COLOR")}
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave,
            preexec_fn=lead,  # noqa: PLW1509
            env={**base, "TERM": "xterm-256color", "LANG": "C.UTF-8",
                 **environment})
        os.close(slave)
        self.raw = ""
        self._from = 0

    @property
    def text(self) -> str:
        """What is new since the last expect(), without escape sequences."""
        return ESCAPE.sub("", self.raw[self._from:])

    def _read(self, seconds: float) -> bool:
        """Read what comes; return False at the end."""
        if not select.select([self._master], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def read_for(self, seconds: float) -> None:
        """Read what comes within so many seconds, or until the end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._read(left):
            pass

    def expect(self, wanted: str, seconds: float = SECONDS) -> None:
        """Read until the text that is new matches a regular expression."""
        end = time.monotonic() + seconds
        while not re.search(wanted, self.text):
            if time.monotonic() > end or not self._read(0.2):
                raise AssertionError(f"no {wanted!r} in {self.text[-3000:]!r}")
        self._from = len(self.raw)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def hang_up(self) -> None:
        """Close the terminal."""
        os.close(self._master)
        self._master = -1

    def end(self, number: int | None = None) -> int:
        """Send a signal if there is one; return the exit status."""
        if number is not None:
            self.process.send_signal(number)
        end = time.monotonic() + SECONDS
        while self.process.poll() is None and time.monotonic() < end:
            if self._master >= 0:
                self._read(0.1)
            else:
                time.sleep(0.02)
        status = self.process.poll()
        if status is None:
            raise AssertionError(f"it goes on: {self.text[-2000:]!r}")
        if self._master >= 0:
            while self._read(0.1) and select.select(
                    [self._master], [], [], 0.1)[0]:
                pass
        return status

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        if self._master >= 0:
            os.close(self._master)
