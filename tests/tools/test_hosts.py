# SPDX-License-Identifier: BSD-2-Clause
"""The testbed over several machines, which are network namespaces here.

Each has an sshd of its own, with keys that last as long as the test; the
experiment runs in the client's.  A varnishd for both variants is in
VARNISH_ROOT.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path

from common import until
from sandpaper_bench.hosts import inventory, members
from sandpaper_bench.load import build_loadgen
from sandpaper_bench.reaper import Reaper, guarded
from sandpaper_bench.testbed import (
    TestbedError,
    last_line,
    make_namespaces,
    may_make_namespaces,
    run,
)

BENCH = Path(__file__).resolve().parents[2] / "bench"
ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 60  # seconds, for what should take a few
PORT, BARE_PORT = 2022, 2023
LINKS = {("client", "proxy"): "10.78.0", ("proxy", "origin"): "10.78.1",
         ("client", "origin"): "10.78.2"}
HOSTS = ("client", "proxy", "origin")
PROGRAMS = ("ssh", "sshd", "ssh-keygen", "apache2", "ansible-inventory")
# sshd wants a folder that a service would make: here each has its own /run,
# so that two runs of these tests on a machine don't meet.
OWN_RUN = ["sh", "-c",
           'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"',
           "sh"]

SSHD = """\
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PidFile {folder}/{name}.pid
Port {port}
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
"""

INVENTORY = """\
[client]
c ansible_host=10.78.0.1

[proxy]
p ansible_host=10.78.0.2 address=10.78.0.2 interface=client cores=0

[origin]
o ansible_host=10.78.2.2 address=10.78.1.2

[all:vars]
ansible_port={port}
ansible_user=root
ansible_ssh_private_key_file={folder}/key
ansible_ssh_common_args='-F none -o StrictHostKeyChecking=no \
-o UserKnownHostsFile=/dev/null -o IdentitiesOnly=yes'
"""

SILENT = """
from sandpaper_bench import remote
remote.SILENCE = 1
remote.serve()
"""
AFFINITY = "import os; print(list(os.sched_getaffinity(0)))"


def missing() -> str:
    """Return why the machines can't be made here, nothing if they can."""
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
    gone = [p for p in PROGRAMS if shutil.which(p, path=path) is None]
    if os.geteuid() != 0 or not may_make_namespaces():
        return "namespaces with an sshd each need root"
    if gone:
        return f"make hosts-deps has not been run: no {' '.join(gone)}"
    return "" if ROOT else "VARNISH_ROOT is not set"


class FarEnd(unittest.TestCase):
    """What runs short commands on another machine."""

    def test_it_ends_without_a_beat(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-c", SILENT], cwd=BENCH,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        assert process.stdin is not None
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.wait(TIMEOUT), -signal.SIGALRM)

    def cores_of_commands(self, measured: Iterable[int]) -> set[int]:
        """Return the cores that a command may use."""
        process = subprocess.Popen(
            [sys.executable, "sandpaper_bench/remote.py",
             *map(str, measured)],
            cwd=BENCH, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        order = json.dumps({"command": [sys.executable, "-c", AFFINITY],
                            "data": ""})
        said, _ = process.communicate(order + "\n", TIMEOUT)
        _, text, _ = json.loads(said.splitlines()[1])
        return set(json.loads(text))

    def test_commands_leave_the_measured_cores(self) -> None:
        every = os.sched_getaffinity(0)
        self.assertEqual(self.cores_of_commands(every), every)
        first = {min(every)}
        self.assertEqual(self.cores_of_commands(first),
                         every - first or every)


@unittest.skipIf(shutil.which("ansible-inventory") is None,
                 "make hosts-deps has not been run: no ansible-inventory")
class Inventory(unittest.TestCase):
    """What an inventory says, and what it does not."""

    def written(self, text: str) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = Path(folder.name) / "hosts"
        file.write_text(text)
        return file

    def test_roles_and_variables(self) -> None:
        found = inventory(self.written(
            INVENTORY.format(port=PORT, folder="/f")))
        self.assertEqual(found["proxy"][0].variable("cores"), "0")
        self.assertEqual(found["origin"][0].destination()[-1], "10.78.2.2")
        with self.assertRaisesRegex(TestbedError, "origin o has no cores"):
            found["origin"][0].variable("cores")
        self.assertEqual(found["origin"][0].cores(), [])
        found["origin"][0].variables["cores"] = "all"
        with self.assertRaisesRegex(TestbedError, "cores 'all' are not a "):
            found["origin"][0].cores()

    def test_a_role_without_machine(self) -> None:
        with self.assertRaisesRegex(TestbedError, "no group .origin."):
            inventory(self.written("[client]\na\n[proxy]\nb\n"))

    def test_no_inventory(self) -> None:
        with self.assertRaisesRegex(TestbedError, "no inventory /nowhere"):
            inventory(Path("/nowhere"))
        with self.assertRaisesRegex(TestbedError, "not an Ansible inv"):
            inventory(self.written("[client\n"))

    def test_groups_have_groups(self) -> None:
        groups = {"client": {"children": ["far"]}, "far": {"hosts": ["a"]}}
        self.assertEqual(members(groups, "client"), ["a"])
        self.assertEqual(last_line("one\ntwo\n\n"), "two")


@unittest.skipIf(missing(), missing())
class Machines(unittest.TestCase):
    """Experiments over client, proxy and origin."""

    reaper: Reaper
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        build_loadgen()
        cls.reaper = Reaper()
        cls.addClassCleanup(cls.reaper.close)
        cls.folder = cls.reaper.folder()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
            str(cls.folder / "key"))
        make_namespaces(cls.reaper, [cls.name(host) for host in HOSTS])
        for host in HOSTS:
            run("ip", "netns", "exec", cls.name(host), "sysctl", "-qw",
                "net.ipv4.tcp_congestion_control=reno")
        for (a, b), net in LINKS.items():
            cls.link(a, f"{net}.1", b, f"{net}.2")
        for name in HOSTS:
            cls.sshd(name, PORT)
        cls.sshd("client", BARE_PORT, "unshare", "-m", "sh", "-c",
                 f'mount -t tmpfs none {build_loadgen().parent}; exec "$@"',
                 "sh")

    @classmethod
    def name(cls, host: str) -> str:
        return f"spt{os.getpid()}-{host}"

    @classmethod
    def link(cls, a: str, a_ip: str, b: str, b_ip: str) -> None:
        run("ip", "-n", cls.name(a), "link", "add", b, "type", "veth",
            "peer", "name", a, "netns", cls.name(b))
        for host, peer, ip in ((a, b, a_ip), (b, a, b_ip)):
            run("ip", "-n", cls.name(host), "addr", "add", f"{ip}/24", "dev",
                peer)
            run("ip", "-n", cls.name(host), "link", "set", peer, "up")

    @classmethod
    def sshd(cls, host: str, port: int, *before: str) -> None:
        name = f"{host}-{port}"
        config = cls.folder / name
        config.write_text(SSHD.format(
            folder=cls.folder, name=name, port=port))
        cls.reaper.popen(guarded([
            "ip", "netns", "exec", cls.name(host), *OWN_RUN, *before,
            str(shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")),
            "-D", "-e", "-f", str(config)]), log=cls.folder / f"{name}.log")
        until((cls.folder / f"{name}.pid").exists,
              (cls.folder / f"{name}.log").read_text)

    def inventory(self, port: int = PORT) -> Path:
        file = self.folder / f"hosts-{port}"
        file.write_text(INVENTORY.format(port=port, folder=self.folder))
        return file

    def command(self, inventory: Path, *options: str) -> list[str]:
        return ["ip", "netns", "exec", self.name("client"), sys.executable,
                str(BENCH / "sandpaper-bench"), "pairs", "--inventory",
                str(inventory), "--stock", ROOT, "--sandpaper", ROOT,
                "--pairs", "k0-k1", "--turns", "1", "--warmup", "0.2",
                "--variants", "sandpaper",
                "--connections", "10", "--unit-us", "100", *options]

    def commands(self, host: str) -> list[list[str]]:
        """Return the commands that run in a namespace, the sshd apart."""
        done = subprocess.run(["ip", "netns", "pids", self.name(host)],
                              capture_output=True, text=True, check=True)
        found = []
        for pid in done.stdout.split():
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_text()
                if command and "sshd" not in command:
                    found.append(command.split("\0"))
        return found

    def running(self, host: str, name: str) -> list[str]:
        """Return the command of a program that runs, nothing if none does."""
        return next((c for c in self.commands(host)
                     if Path(c[0]).name == name), [])

    def check_nothing_left(self) -> None:
        until(lambda: not any(map(self.commands, HOSTS)),
              lambda: [self.commands(host) for host in HOSTS])

    def qdiscs(self) -> str:
        return subprocess.run(
            ["tc", "-n", self.name("proxy"), "qdisc", "show", "dev",
             "client"], capture_output=True, text=True, check=True).stdout

    def test_an_experiment(self) -> None:
        out = self.folder / "out"
        done = subprocess.run(
            self.command(self.inventory(), "--seconds", "1.2", "--rate",
                         "10e9", "--json", str(out)),
            capture_output=True, text=True, timeout=5 * TIMEOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads((out / "pairs.json").read_text())
        machine = found["machine"]
        self.assertEqual(machine["hosts"], {
            "client": "c", "proxy": "p", "origin": "o"})
        self.assertEqual(machine["proxy_cores"], [0])
        result, = found["results"]
        for who in "ab":
            self.assertGreater(result[f"rps_{who}"], 0)
            self.assertGreater(result[f"rps_alone_{who}"], 0)
        self.check_nothing_left()

    def test_a_killed_experiment_leaves_nothing(self) -> None:
        process = subprocess.Popen(
            self.command(self.inventory(), "--seconds", "60", "--shape"),
            stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until(lambda: self.running("client", "loadgen"), "no load")
        self.assertTrue(self.running("origin", "apache2"))
        varnishd = self.running("proxy", "varnishd")
        folder = Path(varnishd[varnishd.index("-n") + 1]).parents[1]
        self.assertTrue(folder.name.startswith("sandpaper-bench-"))
        self.assertIn("tbf", self.qdiscs())
        process.kill()
        self.check_nothing_left()
        self.assertNotIn("tbf", self.qdiscs())
        until(lambda: not folder.exists(), "the folder is left")

    def fails(self, inventory: Path, *options: str) -> str:
        done = subprocess.run(
            self.command(inventory, *options), capture_output=True, text=True,
            timeout=TIMEOUT, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.check_nothing_left()
        return done.stderr.splitlines()[-1]

    def test_a_machine_that_does_not_answer(self) -> None:
        self.assertRegex(self.fails(self.inventory(port=9)),
                         "client c does not answer: .*refused.*password")

    def test_what_is_not_there(self) -> None:
        file = self.inventory()
        text = file.read_text().replace(
            "c ansible_host", f"c ansible_port={BARE_PORT} ansible_host")
        bare = file.with_name("bare")
        bare.write_text(text)
        self.assertRegex(self.fails(bare, "--rate", "10e9"),
                         "client c: there is no .*/loadgen: run "
                         "ansible-playbook")

    def test_another_rate_than_the_link_has(self) -> None:
        self.assertRegex(self.fails(self.inventory()),
                         "proxy p: client has 10000 Mbit/s, not 1250: ")
