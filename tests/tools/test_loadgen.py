# SPDX-License-Identifier: BSD-2-Clause
"""The load generator: what it sends, what it counts, what it refuses."""

from __future__ import annotations

import contextlib
import json
import re
import resource
import select
import socket
import subprocess
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from loadgen import ANSWER, loaded
from sandpaper_bench.load import build_loadgen
from sandpaper_bench.testbed import free_port

BENCH = Path(__file__).resolve().parents[2] / "bench"
TIMEOUT = 60  # seconds, for what should take one


class Loadgen(unittest.TestCase):
    """The load generator against the real origin, on loopback."""

    origin: subprocess.Popen[str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = build_loadgen()
        cls.port = free_port()
        cls.origin = subprocess.Popen(
            [sys.executable, str(BENCH / "origin.py"), "127.0.0.1",
             str(cls.port)], stdout=subprocess.PIPE, text=True)
        assert cls.origin.stdout is not None
        assert cls.origin.stdout.readline() == "ready\n"

    @classmethod
    def tearDownClass(cls) -> None:
        cls.origin.kill()
        cls.origin.wait()
        assert cls.origin.stdout is not None
        cls.origin.stdout.close()

    def run_loadgen(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.program), *args], text=True,
                              capture_output=True, timeout=TIMEOUT,
                              check=False)

    def load(
        self, group: str, seconds: float = TIMEOUT // 2
    ) -> dict[str, Any]:
        done = self.run_loadgen("-w", "0", "-t", str(seconds),
                                f"127.0.0.1:{self.port}", group)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ["start", "end"])
        found: dict[str, Any] = json.loads(lines[2])["groups"][0]
        return found

    def test_what_is_asked_after_the_window_does_not_wait_in_it(self) -> None:
        for _ in range(20):  # each misses with 3 in 8
            seen = self.load("host=a,path=/bytes/100,conns=8", 0.02)
            self.assertLess(seen["max_s"], 1)

    def test_closed_loop_counts_each_answer_once(self) -> None:
        seen = self.load("host=a,path=/bytes/5000,conns=4,limit=400")
        self.assertEqual(seen["answered_in_all"], 400)
        self.assertEqual(seen["requests"], 400)
        self.assertEqual(sum(seen["slices"]), 400)
        self.assertEqual(seen["conn_mean"], 100)
        self.assertLessEqual(seen["conn_min"], 100)
        self.assertGreaterEqual(seen["conn_max"], 100)
        self.assertGreater(seen["bytes"], 400 * 5000)
        self.assertEqual(seen["bytes"] % 400, 0)
        self.assertEqual((seen["errors"], seen["not_200"]), (0, 0))
        self.assertLessEqual(seen["p50_s"], seen["p99_s"])

    def test_it_may_never_sleep(self) -> None:
        # Asks once a second: without -b it sleeps in between.
        def run(*options: str) -> int:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = self.run_loadgen(
                *options, "-w", "0", "-t", "1", f"127.0.0.1:{self.port}",
                "mode=open,rate=1,host=a,path=/bytes/9")
            self.assertEqual(done.returncode, 0, done.stderr)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_nvcsw - before.ru_nvcsw

        self.assertGreater(run(), 50)  # a tick is 10 ms
        self.assertLess(run("-b"), 20)

    def test_groups_load_in_their_phases_only(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1", "-p", "2", "-l", "0.2", "-q", "0.1",
            f"127.0.0.1:{self.port}",
            "name=a,host=a,path=/bytes/9,conns=2,phase=0",
            "name=b,host=b,path=/bytes/9,conns=2,phase=1",
            f"name=c,host=c,path=/bytes/9,to=127.0.0.1:{self.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout.splitlines()[2])
        self.assertGreaterEqual(found["window_s"], 1.2)  # whole turns
        slices = [g["slices"] for g in found["groups"]]
        self.assertGreater(min(len(s) for s in slices), 11)
        # Of 0.1 s: settle, count, in turns.  On a busy machine a slice may
        # count nothing.
        for s, mine in zip(slices[:2], (1, 3), strict=True):
            self.assertGreater(sum(s[mine:12:4]), 0)
            self.assertEqual([n for i, n in enumerate(s[:12])
                              if n and i % 4 != mine], [])

    @contextlib.contextmanager
    def two_phases(self, seconds: float = TIMEOUT
                   ) -> Iterator[list[socket.socket]]:
        """Yield the connections of phases a and b; a's has its request."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", str(seconds), "-p", "2",
                 "-l", "0.2", "-q", "0.1",
                 f"127.0.0.1:{server.getsockname()[1]}",
                 "host=a,phase=0", "host=b,phase=1"],
                stdout=subprocess.DEVNULL)
            try:
                peers = [server.accept()[0] for _ in "ab"]
                said = {peer: peer.recv(4096, socket.MSG_PEEK) for peer in
                        select.select(peers, [], [], TIMEOUT)[0]}
                self.assertIn(b"Host: a\r\n", b"".join(said.values()))
                yield sorted(peers, key=lambda peer: (
                    b"Host: a\r\n" not in said.get(peer, b"")))
            finally:
                load.kill()
                load.wait()

    def test_a_phase_begins_when_the_last_one_is_answered(self) -> None:
        for _ in range(20):
            began = time.monotonic()
            with self.two_phases() as (a, b):
                # The first phase ends after 0.2 s, and a gap 0.2 s later.
                early = select.select([b], [], [], 0.3)[0]
                if time.monotonic() - began > 0.39:
                    continue  # the gap may have ended
                self.assertEqual(early, [])
                a.sendall(ANSWER)
                self.assertEqual(select.select([b], [], [], TIMEOUT)[0], [b])
                return
        self.fail("each of twenty tries took too long")

    def test_a_gap_between_phases_ends_without_an_answer(self) -> None:
        with self.two_phases() as (_, b):
            self.assertEqual(select.select([b], [], [], TIMEOUT)[0], [b])

    def test_a_gap_does_not_take_the_place_of_the_last_phase(self) -> None:
        with self.two_phases(seconds=0.4) as (_, b):
            b.settimeout(TIMEOUT)
            self.assertIn(b"Host: b\r\n", b.recv(4096))

    def test_other_statuses_are_counted(self) -> None:
        seen = self.load("host=a,path=/nothing,conns=2,limit=20")
        self.assertEqual((seen["requests"], seen["not_200"]), (20, 20))

    def test_open_loop_answers_what_was_due(self) -> None:
        seen = self.load("host=a,path=/bytes/9,mode=open,conns=20,rate=2000,"
                         "limit=100")
        self.assertGreaterEqual(seen["answered_in_all"], 100)
        self.assertEqual(seen["errors"], 0)

    def test_resets_read_no_whole_answer(self) -> None:
        with loaded("host=a,mode=reset,rate=100,conns=1,limit=1", "-t",
                    str(TIMEOUT)) as (peer, _, found):
            peer.recv(8192)
            with self.assertRaises(ConnectionError):
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: "
                             b"10000000\r\n\r\n" + bytes(10_000_000))
        self.assertEqual(found["answered_in_all"], 1)

    def test_who_never_reads_has_a_small_window(self) -> None:
        with loaded("host=a,mode=stall", "-t", "1") as (peer, _, found):
            peer.recv(8192)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            peer.settimeout(0.2)
            taken = 0
            with contextlib.suppress(TimeoutError, ConnectionError):
                while True:
                    taken += peer.send(bytes(1000))
        self.assertLess(taken, 30_000)

    @contextlib.contextmanager
    def loaded(self, group: str) -> Iterator[socket.socket]:
        """Yield a server that the generator connects to meanwhile."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(TIMEOUT)
            load = subprocess.Popen(
                [str(self.program), "-w", "0", "-t", str(TIMEOUT),
                 f"127.0.0.1:{server.getsockname()[1]}", group],
                stdout=subprocess.DEVNULL)
            try:
                yield server
            finally:
                load.kill()
                load.wait()

    def test_hosts_take_turns_by_connection(self) -> None:
        with self.loaded("host=many,conns=6,hosts=3") as server:
            peers = [server.accept()[0] for _ in range(6)]
            hosts = []
            for peer in peers:
                peer.settimeout(TIMEOUT)
                hosts.append(peer.recv(4096).split(b"\r\n")[1])
                peer.close()
        self.assertEqual(sorted(hosts), [
            b"Host: h%d.many" % n for n in (0, 0, 1, 1, 2, 2)])

    def test_what_is_still_owed_at_the_end_is_waited_for(self) -> None:
        for wait, unanswered in (("0", 1), (str(TIMEOUT), 0)):
            done = self.run_loadgen(
                "-w", "0", "-t", "1", "-d", wait,
                f"127.0.0.1:{self.port}", "host=a,path=/drip/1000/200")
            seen = json.loads(done.stdout.splitlines()[2])["groups"][0]
            self.assertEqual(seen["unanswered"], unanswered)
            self.assertEqual((seen["waiting"], seen["errors"]), (1, 0))

    def test_an_answer_that_comes_twice(self) -> None:
        with loaded("host=a,mode=open,rate=1,conns=1", "-t", "1", "-i",
                    "0.05") as (peer, load, found):
            peer.recv(8192)
            peer.send(ANSWER)
            assert load.stdout is not None
            line = "start"
            while "start" in line or '"rps": 0.000' in line:
                line = load.stdout.readline()
            self.assertIn("interval_s", line)
            peer.send(ANSWER)
        self.assertEqual((found["extra"], found["errors"]), (1, 0))

    def test_connects_and_closes(self) -> None:
        seen = self.load("host=a,mode=connect,conns=10,rate=1000,limit=300")
        self.assertGreaterEqual(seen["answered_in_all"], 300)
        self.assertEqual(seen["errors"], 0)

    def test_pipelined_requests_are_answered_each(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1", "-d", str(TIMEOUT), f"127.0.0.1:{self.port}",
            "host=a,path=/bytes/100,mode=pipe,limit=5000")
        seen = json.loads(done.stdout.splitlines()[2])["groups"][0]
        self.assertGreater(seen["sent_in_all"], 100)
        self.assertEqual(seen["answered_in_all"], seen["sent_in_all"])
        self.assertEqual((seen["unanswered"], seen["extra"]), (0, 0))

    def test_a_client_that_pauses(self) -> None:
        seen = self.load("host=a,path=/bytes/9,mode=paced,conns=5,rate=20",
                         1.0)
        # Each begins in another part of its period, and keeps to it
        self.assertLessEqual(seen["sent"], 5 * 21)
        self.assertGreater(seen["requests"], 5 * 2)
        self.assertLessEqual(seen["conn_max"], 21)
        self.assertEqual(seen["errors"], 0)

    def test_groups_that_load_for_some_time(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1.2", "-q", "0", f"127.0.0.1:{self.port}",
            "host=a,path=/bytes/9,from=0.4,till=0.8",
            "host=b,path=/bytes/9,mode=open,rate=500,conns=9,from=0.4,till=0.8")
        self.assertEqual(done.returncode, 0, done.stderr)
        for g in json.loads(done.stdout.splitlines()[2])["groups"]:
            self.assertEqual(sum(g["slices"][:4]), 0)
            self.assertGreater(sum(g["slices"][4:8]), 0)
            self.assertEqual(sum(g["slices"][8:]), 0)
            # Of its own time, not of all
            self.assertAlmostEqual(g["rps"], g["requests"] / 0.4, delta=1)

    def test_a_time_that_ends_before_it_begins(self) -> None:
        done = self.run_loadgen("127.0.0.1:1", "host=a,from=2,till=1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("from 2 till 1", done.stderr)

    def test_each_stream_has_a_new_host(self) -> None:
        with self.loaded("host=xx,mode=h2,streams=20,random_host=1") as server:
            peer = server.accept()[0]
            peer.settimeout(TIMEOUT)
            got = b""
            while got.count(b".xx") < 20:
                more = peer.recv(65536)
                self.assertTrue(more)
                got += more
            peer.close()
        self.assertEqual(len(set(re.findall(rb"[0-9a-f]{16}[.]xx", got))), 20)

    def test_a_group_that_rests(self) -> None:
        done = self.run_loadgen(
            "-w", "0", "-t", "1.2", f"127.0.0.1:{self.port}",
            "host=a,path=/bytes/9,on=0.2,off=0.2",
            "host=b,path=/bytes/9,on=0.2,off=0.2,shift=0.2")
        found = json.loads(done.stdout.splitlines()[2])["groups"]
        # Slices of 0.1 s.  A busy machine may take one whole time away.  Each
        # rest may begin with two late answers.
        for g, loads, rests in zip(found, (0, 2), (3, 1), strict=True):
            times = [sum(g["slices"][i:i + 2]) for i in range(loads, 12, 4)]
            self.assertGreater(sum(t > 0 for t in times), 1, g)
            self.assertLessEqual(sum(g["slices"][rests:12:4]), 2 * 3, g)

    def test_each_so_many_requests_are_dear(self) -> None:
        _, asked = self.answers("conns=1,path=/a,every=2", *[ANSWER] * 4)
        self.assertEqual([b"/a?dear " in a for a in asked],
                         [False, True, False, True])

    def test_bodies_drip(self) -> None:
        with self.loaded("host=a,mode=post,rate=100,conns=1") as server:
            with server.accept()[0] as peer:
                peer.settimeout(TIMEOUT)
                said = b""
                while not said.endswith(b"\r\n\r\nxx"):
                    byte = peer.recv(1)
                    self.assertTrue(byte)
                    said += byte
        self.assertTrue(said.startswith(b"POST / HTTP/1.1\r\nHost: a\r\n"))
        self.assertIn(b"Content-Length: 1000000\r\n", said)

    def h2(self, group: str, frames: bytes) -> tuple[dict[str, Any], bytes]:
        """Answer an h2 connection with `frames`; return what it sent."""
        said = b""
        with loaded(f"host=a,conns=1,{group}", "-t", "1") as (
                peer, _, found):
            for byte in frames:  # wherever a frame is cut
                peer.send(bytes([byte]))
            while piece := peer.recv(65536):
                said += piece
        return found, said

    def test_h2_streams(self) -> None:
        settings = bytes(3) + b"\x04\x00" + bytes(4)
        ok = bytes([0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88])
        bad = bytes([0, 0, 1, 1, 4, 0, 0, 0, 3, 0x8d])
        data = bytes([0, 0, 2, 0, 1, 0, 0, 0, 3]) + b"ab"
        reset = bytes([0, 0, 4, 3, 0, 0, 0, 0, 5, 0, 0, 0, 7])
        seen, said = self.h2("mode=h2,streams=10",
                             settings + ok + bad + data + reset)
        self.assertEqual(seen["answered_in_all"], 3)
        self.assertEqual(seen["not_200"], 2)
        self.assertEqual(seen["sent_in_all"], 13)
        self.assertEqual(seen["unanswered"], 10)
        self.assertTrue(said.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        self.assertIn(bytes(3) + b"\x04\x01" + bytes(4), said)

    def test_h2_floods(self) -> None:
        seen, said = self.h2("mode=h2-reset,rate=100", b"")
        self.assertGreater(seen["sent_in_all"], 10)
        self.assertLessEqual(seen["sent_in_all"], 101)
        self.assertIn(bytes([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8]), said)
        _, said = self.h2("mode=h2-ping,rate=100", b"")
        self.assertIn(b"\x00\x00\x08\x06\x00\x00\x00\x00\x00sandpapr", said)

    def answers(self, group: str, *said: bytes) -> tuple[
            dict[str, Any], list[bytes]]:
        """Load one connection, answer with `said`; return what was asked."""
        asked = []
        with loaded(f"host=a,limit={len(said)},{group}", "-t",
                    str(TIMEOUT)) as (peer, _, found):
            for answer in said:
                asked.append(peer.recv(8192))
                with contextlib.suppress(ConnectionError):
                    for byte in answer:  # wherever the answer is cut
                        peer.send(bytes([byte]))
        return found, asked

    def test_chunked_answers(self) -> None:
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        seen, _ = self.answers(
            "conns=1", head + b"1a\r\n" + b"0\r\n" * 8 + b"xx\r\n0\r\n\r\n",
            head + b"0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
        self.assertEqual((seen["answered_in_all"], seen["errors"]), (3, 0))

    def test_an_answer_that_is_not_chunked_as_it_says(self) -> None:
        seen, _ = self.answers(
            "conns=1", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
            b"\r\ntwo\r\n")
        self.assertEqual((seen["answered_in_all"], seen["errors"]), (0, 1))

    def test_sets_of_headers_take_turns(self) -> None:
        file = self.program.parent / "test.headers"
        file.write_text("A: 1\nB: 2\n\nC: 3, 4\n")
        _, asked = self.answers(f"headers={file}", *[ANSWER] * 3)
        start = b"GET / HTTP/1.1\r\nHost: a\r\n"
        self.assertEqual(asked, [start + rest for rest in (
            b"A: 1\r\nB: 2\r\n\r\n", b"C: 3, 4\r\n\r\n",
            b"A: 1\r\nB: 2\r\n\r\n")])

    def test_who_waits_at_the_end_is_a_latency(self) -> None:
        seen = self.load("host=a,path=/drip/1000/1,conns=1", seconds=2)
        self.assertEqual((seen["requests"], seen["waiting"]), (0, 1))
        self.assertGreater(seen["p99_s"], 0)
        self.assertEqual(seen["p99_s"], seen["max_s"])

    def test_who_never_reads_gets_no_answer(self) -> None:
        seen = self.load("host=a,path=/bytes/10000000,mode=stall,conns=3",
                         seconds=1)
        self.assertEqual((seen["requests"], seen["errors"]), (0, 0))

    def test_bad_arguments_are_named(self) -> None:
        for group, what in (("mode=fast,host=a", "mode 'fast' is not known"),
                            ("hots=a", "key 'hots' is not known"),
                            ("host", "'host' is not valid: use key=value"),
                            ("mode=open,host=a", "needs a rate"),
                            ("host=a,phase=1", "phase 1 is not allowed: use"),
                            ("host=a,headers=/nowhere", "'/nowhere': No"),
                            ("host=a,headers=/dev/null", "has no headers"),
                            ("conns=3", "needs host")):
            done = self.run_loadgen("127.0.0.1:1", group)
            self.assertEqual(done.returncode, 2, group)
            self.assertIn(what, done.stderr)
