# SPDX-License-Identifier: BSD-2-Clause
"""For the tests that load a varnishd and judge what it does meanwhile.

Two networks, joined by a veth pair: varnishd and its clients.  varnishd has
one core, the load generator another one, where there are two.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import ROOT, TIMEOUT, ran
from network import OWN_SYS, Network
from sandpaper_bench.load import Group, build_loadgen

from varnishd import Varnishd

PORT = 8080
LOCAL_PORT = 8081  # varnishd's, for its own fetches
PROXY, CLIENT = "10.80.0.1", "10.80.0.2"
CORES = sorted(os.sched_getaffinity(0))
CPUCLOCK_SCHED = 2  # clock_getcpuclockid(3), which Python has not


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(os.geteuid() == 0, "needs root, for namespaces")
class Live(unittest.TestCase):
    """A varnishd under load."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="live.")))
        self.client = Network()
        self.proxy = self.enterContext(Network())
        self.proxy.join("net0", PROXY, self.client, "net0", CLIENT)
        self.varnishd = self.enterContext(Varnishd(self.folder, self.folder))
        self.loadgen = build_loadgen()
        self.nice = 0

    @staticmethod
    def shape(rate: int, queue: int) -> None:
        """Limit the link to bits/s, with a queue of so many bytes."""
        ran("tc", "qdisc", "add", "dev", "net0", "root", "tbf", "rate",
            f"{rate}bit", "burst", "16k", "limit", str(queue))

    def serve(self, vcl: str, *params: str) -> None:
        """Start varnishd on its core, with one core's slots."""
        self.varnishd.start(
            "sandpaper_cores=1", "sandpaper_new_hosts=tenant",
            "workspace_client=512k", *params, vcl=vcl, before=OWN_SYS,
            arguments=("-a", f"{PROXY}:{PORT}",
                       "-a", f"local=127.0.0.1:{LOCAL_PORT}"))
        self.worker = self.varnishd.worker()
        ran("taskset", "-a", "-c", "-p", str(CORES[0]), str(self.worker))

    @contextlib.contextmanager
    def load(self, seconds: float, *groups: Group,
             warmup: float = 1.0) -> Iterator[dict[str, dict[str, Any]]]:
        """Load for that long; the body runs when the window opens.

        The result is there after the body has ended.
        """
        found: dict[str, dict[str, Any]] = {}
        with self.client, subprocess.Popen(
                ["nice", "-n", str(self.nice), "taskset", "-c",
                 str(CORES[-1]), str(self.loadgen), "-w", str(warmup), "-t",
                 str(seconds), f"{PROXY}:{PORT}", *(g.spec() for g in groups)],
                stdout=subprocess.PIPE, text=True,
                start_new_session=True) as process:
            with self.proxy:
                assert process.stdout is not None
                try:
                    self.prefer(process.pid)
                    self.assertEqual(process.stdout.readline(), "start\n")
                    yield found
                    said, _ = process.communicate(timeout=TIMEOUT)
                finally:
                    process.kill()
        for group in json.loads(said.splitlines()[-1])["groups"]:
            found[group["name"]] = group

    def first(self) -> None:
        """Let varnishd and its load go before others that want their cores.

        Only on a busy core does it learn what other threads use, and only a
        fast server fills a link.
        """
        self.nice = -15
        self.prefer(self.worker)
        for task in Path(f"/proc/{self.worker}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), self.nice)

    def prefer(self, process: int) -> None:
        """With autogroups, a nice value counts only within its session."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{process}/autogroup").write_text(str(self.nice))

    def process_cpu(self) -> float:
        """Return the CPU seconds of the worker process so far."""
        return time.clock_gettime(~self.worker << 3 | CPUCLOCK_SCHED)

    @staticmethod
    def sent() -> int:
        """Return how many bytes the link has sent."""
        said = ran("ip", "-j", "-s", "link", "show", "net0").stdout
        return int(json.loads(said)[0]["stats64"]["tx"]["bytes"])


__all__ = ["LOCAL_PORT", "Group", "Live"]
