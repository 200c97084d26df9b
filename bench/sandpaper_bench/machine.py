# SPDX-License-Identifier: BSD-2-Clause
"""What the kernel says of a machine's CPU, for the reader of the figures."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any


def cpu_model(cpuinfo: str) -> str:
    """Return the CPU's name as the kernel gives it."""
    for line in cpuinfo.splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def is_virtual(cpuinfo: str) -> bool:
    """Does a hypervisor run this machine?"""
    return any("hypervisor" in line.split() for line in cpuinfo.splitlines()
               if line.startswith("flags"))


def governor() -> str | None:
    """Return how the kernel chooses the frequency of core 0, if it does."""
    file = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    try:
        return file.read_text().strip()
    except OSError:
        return None


def short() -> dict[str, Any]:
    """Return what a record says of this machine."""
    cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    return {"cores": len(os.sched_getaffinity(0)), "cpu": cpu_model(cpu),
            "virtual": is_virtual(cpu), "kernel": os.uname().release,
            "load": round(os.getloadavg()[1], 1)}
