# SPDX-License-Identifier: BSD-2-Clause
"""The reference pages are what the code says, and check-docs sees it if not."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from common import ROOT, TOOLS, TOP, ran
from docs import reference
from repository import Repository


def make(repo: Repository) -> None:
    ran(sys.executable, TOOLS / "reference", "--top", repo.top, "--varnish",
        ROOT)


@pytest.fixture
def made(repo: Repository) -> Repository:
    """A repository with the pages that are written from the code."""
    if not ROOT:
        pytest.skip("VARNISH_ROOT is not set")
    for name in (reference.PARAMS, reference.CLI, reference.VCC,
                 *reference.COUNTERS):
        repo.write(name, (TOP / name).read_text(encoding="utf-8"))
    make(repo)
    return repo


def page(made: Repository, name: str) -> Path:
    return made.top / reference.FOLDER / name


def test_good(made: Repository) -> None:
    assert made.check("reference") == []
    assert "\n4 passed, 0 failed" in made.output
    for name, says in (("parameters.md", "## sandpaper_policy"),
                       ("counters.md", "### SANDPAPER.slots"),
                       ("cli.md", "## sandpaper.list"),
                       ("vmod.md", "### tenant")):
        assert f"\n{says}\n" in page(made, name).read_text()


def test_edited_by_hand(made: Repository) -> None:
    lines = page(made, "cli.md").read_text().splitlines()
    at = lines.index("## sandpaper.show")
    lines[at + 2] += " Always."
    page(made, "cli.md").write_text("\n".join(lines) + "\n")
    assert made.one("reference").startswith(
        f"doc/reference/cli.md:{at + 3}: is not what the code says")


def test_code_has_changed(made: Repository) -> None:
    path = made.top / reference.COUNTERS[0]
    text = path.read_text()
    path.write_text(text.replace(":oneliner:	", ":oneliner:	All: ", 2))
    assert re.search(
        r"^doc/reference/counters\.md:\d+: .* make reference "
        r"\(src/varnishd/VSC_sandpaper\.vsc:\d+\)$", made.one("reference"))
    make(made)
    assert made.check("reference") == []


def test_page_is_gone_or_nobodys(made: Repository) -> None:
    page(made, "vmod.md").unlink()
    page(made, "more.md").write_text("# More\n")
    assert made.check("reference") == [
        "doc/reference/vmod.md:1: is not there: make reference",
        "doc/reference/more.md:1: no code generates this page"]


def test_origin_of_prose(made: Repository) -> None:
    path = made.top / reference.VCC
    lines = path.read_text().splitlines()
    at = next(n for n, line in enumerate(lines)
              if line.startswith("$Function VOID tenant")) + 3
    lines.insert(at, "A tenant is told by the Host.\n")
    path.write_text("\n".join(lines) + "\n")
    make(made)
    found = [f for f in made.check("prose") if '"told"' in f
             and f"({reference.VCC}:{at + 1})" in f]
    assert len(found) == 1, made.output


def test_markdown() -> None:
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
    assert reference.text_of(lines) == ("""\
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
    assert lines[0].origin == "f:1"
