# SPDX-License-Identifier: BSD-2-Clause
"""For the tests that load a varnishd and judge what it does meanwhile.

Two network namespaces, joined by a veth pair: varnishd and its clients.
varnishd has one core, the load generator another one, where there are two.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from namespaces import ROOT, TIMEOUT, Namespaces, run
from sandpaper_bench.load import Group, build_loadgen

PORT = 8080
LOCAL_PORT = 8081  # varnishd's, for its own fetches
PROXY, CLIENT = "10.80.0.1", "10.80.0.2"
CORES = sorted(os.sched_getaffinity(0))
CPUCLOCK_SCHED = 2  # clock_getcpuclockid(3), which Python has not


class Live(Namespaces):
    """A varnishd under load."""

    def setUp(self) -> None:
        super().setUp()
        self.proxy, self.client = self.namespaces("p", "c")
        run("ip", "-n", self.proxy, "link", "add", "net0", "type", "veth",
            "peer", "name", "net0", "netns", self.client)
        for name, address in ((self.proxy, PROXY), (self.client, CLIENT)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev",
                "net0")
            run("ip", "-n", name, "link", "set", "net0", "up")
        self.loadgen = build_loadgen()
        self.nice = 0

    def shape(self, rate: int, queue: int) -> None:
        """Limit the link to bits/s, with a queue of so many bytes."""
        run("tc", "-n", self.proxy, "qdisc", "add", "dev", "net0", "root",
            "tbf", "rate", f"{rate}bit", "burst", "16k", "limit", str(queue))

    def serve(self, vcl: str, *options: str) -> None:
        """Start varnishd on its core, with one core's slots."""
        self.varnishd(
            self.proxy, vcl, "-a", f"{PROXY}:{PORT}",
            "-a", f"local=127.0.0.1:{LOCAL_PORT}",
            "-p", "sandpaper_cores=1", "-p", "sandpaper_new_hosts=tenant",
            "-p", "workspace_client=512k", *options)
        said = json.loads(self.cli("pid", "-j"))[3]
        self.worker = int(said["worker"])
        run("taskset", "-a", "-c", "-p", str(CORES[0]), str(self.worker))

    @contextlib.contextmanager
    def load(self, seconds: float, *groups: Group,
             warmup: float = 1.0) -> Iterator[dict[str, dict[str, Any]]]:
        """Load for that long; the body runs when the window opens.

        The result is there after the body has ended.
        """
        found: dict[str, dict[str, Any]] = {}
        process = self.start(
            self.client, "nice", "-n", str(self.nice), "taskset", "-c",
            str(CORES[-1]), str(self.loadgen),
            "-w", str(warmup), "-t", str(seconds), f"{PROXY}:{PORT}",
            *(g.spec() for g in groups))
        assert process.stdout is not None
        self.prefer(process.pid)
        self.assertEqual(process.stdout.readline(), "start\n")
        yield found
        said, _ = process.communicate(timeout=TIMEOUT)
        for group in json.loads(said.splitlines()[-1])["groups"]:
            found[group["name"]] = group

    def first(self) -> None:
        """Let varnishd and its load go before others that want their cores.

        Only on a busy core does it learn what other threads use.
        """
        self.nice = -15
        self.prefer(self.worker)
        for task in Path(f"/proc/{self.worker}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(task.name), self.nice)

    def prefer(self, process: int) -> None:
        """With autogroups, a nice value counts only within its session."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{process}/autogroup").write_text(str(self.nice))

    def cli(self, *command: str) -> str:
        """Return what varnishd says to a command."""
        return subprocess.run(
            ["ip", "netns", "exec", self.proxy, f"{ROOT}/bin/varnishadm",
             "-n", f"{self.folder}/n", "-t", str(TIMEOUT), *command],
            check=True, stdout=subprocess.PIPE, text=True,
            timeout=TIMEOUT).stdout

    def state(self) -> dict[str, Any]:
        """Return what sandpaper.list says."""
        said: dict[str, Any] = json.loads(self.cli("sandpaper.list -j"))[3]
        return said

    def counter(self, name: str, of: str = "SANDPAPER.") -> int:
        """Return a counter; 0 if there is none of that name."""
        said = subprocess.run(
            [f"{ROOT}/bin/varnishstat", "-n", f"{self.folder}/n", "-1", "-f",
             f"{of}{name}"], text=True, timeout=TIMEOUT, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return sum(int(line.split()[1]) for line in said.splitlines())

    def process_cpu(self) -> float:
        """Return the CPU seconds of the worker process so far."""
        return time.clock_gettime(~self.worker << 3 | CPUCLOCK_SCHED)

    def sent(self) -> int:
        """Return how many bytes the link has sent."""
        return int(subprocess.run(
            ["ip", "netns", "exec", self.proxy, "cat",
             "/sys/class/net/net0/statistics/tx_bytes"], check=True,
            stdout=subprocess.PIPE, text=True).stdout)


__all__ = ["LOCAL_PORT", "Group", "Live"]
