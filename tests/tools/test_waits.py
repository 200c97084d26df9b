# SPDX-License-Identifier: BSD-2-Clause
"""Waits that end at the worst moment, by what is preloaded into varnishd."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = os.environ.get("VARNISH_ROOT", "")
HERE = Path(__file__).resolve().parent
TIMEOUT = 60  # seconds


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Waits(unittest.TestCase):
    """Nobody signals again, and a write has sent a part."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="wait.")))
        self.now, self.go = self.folder / "now", self.folder / "go"
        os.mkfifo(self.now)
        os.mkfifo(self.go)
        self.origin = self.enterContext(
            socket.create_server(("127.0.0.1", 0)))
        self.origin.settimeout(TIMEOUT)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def varnishd(self, preload: str, *options: str) -> None:
        """Start it with the preloaded source; return when it answers."""
        shim = self.folder / f"{preload}.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O", "-o", str(shim),
                        str(HERE / f"{preload}.c")], check=True)
        process = subprocess.Popen(
            [f"{ROOT}/sbin/varnishd", "-F", "-j", "none",
             "-n", f"{self.folder}/n", "-a", f"127.0.0.1:{self.port}",
             "-b", "127.0.0.1:%d" % self.origin.getsockname()[1], *options],
            env=os.environ | {
                "LD_PRELOAD": str(shim), "HELD_NOW": str(self.now),
                "HELD_GO": str(self.go)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        subprocess.run(
            [f"{ROOT}/bin/varnishadm", "-n", f"{self.folder}/n", "-t",
             str(TIMEOUT), "ping"], check=True, stdout=subprocess.DEVNULL,
            timeout=TIMEOUT)

    def answer(self) -> None:
        """Answer one request when a worker's wait has ended by time."""
        peer, _ = self.origin.accept()
        with peer:
            peer.recv(4096)
            self.now.read_bytes()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
                         b"Connection: close\r\n\r\nlate")

    def await_fetch(self) -> None:
        """Return when the fetch has ended: all its signals are given."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            found = subprocess.run(
                [f"{ROOT}/bin/varnishstat", "-n", f"{self.folder}/n", "-1",
                 "-f", "SANDPAPER.fetches"], text=True, timeout=TIMEOUT,
                stdout=subprocess.PIPE, check=True).stdout
            if found.split()[1] == "1":
                return
        self.fail("the fetch does not end")

    def test_what_came_true_meanwhile_is_seen(self) -> None:
        self.varnishd("held_wait")
        answering = threading.Thread(target=self.answer, daemon=True)
        answering.start()
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.settimeout(TIMEOUT / 3)
            client.sendall(b"GET / HTTP/1.1\r\nHost: a.example\r\n"
                           b"Connection: close\r\n\r\n")
            answering.join(TIMEOUT)
            self.await_fetch()
            self.go.write_bytes(b"x")
            got = b""
            while chunk := client.recv(4096):
                got += chunk
        self.assertTrue(got.endswith(b"late"), got)

    def test_a_part_of_a_vector_is_followed_by_the_rest(self) -> None:
        # HTTP/2 takes a short count for a client that does not read.
        self.varnishd("short_send", "-p", "feature=+http2")
        with subprocess.Popen(
                [sys.executable, str(HERE.parents[1] / "vtc"
                                     / "h2_late_reader.py"),
                 "127.0.0.1", str(self.port), "4"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True) as client:
            self.addCleanup(client.kill)
            peer, _ = self.origin.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
                             b"Connection: close\r\n\r\nlate")
            self.assertEqual(
                client.communicate("\n", timeout=TIMEOUT)[0],
                "4 of 4 bytes\n")


if __name__ == "__main__":
    unittest.main()
