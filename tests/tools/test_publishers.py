# SPDX-License-Identifier: BSD-2-Clause
"""The paper's customers C1 to C4: their pages, tokens and VMOD."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import socket
import subprocess
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest.mock import patch

from sandpaper_bench.customers import host
from sandpaper_bench.load import GroupResult, Measurement
from sandpaper_bench.origin import MODULES
from sandpaper_bench.publishers import (
    HEAD_BYTES,
    PUBLISHERS,
    c1_page,
    c4_object,
    c4_page,
    data_bytes,
    headers,
    link_bytes,
    phones,
    token,
)
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.rig import Plan, Rig
from sandpaper_bench.table1 import sample, spread
from sandpaper_bench.testbed import Testbed, TestbedError
from sandpaper_bench.varnish import Variant
from sandpaper_bench.vmod import (
    LIBRARIES,
    PLACES,
    SOURCES,
    build_places,
    build_vmod,
    library_flags,
    said,
    supported,
)

TIMEOUT = 120  # seconds, for what should take ten
NOW = 1_800_000_000.0
SECRET = "a secret"
FAR = 4_102_444_800  # 2100


def missing_libraries() -> list[str]:
    """Return the packages of LIBRARIES that are not installed."""
    return [package for library, package in LIBRARIES.items()
            if subprocess.run(["pkg-config", "--exists", library],
                              check=False).returncode]


class Pages(unittest.TestCase):
    """A page is as long as the paper's takes of the link."""

    def test_link_time_is_the_paper_s(self) -> None:
        self.assertEqual(link_bytes(1436), 1500)
        self.assertEqual(link_bytes(1437), 1437 + 2 * 64)
        for size in (1, 1436, 1437, 100_000):
            self.assertEqual(data_bytes(link_bytes(size)), size)

    def test_c1_has_links_with_times(self) -> None:
        page = c1_page(26_000, 100, NOW).decode()
        self.assertEqual(len(page), 26_000 - 100 * 21)
        times = re.findall(
            r'<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"></time>', page)
        self.assertEqual(len(times), 100)
        self.assertEqual(page.count("<a href="), 100)

    def test_c4_includes_objects(self) -> None:
        page = c4_page(40_000, 5).decode()
        self.assertEqual(page.count("<esi:include src="), 5)
        include = re.compile(r'<esi:include src="[^"]*"/>')
        whole = include.sub(c4_object(0).decode(), page)
        self.assertEqual(len(whole), 40_000)

    def test_a_page_without_room(self) -> None:
        with self.assertRaisesRegex(TestbedError, "no room for 999 parts"):
            c1_page(26_000, 999, NOW)

    def test_there_is_room_for_the_most_work(self) -> None:
        c1, c4 = PUBLISHERS["C1"], PUBLISHERS["C4"]
        c1_page(c1.size - HEAD_BYTES, c1.most, NOW)
        c4_page(c4.size - HEAD_BYTES, c4.most)

    def test_amount_of_work_is_the_number_of_rules(self) -> None:
        self.assertEqual(phones(7).count("if (req.http.User-Agent ~"), 7)

    def test_readers(self) -> None:
        for name in PUBLISHERS:
            sets = headers(name, NOW).split("\n\n")
            self.assertTrue(all("User-Agent: " in s for s in sets), name)
        self.assertEqual(len(set(headers("C3", NOW).split("\n\n"))), 16)


class Table1(unittest.TestCase):
    """What a request takes, from what a window saw."""

    def test_link_time_is_of_the_bytes_that_clients_got(self) -> None:
        seen = GroupResult("C1", 100, 500.0, 0.0, 0.0, 0.0, 0, 0,
                           1436 * 1000, 0, 1, 1, 1.0, 1, 1, [])
        found = sample(Measurement(2.0, 0.25, 0.0, 0.0, {"C1": seen}), "C1",
                       rate_bps=1.2e9)
        self.assertAlmostEqual(found.cpu_us, 250)
        self.assertAlmostEqual(found.link_us, 1500 * 8 / 1200)

    def test_spread(self) -> None:
        self.assertEqual(spread([1.0, 2.0, 3.0]), (2.0, 1.0))
        self.assertEqual(spread([5.0]), (5.0, 0.0))

    def test_the_paper_s_bottlenecks(self) -> None:
        bound = {p.name: p.cpu_us > p.link_us for p in PUBLISHERS.values()}
        self.assertEqual(bound, {
            "C1": True, "C2": False, "C3": False, "C4": False})


def varnish_root() -> Path | None:
    """Return the Varnish that `make check` built, if C1 to C4 run on it."""
    root = os.environ.get("VARNISH_ROOT")
    return Path(root) if root and supported(Path(root)) else None


@unittest.skipIf(varnish_root() is None, "no VARNISH_ROOT of the right series")
@unittest.skipIf(missing_libraries() or not PLACES.exists(),
                 "make bench-venv has not been run")
class Vmod(unittest.TestCase):
    """What the VMOD does in a varnishd."""

    def varnishtest(self, name: str, **macros: str | Path) -> None:
        root = varnish_root()
        assert root is not None
        macros["vmod"] = build_vmod(root)
        path = f"{root / 'sbin'}:{root / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [root / "bin" / "varnishtest",
             *(f"-D{key}={value}" for key, value in macros.items()),
             SOURCES / "tests" / name],
            capture_output=True, text=True, timeout=TIMEOUT, check=False,
            env=os.environ | {"PATH": path})
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])

    def test_published(self) -> None:
        self.varnishtest("published.vtc")

    def test_claims_log_and_places(self) -> None:
        claims = {"role": "subscriber", "exp": FAR, "aud": ["a", {"exp": 1}]}
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            log = stack.enter_context(
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            log.bind(f"{folder}/log")
            log.settimeout(TIMEOUT)
            self.varnishtest(
                "claims.vtc", log=f"{folder}/log", places=build_places(),
                good=token(claims, SECRET),
                expired=token(claims | {"exp": 1}, SECRET),
                endless=token({"role": "subscriber"}, SECRET),
                forged=token(claims, "another secret"),
                unsigned=token(claims, SECRET, "none"),
                broken=token("no object", SECRET),
                deep=token({"exp": FAR, "a": [[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]
                            ]]]]]]], "role": "subscriber"}, SECRET))
            request, response = (log.recv(8192).decode() for _ in range(2))
        self.assertRegex(request, r"^<134>\w{3} [ \d]\d [\d:]{8} varnishd\[\d")
        self.assertIn(" Host: ", request)
        self.assertIn(" Cookie:;", request)
        self.assertIn(" HTTP/1.1; 200; OK; ", response)

    def test_another_series_is_refused_by_name(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "lib" / "pkgconfig"
            config.mkdir(parents=True)
            (config / "varnishapi.pc").write_text(
                "Name: VarnishAPI\nDescription: none\nVersion: 6.0.16\n")
            with self.assertRaisesRegex(
                    TestbedError, "need Varnish 7.7 or 9.0.*6.0"):
                build_vmod(Path(folder))


@unittest.skipIf(varnish_root() is None, "no VARNISH_ROOT of the right series")
@unittest.skipIf(missing_libraries() or not PLACES.exists()
                 or not MODULES.exists(), "make bench-venv has not been run")
class Served(unittest.TestCase):
    """What readers of C1 to C4 get, from the experiments' VCL and pages."""

    def setUp(self) -> None:
        warnings.simplefilter("ignore", ResourceWarning)  # it is the reaper's
        root, cores = varnish_root(), os.sched_getaffinity(0)
        assert root is not None
        self.addCleanup(os.sched_setaffinity, 0, cores)
        reaper = Reaper()
        self.addCleanup(reaper.close)
        bed = Testbed(reaper, [min(cores)], [max(cores)], loopback=True)
        rig = Rig(bed, reaper, [Variant("stock", root)], Plan(), unit_us=4.0)
        rig.prepare(["C1"])
        self.rig = rig
        self.port = self.enterContext(rig.varnish(rig.variants[0])).proxy.port

    def get(self, name: str, **headers: str) -> tuple[str, str]:
        """Return X-Varnish (9.0: X-Vinyl) and the page that a reader gets."""
        peer = http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=TIMEOUT)
        peer.request("GET", PUBLISHERS[name].path, headers={
            "Host": host(name)} | {
                k.replace("_", "-"): v for k, v in headers.items()})
        answer = peer.getresponse()
        page = answer.read().decode()
        self.assertEqual(answer.status, 200)
        self.assertAlmostEqual(len(page), PUBLISHERS[name].size - HEAD_BYTES,
                               delta=300)
        peer.close()
        return answer.headers["X-Varnish"] or answer.headers["X-Vinyl"], page

    def hit(self, name: str, **headers: str) -> bool:
        """Was the page in the cache?"""
        return len(self.get(name, **headers)[0].split()) == 2

    def test_pages(self) -> None:
        assert self.rig.publishers is not None
        items = self.rig.publishers.items
        _, page = self.get("C1")
        self.assertEqual(len(re.findall(r"Z\">published .*?</time>", page)),
                         items["C1"])
        _, page = self.get("C4")
        self.assertEqual(page.count('"author": "a reporter"'), items["C4"])
        self.assertNotIn("esi:include", page)
        reader = token({"role": "editor", "exp": FAR})
        for authorization, role in ((f"Bearer {reader}", "editor"),
                                    (f"Bearer {reader}x", "visitor"),
                                    ("none", "visitor")):
            _, page = self.get("C2", Authorization=authorization)
            self.assertIn(f"For a {role}<", page)

    def test_a_copy_for_each_device_and_country(self) -> None:
        phone = {"User_Agent": "Nokia (Mobile)"}
        for again in (False, True):
            for reader in (
                {}, phone, phone | {"X_Forwarded_For": "198.18.1.9, 10.0.0.1"},
                phone | {"X_Forwarded_For": "198.18.2.9"},
            ):
                self.assertEqual(self.hit("C3", **reader), again, reader)
        self.assertTrue(self.hit("C3", User_Agent="iPhone",
                                 X_Forwarded_For="198.18.5.9"))


class Remedies(unittest.TestCase):
    """What is missing is named in one line, with what helps."""

    def test_a_library_that_is_not_there(self) -> None:
        with (patch.dict(LIBRARIES, {"libnone": "libnone-dev"}, clear=True),
              self.assertRaisesRegex(
                  TestbedError, "^there is no libnone: run apt-get install "
                  "libnone-dev$")):
            library_flags()

    def test_no_varnish_to_build_for(self) -> None:
        with self.assertRaisesRegex(TestbedError,
                                    "^there is no Varnish .* /nowhere$"):
            supported(Path("/nowhere"))

    def test_a_program_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(TestbedError, "^no libz: do this: "):
            said("no libz: do this", "/nowhere/program")
