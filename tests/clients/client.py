# SPDX-License-Identifier: BSD-2-Clause
"""What the clients share: a connection, a request, and frames of HTTP/2."""

from __future__ import annotations

import socket
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 4, 6, 8
END_STREAM, END_HEADERS = 1, 4


def connect(address: str, port: int, holds: int = 0) -> socket.socket:
    """Return a connection; its socket holds so many bytes, if that is set."""
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    if holds:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, holds)
    s.connect((address, port))
    return s


def get(host: str, url: str = "/", *headers: str) -> bytes:
    """Return a request of HTTP/1."""
    return "\r\n".join((f"GET {url} HTTP/1.1", f"Host: {host}", *headers, "",
                        "")).encode()


def body_length(s: socket.socket) -> int:
    """Read a response up to the end; return how long its body is."""
    f = s.makefile("rb")
    while f.readline() not in (b"\r\n", b""):
        pass
    return sum(len(chunk) for chunk in iter(lambda: f.read1(65536), b""))


def frame(kind: int, payload: bytes = b"", flags: int = 0,
          stream: int = 0) -> bytes:
    """Return a frame of HTTP/2."""
    return (len(payload).to_bytes(3, "big") + bytes((kind, flags))
            + stream.to_bytes(4, "big") + payload)


def get_stream(host: str, stream: int = 1) -> bytes:
    """Return the frame of a request GET /: HPACK, only the Host is a text."""
    block = b"\x82\x86\x84\x01" + bytes((len(host),)) + host.encode()
    return frame(HEADERS, block, END_HEADERS | END_STREAM, stream)


def exactly(s: socket.socket, n: int) -> bytes:
    """Read n bytes, or fewer up to the end."""
    got = b""
    while len(got) < n and (more := s.recv(n - len(got))):
        got += more
    return got


def frames(s: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """Read the type, flags and payload of each frame up to the end."""
    while head := exactly(s, 9):
        yield head[3], head[4], exactly(s, int.from_bytes(head[:3], "big"))
