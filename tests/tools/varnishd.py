# SPDX-License-Identifier: BSD-2-Clause
"""A varnishd on loopback, what it says, and its clients.

A source of this folder can be preloaded into it: things go wrong then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import client as http
import pytest
from common import ROOT, TIMEOUT, TOP, ran, until
from sandpaper_bench.testbed import free_port

HERE = Path(__file__).resolve().parent
HELLO = """vcl 4.1;
backend none none;
sub vcl_recv { return (synth(200)); }
"""
# The path of a request is that of a file, which is the answer
FILES = HELLO.replace("backend", "import std;\nbackend", 1) + """
sub vcl_synth {
	if (req.url != "/") { set resp.body = std.fileread(req.url); }
	return (deliver);
}
"""


LINK = 16_000_000  # bits/s
PART = 300_000  # bytes: more than NIC_SHARE
FILL = 200  # answers that count NIC_SHARE each: 26 s of LINK


def work(times: int) -> str:
    """Return VCL that takes CPU time, more with more times."""
    return ('\t\tset req.http.x = "0123456789abcdefghij";\n'
            + "\t\tset req.http.x = req.http.x + req.http.x;\n" * 6
            + '\t\tset req.http.y = regsuball(req.http.x, "[a-j]", "-");\n'
            * times)


class Varnishd(contextlib.ExitStack):
    """All that was opened or started ends with it."""

    def __init__(self, folder: Path, preloads: Path) -> None:
        super().__init__()
        self.folder = folder
        self.preloads = preloads
        self.port = free_port()
        # burn.c writes to `now` when it begins, and stops at `go`
        self.now, self.go = folder / "now", folder / "go"
        self.step = folder / "step"  # clock_step.c reads it
        os.mkfifo(self.now)
        os.mkfifo(self.go)

    # Start

    def start(self, *params: str, vcl: str = HELLO, preload: str = "",
              arguments: Sequence[str] = (), before: Sequence[str] = (),
              **env: object) -> Self:
        """Start it with parameters (`name=value`); return when it answers."""
        if preload:
            env["LD_PRELOAD"] = self.shim(preload)
            env["CLOCK_STEP"] = self.step
        if vcl:
            file = self.folder / "vcl"
            file.write_text(vcl)
            arguments = ["-f", str(file), *arguments]
        self.said = self.enter_context((self.folder / "said").open("w+"))
        self.process = subprocess.Popen(
            [*before, f"{ROOT}/sbin/varnishd", "-F", "-j", "none",
             "-n", f"{self.folder}/n", "-a", f"127.0.0.1:{self.port}",
             *(word for p in params for word in ("-p", p)), *arguments],
            env=os.environ | {k: str(v) for k, v in env.items()},
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said)
        self.callback(self.end)
        until(self.answers, "varnishd does not start")
        return self

    def shim(self, name: str) -> Path:
        """Return the library of a source of this folder."""
        library = self.preloads / f"{name}.so"
        if not library.exists():
            ran("gcc", "-shared", "-fPIC", "-O", "-o", library,
                HERE / f"{name}.c")
        return library

    def step_clock(self, seconds: int) -> None:
        """Let the wall clock be off by so many seconds, with clock_step."""
        with self.step.open("r+b" if self.step.exists() else "wb") as f:
            f.write(struct.pack("=q", seconds * 1_000_000_000))

    def answers(self) -> bool:
        """Does varnishadm find it?  If not, ask again."""
        if self.process.poll() is not None:
            pytest.fail(f"varnishd has ended: {self.said_until_now()}")
        return self.program("varnishadm", "-t", "5", "ping",
                            status=None).returncode == 0

    def said_until_now(self) -> str:
        """Return what varnishd has written."""
        self.said.seek(0)
        return self.said.read()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()

    def worker(self) -> int:
        """Return the worker process, the manager's one child."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def origin(self) -> int:
        """Run bench/origin.py, and return its port."""
        port = free_port()
        process = self.enter_context(subprocess.Popen(
            [sys.executable, f"{TOP}/bench/origin.py", "127.0.0.1", str(port)],
            stdout=subprocess.PIPE))
        self.callback(process.terminate)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return port

    # What it says

    def program(self, name: str, *arguments: str, status: int | None = 0
                ) -> subprocess.CompletedProcess[str]:
        """Run varnishadm or one like it for this varnishd."""
        return ran(f"{ROOT}/bin/{name}", "-n", f"{self.folder}/n",
                   *arguments, status=status)

    def cli(self, *command: str) -> str:
        """Return what varnishd says to a command."""
        return self.program("varnishadm", "-t", str(TIMEOUT), *command).stdout

    def state(self) -> dict[str, Any]:
        """Return what sandpaper.list says."""
        said: dict[str, Any] = json.loads(self.cli("sandpaper.list -j"))[3]
        return said

    def tenant(self, name: str) -> dict[str, Any]:
        """Return what sandpaper.list says about a tenant."""
        return next(t for t in self.state()["list"] if t["tenant"] == name)

    def cache(self, tenant: str = "") -> dict[str, Any]:
        """Return what sandpaper.cache says, of one tenant or of all."""
        said: dict[str, Any] = json.loads(
            self.cli(f"sandpaper.cache -j {tenant}"))[3]
        return said

    def counter(self, name: str) -> int:
        """Return a counter, or the sum of those that match; 0 if none."""
        said = self.program("varnishstat", "-1", "-f", name, status=None)
        return sum(int(line.split()[1]) for line in said.stdout.splitlines())

    def await_counter(self, name: str, least: int,
                      most: float = float("inf")) -> None:
        """Return when a counter is within bounds."""
        until(lambda: least <= self.counter(name) <= most,
              f"{name} is not {least} to {most}")

    def log(self, *options: str) -> list[str]:
        """Return the lines of the log so far."""
        return self.program("varnishlog", "-d", "-g", "raw",
                            *options).stdout.splitlines()

    def served(self, least: int) -> list[str]:
        """Return the Sandpaper records of the log, once there are so many.

        A client may have its answer before the log has the request.
        """
        until(lambda: len(self.log("-i", "Sandpaper")) >= least,
              f"there are no {least} records")
        return self.log("-i", "Sandpaper")

    def assert_alive(self) -> None:
        """Nothing waits or runs any more, and the child is the first one."""
        for name in ("waiting", "running", "lent"):
            self.await_counter(f"SANDPAPER.{name}", 0, 0)
        for name, value in (("start", 1), ("panic", 0), ("died", 0)):
            assert self.counter(f"MGT.child_{name}") == value, name

    # Clients

    def connect(self, holds: int = 0) -> socket.socket:
        """Return a connection; its socket holds so many bytes, if set."""
        client = self.enter_context(
            http.connect("127.0.0.1", self.port, holds))
        client.settimeout(TIMEOUT)
        return client

    def ask(self, host: str, url: str = "/") -> socket.socket:
        """Return a connection on which a request was sent."""
        client = self.connect()
        client.sendall(http.get(host, url))
        return client

    def get(self, host: str, url: str = "/",
            client: socket.socket | None = None) -> int:
        """Return the status of a request, on a connection of its own or not."""
        client = client or self.connect()
        client.sendall(http.get(host, url))
        return status(client)

    def fill_link(self, client: HTTPConnection, part: str) -> None:
        """Get so much of PART bytes that a link of LINK has a backlog.

        As two tenants, so that nobody has the link alone.
        """
        for tenant in "ab":  # released whatever stands before the link
            self.cli(f"debug.sandpaper.cost {tenant}.example 1000 0")
        for n in range(FILL):
            client.request("GET", part,
                           headers={"Host": "ab"[n % 2] + ".example"})
            assert len(client.getresponse().read()) == PART

    def session(self) -> socket.socket:
        """Return a connection whose HTTP/2 session has a thread."""
        client = self.connect()
        client.sendall(http.PREFACE + http.frame(http.SETTINGS) + PING)
        await_frame(client, http.PING)
        return client


PING = http.frame(http.PING, bytes(8))


def await_frame(client: socket.socket, wanted: int) -> None:
    """Read up to the end of a frame of this type."""
    assert any(kind == wanted for kind, _, _ in http.frames(client))


def status(client: socket.socket) -> int:
    """Read an answer, which has a length; return its status."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += received(client)
    head, _, body = got.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += received(client)
    return int(head.split()[1])


def received(client: socket.socket) -> bytes:
    """Return what comes next, which is not the end."""
    got = client.recv(65536)
    assert got
    return got


def answered(clients: Iterable[socket.socket]) -> None:
    """All of them get an answer, and it is good."""
    for client in clients:
        assert status(client) == 200


def respond(peer: socket.socket, body: bytes = b"") -> None:
    """Be the origin: answer one request, and close."""
    with peer:
        peer.recv(4096)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n%b" % (len(body), body))


def allow_descriptors(many: int) -> None:
    """Let this process, and what it starts, have at least so many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < many:
        pytest.skip(f"not applicable: at most {hard} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
