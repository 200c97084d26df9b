# SPDX-License-Identifier: BSD-2-Clause
"""The report in a real browser: it renders, and the console stays empty."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from report_samples import samples, save
from sandpaper_bench.report import write

TIMEOUT = 500  # seconds, for what takes five
BROWSER = shutil.which("chromium")


@unittest.skipUnless(BROWSER, "chromium is not installed")
@unittest.skipUnless(importlib.util.find_spec("matplotlib"),
                     "python3-matplotlib is not installed")
class Browser(unittest.TestCase):
    """What chromium makes of the page."""

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(tmp.cleanup)
        self.folder = Path(tmp.name)

    def render(self, page: Path) -> tuple[str, list[str]]:
        """Return the page as rendered, and what the console said."""
        done = subprocess.run(
            [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu",
             "--enable-logging=stderr", "--window-size=1100,1400",
             f"--user-data-dir={self.folder / 'profile'}", "--dump-dom",
             page.as_uri()],
            capture_output=True, text=True, timeout=TIMEOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        # Chromium's own pages have a console, too.
        return done.stdout, [
            line for line in re.findall(r"^.*CONSOLE.*$", done.stderr,
                                        flags=re.MULTILINE)
            if "source: chrome://" not in line]

    def test_the_report_renders_without_a_word(self) -> None:
        save(self.folder, invalid="latency")
        page = write(self.folder)
        rendered, console = self.render(page)
        self.assertEqual(console, [])
        for name in samples():
            self.assertIn(f'<h2 id="{name}">', rendered)
        for what in ("<img", "<table", "<details"):
            self.assertEqual(rendered.count(what),
                             page.read_text().count(what), what)

    def test_what_the_policy_forbids_is_heard(self) -> None:
        save(self.folder)
        page = write(self.folder)
        page.write_text(page.read_text().replace(
            "</h1>", '</h1><img src="http://192.0.2.1/a.png" alt="">'))
        _, console = self.render(page)
        self.assertIn("Content Security Policy", " ".join(console))
