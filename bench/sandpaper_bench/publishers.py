# SPDX-License-Identifier: BSD-2-Clause
"""The paper's customers C1 to C4 (Table 1): their VCL, pages and readers.

What they do is real: C1 writes how old its articles are into its page, C2
logs and checks tokens, C3 has a copy for each kind of device and country, C4
includes JSON objects by ESI.  How much of it they do (articles, phones known
by name, objects) is chosen so that the CPU time of a request is Table 1's on
one core instead of eight, and scaled with the speed of the machine.  A page
is as long as fills the link for Table 1's time at an eighth of the paper's
rate.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .origin import Origin, start_program
from .reaper import Reaper
from .testbed import BENCH, LOG, Testbed, TestbedError
from .vmod import build_places, build_vmod

MTU = 1500  # bytes
HEADER = 64  # bytes of TCP and IP in a packet, as the paper counts
PAPER_RATE = 10e9  # bits/s
PAPER_CORES = 8  # and the testbed has one, and an eighth of the rate

SECRET = "the testbed's own"
DAY = 86400
HEAD_BYTES = 320  # of an answer, about
COUNTRY_ADDRESSES = ("198.18.0.9", "198.18.1.9", "198.18.2.9", "198.18.3.9")
USER_AGENTS = (
    "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) "
    "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile Safari",
    "Mozilla/5.0 (Linux; Android 14; Tab 900) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Smart-TV; Series 7) AppleWebKit/537.36 "
    "(KHTML, like Gecko) Version/4.0 TV Safari/537.36",
)


@dataclass(frozen=True)
class Publisher:
    """A customer of Table 1: processing times in us, on the paper's machine.

    `items` is how much it does on a machine on which a unit of VCL work (see
    customers.py) takes UNIT_US; `most` is what its page has room for.
    """

    name: str
    cpu_us: float
    cpu_sd_us: float
    link_us: float
    items: int
    most: int
    path: str

    @property
    def size(self) -> int:
        """Bytes of an answer, its head included."""
        return data_bytes(self.link_us * PAPER_RATE / 8e6)


PUBLISHERS = {
    p.name: p
    for p in (
        Publisher("C1", 39.88, 1.96, 22.08, 300, 260, "/C1/index.html"),
        Publisher("C2", 13.60, 0.88, 81.25, 1, 1, "/C2/index.html"),
        Publisher("C3", 28.10, 1.19, 92.18, 150, 800, "/C3/index.html"),
        Publisher("C4", 22.81, 0.99, 36.40, 3, 100, "/C4/index.html"),
    )
}
UNIT_US = 3.3


def link_bytes(data: float) -> float:
    """Return what `data` bytes take of a link (paper, section 3.2)."""
    return data + HEADER * math.ceil(data / (MTU - HEADER))


def data_bytes(on_link: float) -> int:
    """Return the most bytes that take no more of a link than `on_link`."""
    data = max(0, int(on_link * (MTU - HEADER) / MTU) - HEADER)
    while link_bytes(data + 1) <= on_link:
        data += 1
    return data


# Pages

def article(number: int) -> str:
    """Return a link to an article and its headline."""
    return f'<a href="/{number}">News {number}</a> '


def fill(parts: Sequence[str], size: int) -> bytes:
    """Return a page of `size` bytes that has the parts in equal distances."""
    frame = "<html>\n", "</html>\n"
    text = "The news of the day, in a paragraph about as long as they are.\n"
    room = size - sum(map(len, (*frame, *parts)))
    if room < 0:
        raise TestbedError(f"a page of {size} bytes has no room for "
                           f"{len(parts)} parts: use fewer")
    gap, rest = divmod(room, len(parts))
    words = text * (gap // len(text) + 2)
    body = "".join(part + words[:gap - 1] + "\n" if gap else part
                   for part in parts)
    return (frame[0] + body + words[:rest] + frame[1]).encode()


def c1_page(size: int, articles: int, now: float) -> bytes:
    """Return a page with links to articles of the last days."""
    inserted = len("published 2 hours ago")
    times = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(
        now - 5 * DAY * (n / articles) ** 3)) for n in range(articles))
    return fill([
        f'{article(n)}<time datetime="{when}"></time>\n'
        for n, when in enumerate(times)], size - articles * inserted)


def c4_object(number: int) -> bytes:
    """Return a post of the live blog."""
    return json.dumps({
        "id": number, "author": "a reporter", "at": "2019-11-07T12:00:00Z",
        "text": "What happened just now, as a reader wants to know it."
    }).encode()


def c4_page(size: int, objects: int) -> bytes:
    """Return a page that includes so many objects."""
    parts = [f'<script type="application/json"><esi:include '
             f'src="/C4/live/{n}.json"/></script>\n' for n in range(objects)]
    gone = len('<esi:include src="/C4/live/0.json"/>')
    return fill(parts, size - objects * (len(c4_object(0)) - gone))


def phones(number: int) -> str:
    """Return VCL that knows so many phones by their names."""
    rules = "".join(
        f'\tif (req.http.User-Agent ~ "(?i)\\bandroid\\b.*\\bphone[ -]{n}'
        '[a-z]?\\b") {\n'
        f'\t\tset req.http.X-Device = "phone-{n % 3}";\n\t}}\n'
        for n in range(100, 100 + number))
    return f"sub c3_phones {{\n{rules}}}\n"


# Readers

def base64url(data: bytes) -> str:
    """Encode as JSON web tokens do."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(
    claims: object, secret: str = SECRET, algorithm: str = "HS256"
) -> str:
    """Return a JSON web token, signed by HS256 whatever it says."""
    parts = [base64url(json.dumps(part).encode()) for part in (
        {"alg": algorithm, "typ": "JWT"}, claims)]
    mac = hmac.new(secret.encode(), ".".join(parts).encode(), hashlib.sha256)
    return ".".join([*parts, base64url(mac.digest())])


def headers(name: str, now: float) -> str:
    """Return the sets of headers that a customer's readers send."""
    agent = f"User-Agent: {USER_AGENTS[0]}"
    if name == "C2":
        return "\n\n".join(
            f"{agent}\nAuthorization: Bearer " + token({
                "sub": f"reader-{role}", "role": role,
                "exp": int(now) + DAY}) for role in ("subscriber", "editor"))
    if name == "C3":
        return "\n\n".join(
            f"User-Agent: {agent}\nX-Forwarded-For: {address}"
            for agent in USER_AGENTS for address in COUNTRY_ADDRESSES)
    return agent


class Publishers:
    """The customers' pages at the origin, their log, readers and VCL."""

    def __init__(
        self, bed: Testbed, reaper: Reaper, origin: Origin,
        roots: Iterable[Path], unit_us: float,
    ) -> None:
        self._bed, self._reaper, self._origin = bed, reaper, origin
        self._vmods = {root: build_vmod(root) for root in roots}
        self._places = build_places()
        for file in (self._places, *self._vmods.values()):
            bed.bring(bed.proxies[0].role, file)
        self.items = {
            p.name: min(p.most, max(1, round(p.items * UNIT_US / unit_us)))
            for p in PUBLISHERS.values()}
        self._write_pages()
        self._start_log()

    def _write_pages(self) -> None:
        now, put = time.time(), self._origin.put
        size = {p.name: p.size - HEAD_BYTES for p in PUBLISHERS.values()}
        put("C1/index.html", c1_page(size["C1"], self.items["C1"], now))
        for role in ("visitor", "subscriber", "editor"):
            put(f"C2/{role}.html", fill([f"<h1>For a {role}</h1>\n"],
                                        size["C2"]))
        put("C3/index.html", fill([article(0)], size["C3"]))
        put("C4/index.html", c4_page(size["C4"], self.items["C4"]))
        for number in range(self.items["C4"]):
            put(f"C4/live/{number}.json", c4_object(number))
        for name in PUBLISHERS:
            self.readers(name).write_text(headers(name, now) + "\n")
            self._bed.bring("client", self.readers(name))

    def readers(self, name: str) -> Path:
        """Return the file of the headers that a customer's readers send."""
        return self._origin.folder / f"{name}.headers"

    def _start_log(self) -> None:
        self._log = self._bed.folder(LOG) / "syslog"
        start_program(self._bed, self._reaper, LOG, "syslog.py",
                      str(self._log))

    def vcl(self, root: Path) -> str:
        """Return the customers' VCL for the Varnish installed in `root`."""
        text = (BENCH / "vcl" / "publishers.vcl").read_text()
        for name, value in {
            "vmod": self._vmods[root], "log": self._log,
            "places": self._places, "secret": SECRET,
        }.items():
            text = text.replace(f"{{{name}}}", str(value))
        return phones(self.items["C3"]) + text
