# SPDX-License-Identifier: BSD-2-Clause
"""tools/check-docs finds what is wrong with a page, and says where.

Each case writes a small repository. The commands and the reference pages need
the patched Varnish that `make check` has built, in VARNISH_ROOT.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))

from docs import pages, prose, reference  # noqa: E402

ROOT = os.environ.get("VARNISH_ROOT", "")
TIMEOUT = 300  # seconds
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
README = "# Title\n\nThis page leads to [the other one](doc/a.md#more).\n"
OTHER = "# A\n\nText.\n\n## More\n\nMore text.\n"
REMAINS = re.compile(r"sandpaper-docs")


class Repository(unittest.TestCase):
    """A repository with two pages, which a case makes worse."""

    def setUp(self) -> None:
        tmp = tempfile.TemporaryDirectory(prefix="test-docs-")
        self.addCleanup(tmp.cleanup)
        self.top = Path(tmp.name) / "repository"
        self.write("README.md", README)
        self.write("doc/a.md", OTHER)
        self.write("GNUmakefile", "all: demo\ndemo:\n\ttrue\n")
        subprocess.run(["git", "init", "-q", str(self.top)], check=True)

    def write(self, name: str, text: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def argv(self, part: str, *more: str) -> list[str]:
        return [sys.executable, str(TOP / "tools" / "check-docs"), "--top",
                str(self.top), "--only", part, "--prose",
                str(TOP / "build" / "prose"),
                *(["--varnish", ROOT] if ROOT else []), *more]

    def check(self, part: str, *more: str) -> list[str]:
        """What is wrong, line by line; checks the summary and the status."""
        done = subprocess.run(self.argv(part, *more), text=True, timeout=TIMEOUT,
                              capture_output=True, check=False)
        lines = done.stdout.splitlines()
        self.assertTrue(lines, done.stderr)
        summary = SUMMARY.match(lines[-1])
        assert summary is not None, done.stdout + done.stderr
        failed = int(summary[2])
        self.assertEqual(done.returncode, 1 if failed else 0, done.stdout)
        self.assertEqual(summary[3], "0", done.stdout)
        found = [line for line in lines
                 if re.match(r"^[\w./-]+:\d+: ", line)]
        self.assertEqual(bool(found), bool(failed), done.stdout)
        self.output = done.stdout
        return found


class Prose(Repository):
    def test_good(self) -> None:
        self.write("README.md", README + "\nIt runs `but for told`, or **so**.\n"
                   "\n```text\ntold\n```\n")
        self.assertEqual(self.check("prose"), [])

    def test_banned_word(self) -> None:
        self.write("doc/a.md", OTHER + "\n- An item.\n- A tenant is\n  but\n"
                   "  for that found.\n\n| what |\n| --- |\n| told |\n")
        found = self.check("prose")
        self.assertEqual([f.partition(": ")[0] for f in found],
                         ["doc/a.md:11", "doc/a.md:16"])
        self.assertIn('"but for": write "except for"', found[0])

    def test_one_word_a_thing(self) -> None:
        self.write("doc/a.md", OTHER + "\nThe NIC is full.\n")
        self.write("doc/internals/b.md", "# B\n\nThe NIC is full.\n")
        self.assertEqual(len(self.check("prose")), 1)

    def test_long_sentence(self) -> None:
        words = " ".join(["word"] * 15)
        self.write("doc/a.md", f"# A\n\nShort. Long {words}\n{words} `a b c`.\n"
                   + "\nShort one.\n" * 3)
        found = self.check("prose")
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^doc/a\.md:3: a sentence of 32 words, at "
                         r"most 30: \"Long word")

    def test_thirty_words_are_enough(self) -> None:
        words = " ".join(["word"] * 30)
        self.write("doc/a.md", f"# A\n\n{words}.\n" + "\nShort one.\n" * 3)
        self.assertEqual(self.check("prose"), [])

    def test_number_ends_a_sentence(self) -> None:
        words = " ".join(["word"] * 18)
        self.write("doc/a.md", f"# A\n\nAt most {words} 1024. If {words}, 5. 0 "
                   f"{words}. See 7.7. The e.g. {words}.\n")
        self.assertEqual(self.check("prose"), [])

    def test_mean(self) -> None:
        words = " ".join(["word"] * 21)
        self.write("doc/a.md", f"# A\n\n{words}. {words}. " + words[5:] + ".\n")
        found = self.check("prose")
        self.assertEqual(found, ["doc/a.md:1: the page's mean sentence has 20.7 "
                                 "words, at most 20"])

    def test_readme_length(self) -> None:
        self.write("README.md", README + "\nText.\n" * 80)
        self.assertEqual(self.check("prose"),
                         ["README.md:151: 163 lines: at most 150"])

    def test_list_is_used(self) -> None:
        """Each entry is an expression that JavaScript and Python read alike."""
        for entry in prose.words_for("doc/a.md"):
            with self.subTest(find=entry["find"]):
                re.compile(entry["find"])
                self.assertTrue(entry["write"])


class Links(Repository):
    def test_good(self) -> None:
        self.write("README.md", README + "[a](doc/) ![b](<doc/a.md>) [c]: "
                   "<https://a.example/x?y#z> [d](#title) `[e](gone)` [f][g]\n\n"
                   "[g]: doc/a.md 'title'\n\n```text\n[h](gone)\n```\n"
                   .replace("'", '"'))
        self.assertEqual(self.check("links"), [])

    def test_broken(self) -> None:
        self.write("README.md", README + "\n[a](doc/gone.md)\n[b](doc/a.md#less)"
                   "\n[c](../x) and [d](http://)\n[e][nothing]\n"
                   '<img src="gone.svg">\n[f](https://ex ample/)\n')
        found = self.check("links")
        self.assertEqual([f.partition(" ")[0] for f in found],
                         [f"README.md:{n}:" for n in (5, 6, 7, 7, 9)])

    def test_page_without_a_link(self) -> None:
        self.write("doc/b.md", "# B\n\n[a](a.md)\n")
        self.assertEqual(self.check("links"),
                         ["doc/b.md:1: no link from README.md leads here"])

    def test_anchors(self) -> None:
        page = pages.parse("x.md", "# `a_b`: C, d!\n\n## Again\n\n## Again\n\n"
                           "## [An *old* one](x.md) -- é\n")
        self.assertEqual(page.anchors, {"a_b-c-d", "again", "again-1",
                                        "an-old-one----é"})


class Marks(Repository):
    """What needs no Varnish: is each block marked?"""

    def one(self, text: str) -> str:
        self.write("doc/a.md", OTHER + "\n" + text)
        found = self.check("commands")
        self.assertEqual(len(found), 1, self.output)
        return found[0]

    def test_no_mark(self) -> None:
        for language in ("sh", "bash", "vcl"):
            with self.subTest(language=language):
                self.assertIn(
                    f"doc/a.md:9: a {language} block without a mark",
                    self.one(f"```{language}\nfalse\n```\n"))

    def test_no_language(self) -> None:
        self.assertIn("doc/a.md:9: a block without a language",
                      self.one("```\n$ false\n```\n"))

    def test_console(self) -> None:
        self.assertIn("doc/a.md:11: console",
                      self.one("- x\n\n  ```console\n  $ false\n  ```\n"))

    def test_mark_elsewhere(self) -> None:
        self.assertIn("doc/a.md:9: a mark without a block",
                      self.one("<!-- run-by: make demo -->\nSo:\n"))

    def test_unknown_runner(self) -> None:
        self.assertIn("doc/a.md:10: run-by: there is no make target cake",
                      self.one("<!-- run-by: make cake -->\n```sh\nx\n```\n"))
        self.assertIn("doc/a.md:10: run-by: there is no .ci/run",
                      self.one("<!-- run-by: .ci/run -->\n```sh\nx\n```\n"))

    def test_runner_that_runs_something_else(self) -> None:
        self.write("tools/all", "#!/bin/sh\nmake -s check\n")
        (self.top / "tools/all").chmod(0o755)
        block = "```sh\nmake install X=1 # yes\nso\n```\n"
        for name in ("make demo", "tools/all"):
            with self.subTest(name=name):
                self.assertIn(
                    f"doc/a.md:10: run-by: {name} does not run make install",
                    self.one(f"<!-- run-by: {name} -->\n{block}"))
        self.write("GNUmakefile", "all: x\n\ttools/all\n")
        self.write("doc/a.md", OTHER + "".join(
            f"\n<!-- run-by: {name} -->\n```sh\nmake check\n```\n"
            for name in ("tools/all", "make all")))
        self.assertEqual(self.check("commands"), [])

    def test_runner(self) -> None:
        self.write("doc/a.md", OTHER + "\n<!-- run-by: make demo X=1 -->\n"
                   "```sh\nmake demo\n```\n\n```text\nout\n```\n")
        self.assertEqual(self.check("commands"), [])
        self.assertIn("\n1 passed, 0 failed", self.output)

    def test_syntax(self) -> None:
        self.assertIn("doc/a.md:12: syntax error",
                      self.one("<!-- test: a -->\n```sh\ntrue\n(()\n```\n"))

    def test_no_end(self) -> None:
        self.assertIn("doc/a.md:9: a block without an end",
                      self.one("```text\ntrue\n"))


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
@unittest.skipUnless(os.geteuid() == 0, "needs root, for namespaces")
class Commands(Repository):
    def blocks(self, *blocks: tuple[str, str]) -> None:
        """Blocks of a mark and a text; the first text is on line 11."""
        self.write("doc/a.md", OTHER + "".join(
            f"\n<!-- test: {mark} -->\n```{'vcl' if mark == 'vcl' else 'sh'}\n"
            f"{text}```\n" for mark, text in blocks))

    def test_good(self) -> None:
        self.blocks(
            ("a", "cd doc\nx='a b'\nf() { false || true; }\nf\n"),
            ("a background", "python3 -m http.server -b 127.0.0.1 8000\n"),
            ("b", "[ -z \"${x-}\" ]\ntest -f GNUmakefile\nvarnishd -V\n"
             "build/7.7/root/sbin/varnishd -V\n"),
            ("a", "[ \"$x\" = 'a b' ]\nhead -n 1 a.md\ncurl -sSf "
             "http://127.0.0.1:8000/a.md\n"),
            ("vcl", "sub vcl_init {\n\tsandpaper.tenant(\"a\");\n}\n"),
            ("vcl", "vcl 4.1;\nbackend b none;\n"),
            ("c", "varnishd -a 127.0.0.1:80 -b none\nvarnishadm param.show "
             "sandpaper\n"))
        self.assertEqual(self.check("commands"), [])
        self.assertIn("\n4 passed, 0 failed", self.output)

    def test_failing_command(self) -> None:
        self.blocks(("a", "true\n"), ("a", "echo so\nls /nowhere\ntrue\n"))
        found = self.check("commands")
        self.assertEqual(found, ["doc/a.md:17: group a: status 2 of: "
                                 "ls /nowhere"])
        self.assertIn("\n  | so\n  | ls: ", self.output)

    def test_unset_variable(self) -> None:
        self.blocks(("a", "true\n"), ("a", 'true\necho "$nothing"\n'))
        found = self.check("commands")
        self.assertRegex(found[0], r"^doc/a\.md:15: group a: status 1")
        self.assertIn("doc/a.md: line 17: nothing: unbound", self.output)

    def test_early_end(self) -> None:
        self.blocks(("a", "exit 0\n"), ("a", "false\n"))
        self.assertRegex(self.check("commands")[0],
                         r"^doc/a\.md:10: group a: ended before its last block")

    def test_background_that_fails(self) -> None:
        self.blocks(("a background", "exit 3\n"), ("a", "true\n"))
        self.assertRegex(self.check("commands")[0],
                         r"^doc/a\.md:10: group a: status 3")

    def test_wrong_vcl(self) -> None:
        again = 'sandpaper.tenant("x");\n'
        self.blocks(("vcl", f"sub vcl_init {{\n{again}{again}}}\n"),
                    ("vcl", "sub vcl_recv { nonsense; }\n"),
                    ("vcl", "sub vcl_recv { }\n"))
        found = self.check("commands")
        self.assertEqual(found, ["doc/a.md:10: this VCL does not load",
                                 "doc/a.md:18: this VCL does not load"])
        self.assertIn("Symbol not found", self.output)

    def left_behind(self, argument: str) -> list[str]:
        """Processes with an argument, and mounts and files of ours."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                said = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if argument in said:
                found.append(str(said))
        found += REMAINS.findall(Path("/proc/self/mountinfo").read_text())
        return found + [str(p) for p in Path(self.temporary).iterdir()]

    def setUp(self) -> None:
        super().setUp()
        self.temporary = str(self.top.parent / "tmp")
        Path(self.temporary).mkdir()
        self.enterContext(unittest.mock.patch.dict(
            os.environ, {"TMPDIR": self.temporary}))

    def test_too_long(self) -> None:
        self.blocks(("a", "setsid sleep 86399.25 &\necho x >/tmp/y\n"
                     "sleep 86399.25\n"))
        found = self.check("commands", "--seconds", "4")
        self.assertEqual(found, ["doc/a.md:10: group a: no end after 4 s"])
        self.assertEqual(self.left_behind("86399.25"), [])
        self.assertFalse(Path("/tmp/y").exists())

    def test_host_is_read_only(self) -> None:
        self.blocks(("a", "echo x >/etc/x\ntouch /root/x /tmp/x\n"
                     "mkdir /usr/sandpaper-docs-x\n"))
        found = self.check("commands")
        self.assertRegex(found[0], r"^doc/a\.md:13: .*mkdir /usr")
        self.assertFalse(Path("/etc/x").exists())

    def test_interrupted(self) -> None:
        self.blocks(("a", "sleep 86399.75\n"), ("b", "sleep 86399.75\n"),
                    ("c", "sleep 86399.75\n"))
        child = subprocess.Popen(self.argv("commands"), text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while not any("sleep" in f for f in self.left_behind("86399.75")):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        self.assertEqual(child.returncode, 143)
        self.assertEqual(self.left_behind("86399.75"), [])


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Reference(Repository):
    def setUp(self) -> None:
        super().setUp()
        for name in (reference.PARAMS, reference.CLI, reference.VCC,
                     *reference.COUNTERS):
            self.write(name, (TOP / name).read_text(encoding="utf-8"))
        self.made()

    def made(self) -> None:
        subprocess.run([sys.executable, str(TOP / "tools" / "reference"),
                        "--top", str(self.top), "--varnish", ROOT],
                       check=True, capture_output=True, timeout=TIMEOUT)

    def page(self, name: str) -> Path:
        return self.top / reference.FOLDER / name

    def test_good(self) -> None:
        self.assertEqual(self.check("reference"), [])
        self.assertIn("\n4 passed, 0 failed", self.output)
        for name, says in (("parameters.md", "## sandpaper_policy"),
                           ("counters.md", "### SANDPAPER.slots"),
                           ("cli.md", "## sandpaper.list"),
                           ("vmod.md", "### tenant")):
            self.assertIn(f"\n{says}\n", self.page(name).read_text())

    def test_edited_by_hand(self) -> None:
        lines = self.page("cli.md").read_text().splitlines()
        at = lines.index("## sandpaper.show")
        lines[at + 2] += " Always."
        self.page("cli.md").write_text("\n".join(lines) + "\n")
        found = self.check("reference")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith(
            f"doc/reference/cli.md:{at + 3}: is not what the code says"), found)

    def test_code_has_changed(self) -> None:
        path = self.top / reference.COUNTERS[0]
        text = path.read_text()
        path.write_text(text.replace(":oneliner:	", ":oneliner:	All: ",
                                     2))
        found = self.check("reference")
        self.assertEqual(len(found), 1)
        self.assertRegex(found[0], r"^doc/reference/counters\.md:\d+: .* make "
                         r"reference \(src/varnishd/VSC_sandpaper\.vsc:\d+\)$")
        self.made()
        self.assertEqual(self.check("reference"), [])

    def test_page_is_gone_or_nobodys(self) -> None:
        self.page("vmod.md").unlink()
        self.page("more.md").write_text("# More\n")
        self.assertEqual(self.check("reference"), [
            "doc/reference/vmod.md:1: is not there: make reference",
            "doc/reference/more.md:1: no code generates this page"])

    def test_origin_of_prose(self) -> None:
        path = self.top / reference.VCC
        lines = path.read_text().splitlines()
        at = next(n for n, line in enumerate(lines)
                  if line.startswith("$Function VOID tenant")) + 3
        lines.insert(at, "A tenant is told by the Host.\n")
        path.write_text("\n".join(lines) + "\n")
        self.made()
        found = [f for f in self.check("prose") if '"told"' in f
                 and f"({reference.VCC}:{at + 1})" in f]
        self.assertEqual(len(found), 1, self.output)


class ReST(unittest.TestCase):
    def test_markdown(self) -> None:
        text = """\
Some ``code`` of `sandpaper.host()`_ and :ref:`vcl(7)`,
with <n> of it::

	sub x {

	    call y;
	}

*term*
	What it
	means.

*other*
	Else.

	More.

HEADING
=======

* one
  more
* two
"""
        lines = reference.rst([reference.Line(line, f"f:{n}") for n, line
                               in enumerate(text.splitlines(), 1)],
                              "```text\n|```")
        self.assertEqual(reference.text_of(lines), """\
Some `code` of [`host()`](#host) and `vcl(7)`, with \\<n> of it:

```text
sub x {

    call y;
}
```

- *term*: What it means.
- *other*: Else.

  More.

## Heading

- one more
- two

""")
        self.assertEqual(lines[0].origin, "f:1")


if __name__ == "__main__":
    unittest.main()
