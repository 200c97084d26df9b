# SPDX-License-Identifier: BSD-2-Clause
"""What the manual pages say is there for all, and its examples run.

Needs the patched Varnish that `make check` has built, in VARNISH_ROOT.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 120  # seconds

EXAMPLE = re.compile(r"Example: ``(.*?)``", re.DOTALL)
SHOP = """vcl 4.1;
import sandpaper;
backend be none;
sub vcl_init {
	sandpaper.tenant("shop");
}
"""


def run(*command: str) -> str:
    """Run one of the installed programs; what it printed, with its errors."""
    env = dict(os.environ)
    env["PATH"] = f"{ROOT}/sbin:{ROOT}/bin:" + env["PATH"]
    done = subprocess.run(command, env=env, text=True, timeout=TIMEOUT,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout[-3000:]}"
                             f"{done.stderr[-3000:]}")
    return done.stdout


def sections(text: str, underline: str) -> dict[str, str]:
    """Split a manual page's source at its underlined headings."""
    found = re.split(rf"^(\S.*)\n{underline}{{3,}}\n", text,
                     flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Examples(unittest.TestCase):
    """Each function, parameter and command has one, and it runs."""

    def varnishtest(self, body: str) -> None:
        with tempfile.TemporaryDirectory() as tmp:
            vtc = Path(tmp) / "example.vtc"
            vtc.write_text(f'varnishtest "examples"\n{body}')
            run("varnishtest", str(vtc))

    def test_functions(self) -> None:
        text = (TOP / "vmod_sandpaper" / "vmod_sandpaper.vcc").read_text()
        found = re.split(r"^\$Function \w+ (\w+)\(", text,
                         flags=re.MULTILINE)
        names = found[1::2]
        self.assertGreater(len(names), 10)
        for name, section in zip(names, found[2::2], strict=True):
            with self.subTest(function=name):
                self.assertIn("$Restrict", section)
                self.assertIn("Errors:", section)
                block = re.search(r"Example::\n\n((?:\t.*\n|\n)+)", section)
                assert block is not None, name
                self.assertIn(f"sandpaper.{name}(", block[1])
                self.varnishtest(
                    "varnish v1 -vcl {\nimport sandpaper;\n"
                    f"backend be none;\n{block[1]}\n}} -start\n")

    def test_parameters(self) -> None:
        found = {
            name: text for name, text
            in sections(run("varnishd", "-x", "parameter"), "~").items()
            if name.startswith("sandpaper")}
        table = (TOP / "src/varnishd/tbl/sandpaper_params.h").read_text()
        self.assertEqual(len(found), table.count("PARAM_SIMPLE("))
        body = "varnish v1 -vcl {backend be none;} -start\n"
        for name, text in found.items():
            self.assertIn("* Default: ", text, name)
            example = EXAMPLE.search(text)
            assert example is not None, name
            words = example[1].split()
            self.assertEqual(words[:2], ["param.set", name])
            body += f'varnish v1 -cliok "{example[1]}"\n'
            body += (f'varnish v1 -cliexpect "{words[2]}" '
                     f'"param.show {name}"\n')
        self.varnishtest(body)

    def test_commands(self) -> None:
        text = run("varnishd", "-x", "cli")
        examples = [e for e in EXAMPLE.findall(text)
                    if e.startswith("sandpaper.")]
        table = (TOP / "src/varnishd/tbl/sandpaper_cli.h").read_text()
        ours = re.findall(r'^\t"(sandpaper\.\w+)",', table,
                          flags=re.MULTILINE)
        self.assertEqual({e.split()[0] for e in examples}, set(ours))
        body = f"varnish v1 -vcl {{{SHOP.partition(chr(10))[2]}}} -start\n"
        for example in examples:
            body += f'varnish v1 -cliok "{example}"\n'
        self.varnishtest(body)

    def test_counters(self) -> None:
        """Each says its type, and its unit where it is no plain number."""
        for path in sorted((TOP / "src" / "varnishd").glob("*.vsc")):
            found = re.split(r"^\.\. varnish_vsc:: (\w+)$",
                             path.read_text(), flags=re.MULTILINE)
            for name, text in zip(found[1::2], found[2::2], strict=True):
                with self.subTest(counter=name):
                    self.assertRegex(text, r":type:\t(counter|gauge)\n")
                    line = re.search(r":oneliner:\t(.+)", text)
                    assert line is not None, name
                    for end, unit in (("_ns", "(ns)"), ("_ms", "(ms)"),
                                      ("_rate", "(bits/s)")):
                        if name.endswith(end):
                            self.assertIn(unit, line[1])

    def test_the_manual_pages_have_them(self) -> None:
        man = Path(ROOT) / "share" / "man"
        for page, word in (("man1/varnishd.1", "sandpaper_queue_limit"),
                           ("man7/varnish-cli.7", "sandpaper.show"),
                           ("man7/varnish-counters.7", "SANDPAPER_TENANT"),
                           ("man7/vsl.7", "Sandpaper"),
                           ("man3/vmod_sandpaper.3", "queue_limit")):
            text = (man / page).read_text().replace("\\", "")
            self.assertTrue(word in text, f"{word} in {page}")


if __name__ == "__main__":
    unittest.main()
