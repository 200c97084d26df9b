# SPDX-License-Identifier: BSD-2-Clause
"""The origin: Apache httpd, as the paper's, with pages in files.

Its configuration, log and pages are in one folder in memory, which the reaper
removes, and it listens in the origin's network only: no service of the system
is touched.  What Apache can't do simply, a page that drips for hours, comes
from bench/origin.py.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from .reaper import Reaper
from .testbed import BENCH, Testbed, TestbedError
from .varnish import START_TIMEOUT

MODULES = Path("/usr/lib/apache2/modules")  # Debian's
LINE = b"<li><a href=/news/2019-11-07>An edge proxy serves many</a></li>\n"

CONFIGURATION = """\
ServerRoot {folder}
ServerName origin.example
Listen {listen}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
User {user}
Group {group}
PidFile {folder}/pid
ErrorLog {folder}/log
DocumentRoot {folder}/pages
ForceType text/html
<Files "*.json">
	ForceType application/json
</Files>
StartServers 1
ServerLimit 4
ThreadsPerChild 64
MaxRequestWorkers 256
MaxKeepAliveRequests 0
KeepAliveTimeout 600
"""


def page(size: int) -> bytes:
    """Return a page of `size` bytes: words for VCL to work on."""
    return (LINE * (size // len(LINE) + 1))[:size]


def start_program(
    bed: Testbed, reaper: Reaper, role: str, name: str, *arguments: str
) -> None:
    """Start a program of bench/ that prints "ready" once it listens."""
    process = reaper.popen(bed.command(
        role, [sys.executable, str(BENCH / name), *arguments]))
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise TestbedError(f"bench/{name} did not start: see its error above")


def start_drip(bed: Testbed, reaper: Reaper) -> None:
    """Start the origin whose pages may drip, at the drip port."""
    start_program(bed, reaper, "origin", "origin.py", address(bed),
                  str(bed.proxies[0].drip_port))


def address(bed: Testbed) -> str:
    """Return the address at which an origin listens."""
    return "0.0.0.0" if bed.shaped else "127.0.0.1"


class Origin:
    """A running Apache and, for pages that drip, a running origin.py."""

    def __init__(self, bed: Testbed, reaper: Reaper) -> None:
        self._bed, self._reaper = bed, reaper
        program = bed.find("origin", "apache2", "apache2-bin")
        self.folder = bed.folder("origin")
        self._start_apache(program)
        start_drip(bed, reaper)

    def put(self, path: str, body: bytes) -> None:
        """Write a page; /`path` serves it from now on."""
        self._bed.write("origin", self.folder / "pages" / path, body)

    def _start_apache(self, program: str) -> None:
        proxy = self._bed.proxies[0]
        root = self._bed.is_root("origin")  # as which it serves no page
        configuration = CONFIGURATION.format(
            folder=self.folder, modules=MODULES,
            listen=f"{address(self._bed)}:{proxy.origin_port}",
            user="www-data" if root else f"#{os.geteuid()}",
            group="www-data" if root else f"#{os.getegid()}")
        self.put("index.html", b"")  # Apache wants its DocumentRoot
        self._bed.write("origin", self.folder / "apache.conf",
                        configuration.encode())
        process = self._reaper.popen(
            self._bed.command("origin", [
                program, "-f", str(self.folder / "apache.conf"),
                "-DFOREGROUND"]), log=self.folder / "start.log")
        deadline = time.monotonic() + START_TIMEOUT
        while not self._said("pid"):  # it listens by then
            if process.poll() is not None or time.monotonic() > deadline:
                said = (self.folder / "start.log").read_text()
                said += self._said("log")
                raise TestbedError(f"{program} did not start: {said.strip()}")
            time.sleep(0.02)

    def _said(self, name: str) -> str:
        """Return what is in a file of Apache's, nothing if it is not there."""
        with contextlib.suppress(TestbedError):
            return self._bed.read("origin", self.folder / name)
        return ""
