# SPDX-License-Identifier: BSD-2-Clause
"""The fixture `varnishd` for a unittest class."""

from __future__ import annotations

import socket
import tempfile
import unittest
from pathlib import Path

import client as http
from common import ROOT, TIMEOUT

from varnishd import HELLO, Varnishd, status


class Preloaded(unittest.TestCase):
    """A varnishd that the test starts."""

    def setUp(self) -> None:
        self.folder = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="test.")))
        self.made = self.enterContext(Varnishd(self.folder, self.folder))
        self.port = self.made.port

    def varnishd(self, preload: str, *options: str, **env: str) -> None:
        """Start it."""
        self.made.start(vcl="", preload=preload, arguments=options, **env)

    def vcl(self, text: str) -> str:
        """Return the name of a file with this VCL."""
        file = self.folder / "vcl"
        file.write_text(text)
        return str(file)

    @staticmethod
    def send(client: socket.socket, host: str, url: str = "/") -> None:
        """Send a request."""
        client.sendall(http.get(host, url))

    @staticmethod
    def status(client: socket.socket) -> int:
        """Read an answer; return its status."""
        return status(client)

    def connect(self) -> socket.socket:
        """Return a connection that ends with the test."""
        return self.made.connect()

    def cli(self, *command: str) -> str:
        """Return what varnishd says to a command."""
        return self.made.cli(*command)


__all__ = ["HELLO", "ROOT", "TIMEOUT", "Preloaded"]
