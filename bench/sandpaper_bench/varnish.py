# SPDX-License-Identifier: BSD-2-Clause
"""One varnishd of an experiment: started, primed, watched, ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .reaper import Reaper
from .testbed import Proxy, Testbed, TestbedError, one_line
from .work import room

STOCK = "stock"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
START_TIMEOUT = 60.0  # seconds
PATIENCE = 50  # seconds of varnishadm, for an answer
STARTING = 2  # the same, while varnishd starts: if it fails, no answer comes
OBITUARIES = ("died", "not responding", "Panic", "Assert", "Unexpected reply")
PANIC_LINES = 40

# Stock drops sessions at its default queue limit: raised, for a fair baseline.
FAIR_PARAMETERS = ("thread_queue_limit=20000", "listen_depth=20000")


@dataclass(frozen=True)
class Variant:
    """An installed varnishd and what it is started with."""

    name: str
    root: Path
    parameters: tuple[str, ...] = ()
    prelude: str = ""
    environment: tuple[str, ...] = ()  # NAME=VALUE

    @property
    def program(self) -> Path:
        """The executable; an error if it is not there."""
        path = self.root / "sbin" / "varnishd"
        if not path.exists():
            option = STOCK if self.name == STOCK else "sandpaper"
            raise TestbedError(
                f"there is no {path}: run make varnish stock, or name the "
                f"install folder with --{option} DIR")
        return path

    def version(self) -> str:
        """Return what it says it is."""
        said = subprocess.run(
            [str(self.program), "-V"], capture_output=True, text=True,
            check=False)
        line = (said.stderr + said.stdout).partition("\n")[0]
        return line.partition("(")[2].rstrip(")") or line


def not_started(variant: Variant, said: str) -> TestbedError:
    """Return the error of a varnishd that ended at once."""
    return TestbedError(f"{variant.program} did not start: {one_line(said)}")


def check_parameters(variant: Variant, bed: Testbed, role: str) -> None:
    """Have varnishd look at the variant's parameters; nothing is started."""
    options = [word for parameter in variant.parameters
               for word in ("-p", parameter)]
    # -C needs a backend, and nothing connects to it.  6.0 has no "-b none".
    done = bed.ask(role, [str(variant.program), "-C", "-b", "127.0.0.1:1",
                          *options])
    if done.returncode != 0:
        raise not_started(variant, done.stderr)


class Varnish:
    """A running varnishd; use as a context."""

    def __init__(
        self, variant: Variant, bed: Testbed, reaper: Reaper, vcl: str,
        proxy: Proxy,
    ) -> None:
        self.variant = variant
        self.proxy = proxy
        self._bed = bed
        self._reaper = reaper
        self._vcl = vcl

    def __enter__(self) -> Self:
        self._folder = self._bed.folder(self.proxy.role)
        self._bed.write(self.proxy.role, self.vcl_file, self._vcl.encode())
        self._process = self._reaper.popen(
            self._bed.command(self.proxy.role, self._command()),
            log=self._folder / "log")
        try:
            self.child = self._await_child()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._reaper.end(self._process)
        self._bed.remove(self.proxy.role, self._folder)

    def _command(self) -> list[str]:
        command = [
            # What a compiler that is killed leaves is removed, too
            "env", f"TMPDIR={self._folder}", *self.variant.environment,
            str(self.variant.program), "-F", "-j", "none",
            "-n", str(self._folder / "n"),
            "-f", str(self.vcl_file),
            "-a", self.proxy.listen,
            "-s", "malloc,256m",
        ]
        for parameter in (*FAIR_PARAMETERS, *room(self._vcl),
                          *self.variant.parameters):
            command += ["-p", parameter]
        return command

    @property
    def vcl_file(self) -> Path:
        """Where its VCL is."""
        return self._folder / "bench.vcl"

    def adopt(self) -> None:
        """There is another worker process, as there should be."""
        self.child = self._await_child()

    def _await_child(self) -> int:
        """Wait until the worker process runs and its VCL is in use."""
        deadline = time.monotonic() + START_TIMEOUT
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            with contextlib.suppress(TestbedError):
                if "running" in self.cli("status", patience=STARTING):
                    self._manager = int(self._read(self._folder / "n/_.pid"))
                    children = self._children()
                    if children:
                        return children[0]
            time.sleep(0.05)
        log = (self._folder / "log").read_text()
        raise not_started(self.variant, log)

    def adm(self) -> list[str]:
        """Return the varnishadm command that reaches it."""
        return [str(self.variant.root / "bin" / "varnishadm"),
                "-n", str(self._folder / "n")]

    def cli(self, *command: str, patience: int = PATIENCE) -> str:
        """Run a CLI command; return what it printed."""
        done = self._bed.ask(self.proxy.role, [
            *self.adm(), "-t", str(patience), *command])
        if done.returncode != 0:
            raise TestbedError(
                f"varnishadm {' '.join(command)}: "
                + one_line(done.stdout + done.stderr))
        return done.stdout

    def gauges(self, names: Sequence[str]) -> dict[str, int]:
        """Return counters by name; the worker process has to run."""
        done = self._bed.ask(self.proxy.role, [
            str(self.variant.root / "bin" / "varnishstat"), "-j",
            "-n", str(self._folder / "n"),
            *(a for name in names for a in ("-f", name))])
        if done.returncode != 0:
            raise TestbedError(f"varnishstat: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        found = found.get("counters", found)  # 6.0: without that level
        return {name: found[name]["value"] for name in names}

    def cpu_seconds(self) -> float:
        """CPU time that the worker process has used."""
        return self._cpu_of(self.child)

    def rss_bytes(self) -> int:
        """Resident memory of the worker process, without shared files."""
        status = self._read(Path(f"/proc/{self.child}/status"))
        for line in status.splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise TestbedError(f"/proc/{self.child}/status has no RssAnon")

    def heap_bytes(self) -> int:
        """The same without the stacks of threads.

        A stack holds what its thread's deepest request took: all of them grow
        until each thread has served that one.
        """
        return without_stacks(self._read(Path(f"/proc/{self.child}/smaps")))

    def threads(self) -> int:
        """Return how many threads the worker process has."""
        status = self._read(Path(f"/proc/{self.child}/status"))
        return int(status.partition("\nThreads:")[2].split()[0])

    def descriptors(self) -> int:
        """Return how many descriptors the worker process has open."""
        done = self._bed.ask(self.proxy.role, [
            "ls", f"/proc/{self.child}/fd"])
        if not done.stdout:
            raise TestbedError(
                f"{self.variant.name}: varnishd has no worker process"
                f"{self.obituary()}")
        return len(done.stdout.split())

    def limit_descriptors(self, number: int) -> None:
        """Set the soft limit of the worker process's descriptors."""
        self._order("prlimit", f"--pid={self.child}", f"--nofile={number}:")

    def signal(self, name: str) -> None:
        """Send the worker process a signal."""
        self._order("kill", f"-{name}", str(self.child))

    def _order(self, *command: str) -> None:
        done = self._bed.ask(self.proxy.role, command)
        if done.returncode != 0:
            raise TestbedError(f"{command[0]}: {one_line(done.stderr)}")

    def panicked(self) -> bool:
        """Has a worker process panicked since the start?"""
        with contextlib.suppress(TestbedError):
            return bool(self.cli("panic.show"))
        return False

    def obituary(self) -> str:
        """Return what the manager said of worker processes that died."""
        log = (self._folder / "log").read_text(errors="replace")
        said = [line for line in log.splitlines()
                if any(word in line for word in OBITUARIES)]
        with contextlib.suppress(TestbedError):
            said += self.cli("panic.show").splitlines()[:PANIC_LINES]
        return "".join("\n  " + line.strip() for line in said)

    def restarted(self) -> bool:
        """Has the worker process died since the start?"""
        return self._children()[:1] != [self.child]

    def _children(self) -> list[int]:
        """Return the manager's child processes, the oldest first."""
        with contextlib.suppress(TestbedError):
            return [int(child) for child in self._read(Path(
                f"/proc/{self._manager}/task/{self._manager}/children"
            )).split()]
        return []

    def _cpu_of(self, pid: int) -> float:
        """Return the CPU time that a process has used."""
        fields = self._read(Path(f"/proc/{pid}/stat")).rpartition(
            ")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def _read(self, path: Path) -> str:
        return self._bed.read(self.proxy.role, path)


MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)")


def without_stacks(smaps: str) -> int:
    """Return the anonymous memory, in bytes, of what smaps says.

    Without mappings that begin at the end of a guard, which nobody may read
    or write: pthread_create() puts one before each stack.
    """
    found, end, guard, stack = 0, "", False, False
    for line in smaps.splitlines():
        if m := MAPPING.fullmatch(line):
            begin, after, may, file = m.groups()
            stack = guard and begin == end and not file
            end, guard = after, may.startswith("---")
        elif line.startswith("Anonymous:") and not stack:
            found += int(line.split()[1]) * 1024
    return found


def listed(varnish: Varnish) -> dict[str, dict[str, Any]]:
    """Return what sandpaper.list says of each tenant, by name."""
    said = json.loads(varnish.cli("sandpaper.list", "-j"))[-1]
    return {tenant["tenant"]: tenant for tenant in said["list"]}
