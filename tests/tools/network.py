# SPDX-License-Identifier: BSD-2-Clause
"""Networks of the test's own, with links between them.

A thread that has entered a network opens its sockets and starts its programs
there. A network ends with the last file, socket and program that has it.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Self

from common import ran

OWN = "/proc/thread-self/ns/net"
CLONE_NEWNET = 0x40000000
# Prefix for a program that reads /sys: it mounts that for this network
OWN_SYS = ("unshare", "--mount", "sh", "-c",
           'mount -t sysfs sysfs /sys && exec "$@"', "sh")
LIBC = ctypes.CDLL(None, use_errno=True)


def check(status: int) -> None:
    if status != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Network:
    """A network namespace with loopback; root may make one.

    It can be entered more than once, by one thread.
    """

    def __init__(self) -> None:
        before = os.open(OWN, os.O_RDONLY)
        check(LIBC.unshare(CLONE_NEWNET))
        self.fd = os.open(OWN, os.O_RDONLY)
        weakref.finalize(self, os.close, self.fd)
        self.entered_from = [before]
        ran("ip", "link", "set", "lo", "up")
        self.__exit__()

    def __enter__(self) -> Self:
        self.entered_from.append(os.open(OWN, os.O_RDONLY))
        check(LIBC.setns(self.fd, CLONE_NEWNET))
        return self

    def __exit__(self, *error: object) -> None:
        before = self.entered_from.pop()
        check(LIBC.setns(before, CLONE_NEWNET))
        os.close(before)

    def ip(self, *words: str) -> None:
        """Run `ip` there."""
        with self:
            ran("ip", *words)

    def join(self, device: str, address: str, other: Network,
             others_device: str, others_address: str) -> None:
        """Link two networks by a veth pair; addresses have no prefix."""
        self.ip("link", "add", device, "type", "veth", "peer", "name",
                others_device, "netns", f"/proc/{os.getpid()}/fd/{other.fd}")
        for network, name, where in ((self, device, address),
                                     (other, others_device, others_address)):
            network.ip("addr", "add", f"{where}/24", "dev", name)
            network.ip("link", "set", name, "up")
