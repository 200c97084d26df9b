# SPDX-License-Identifier: BSD-2-Clause
"""The load generator's open loop: what is due, good, refused, asked again."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
import unittest
from collections.abc import Callable
from typing import Any

from loadgen import ANSWER, loaded
from sandpaper_bench.load import build_loadgen

TIMEOUT = 60  # seconds, for what should take one
HEAD = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n%s\r\n"
ONCE = "mode=open,steps=0:0"  # one request, at the start


def refusal(status: int, *headers: bytes) -> bytes:
    """Return an answer without a body."""
    return HEAD % (status, b"".join(line + b"\r\n" for line in headers))


def address_of(server: socket.socket) -> str:
    """Return ADDR:PORT."""
    return f"127.0.0.1:{server.getsockname()[1]}"


def unanswered(group: str) -> dict[str, Any]:
    """Return what an open loop of three connections sees."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = subprocess.run(
            [str(build_loadgen()), "-w", "0", "-t", "0.5",
             address_of(server),
             f"host=a,mode=open,rate=100,conns=3,{group}"],
            capture_output=True, text=True, timeout=TIMEOUT, check=True)
    found: dict[str, Any] = json.loads(
        done.stdout.splitlines()[-1])["groups"][0]
    return found


class Server:
    """Answers each request; counts connections."""

    def __init__(self, answer: Callable[[int], bytes]) -> None:
        self.answer = answer  # of the request with this number, from 0
        self.connections = self.asked = 0
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.address = address_of(self._server)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer = self._server.accept()[0]
                self.connections += 1
                threading.Thread(target=self._serve, args=(peer,),
                                 daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with contextlib.suppress(OSError), peer:
            while peer.recv(8192):
                with self._lock:
                    number, self.asked = self.asked, self.asked + 1
                said = self.answer(number)
                peer.sendall(said)
                if b"Connection: close" in said:
                    peer.shutdown(socket.SHUT_WR)

    def loaded(self, group: str, seconds: float) -> dict[str, Any]:
        """Load it; return what the group saw."""
        done = subprocess.run(
            [str(build_loadgen()), "-w", "0", "-t", str(seconds),
             self.address, f"host=a,{group}"], capture_output=True,
            text=True, timeout=TIMEOUT, check=True)
        self._server.close()
        found: dict[str, Any] = json.loads(
            done.stdout.splitlines()[-1])["groups"][0]
        return found


class Target(unittest.TestCase):
    """Which answers are good."""

    def test_good_is_200_within_the_target(self) -> None:
        for target, good in (("60", 2), ("0.000000001", 0)):
            seen = Server(lambda n: (
                ANSWER, refusal(503), refusal(404), refusal(429), ANSWER)[n]
            ).loaded(f"conns=1,limit=5,target={target}", TIMEOUT)
            self.assertEqual((seen["good"], sum(seen["good_slices"])),
                             (good, good))
            self.assertEqual((seen["refused"], seen["not_200"]), (2, 3))
            self.assertEqual(seen["requests"], 5)

    def test_without_a_target_none_is_good(self) -> None:
        seen = Server(lambda _: ANSWER).loaded("conns=1,limit=5", TIMEOUT)
        self.assertEqual((seen["good"], seen["requests"]), (0, 5))

    def test_the_target_counts_from_when_it_was_due(self) -> None:
        with loaded("host=a,mode=open,rate=1000,till=0.2,target=0.3", "-q",
                    "0", "-t", "2", "-i", "0.6") as (peer, load, found):
            peer.recv(8192)
            assert load.stdout is not None
            while "interval_s" not in (line := load.stdout.readline()):
                self.assertTrue(line)
            for _ in range(20):  # all are too late, though sent only now
                peer.send(ANSWER)
                peer.recv(8192)
        self.assertEqual(found["answered_in_all"], 20)
        self.assertEqual(found["good"], 0)

    def test_latencies_with_a_target_are_those_of_200(self) -> None:
        for group, some in (("target=60", False), ("", True)):
            seen = Server(lambda _: refusal(503)).loaded(
                f"conns=1,limit=200,{group or 'target=0'}", TIMEOUT)
            self.assertEqual(seen["max_s"] > 0, some)
        seen = Server(lambda _: ANSWER).loaded(
            "conns=1,limit=200,target=60", TIMEOUT)
        self.assertGreater(seen["max_s"], 0)

    def test_who_waits_is_no_latency_with_a_target(self) -> None:
        for target, some in ((60, False), (0, True)):
            seen = unanswered(f"target={target}")
            # Three were sent, and the others wait for a connection
            self.assertEqual(seen["sent_in_all"], 3)
            self.assertGreater(seen["due"], 20)
            self.assertEqual(seen["waiting"], seen["due"])
            self.assertEqual(seen["max_s"] > 0, some)

    def test_who_loses_patience_is_no_latency_with_a_target(self) -> None:
        for target, some in ((60, False), (0, True)):
            seen = unanswered(f"patience=0.1,target={target}")
            self.assertGreater(seen["errors"], 10)
            self.assertLess(seen["waiting"], seen["due"] - 10)
            self.assertEqual(seen["max_s"] > 0, some)


class Arrivals(unittest.TestCase):
    """When requests are due."""

    def test_the_rate_changes_in_steps(self) -> None:
        seen = Server(lambda _: ANSWER).loaded(
            "mode=open,conns=50,steps=0:200/0.5:2000/1:0/1.5:200/2:0", 4.0)
        due = seen["due_slices"]
        self.assertIn(sum(due[:5]), range(50, 160))
        self.assertIn(sum(due[5:10]), range(800, 1200))
        self.assertEqual(sum(due[10:15]), 0)
        self.assertIn(sum(due[15:20]), range(50, 160))
        self.assertEqual(sum(due[20:]), 0)
        self.assertEqual(sum(due), seen["due"])
        self.assertEqual(seen["answered_in_all"], seen["due"])

    def test_even_times(self) -> None:
        seen = Server(lambda _: ANSWER).loaded(
            "mode=open,conns=50,even=1,steps=0:500/0.5:1000/1:0", 1.5)
        self.assertLessEqual({*seen["due_slices"][:5]}, {49, 50, 51})
        self.assertLessEqual({*seen["due_slices"][5:10]}, {99, 100, 101})

    def test_a_rate_before_the_first_step(self) -> None:
        seen = Server(lambda _: ANSWER).loaded(
            "mode=open,conns=50,rate=1000,steps=0.5:0", 1.0)
        self.assertIn(seen["due"], range(350, 650))
        self.assertEqual(sum(seen["due_slices"][5:]), 0)


class Connections(unittest.TestCase):
    """When a client connects anew."""

    def test_a_connection_that_is_kept(self) -> None:
        server = Server(lambda _: refusal(503))
        seen = server.loaded("mode=open,rate=500,conns=4", 0.5)
        self.assertEqual((seen["connects"], server.connections), (4, 4))
        self.assertGreater(seen["refused"], 100)

    def test_a_connection_that_the_answer_closes(self) -> None:
        for mode in ("closed", "open,rate=500"):
            server = Server(lambda _: refusal(503, b"Connection: close"))
            seen = server.loaded(f"mode={mode},limit=5", TIMEOUT)
            self.assertEqual((seen["refused"], seen["errors"]), (5, 0))
            self.assertEqual(seen["answered_in_all"], 5)
            self.assertGreaterEqual(server.connections, 5)
            self.assertEqual(seen["connects"], server.connections)


class Retries(unittest.TestCase):
    """A client that was refused asks again."""

    def test_it_gives_up(self) -> None:
        for retries, given_up in ((0, 1), (2, 1)):
            server = Server(lambda n: refusal((503, 429)[n % 2]))
            seen = server.loaded(f"{ONCE},retries={retries}", 1.0)
            self.assertEqual(server.asked, 1 + retries)
            self.assertEqual(seen["refused"], 1 + retries)
            self.assertEqual(seen["retried"], retries)
            self.assertEqual((seen["given_up"], seen["due"]), (given_up, 1))

    def test_it_asks_until_it_is_served(self) -> None:
        server = Server(lambda n: ANSWER if n == 2 else refusal(503))
        seen = server.loaded(f"{ONCE},retries=9,target=60", 0.5)
        self.assertEqual((server.asked, seen["given_up"]), (3, 0))
        self.assertEqual((seen["good"], seen["retried"]), (1, 2))

    def test_other_errors_are_final(self) -> None:
        server = Server(lambda _: refusal(500))
        seen = server.loaded(f"{ONCE},retries=9", 0.5)
        self.assertEqual((server.asked, seen["refused"]), (1, 0))

    def test_it_waits_as_long_as_the_answer_says(self) -> None:
        for regard in (0, 1):
            at: list[float] = []

            def answer(number: int, at: list[float] = at) -> bytes:
                at.append(time.monotonic())
                return ANSWER if number else refusal(
                    503, b"Retry-After: 1")

            seen = Server(answer).loaded(
                f"{ONCE},retries=1,regard={regard},target=0.9", 2.0)
            self.assertEqual(at[1] - at[0] > 0.99, bool(regard))
            # It is due again when its client asks again
            self.assertEqual(seen["good"], 1)

    def test_a_date_is_no_number_of_seconds(self) -> None:
        server = Server(lambda n: refusal(
            503, b"Retry-After: Fri, 31 Dec 2027 23:59:59 GMT"))
        server.loaded(f"{ONCE},retries=1,regard=1", 0.5)
        self.assertEqual(server.asked, 2)

    def test_those_who_wait_for_less_ask_first(self) -> None:
        seconds = (b"60", b"1", b"0", b"60", b"61", b"1")
        first = threading.Lock()
        answered = [0, 0]  # refused before 0.9 s; of these, for 1 s or less
        began = time.monotonic()

        def answer(number: int) -> bytes:
            if time.monotonic() - began > 0.9:
                return ANSWER
            wait = seconds[number % len(seconds)]
            with first:
                answered[0] += 1
                answered[1] += wait in (b"0", b"1")
            return refusal(503, b"Retry-After: " + wait)

        seen = Server(answer).loaded(
            "mode=open,conns=50,steps=0:1000/0.5:0,retries=1000,regard=1",
            2.5)
        self.assertEqual(seen["refused"], answered[0])
        self.assertGreater(seen["refused"], 300)
        self.assertEqual(seen["retried"], answered[1])

    def test_what_is_wrong_is_named(self) -> None:
        for group, said in (
                ("mode=open,steps=5", "steps '5' is not valid: use SECOND"),
                ("mode=open,steps=1:5/1:6", "use a later second for each"),
                ("mode=open,steps=1:x", "rate 'x' is not allowed"),
                ("mode=open,steps=" + "/".join(f"{n}:1" for n in range(65)),
                 "too many steps: use at most 64"),
                ("steps=0:1", "work only with mode=open"),
                ("retries=1", "work only with mode=open"),
                ("even=1", "even work only with mode=open")):
            done = subprocess.run(
                [str(build_loadgen()), "127.0.0.1:1", f"host=a,{group}"],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
