# SPDX-License-Identifier: BSD-2-Clause
"""A page's headings, links, and fenced blocks with the marks above them.

It reads the Markdown that our pages use: ATX headings, fences of ``` or ~~~,
inline links, reference links, and HTML comments on a line of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# What a reader reads; other pages (bench/README.md ..) only have their links
# checked.
READ = ("README.md", "CHANGES.md", "CONTRIBUTING.md", "SECURITY.md", "doc/")
RESULTS = "bench/results/"

FENCE = re.compile(r"^(?P<indent>[ >]*)(?P<ticks>`{3,}|~{3,})\s*(?P<info>.*)$")
MARK = re.compile(r"^[ >]*<!--\s*(?P<kind>test|run-by):\s*(?P<rest>.*?)\s*-->\s*$")
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
SPAN = re.compile(r"(`+)(?!`)(.*?)(?<!`)\1(?!`)")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
INLINE = re.compile(r"\]\(\s*<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?"
                    r"(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)")
DEFINITION = re.compile(r"^ {0,3}\[([^\]]+)\]:\s+<?(\S+?)>?(?:\s+\"[^\"]*\")?\s*$")
REFERENCE = re.compile(r"\]\[([^\]]*)\]")
AUTOLINK = re.compile(r"<((?:https?|mailto):[^>\s]*)>")
HTML_LINK = re.compile(r"""\b(?:href|src|srcset)=["']([^"']*)["']""")
HTML_ANCHOR = re.compile(r"""<a\s[^>]*\b(?:id|name)=["']([^"']+)["']""")


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and where."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


@dataclass
class Block:
    """A fenced block; `line` is its fence's, `kind` is its mark's."""

    line: int
    language: str
    text: str
    kind: str = ""
    rest: str = ""


@dataclass
class Page:
    name: str  # relative to the top, with slashes
    lines: int
    blocks: list[Block] = field(default_factory=list)
    links: list[tuple[int, str]] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)


def slug(heading: str) -> str:
    """The anchor that a heading's text has on GitHub, without a number."""
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", heading)
    text = re.sub(r"<[^>]+>", "", text)
    text = re.sub(r"(?<!\w)[*_]+|[*_]+(?!\w)|[*`]", "", text)
    text = re.sub(r"[^\w\- ]", "", text.strip().lower())
    return text.replace(" ", "-")


def parse(name: str, text: str) -> Page:
    # A comment may have several lines; a mark is one line and stays.
    text = COMMENT.sub(
        lambda m: m[0] if MARK.match(m[0]) else "\n" * m[0].count("\n"), text)
    lines = text.split("\n")
    page = Page(name, text.count("\n"))
    defined: dict[str, str] = {}
    asked: list[tuple[int, str]] = []
    headings: dict[str, int] = {}
    mark: tuple[int, re.Match[str]] | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if (fence := FENCE.match(line)) and "`" not in fence["info"]:
            start, body = at, []
            end = re.compile(rf"^[ >]*{re.escape(fence['ticks'][0])}"
                             rf"{{{len(fence['ticks'])},}}\s*$")
            while at < len(lines) and not end.match(lines[at]):
                body.append(lines[at].removeprefix(fence["indent"]))
                at += 1
            if at == len(lines):
                page.wrong.append(Wrong(name, start, "a block without an end"))
            at += 1
            block = Block(start, (fence["info"].split() or [""])[0].lower(),
                          "\n".join(body) + "\n")
            if mark:
                block.kind, block.rest = mark[1]["kind"], mark[1]["rest"]
                mark = None
            page.blocks.append(block)
            continue
        if mark and line.strip(" >"):
            page.wrong.append(Wrong(name, mark[0], "a mark without a block: it "
                                    "stands right above the fence"))
            mark = None
        if found := MARK.match(line):
            mark = at, found
            continue
        if heading := HEADING.match(line):
            anchor = slug(heading[2])
            seen = headings.get(anchor, 0)
            headings[anchor] = seen + 1
            page.anchors.add(f"{anchor}-{seen}" if seen else anchor)
        if definition := DEFINITION.match(line):
            defined[definition[1].lower()] = definition[2]
            page.links.append((at, definition[2]))
            continue
        bare = SPAN.sub("code", line)
        page.anchors.update(HTML_ANCHOR.findall(bare))
        for pattern in (INLINE, AUTOLINK, HTML_LINK):
            page.links += [(at, found) for found in pattern.findall(bare)]
        asked += [(at, found) for found in REFERENCE.findall(bare) if found]
    if mark:
        page.wrong.append(Wrong(name, mark[0], "a mark without a block"))
    for where, label in asked:
        if label.lower() not in defined:
            page.wrong.append(Wrong(name, where, f"a link to [{label}], which "
                                    "the page does not define"))
    return page


def files(top: Path) -> list[str]:
    """Every file of the work tree that git tracks or would track. Without git,
    as in a release's tarball, every file but what was built."""
    if not (top / ".git").exists():
        return sorted(
            str(path.relative_to(top)) for path in top.rglob("*")
            if not path.is_dir() and path.relative_to(top).parts[0] != "build")
    out = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co",
         "--exclude-standard"],
        cwd=top, capture_output=True, check=True).stdout.decode()
    return sorted({name for name in out.split("\0")
                   if name and os.path.lexists(top / name)})


def read_all(top: Path) -> dict[str, Page]:
    """Every page of the work tree, by name; not the dated results."""
    return {name: parse(name, (top / name).read_text(encoding="utf-8"))
            for name in files(top)
            if name.endswith(".md") and not name.startswith(RESULTS)}


def for_readers(pages: dict[str, Page]) -> dict[str, Page]:
    return {name: page for name, page in pages.items()
            if name.startswith(READ)}
