# SPDX-License-Identifier: BSD-2-Clause
"""Programs that tests run in, each in a session of its own: whatever happens,
none of them outlives us."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE = 10.0                 # seconds between SIGINT and SIGKILL
OWN_NETWORK = ("unshare", "--net", "sh", "-c",
               'ip link set lo up && exec "$@"', "sh")
BACKGROUND = 5                  # a nice value

_lock = threading.Lock()
_running: set[subprocess.Popen[Any]] = set()
_over = False


def start(argv: Sequence[str | Path], *, background: bool = False,
          **options: Any) -> subprocess.Popen[Any]:  # noqa: ANN401
    """Starts it, as Popen does; in the background it gets less of the CPU."""
    with _lock:
        if _over:
            raise KeyboardInterrupt
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                             start_new_session=True, **options)
        _running.add(p)
    if background:
        # With autogroups, a nice value counts only within its session.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PGRP, p.pid, BACKGROUND)
            Path(f"/proc/{p.pid}/autogroup").write_text(str(BACKGROUND))
    return p


def forget(p: subprocess.Popen[Any]) -> None:
    """It has ended, or is to end; what is left of its session ends now."""
    end([p], PATIENCE if p.poll() is None else 0)
    p.wait()
    if p.stdout:
        p.stdout.close()
    with _lock:
        _running.discard(p)


def _sessions(leaders: set[int]) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(entry.name)
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) in leaders and fields[0] != "Z":
                found.append(pid)
    return found


def end(which: Sequence[subprocess.Popen[Any]],
        patience: float = PATIENCE) -> None:
    """Interrupts them, so that they tidy up, then kills what is left."""
    leaders = {p.pid for p in which}
    deadline = time.monotonic() + patience
    if patience:
        for p in which:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGINT)
    while (left := _sessions(leaders)) and time.monotonic() < deadline:
        for p in which:
            p.poll()
        time.sleep(0.1)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_all() -> None:
    """Nothing runs any more, and nothing starts again."""
    global _over
    with _lock:
        _over = True
        which = list(_running)
    end(which)


def own_network() -> tuple[str, ...]:
    """Words before a command that give it a network of its own, if possible,
    so that no two programs meet at a port."""
    done = subprocess.run([*OWN_NETWORK, "true"], check=False,
                          stdin=subprocess.DEVNULL, capture_output=True)
    return OWN_NETWORK if done.returncode == 0 else ()
