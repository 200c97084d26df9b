# SPDX-License-Identifier: BSD-2-Clause
"""Which interface is net: that of a client from outside this machine.

A health check over loopback often comes first, and an address can move.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import unittest

from namespaces import ROOT, TIMEOUT, Namespaces, run

PORT = 8080
CLIENT = f"""
import socket, sys
s = socket.create_connection((sys.argv[1], {PORT}), {TIMEOUT})
s.sendall(b"GET / HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n")
print(s.recv(12).decode(), flush=True)
"""
VCL = """vcl 4.1;
backend default none;
sub vcl_recv { return (synth(200)); }
"""


class Link(Namespaces):
    """Two interfaces and loopback."""

    def setUp(self) -> None:
        super().setUp()
        self.proxy, self.client = self.namespaces("p", "c")
        for number, device in enumerate(("one", "two")):
            run("ip", "-n", self.proxy, "link", "add", device, "type", "veth",
                "peer", "name", device, "netns", self.client)
            for name, host in ((self.proxy, 1), (self.client, 2)):
                run("ip", "-n", name, "addr", "add",
                    f"10.79.{number}.{host}/24", "dev", device)
                run("ip", "-n", name, "addr", "add",
                    f"fd79:{number}::{host}/64", "dev", device, "nodad")
                run("ip", "-n", name, "link", "set", device, "up")
        # Nobody knows the speed of a bridge without ports
        run("ip", "-n", self.proxy, "link", "add", "three", "type", "bridge")
        run("ip", "-n", self.proxy, "addr", "add", "10.79.2.1/24", "dev",
            "three")
        run("ip", "-n", self.proxy, "link", "set", "three", "up")
        self.varnishd(self.proxy, VCL, "-a", f"0.0.0.0:{PORT}",
                      "-a", f"[::]:{PORT}", "-p", "vsl_mask=+Debug")

    def ask(self, where: str, address: str) -> None:
        """Send one request, on a connection of its own."""
        said = subprocess.run(
            ["ip", "netns", "exec", where, sys.executable, "-c", CLIENT,
             address], check=True, text=True, timeout=TIMEOUT,
            stdout=subprocess.PIPE).stdout
        self.assertEqual(said, "HTTP/1.1 200\n")

    def log(self, *, rates: bool = False) -> list[str]:
        """Return the interfaces that were net, in order."""
        said = subprocess.run(
            [f"{ROOT}/bin/varnishlog", "-n", f"{self.folder}/n", "-d", "-g",
             "raw", "-i", "Debug"], check=True, text=True, timeout=TIMEOUT,
            stdout=subprocess.PIPE).stdout
        return [f"{name} {rate}" if rates else name for name, rate in
                re.findall(r"net is the interface (\w+), its rate is (\d+)",
                           said)]

    def await_log(self, *interfaces: str) -> None:
        """Wait until these were net."""
        end = time.monotonic() + TIMEOUT
        while self.log() != list(interfaces):
            self.assertLess(time.monotonic(), end,
                            f"{self.log()} and not {list(interfaces)}")
            time.sleep(0.05)

    def test_loopback_counts_only_at_first(self) -> None:
        self.ask(self.proxy, "127.0.0.1")
        self.await_log("lo")
        self.ask(self.client, "10.79.0.1")
        self.await_log("lo", "one")
        # What comes later changes nothing, while the address stays
        self.ask(self.proxy, "127.0.0.1")
        self.ask(self.client, "10.79.1.1")
        run("ip", "-n", self.proxy, "link", "del", "one")
        end = time.monotonic() + TIMEOUT
        while self.log() != ["lo", "one", "two"]:
            self.assertLess(time.monotonic(), end, str(self.log()))
            self.ask(self.client, "10.79.1.1")

    def test_ipv6(self) -> None:
        self.ask(self.proxy, "::1")
        self.await_log("lo")
        self.ask(self.client, "fd79:1::1")
        self.await_log("lo", "two")
        self.assertEqual(self.log(rates=True), [
            "lo 0", "two 10000000000"])

    def test_speed_is_not_known(self) -> None:
        self.ask(self.proxy, "10.79.2.1")
        self.await_log("three")
        self.assertEqual(self.log(rates=True), ["three 0"])


if __name__ == "__main__":
    unittest.main()
