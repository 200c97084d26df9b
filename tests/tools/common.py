# SPDX-License-Identifier: BSD-2-Clause
"""What these tests share: where things are, a wait with a bound, a tool of
ours."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
TOOLS = TOP / "tools"
ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 240  # seconds: what takes longer hangs, also on a busy machine
SOON = 20  # seconds: a timeout of varnishd, of a minute, must not be the answer

needs_varnish = pytest.mark.skipif(not ROOT, reason="VARNISH_ROOT is not set")


def until(true: Callable[[], object],
          what: str | Callable[[], object] = "") -> None:
    """Return once it is true; fail, and say what, after TIMEOUT."""
    end = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.01)


def ran(*command: str | Path, status: int | None = 0, given: str = "",
        **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401
    """Run a command, whose exit status is this one; None: any."""
    done = subprocess.run(
        command, text=True, check=False, input=given, capture_output=True,
        **{"timeout": TIMEOUT, **options})
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


def write(path: Path, text: str) -> Path:
    """Write a file, and make its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def load(name: str) -> ModuleType:
    """Return a script without .py as a module, with no bytecode beside it."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader(
        name.replace("-", "_"), str(TOOLS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # The interpreter looks a class's module up there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def port_of(server: socket.socket) -> int:
    """Return the port of a socket."""
    port: int = server.getsockname()[1]
    return port
