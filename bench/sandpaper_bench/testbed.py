# SPDX-License-Identifier: BSD-2-Clause
"""Machines in one: client, two proxies (that share their cores), origin.

With CAP_NET_ADMIN they are network namespaces joined by veth pairs, each
proxy's client-facing end shaped by tbf to the rate of the pretended NIC, and
each end's received packets handled by the cores of its own machine, so that
the proxy's cores do no work for the client.  Without, everything is on the
loopback interface, nothing is shaped, and `mode` says so.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .machine import cpu_model, governor, is_virtual
from .reaper import Reaper, guarded, held
from .remote import COMMAND_SECONDS

BENCH = Path(__file__).resolve().parent.parent
BUILD = BENCH.parent / "build" / "bench"

CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
RATE_BPS = 1.25e9  # of the link to the clients
BURST_BYTES = 262144
LATENCY = "50ms"
# Room for 20,000 connections, and as many again at once
MANY = ("net.core.somaxconn=20000", "net.ipv4.tcp_max_syn_backlog=20000",
        "net.ipv4.ip_local_port_range=2000 65535", "net.ipv4.tcp_tw_reuse=1")
HOLE = "192.0.2.0/24"  # from where nothing ever comes (TEST-NET-1)
PROXIES = 2
LOG = "log"  # the role of what a varnishd writes to, beside its cores
LOG_LINES = 512  # that a log has not read yet, as systemd sets it
MESSAGE = 500  # characters of what a program says


class TestbedError(Exception):
    """Something the user has to put right; the text says what."""

    __test__ = False


def one_line(text: str) -> str:
    """Return a program's output in one line, the end of it if it is long."""
    lines = "; ".join(line.strip() for line in text.splitlines()
                      if line.strip())
    return lines if len(lines) <= MESSAGE else ".." + lines[-MESSAGE:]


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    return (text.strip().splitlines() or ["it gave no reason"])[-1]


def run(*command: str) -> str:
    """Run a command; return its stdout.  An error's text is its stderr."""
    done = subprocess.run(command, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise TestbedError(f"{' '.join(command)}: "
                           f"{one_line(done.stderr)}")
    return done.stdout


def make_namespaces(reaper: Reaper, names: Sequence[str]) -> None:
    """Make network namespaces with loopback; the reaper removes them."""
    failure = reaper.hold(held(
        " && ".join(f"ip netns add {name} && ip -n {name} link set lo up"
                    for name in names),
        "; ".join(f"ip netns del {name}" for name in names)))
    if failure:
        raise TestbedError(f"ip netns add: {one_line(failure)}")


def may_make_namespaces() -> bool:
    """May this process make network namespaces and shape their links?"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            caps = int(line.split()[1], 16)
            need = 1 << CAP_NET_ADMIN | 1 << CAP_SYS_ADMIN
            return caps & need == need and bool(shutil.which("tc"))
    return False


def is_number(text: str) -> bool:
    """Are these the digits of a number?"""
    return text.isascii() and text.isdecimal()


def parse_cores(text: str) -> list[int]:
    """Parse a list of cores such as "0,2-3"."""
    cores: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if (not is_number(first) or not is_number(last)
                or int(first) > int(last)):
            raise TestbedError(f"cores '{text}' are not a list of cores: "
                               "use a list such as 0,2-3")
        cores += range(int(first), int(last) + 1)
    return cores


def core_mask(cores: list[int]) -> str:
    """Return the cores as sysfs' hexadecimal mask."""
    return f"{sum(1 << core for core in cores):x}"


def use_congestion_control(name: str, inside: Sequence[str]) -> None:
    """Use a TCP congestion control inside a network namespace."""
    key = "net.ipv4.tcp_congestion_control"
    try:
        run(*inside, "sysctl", "-qw", f"{key}={name}")
    except TestbedError as error:
        there = run(*inside, "sysctl", "-n",
                    "net.ipv4.tcp_available_congestion_control")
        raise TestbedError(f"--cc {name}: the kernel does not have it: use "
                           f"one of {there.strip()}") from error


def free_port() -> int:
    """Return a TCP port of the loopback interface for a server of ours.

    A connection that the port's side closes first stays for a minute
    (TIME-WAIT).  Till then the kernel gives the port to nobody who asks for
    any, and to a server that asks for this one (SO_REUSEADDR).
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as peer:
            server.accept()[0].close()
            peer.recv(1)
    return port


@dataclass(frozen=True)
class Proxy:
    """Where a varnishd runs, listens, and finds the origin."""

    role: str
    addr: str
    port: int
    origin_addr: str
    origin_port: int
    drip_port: int

    @property
    def listen(self) -> str:
        """Return what varnishd listens on."""
        return f"{self.addr}:{self.port}"


@dataclass
class Testbed:
    """One testbed; `up` makes it, the reaper takes it down."""

    __test__ = False

    reaper: Reaper
    proxy_cores: list[int]
    load_cores: list[int]
    rate_bps: float = RATE_BPS
    congestion_control: str = "reno"
    loopback: bool = False
    mode: str = field(init=False)
    proxies: tuple[Proxy, ...] = field(init=False)

    def __post_init__(self) -> None:
        ours = not self.loopback and may_make_namespaces()
        self.mode = "namespaces" if ours else "loopback"
        self._tag = f"spb{os.getpid()}"

    @property
    def shaped(self) -> bool:
        """Is the client-facing link limited to `rate_bps`?"""
        return self.mode == "namespaces"

    sleeps = False  # the load, whatever its cores are

    @property
    def busy(self) -> bool:
        """May the load spin?  It has other cores of the proxy's machine."""
        return (not self.sleeps
                and not set(self.load_cores) & set(self.proxy_cores))

    _ready = False

    def ready(self) -> None:
        """Make it, the first time."""
        if not self._ready:
            self._ready = True
            self.up()

    def up(self) -> None:
        """Make namespaces, links and shaping; pick ports on loopback."""
        os.sched_setaffinity(0, self.load_cores)
        if self.shaped:
            self._up_namespaces()
            return
        origin, drip = free_port(), free_port()
        self.proxies = tuple(
            Proxy("proxy", "127.0.0.1", free_port(), "127.0.0.1", origin,
                  drip)
            for _ in range(PROXIES))
        self.congestion_control = Path(
            "/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()

    def _up_namespaces(self) -> None:
        self.proxies = tuple(
            Proxy(f"proxy{i}", f"10.77.{i}.2", 8080, f"10.77.{i + 100}.1",
                  8081, 8082) for i in range(PROXIES))
        names = [self._name(role) for role in (
            "client", "origin", *(p.role for p in self.proxies))]
        make_namespaces(self.reaper, names)
        for name in names:
            inside = ("ip", "netns", "exec", name)
            run(*inside, "sysctl", "-qw",
                f"net.unix.max_dgram_qlen={LOG_LINES}", *MANY)
            use_congestion_control(self.congestion_control, inside)
        for i, p in enumerate(self.proxies):
            self._link("client", f"10.77.{i}.1", p.role, p.addr)
            self._link("origin", p.origin_addr, p.role,
                       f"10.77.{i + 100}.2")
            # The origin forwards nothing: what is sent there is gone
            run("ip", "-n", self._name(p.role), "route", "add", HOLE, "via",
                p.origin_addr)
        self._shape(self.rate_bps)

    def _shape(self, rate_bps: float) -> None:
        """Limit the links to the client to so many bits/s."""
        for p in self.proxies:
            run("tc", "-n", self._name(p.role), "qdisc", "replace", "dev",
                "client", "root", "tbf", "rate", f"{rate_bps:.0f}bit",
                "burst", str(BURST_BYTES), "latency", LATENCY)

    @contextlib.contextmanager
    def shaped_to(self, rate_bps: float) -> Iterator[None]:
        """Have links of another rate for a while, in namespaces."""
        self._shape(rate_bps)
        try:
            yield
        finally:
            self._shape(self.rate_bps)

    def _link(self, far: str, far_ip: str, near: str, near_ip: str) -> None:
        """Join two namespaces; each end is named after the other."""
        run("ip", "-n", self._name(near), "link", "add", far, "type",
            "veth", "peer", "name", near, "netns", self._name(far))
        for role, peer, ip in ((far, near, far_ip), (near, far, near_ip)):
            name = self._name(role)
            run("ip", "-n", name, "addr", "add", f"{ip}/24", "dev", peer)
            run("ip", "-n", name, "link", "set", peer, "up")
            cores = self._cores(role)
            run("ip", "netns", "exec", name, "sh", "-c",
                f"echo {core_mask(cores)} > "
                f"/sys/class/net/{peer}/queues/rx-0/rps_cpus")

    def _name(self, role: str) -> str:
        return f"{self._tag}-{role}"

    def inside(self, role: str, command: list[str]) -> list[str]:
        """Return the command in the network of the machine `role`."""
        if self.shaped:
            return ["ip", "netns", "exec", self._name(
                "origin" if role == LOG else role), *command]
        return command

    def folder(self, role: str) -> Path:
        """Make a folder for a program of `role`."""
        return self.reaper.folder()

    def ask(
        self, role: str, command: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the machine `role` that soon ends, or fails."""
        try:
            return subprocess.run(
                self.inside(role, list(command)), capture_output=True,
                text=True, check=False, timeout=COMMAND_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(command, 127, "", str(error))

    def remove(self, role: str, folder: Path) -> None:
        """Remove a folder that is no longer needed."""
        shutil.rmtree(folder, ignore_errors=True)

    def write(self, role: str, path: Path, data: bytes) -> None:
        """Write a file where a program of `role` finds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def read(self, role: str, path: Path) -> str:
        """Read a file of the machine `role`, such as one in /proc."""
        try:
            return path.read_text()
        except OSError as error:
            raise TestbedError(f"{role}: {error}") from error

    def check(self, role: str, path: Path) -> None:
        """Is a file of this machine at the same path of `role`'s, too?"""

    def bring(self, role: str, path: Path) -> None:
        """Have a file of this machine at the same path of `role`'s."""

    @contextlib.contextmanager
    def firewall(self, role: str, rule: str) -> Iterator[None]:
        """Have nftables apply a rule to what the machine `role` sends."""
        if not rule:
            yield
            return
        nft = self.find(role, "nft", "nftables")
        table = "inet sandpaper_bench"
        run(*self.inside(role, [nft, f"""
            table {table} {{
                chain sent {{
                    type filter hook output priority 0;
                    {rule}
                }}
            }}"""]))
        try:
            yield
        finally:
            run(*self.inside(role, [nft, f"delete table {table}"]))

    def find(self, role: str, program: str, package: str) -> str:
        """Return where an installed program is; an error if it is not."""
        where = os.environ.get("PATH", os.defpath) + ":/usr/sbin"
        found = shutil.which(program, path=where)
        if found is None:
            raise TestbedError(f"there is no {program}: run apt-get install "
                               f"{package}")
        return found

    def is_root(self, role: str) -> bool:
        """Do programs of `role` run as root?"""
        return os.geteuid() == 0

    @property
    def cores(self) -> set[int]:
        """All that the testbed runs on."""
        return set(self.proxy_cores + self.load_cores)

    def command(self, role: str, command: list[str]) -> list[str]:
        """Return the command of a program: guarded, and on its cores."""
        return guarded(self.inside(role, self._on_cores(role, command)),
                       self.reaper.nice)

    def _on_cores(self, role: str, command: list[str]) -> list[str]:
        cores = ",".join(map(str, self._cores(role)))
        return ["taskset", "-c", cores, *command] if cores else command

    def _cores(self, role: str) -> list[int]:
        return (self.proxy_cores if role.startswith("proxy")
                else self.load_cores)

    def describe(self) -> dict[str, object]:
        """What a reader of the figures has to know of the machine."""
        cpuinfo = Path("/proc/cpuinfo").read_text()
        return {
            "mode": self.mode,
            "cpu": cpu_model(cpuinfo),
            "virtual": is_virtual(cpuinfo),
            "governor": governor(),
            "cores": os.cpu_count(),
            "nice": self.reaper.nice,
            "kernel": platform.release(),
            "proxy_cores": self.proxy_cores,
            "load_cores": self.load_cores,
            "load_spins": self.busy,
            "link_bits_per_second": self.rate_bps if self.shaped else None,
            "congestion_control": self.congestion_control,
            "load_average_at_start": os.getloadavg()[0],
        }
