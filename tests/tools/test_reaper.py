# SPDX-License-Identifier: BSD-2-Clause
"""What an experiment started ends with it, however the experiment ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from common import until
from sandpaper_bench.reaper import Reaper, guarded, held, held_folder
from sandpaper_bench.testbed import may_make_namespaces

BENCH = Path(__file__).resolve().parents[2] / "bench"
TIMEOUT = 60  # seconds, for what should take one
# A program whose child has a session of its own, and ignores SIGTERM
FAMILY = """
trap "" TERM
setsid sh -c 'echo $$; exec sleep 100' &
wait
"""
# Begins, says what it has, and waits. {end} is what happens then.
EXPERIMENT = """
import os, signal, sys
from sandpaper_bench import guard
from sandpaper_bench.reaper import Reaper, guarded
from sandpaper_bench.testbed import make_namespaces

reaper = Reaper()
try:
    folder = reaper.folder()
    names = [f"spt{{os.getpid()}}"] if {namespaces} else []
    if names:
        make_namespaces(reaper, names)
    child = reaper.popen(guarded(["sh", "-c", "echo $$; exec sleep 100"]))
    print(child.stdout.readline().strip(), folder, *names, flush=True)
    {end}
    signal.pause()
finally:
    reaper.close()
"""
# A signal comes while everything is being undone
INTERRUPTED = """
    end = reaper.end
    def interrupted(process):
        os.kill(os.getpid(), signal.SIGTERM)
        end(process)
    reaper.end = interrupted
    sys.exit(7)
"""
# A second signal comes on the way there
TWICE = """
    try:
        print("pauses", flush=True)
        signal.pause()
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
        print("unwound", flush=True)
"""


def alive(pid: int) -> bool:
    """Is there such a process?"""
    return Path(f"/proc/{pid}").exists()


def read_pid(process: subprocess.Popen[str]) -> int:
    """Return the number that a program prints."""
    assert process.stdout is not None
    return int(process.stdout.readline())


class Guard(unittest.TestCase):
    """One program under its guard."""

    def guard(
        self, *command: str, beside: int = 0
    ) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            guarded(command, beside=beside), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        assert process.stdin is not None and process.stdout is not None
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        return process

    def test_it_ends_as_its_program_does(self) -> None:
        self.assertEqual(self.guard("sh", "-c", "exit 3").wait(TIMEOUT), 3)

    def test_the_program_ends_when_the_pipe_closes(self) -> None:
        process = self.guard("sh", "-c", "echo $$; exec sleep 100")
        pid = read_pid(process)
        self.assertTrue(alive(pid))
        assert process.stdin is not None
        process.stdin.close()
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGTERM % 256)
        self.assertFalse(alive(pid))

    def test_the_program_ends_with_what_it_needs(self) -> None:
        needed = self.guard("sleep", "100")
        process = self.guard("sleep", "100", beside=needed.pid)
        self.assertIsNone(process.poll())
        assert needed.stdin is not None
        needed.stdin.close()
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGTERM % 256)

    def test_a_child_that_hangs_ends_with_its_program(self) -> None:
        process = self.guard("sh", "-c", FAMILY)
        child = read_pid(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(TIMEOUT)
        self.assertFalse(alive(child))

    def test_an_orphan_ends_with_its_program(self) -> None:
        process = self.guard("sh", "-c", "setsid sleep 100 & echo $!")
        orphan = read_pid(process)
        self.assertEqual(process.wait(TIMEOUT), 0)
        self.assertFalse(alive(orphan))

    def test_nothing_else_ends(self) -> None:
        other = self.guard("sh", "-c", "echo $$; exec sleep 100")
        pid = read_pid(other)
        process = self.guard("sleep", "100")
        assert process.stdin is not None
        process.stdin.close()
        process.wait(TIMEOUT)
        self.assertTrue(alive(pid))


class Ends(unittest.TestCase):
    """An experiment, and how it ends."""

    def begin(self, end: str = "") -> subprocess.Popen[str]:
        """Begin an experiment, and note what may not be left of it."""
        process = subprocess.Popen(
            [sys.executable, "-c", EXPERIMENT.format(
                end=end, namespaces=may_make_namespaces())],
            cwd=BENCH, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        assert process.stdout is not None
        self.addCleanup(process.stdout.close)
        pid, folder, *names = process.stdout.readline().split()
        self.paths = [Path(f"/proc/{pid}"), Path(folder), Path(folder).parent,
                      *(Path("/run/netns", name) for name in names)]
        return process

    def left(self) -> list[Path]:
        return [path for path in self.paths if path.exists()]

    def test_sigkill(self) -> None:
        process = self.begin()
        self.assertEqual(self.left(), self.paths)
        process.kill()
        until(lambda: not self.left(), self.left)

    def test_one_signal(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                process = self.begin()
                process.send_signal(number)
                status = process.wait(TIMEOUT)
                self.assertIn(status, (128 + number, -number))
                self.assertEqual(self.left(), [])

    def test_a_signal_at_the_end_changes_nothing(self) -> None:
        process = self.begin(INTERRUPTED)
        self.assertEqual(process.wait(TIMEOUT), 7)
        self.assertEqual(self.left(), [])

    def test_a_second_signal_changes_nothing(self) -> None:
        process = self.begin(TWICE)
        assert process.stdout is not None
        self.assertEqual(process.stdout.readline(), "pauses\n")
        process.terminate()
        self.assertEqual(process.stdout.readline(), "unwound\n")
        self.assertEqual(process.wait(TIMEOUT), 128 + signal.SIGTERM)
        self.assertEqual(self.left(), [])

    def test_signals_do_what_they_did_before(self) -> None:
        before = signal.getsignal(signal.SIGTERM)
        reaper = Reaper()
        self.assertNotEqual(signal.getsignal(signal.SIGTERM), before)
        reaper.close()
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)


class Programs(unittest.TestCase):
    """What the reaper starts."""

    def test_a_program_shares_the_session_of_its_guard(self) -> None:
        # So the priority of one is that of both, with autogroups
        reaper = Reaper(5)
        self.addCleanup(reaper.close)
        process = reaper.popen(guarded(
            ["sh", "-c", "echo $$; exec sleep 100"], reaper.nice))
        pid = read_pid(process)
        self.assertEqual(os.getsid(pid), process.pid)
        until(lambda: os.getpriority(os.PRIO_PROCESS, pid) == 5)
        self.assertNotEqual(os.getsid(0), process.pid)


class Held(unittest.TestCase):
    """Something that is done, and undone at the end."""

    def setUp(self) -> None:
        self.reaper = Reaper()
        self.addCleanup(self.reaper.close)

    def test_what_fails_says_why_and_is_undone(self) -> None:
        file = self.reaper.folder() / "made"
        said = self.reaper.hold(held(
            f"touch {file} && test -e {file} && cat /nowhere", f"rm {file}"))
        self.assertIn("/nowhere: No such file", said)
        self.assertFalse(file.exists())

    def test_what_is_done_at_once_and_fails_undoes_nothing(self) -> None:
        file = self.reaper.folder() / "of another"
        file.touch()
        said = self.reaper.hold(held(
            f"ln -s / '{file}'", f"rm '{file}'", at_once=True))
        self.assertIn("File exists", said)
        self.assertTrue(file.exists())

    def test_what_is_done_at_once_is_undone_at_the_end(self) -> None:
        file = Path(tempfile.mkdtemp()) / "ours"
        self.addCleanup(file.parent.rmdir)
        self.assertEqual(self.reaper.hold(held(
            f"touch {file}", f"rm {file}", at_once=True)), "")
        self.assertTrue(file.exists())
        self.reaper.close()
        self.assertFalse(file.exists())

    def test_a_folder_that_can_not_be_removed(self) -> None:
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(folder.rmdir)
        program = held_folder(folder)
        for old, new in (("rm -rf", "false"), ("sleep 0.1", "sleep 0")):
            program[-1] = program[-1].replace(old, new)
        subprocess.run(program, stdin=subprocess.DEVNULL, check=False,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT)

    def test_a_program_ends_before_its_folder_goes(self) -> None:
        folder = self.reaper.folder()
        process = self.reaper.popen(guarded([
            "sh", "-c", f"trap 'ls -d {folder}; exit' TERM; echo up; "
            "while :; do sleep 0.05; done"]))
        assert process.stdout is not None
        process.stdout.readline()
        copy = os.dup(process.stdout.fileno())
        self.reaper.close()
        with open(copy) as said:
            self.assertEqual(said.read(), f"{folder}\n")
        self.assertFalse(folder.exists())
