# SPDX-License-Identifier: BSD-2-Clause
"""The testbed's origin: a private Apache."""

from __future__ import annotations

import http.client
import os
import unittest
import warnings
from unittest.mock import patch

from sandpaper_bench.origin import MODULES, Origin
from sandpaper_bench.reaper import Reaper
from sandpaper_bench.testbed import Testbed, TestbedError

TIMEOUT = 60  # seconds, for what should take one


@unittest.skipUnless(MODULES.exists(), "make bench-deps has not been run")
class Apache(unittest.TestCase):
    """The origin serves files, on loopback, and goes away."""

    def test_pages(self) -> None:
        warnings.simplefilter("ignore", ResourceWarning)  # it is the reaper's
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        reaper = Reaper()
        try:
            bed = Testbed(reaper, [min(cores)], [min(cores)], loopback=True)
            bed.up()
            origin = Origin(bed, reaper)
            origin.put("C4/live/0.json", b"{}")
            peer = http.client.HTTPConnection(
                "127.0.0.1", bed.proxies[0].origin_port, timeout=TIMEOUT)
            for path, status, kind in (
                ("/C4/live/0.json", 200, "application/json"),
                ("/nothing", 404, "text/html; charset=iso-8859-1"),
            ):
                peer.request("GET", path)
                answer = peer.getresponse()
                answer.read()
                self.assertEqual(answer.status, status)
                self.assertEqual(answer.getheader("Content-Type"), kind)
            peer.close()
        finally:
            reaper.close()
        self.assertFalse(origin.folder.exists())


class Missing(unittest.TestCase):
    """What is missing is named in one line, with what helps."""

    def test_no_apache(self) -> None:
        bed = Testbed(Reaper(), [0], [0], loopback=True)
        with (patch("sandpaper_bench.testbed.shutil.which",
                    return_value=None),
              self.assertRaisesRegex(TestbedError, "apt-get install apache2")):
            bed.find("origin", "apache2", "apache2-bin")
