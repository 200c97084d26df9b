# SPDX-License-Identifier: BSD-2-Clause
"""The testbed of several machines: client, proxy and origin, by ssh.

An Ansible inventory names them.  Each has one ssh connection, shared by all
that runs there, and what is on this machine (the checkout, its builds) is at
the same paths on the others, where bench/ansible puts it.  The guard of a
program (guard.py) runs on the program's machine.  It ends the program when the
ssh session ends, or remote.py there, which misses us after a while.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .machine import cpu_model
from .pedigree import digest
from .reaper import GUARD, Reaper, guarded, held, held_folder
from .remote import Gone, Remote
from .testbed import (
    BENCH,
    BURST_BYTES,
    LATENCY,
    LOG,
    Proxy,
    Testbed,
    TestbedError,
    last_line,
    parse_cores,
)

FAR_END = Path(__file__).resolve().with_name("remote.py")
ROLES = ("client", "proxy", "origin")
PROXY_PORTS = (8080, 8090)
ORIGIN_PORT, DRIP_PORT = 8081, 8082
SSH = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
       "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
       "-o", "LogLevel=ERROR", "-o", "ControlPersist=no"]
VARIABLES = {"ansible_port": "-p", "ansible_user": "-l",
             "ansible_ssh_private_key_file": "-i"}

WRITE = 'mkdir -p "$(dirname "$0")" && cat >"$0".new && mv "$0".new "$0"'
FIND = 'PATH=$PATH:/usr/sbin; command -v "$0"'


class HostError(TestbedError):
    """A machine is not as the experiments need it."""


@dataclass(frozen=True)
class Host:
    """A machine of the inventory."""

    role: str
    name: str
    variables: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.role} {self.name}"

    def variable(self, key: str) -> str:
        """Return a variable that the machine needs to have."""
        if key not in self.variables:
            raise HostError(f"{self} has no {key}: add {key}=.. to it in "
                            "the inventory")
        return str(self.variables[key])

    def cores(self) -> list[int]:
        """Return the cores of its role, none if it may run anywhere."""
        text = str(self.variables.get("cores", ""))
        try:
            return parse_cores(text) if text else []
        except TestbedError as error:
            raise HostError(f"{self}: {error}") from None

    def destination(self) -> list[str]:
        """Return how ssh reaches it."""
        known = self.variables
        return [
            *(word for key, option in VARIABLES.items() if key in known
              for word in (option, str(known[key]))),
            *shlex.split(known.get("ansible_ssh_common_args", "")),
            str(known.get("ansible_host", self.name))]


def members(groups: dict[str, Any], name: str) -> list[str]:
    """Return the names of the machines in a group and those in it."""
    group = groups.get(name, {})
    found: list[str] = group.get("hosts", [])
    return found + [host for child in group.get("children", [])
                    for host in members(groups, child)]


def inventory(file: Path) -> dict[str, list[Host]]:
    """Return the machines of each role that an inventory names."""
    if not file.exists():
        raise HostError(f"there is no inventory {file}: see "
                        "bench/ansible/README.md")
    try:
        done = subprocess.run(
            ["ansible-inventory", "-i", str(file), "--list"],
            capture_output=True, text=True, check=False,
            env=os.environ | {"ANSIBLE_INVENTORY_UNPARSED_FAILED": "1"})
    except OSError as error:
        raise HostError("there is no ansible-inventory: run apt-get install "
                        "ansible-core") from error
    if done.returncode != 0:
        raise HostError(f"{file} is not an Ansible inventory: "
                        + last_line(done.stderr))
    groups = json.loads(done.stdout)
    variables = groups["_meta"]["hostvars"]
    found = {role: [Host(role, name, variables.get(name, {}))
                    for name in members(groups, role)] for role in ROLES}
    for role, hosts in found.items():
        if not hosts:
            raise HostError(f"{file} has no group [{role}]: add it, with a "
                            "machine")
    return found


class Hosts(Testbed):
    """The machines of an inventory; the first of each role."""

    def __init__(
        self, reaper: Reaper, file: Path, rate_bps: float,
        congestion_control: str, shape: bool,
    ) -> None:
        named = inventory(file)
        self.hosts = {role: hosts[0] for role, hosts in named.items()}
        self.idle = [h.name for hosts in named.values() for h in hosts[1:]]
        proxy, origin = self.hosts["proxy"], self.hosts["origin"]
        _ = proxy.variable("cores")
        super().__init__(reaper, proxy.cores(), [], rate_bps,
                         congestion_control)
        self.mode = "hosts"
        self.interface = proxy.variable("interface")
        self.proxies = tuple(
            Proxy(f"proxy{i}", proxy.variable("address"), port,
                  origin.variable("address"), ORIGIN_PORT, DRIP_PORT)
            for i, port in enumerate(PROXY_PORTS))
        self._shape = shape
        self._remotes: dict[str, Remote] = {}
        self._remedy = ("run ansible-playbook -i "
                        f"{file} bench/ansible/prepare.yml")

    @property
    def shaped(self) -> bool:
        """Is the client-facing link's rate known?"""
        return True

    @property
    def busy(self) -> bool:
        """No: to wake another machine costs the proxy nothing."""
        return False

    @property
    def cores(self) -> set[int]:
        """Those of the proxy: a thief elsewhere goes unseen."""
        return set(self.proxy_cores)

    def up(self) -> None:
        """Connect, make the run's folder everywhere, check what is there."""
        for role in ROLES:
            self._connect(role)
        for role in ROLES:
            self._check_tcp(role)
            self.check(role, FAR_END)
            self.check(role, GUARD)
        self.check("origin", BENCH / "origin.py")
        self.check(LOG, BENCH / "syslog.py")
        self._check_rate()
        if self._shape:
            tc = [self.find("proxy", "tc", "iproute2"), "qdisc"]
            root = ["dev", self.interface, "root"]
            self._hold("proxy", held(
                shlex.join([*tc, "add", *root, "tbf", "rate",
                            f"{self.rate_bps:.0f}bit", "burst",
                            str(BURST_BYTES), "latency", LATENCY]),
                shlex.join([*tc, "del", *root]), at_once=True))

    def _connect(self, role: str) -> None:
        """Open the connection; make the run's folder there."""
        host, log = self._host(role), self._log(role)
        measured = self.proxy_cores if role == "proxy" else []
        remote = Remote([*self._ssh(role, "-M"), shlex.join(
            ["python3", str(FAR_END), *map(str, measured)])], log)
        failure = remote.failure()
        if failure is not None:
            said = last_line(log.read_text())
            if failure == 255:  # ssh's own
                raise HostError(f"{host} does not answer: {said}: make ssh "
                                "work without a password")
            raise HostError(f"{host}: {said}: {self._remedy}")
        self._remotes[role] = remote
        self._hold(role, held_folder(self.reaper.top))

    def _hold(self, role: str, command: list[str]) -> None:
        """Run a program of held() there."""
        failure = self.reaper.hold(self._guarded(role, command))
        if failure:
            raise HostError(f"{self._host(role)}: {last_line(failure)}")

    def _log(self, role: str) -> Path:
        return self.reaper.top / f"{self._host(role).role}.log"

    def _check_tcp(self, role: str) -> None:
        name = "tcp_congestion_control"
        found = self.read(role, Path(f"/proc/sys/net/ipv4/{name}")).strip()
        if found != self.congestion_control:
            raise HostError(
                f"{self._host(role)}: {name} is {found}: use --cc {found}, "
                f"or {self._remedy} -e cc={self.congestion_control}")

    def _check_rate(self) -> None:
        speed, rate = self._speed(), round(self.rate_bps / 1e6)
        if speed is not None and (
                rate > speed or rate < speed and not self._shape):
            raise HostError(
                f"{self._host('proxy')}: {self.interface} has {speed} "
                f"Mbit/s, not {rate}: use --rate {speed}e6, or less and "
                "--shape")

    def _speed(self) -> int | None:
        """Return the Mbit/s of the proxy's interface, as far as it knows."""
        host, folder = self._host("proxy"), f"/sys/class/net/{self.interface}"
        if self.ask("proxy", ["test", "-d", folder]).returncode != 0:
            raise HostError(f"{host} has no interface {self.interface}: name "
                            "the client-side interface")
        done = self.ask("proxy", ["cat", f"{folder}/speed"])
        speed = int(done.stdout) if done.returncode == 0 else -1
        return speed if speed > 0 else None

    def _host(self, role: str) -> Host:
        if role.startswith("proxy") or role == LOG:
            return self.hosts["proxy"]
        return self.hosts[role]

    def _ssh(self, role: str, *options: str) -> list[str]:
        host = self._host(role)
        return [*SSH, "-S", str(self.reaper.top / f"{host.role}.ssh"),
                *options, *host.destination()]

    def _guarded(self, role: str, command: list[str]) -> list[str]:
        """Return the command as it runs, guarded, on the machine `role`."""
        beside = self._remotes[self._host(role).role].pid
        return [*self._ssh(role), shlex.join(guarded(
            command, self.reaper.nice, beside, "python3"))]

    def command(self, role: str, command: list[str]) -> list[str]:
        """Return the command of a program: there, guarded, on its cores."""
        if command[0] == sys.executable:
            command = ["python3", *command[1:]]
        return self._guarded(role, self._on_cores(role, command))

    def _cores(self, role: str) -> list[int]:
        """Return the cores of a role, none if it may run anywhere."""
        if role.startswith("proxy"):
            return self.proxy_cores
        return self._beside if role == LOG else self._host(role).cores()

    def ask(
        self, role: str, command: Sequence[str], data: bytes = b""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there that soon ends, with `data` on its stdin."""
        host = self._host(role)
        try:
            return self._remotes[host.role].run(command, data)
        except Gone:
            said = last_line(self._log(role).read_text())
            raise HostError(
                f"{host} does not answer any more: {said}") from None

    def _need(
        self, role: str, command: Sequence[str], data: bytes = b""
    ) -> str:
        """Run a command that should not fail; return what it printed."""
        done = self.ask(role, command, data)
        if done.returncode != 0:
            raise HostError(f"{self._host(role)}: {last_line(done.stderr)}")
        return done.stdout

    def folder(self, role: str) -> Path:
        """Make a folder for a program of `role`: there, and its log's here."""
        folder = self.reaper.folder()
        self._need(role, ["mkdir", "-p", str(folder)])
        return folder

    def remove(self, role: str, folder: Path) -> None:
        """Remove a folder that is no longer needed."""
        super().remove(role, folder)
        self.ask(role, ["rm", "-rf", str(folder)])

    def write(self, role: str, path: Path, data: bytes) -> None:
        """Write a file there."""
        self._need(role, ["sh", "-c", WRITE, str(path)], data)

    def read(self, role: str, path: Path) -> str:
        """Read a file there, such as one in /proc."""
        return self._need(role, ["cat", str(path)])

    def _there(self, role: str, path: Path) -> str:
        """Return the digest of a file there, nothing if there is none."""
        done = self.ask(role, ["sha256sum", str(path)])
        return done.stdout.partition(" ")[0]

    def check(self, role: str, path: Path) -> None:
        """Is a file of this machine there, too, and the same?"""
        found = self._there(role, path)
        if found != digest(path):
            what = (f"{path} is not the same as here" if found
                    else f"there is no {path}")
            raise HostError(f"{self._host(role)}: {what}: {self._remedy}")

    def bring(self, role: str, path: Path) -> None:
        """Have a file of this machine at the same path there."""
        if self._there(role, path) != digest(path):
            self.write(role, path, path.read_bytes())

    def find(self, role: str, program: str, package: str) -> str:
        """Return where an installed program is; an error if it is not."""
        done = self.ask(role, ["sh", "-c", FIND, program])
        if done.returncode != 0:
            raise HostError(f"{self._host(role)}: there is no {program}: run "
                            f"apt-get install {package} there, or "
                            + self._remedy)
        return done.stdout.strip()

    def is_root(self, role: str) -> bool:
        """Do programs of `role` run as root?"""
        return self._need(role, ["id", "-u"]).strip() == "0"

    @property
    def _beside(self) -> list[int]:
        """The proxy's other cores, none if varnishd has them all."""
        online = self.read("proxy", Path("/sys/devices/system/cpu/online"))
        return sorted(set(parse_cores(online)) - self.cores)

    def describe(self) -> dict[str, object]:
        """What a reader of the figures has to know of the machines."""
        self.ready()
        return {
            "mode": self.mode,
            "hosts": {role: host.name for role, host in self.hosts.items()},
            "cpu": cpu_model(self.read("proxy", Path("/proc/cpuinfo"))),
            "cores": int(self._need("proxy", ["nproc", "--all"])),
            "nice": self.reaper.nice,
            "kernel": self._need("proxy", ["uname", "-r"]).strip(),
            "proxy_cores": self.proxy_cores,
            "load_cores": self.load_cores,
            "link_bits_per_second": self.rate_bps,
            "link_shaped_by_tbf": self._shape,
            "interface": self.interface,
            "interface_mbit": self._speed(),
            "congestion_control": self.congestion_control,
            "load_average_at_start": float(self.read(
                "proxy", Path("/proc/loadavg")).split()[0]),
        }
