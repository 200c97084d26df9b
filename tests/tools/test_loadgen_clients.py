# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's command line, and what one connection sends."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest.mock import MagicMock

from loadgen import ANSWER, loaded
from sandpaper_bench.load import Group, Load, build_loadgen
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.testbed import Testbed, TestbedError

TIMEOUT = 60  # seconds, for what should take one


def said_by(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the load generator."""
    return subprocess.run([str(build_loadgen()), *words], text=True,
                          capture_output=True, timeout=TIMEOUT, check=False)


class CommandLine(unittest.TestCase):
    """What is wrong is one line, which says what is allowed."""

    def test_a_wrong_value(self) -> None:
        for words, said in (
                ("127.0.0.1:1 host=a,conns=0", "conns '0' .* from 1 to"),
                ("127.0.0.1:1 host=a,conns=1.5", "conns '1.5' .* whole"),
                ("127.0.0.1:1 host=a,rate=x", "rate 'x' .* number from 0"),
                ("127.0.0.1:1 host=a,fresh=2", "fresh '2' .* from 0 to 1"),
                ("127.0.0.1:1 hots=a", "key 'hots' .* use one of name host"),
                ("127.0.0.1:1 host=a,mode=x", "mode 'x' .* use closed, paced"),
                ("127.0.0.1 host=a", "'127.0.0.1' .* use ADDR:PORT"),
                ("192.168.100.1007:9 host=a", ".* is not an IPv4 address"),
                ("127.0.0.1:1 host=a,rate=2e9", "rate '2e9' .* 1000000000"),
                ("-p 2 -l 1e-10 -q 0 127.0.0.1:1 host=a",
                 "-l '1e-10' .* from 0.001"),
                (f"127.0.0.1:1 mode=h2,host={127 * 'a'}",
                 ".* a host of at most 109 characters"),
                ("127.0.0.1:0 host=a", "port '0' .* from 1 to 65535"),
                ("-t 1s 127.0.0.1:1 host=a", "-t '1s' .* use a number"),
                ("-t 0 127.0.0.1:1 host=a", "-t 0 .* more than 0"),
                ("-s x 127.0.0.1:1 host=a", "-s 'x' .* whole number"),
                ("-l 0.1 127.0.0.1:1 host=a", "-l 0.1 .* more than -q"),
                ("127.0.0.1:1 host", "'host' is not valid: use key=value"),
                ("127.0.0.1:1 mode=open,host=a", "group 'g1' needs a rate"),
                ("127.0.0.1:1 conns=3", "group 'g1' needs host"),
                ("127.0.0.1:1 host=a,phase=1", ".* phase 1 .* use 0 to 0"),
                ("127.0.0.1:1 host=a,from=2,till=1", ".* from 2 till 1 is"),
                ("127.0.0.1:1 host=a,headers=/nowhere", ".*'/nowhere': No"),
                ("127.0.0.1:1 host=a,headers=/dev/null", ".* has no headers"),
                ("127.0.0.1:1", "an argument is missing")):
            with self.subTest(words):
                done = said_by(*words.split())
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, f"^loadgen: {said}.*\n$")

    def test_a_header_that_is_too_long(self) -> None:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"a: {2500 * 'b'}\n")
            file.flush()
            done = said_by("127.0.0.1:1", f"host=a,headers={file.name}")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "a set is too long")

    def test_an_experiment_says_why_it_has_no_result(self) -> None:
        reaper, core = Reaper(), [min(os.sched_getaffinity(0))]
        self.addCleanup(reaper.close)
        load = Load(Testbed(reaper, core, core, loopback=True), reaper, 1)
        for conns in ("x", "y"):
            varnish = MagicMock()
            varnish.proxy.listen = f"127.0.0.1:{conns}"
            with self.assertRaisesRegex(
                    TestbedError, "without a result: loadgen: port "
                    f"'{conns}'.* from 1"):
                load.disturbed(varnish, [Group("a", "b")], 1.0, 0.0)
        load._loadgen_program = Path("/bin/true")
        with self.assertRaisesRegex(TestbedError, "it gave no reason"):
            load.disturbed(varnish, [Group("a", "b")], 1.0, 0.0)

    def test_help_has_every_key(self) -> None:
        done = said_by("--help")
        keys = re.findall(r"^  ([a-z_]+) +\S", done.stdout, re.MULTILINE)
        spec = Group("a", "b", to="127.0.0.1:1", headers="c",
                     steps="0:1", paths="d").spec()
        self.assertEqual(sorted(keys), sorted(
            item.partition("=")[0] for item in spec.split(",")))


class Requests(unittest.TestCase):
    """What a server gets from one connection."""

    def hosts(self, seed: int) -> list[bytes]:
        """Return the Hosts of five requests."""
        asked = []
        with loaded("host=a,random_host=1,limit=5", "-s",
                    str(seed)) as (peer, _, _):
            for _ in range(5):
                asked.append(peer.recv(8192).split(b"\r\n")[1])
                peer.send(ANSWER)
        return asked

    def test_a_seed_repeats_its_hosts(self) -> None:
        self.assertEqual(self.hosts(7), self.hosts(7))
        self.assertEqual(len({*self.hosts(7), *self.hosts(8)}), 10)

    def test_open_requests_wait_for_a_connection(self) -> None:
        with loaded("host=a,mode=open,rate=1000,till=0.5", "-q", "0",
                    "-t", "2", "-i", "0.6") as (peer, load, found):
            self.assertEqual(peer.recv(8192).count(b"GET "), 1)
            assert load.stdout is not None
            while "interval_s" not in (line := load.stdout.readline()):
                self.assertTrue(line)
            # No more are due: those to come were late.
            for _ in range(20):
                peer.send(ANSWER)
                self.assertEqual(peer.recv(8192).count(b"GET "), 1)
        self.assertEqual(found["answered_in_all"], 20)
        self.assertGreater(found["waiting"], 20)
        self.assertEqual(found["errors"], 0)

    def test_a_head_drips(self) -> None:
        head = b"GET /p HTTP/1.1\r\nHost: a\r\nX: "
        got = b""
        with loaded("host=a,path=/p,mode=drip,rate=100", "-t",
                    "2") as (peer, _, found):
            while len(got) < len(head) + 2:
                piece = peer.recv(8192)
                self.assertIn(len(piece), range(1, 101))
                got += piece
        self.assertEqual(got[:len(head) + 2], head + b"xx")
        self.assertEqual(found["sent_in_all"], 1)

    def test_a_slow_reader_reads_all_in_the_end(self) -> None:
        body = 20_000  # bytes: a fifth of a second
        with loaded("host=a,mode=slow,rate=100000,limit=1", "-t",
                    str(TIMEOUT // 2)) as (peer, _, found):
            peer.recv(8192)
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
                         % body + bytes(body))
        self.assertEqual(found["requests"], 1)
        self.assertGreater(found["p50_s"], 0.05)
