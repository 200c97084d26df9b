# SPDX-License-Identifier: BSD-2-Clause
"""tools/check-docs runs the commands of a page, and says which of them fail."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from common import ROOT, TIMEOUT, until
from repository import OTHER, Repository

REMAINS = re.compile(r"sandpaper-docs")


# What needs no Varnish: is each block marked?

def one(repo: Repository, text: str) -> str:
    """Return the only thing that is wrong with a page that has this, too."""
    repo.write("doc/a.md", OTHER + "\n" + text)
    return repo.one("commands")


@pytest.mark.parametrize(("text", "says"), [
    *((f"```{language}\nfalse\n```\n",
       f"doc/a.md:9: a {language} block without a mark")
      for language in ("sh", "bash", "vcl")),
    ("```\n$ false\n```\n", "doc/a.md:9: a block without a language"),
    ("- x\n\n  ```console\n  $ false\n  ```\n", "doc/a.md:11: console"),
    ("<!-- run-by: make demo -->\nSo:\n",
     "doc/a.md:9: a mark without a block"),
    ("<!-- run-by: make cake -->\n```sh\nx\n```\n",
     "doc/a.md:10: run-by: there is no make target cake"),
    ("<!-- run-by: .ci/run -->\n```sh\nx\n```\n",
     "doc/a.md:10: run-by: there is no .ci/run"),
    ("<!-- test: a -->\n```sh\ntrue\n(()\n```\n",
     "doc/a.md:12: syntax error"),
    ("```text\ntrue\n", "doc/a.md:9: a block without an end")],
    ids=lambda text: text.partition(": ")[2] or "")
def test_a_bad_block(repo: Repository, text: str, says: str) -> None:
    assert says in one(repo, text)


def test_runner_that_runs_something_else(repo: Repository) -> None:
    repo.write("tools/all", "#!/bin/sh\nmake -s check\n")
    (repo.top / "tools/all").chmod(0o755)
    block = "```sh\nmake install X=1 # yes\nso\n```\n"
    for name in ("make demo", "tools/all"):
        assert f"doc/a.md:10: run-by: {name} does not run make install" in one(
            repo, f"<!-- run-by: {name} -->\n{block}")
    repo.write("GNUmakefile", "all: x\n\ttools/all\n")
    repo.write("doc/a.md", OTHER + "".join(
        f"\n<!-- run-by: {name} -->\n```sh\nmake check\n```\n"
        for name in ("tools/all", "make all")))
    assert repo.check("commands") == []


def test_runner(repo: Repository) -> None:
    repo.write("doc/a.md", OTHER + "\n<!-- run-by: make demo X=1 -->\n"
               "```sh\nmake demo\n```\n\n```text\nout\n```\n")
    assert repo.check("commands") == []
    assert "\n1 passed, 0 failed" in repo.output


# In a namespace, with Varnish

def blocks(repo: Repository, *blocks: tuple[str, str]) -> None:
    """Blocks of a mark and a text; the first text is on line 11."""
    if not ROOT or os.geteuid() != 0:
        pytest.skip("VARNISH_ROOT is not set, or no root for namespaces")
    repo.write("doc/a.md", OTHER + "".join(
        f"\n<!-- test: {mark} -->\n```{'vcl' if mark == 'vcl' else 'sh'}\n"
        f"{text}```\n" for mark, text in blocks))


def test_good_commands(repo: Repository) -> None:
    blocks(repo,
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
    assert repo.check("commands") == []
    assert "\n4 passed, 0 failed" in repo.output


def test_failing_command(repo: Repository) -> None:
    blocks(repo, ("a", "true\n"), ("a", "echo so\nls /nowhere\ntrue\n"))
    assert repo.one("commands") == (
        "doc/a.md:17: group a: status 2 of: ls /nowhere")
    assert "\n  | so\n  | ls: " in repo.output


def test_unset_variable(repo: Repository) -> None:
    blocks(repo, ("a", "true\n"), ("a", 'true\necho "$nothing"\n'))
    assert repo.check("commands")[0].startswith(
        "doc/a.md:15: group a: status 1")
    assert "doc/a.md: line 17: nothing: unbound" in repo.output


def test_early_end(repo: Repository) -> None:
    blocks(repo, ("a", "exit 0\n"), ("a", "false\n"))
    assert repo.check("commands")[0].startswith(
        "doc/a.md:10: group a: ended before its last block")


def test_background_that_fails(repo: Repository) -> None:
    blocks(repo, ("a background", "exit 3\n"), ("a", "true\n"))
    assert repo.check("commands")[0].startswith(
        "doc/a.md:10: group a: status 3")


def test_wrong_vcl(repo: Repository) -> None:
    again = 'sandpaper.tenant("x");\n'
    blocks(repo, ("vcl", f"sub vcl_init {{\n{again}{again}}}\n"),
           ("vcl", "sub vcl_recv { nonsense; }\n"),
           ("vcl", "sub vcl_recv { }\n"))
    found = repo.check("commands")
    assert found == ["doc/a.md:10: this VCL does not load",
                     "doc/a.md:18: this VCL does not load"]
    assert "Symbol not found" in repo.output


def left_behind(repo: Repository, argument: str) -> list[str]:
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
    return found + [str(p) for p in repo.temporary.iterdir()]


def test_too_long(repo: Repository) -> None:
    blocks(repo, ("a", "setsid sleep 86399.25 &\necho x >/tmp/y\n"
                  "sleep 86399.25\n"))
    found = repo.check("commands", "--seconds", "4")
    assert found == ["doc/a.md:10: group a: no end after 4 s"]
    until(lambda: left_behind(repo, "86399.25") == [])
    assert not Path("/tmp/y").exists()


def test_host_is_read_only(repo: Repository) -> None:
    blocks(repo, ("a", "echo x >/etc/x\ntouch /root/x /tmp/x\n"
                  "mkdir /usr/sandpaper-docs-x\n"))
    found = repo.check("commands")
    assert re.search(r"^doc/a\.md:13: .*mkdir /usr", found[0])
    assert not Path("/etc/x").exists()


def test_interrupted(repo: Repository) -> None:
    blocks(repo, ("a", "sleep 86399.75\n"), ("b", "sleep 86399.75\n"),
           ("c", "sleep 86399.75\n"))
    child = subprocess.Popen(repo.argv("commands"), stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    until(lambda: any("sleep" in f for f in left_behind(repo, "86399.75")))
    child.send_signal(signal.SIGTERM)
    assert child.wait(TIMEOUT) == 143
    until(lambda: left_behind(repo, "86399.75") == [])
