# SPDX-License-Identifier: BSD-2-Clause
"""For the tests that preload one of this folder's sources into varnishd."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

ROOT = os.environ.get("VARNISH_ROOT", "")
HERE = Path(__file__).resolve().parent
TIMEOUT = 60  # seconds
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
HEADERS_FRAME, PING_FRAME = 1, 6
PING = bytes((0, 0, 8, PING_FRAME, 0, 0, 0, 0, 0)) + bytes(8)
HELLO = """vcl 4.1;
backend none none;
sub vcl_recv { return (synth(200)); }
"""


class Preloaded(unittest.TestCase):
    """A varnishd of its own, in its own folder, with which things go wrong."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="preload.")))
        # For sources that say when, and wait until they are told
        self.now, self.go = self.folder / "now", self.folder / "go"
        os.mkfifo(self.now)
        os.mkfifo(self.go)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def varnishd(self, preload: str, *options: str, **env: str) -> None:
        """Start it with the preloaded source, if any, and await it."""
        if preload:
            shim = self.folder / f"{preload}.so"
            subprocess.run(["gcc", "-shared", "-fPIC", "-O", "-o", str(shim),
                            str(HERE / f"{preload}.c")], check=True)
            env["LD_PRELOAD"] = str(shim)
        self.process = process = subprocess.Popen(
            [f"{ROOT}/sbin/varnishd", "-F", "-j", "none",
             "-n", f"{self.folder}/n", "-a", f"127.0.0.1:{self.port}",
             *options],
            env=os.environ | env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        end = time.monotonic() + TIMEOUT
        while not self.answers():
            self.assertIsNone(process.poll(), "varnishd has ended")
            self.assertLess(time.monotonic(), end, "varnishd does not start")

    def vcl(self, text: str) -> str:
        """Return the name of a file with this VCL."""
        file = self.folder / "vcl"
        file.write_text(text)
        return str(file)

    def answers(self) -> bool:
        """Is there a varnishd?  Varnishadm waits for no more than a part."""
        return subprocess.run(
            [f"{ROOT}/bin/varnishadm", "-n", f"{self.folder}/n", "-t",
             str(TIMEOUT), "ping"], check=False, timeout=TIMEOUT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode == 0

    def cli(self, *command: str) -> str:
        """Return what varnishd says to a command."""
        return subprocess.run(
            [f"{ROOT}/bin/varnishadm", "-n", f"{self.folder}/n", "-t",
             str(TIMEOUT), *command], check=True, stdout=subprocess.PIPE,
            text=True, timeout=TIMEOUT).stdout

    def tenant(self, name: str) -> dict[str, Any]:
        """Return what sandpaper.list says about a tenant."""
        said = json.loads(self.cli("sandpaper.list -j"))
        return next(t for t in said[3]["list"] if t["tenant"] == name)

    def counter(self, name: str) -> int:
        """Return a counter, or the sum of those that match; 0 if none."""
        said = subprocess.run(
            [f"{ROOT}/bin/varnishstat", "-n", f"{self.folder}/n", "-1",
             "-f", name], text=True, timeout=TIMEOUT, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return sum(int(line.split()[1]) for line in said.splitlines())

    def await_counter(self, name: str, least: int,
                      most: int | None = None) -> None:
        """Return when a counter is within bounds."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            value = self.counter(name)
            if least <= value and (most is None or value <= most):
                return
        self.fail(f"{name} is {value}, not {least} to {most}")

    def log(self, *options: str) -> list[str]:
        """Return the lines of the log so far."""
        return subprocess.run(
            [f"{ROOT}/bin/varnishlog", "-n", f"{self.folder}/n", "-d",
             *options], check=True, stdout=subprocess.PIPE, text=True,
            timeout=TIMEOUT).stdout.splitlines()

    def served(self, least: int) -> list[str]:
        """Return the Sandpaper records of the log, once there are so many.

        A client may have its answer before the log has the request.
        """
        end = time.monotonic() + TIMEOUT
        while len(lines := self.log("-g", "raw", "-i", "Sandpaper")) < least:
            self.assertLess(time.monotonic(), end, f"{lines}, not {least}")
        return lines

    def connect(self) -> socket.socket:
        """Return a connection that ends with the test."""
        client = self.enterContext(
            socket.create_connection(("127.0.0.1", self.port)))
        client.settimeout(TIMEOUT)
        return client

    def ask(self, host: str, url: str = "/") -> socket.socket:
        """Return a connection on which a request was sent."""
        client = self.connect()
        self.send(client, host, url)
        return client

    @staticmethod
    def send(client: socket.socket, host: str, url: str = "/") -> None:
        """Send a request."""
        client.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    def session(self) -> socket.socket:
        """Return a connection whose HTTP/2 session has a thread."""
        client = self.connect()
        client.sendall(PREFACE + PING)
        self.await_frame(client, PING_FRAME)
        return client

    @staticmethod
    def stream(client: socket.socket, host: str, number: int = 1) -> None:
        """Send GET / as the session's stream of this number."""
        block = b"\x82\x86\x84\x01" + bytes((len(host),)) + host.encode()
        client.sendall(bytes((0, 0, len(block), HEADERS_FRAME, 5))
                       + number.to_bytes(4, "big") + block)

    def await_frame(self, client: socket.socket, kind: int) -> None:
        """Read up to the end of a frame of this type."""
        got = -1
        while got != kind:
            head = client.recv(9, socket.MSG_WAITALL)
            self.assertEqual(len(head), 9)
            got = head[3]
            client.recv(int.from_bytes(head[:3], "big"), socket.MSG_WAITALL)

    def status(self, client: socket.socket) -> int:
        """Read an answer, which has a length; return its status."""
        got = b""
        while b"\r\n\r\n" not in got:
            chunk = client.recv(4096)
            self.assertTrue(chunk, got)
            got += chunk
        head, _, body = got.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        assert length is not None
        while len(body) < int(length[1]):
            chunk = client.recv(4096)
            self.assertTrue(chunk, got)
            body += chunk
        return int(head.split()[1])

    def assert_alive(self) -> None:
        """Nothing waits or runs any more, and the child is the first one."""
        for name in ("waiting", "running", "lent"):
            self.await_counter(f"SANDPAPER.{name}", 0, 0)
        for name, value in (("start", 1), ("panic", 0), ("died", 0)):
            self.assertEqual(self.counter(f"MGT.child_{name}"), value, name)
