# SPDX-License-Identifier: BSD-2-Clause
"""Writes doc/reference/ from what the code says of itself.

Parameters and CLI commands come from `varnishd -x`, counters from the .vsc
files, functions from the .vcc file. These texts are reStructuredText, of which
this knows what ours use. Each line of a page knows where its text comes from.
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from docs.pages import Wrong

FOLDER = "doc/reference"
PARAMS = "src/varnishd/tbl/sandpaper_params.h"
CLI = "src/varnishd/tbl/sandpaper_cli.h"
VCC = "vmod_sandpaper/vmod_sandpaper.vcc"
COUNTERS = ("src/varnishd/VSC_sandpaper.vsc",
            "src/varnishd/VSC_sandpaper_tenant.vsc")
WIDTH = 80
SECONDS = 60
UNDERLINE = re.compile(r"^([=\-~*^\"])\1{2,}$")
NOT_SHOWN = ("COPYRIGHT", "SEE ALSO")


class Line(NamedTuple):
    text: str
    origin: str = ""  # file:line


Lines = list[Line]


class NoSource(Exception):
    """The code does not say what a page needs."""


def inline(text: str) -> str:
    """Markdown of a line of text."""
    spans: list[str] = []

    def keep(markdown: str) -> str:
        spans.append(markdown)
        return f"\0{len(spans) - 1}\0"

    text = re.sub(r"``(.+?)``", lambda m: keep(f"`{m[1]}`"), text)
    text = re.sub(r":\w+:`([^`]+)`", lambda m: keep(f"`{m[1]}`"), text)
    text = re.sub(r"`([^`]+\(\))`_", lambda m: keep(
        f"[`{m[1].removeprefix('sandpaper.')}`]"
        f"(#{m[1].removeprefix('sandpaper.')[:-2].lower()})"), text)
    text = re.sub(r"`([^`<]+)`_", lambda m: keep(
        f"[{m[1].capitalize()}](#{m[1].lower().replace(' ', '-')})"), text)
    text = re.sub(r"`([^`]+)`", lambda m: keep(f"*{m[1]}*"), text)
    text = re.sub(r"<(?=[\w/!])", r"\\<", text)
    return re.sub(r"\0(\d+)\0", lambda m: spans[int(m[1])], text)


def wrap(text: str, origin: str, first: str = "", rest: str = "") -> Lines:
    text = re.sub(r"(?<=\S)  +", " ", text)
    # No line breaks in code, or before what would begin a list or heading.
    text = re.sub(r"`[^`]+`", lambda m: m[0].replace(" ", "\0"), text)
    text = re.sub(r" (?=(?:[-+*#>]+|\d+[.)])(?:\s|$))", "\0", text)
    return [Line(line.replace("\0", " "), origin) for line in textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False)]


def indent_of(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def rst(lines: Lines, code: str, level: int = 2, margin: str = "") -> Lines:
    """Markdown of reStructuredText; `code` is how a literal block begins."""
    lines = [Line(line.text.expandtabs(8).rstrip(), line.origin)
             for line in lines]
    filled = [indent_of(line.text) for line in lines if line.text]
    base = min(filled, default=0)
    lines = [Line(line.text[base:], line.origin) for line in lines]
    out: Lines = []
    at = 0

    def block(begin: int) -> tuple[Lines, int]:
        """The indented lines from there on, and where they end."""
        end = begin
        while end < len(lines) and (not lines[end].text
                                    or indent_of(lines[end].text) > 0):
            end += 1
        while end > begin and not lines[end - 1].text:
            end -= 1
        return lines[begin:end], end

    def literal(begin: int) -> int:
        body, end = block(begin)
        while body and not body[0].text:
            body = body[1:]
        depth = min((indent_of(b.text) for b in body if b.text), default=0)
        opened, _, closed = code.partition("|")
        out.extend(Line(margin + text, body[0].origin if body else "")
                   for text in opened.splitlines())
        out.extend(Line((margin + b.text[depth:]).rstrip(), b.origin)
                   for b in body)
        out.extend((Line(margin + closed), Line("")))
        return end

    while at < len(lines):
        text, origin = lines[at]
        if not text:
            at += 1
            continue
        after = lines[at + 1].text if at + 1 < len(lines) else ""
        if indent_of(text) > 0:  # a quotation
            body, at = block(at)
            out += rst(body, code, level, margin)
            continue
        if UNDERLINE.match(after) and len(after) >= len(text):
            out += [Line("#" * level + " " + inline(text).capitalize(),
                         origin), Line("")]
            at += 2
            continue
        if text.startswith(".. "):
            at = block(at + 1)[1]
            continue
        if text == "::":
            at = literal(at + 1)
            continue
        bullet = re.match(r"^([*-]) +", text)
        if not bullet and after and indent_of(after) > 0:  # a definition
            body, end = block(at + 1)
            out += definition(text, origin, body, code, level, margin)
            at = end
            ended = (at >= len(lines) or indent_of(lines[at].text) > 0
                     or not is_definition(lines, at))
            if ended:
                out.append(Line(""))
            continue
        if bullet:
            body, end = block(at + 1)
            words = [text[len(bullet[0]):]] + [b.text.strip() for b in body]
            out += wrap(inline(" ".join(w for w in words if w)), origin,
                        margin + "- ", margin + "  ")
            at = end
            if at >= len(lines) or not lines[at].text:
                out.append(Line(""))
            continue
        end = at
        while (end < len(lines) and lines[end].text
               and indent_of(lines[end].text) == 0):
            end += 1
        words = [line.text for line in lines[at:end]]
        joined = " ".join(words)
        shown = joined[:-1] if joined.endswith("::") else joined
        # Line by line, so that each line of the page knows its origin.
        out += paragraph(lines[at:end], shown.endswith(":")
                         and joined.endswith("::"), margin)
        out.append(Line(""))
        at = literal(end) if joined.endswith("::") else end
    return out


def is_definition(lines: Lines, at: int) -> bool:
    while at < len(lines) and not lines[at].text:
        at += 1
    return (at + 1 < len(lines) and bool(lines[at + 1].text)
            and indent_of(lines[at].text) == 0
            and indent_of(lines[at + 1].text) > 0)


def definition(term: str, origin: str, body: Lines, code: str, level: int,
               margin: str) -> Lines:
    """A list's item: the term, its first paragraph, and what follows."""
    body = [Line(b.text.strip() if n == 0 else b.text, b.origin)
            for n, b in enumerate(body)]
    depth = min((indent_of(b.text) for b in body[1:] if b.text), default=0)
    end = next((n for n, b in enumerate(body)
                if not b.text or n and indent_of(b.text) > depth), len(body))
    first = [Line(b.text.strip(), b.origin) for b in body[:end]]
    if first[-1].text.endswith("::"):  # what follows is literal
        end, first = 0, []
    head = paragraph([Line(f"{term}:", origin), *first], False, margin + "- ",
                     margin + "  ")
    inner = rst(body[end:], code, level, margin + "  ")
    while inner and not inner[-1].text:
        inner.pop()
    return [*head, *([Line("")] if inner and first else []), *inner]


def paragraph(lines: Lines, cut: bool, margin: str,
              rest: str | None = None) -> Lines:
    """A paragraph, wrapped; a line's origin is that of its first word."""
    text = " ".join(line.text for line in lines)
    if cut:
        text = text[:-1]
    out = wrap(inline(text), "", margin, margin if rest is None else rest)
    # A line of the page begins after as many letters as the one of the source.
    total = sum(len(line.text) for line in lines) or 1
    done = 0
    placed: Lines = []
    whole = sum(len(line.text) for line in out) or 1
    for line in out:
        seek, at = done * total // whole, 0
        while at + 1 < len(lines) and seek >= len(lines[at].text):
            seek -= len(lines[at].text)
            at += 1
        placed.append(Line(line.text, lines[at].origin))
        done += len(line.text)
    return placed


def head(title: str, made_from: Iterable[str]) -> Lines:
    return [Line(f"# {title}"), Line(""),
            Line(f"<!-- make reference wrote this from {', '.join(made_from)}."),
            Line("Edit those, not this page. -->"), Line("")]


def numbered(name: str, text: str) -> Lines:
    return [Line(line, f"{name}:{n}")
            for n, line in enumerate(text.splitlines(), 1)]


def dumped(varnishd: Path, what: str, mark: str) -> Iterator[tuple[str, str]]:
    """Title and text of each section of `varnishd -x` that begins so."""
    done = subprocess.run([str(varnishd), "-x", what], capture_output=True,
                          text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise NoSource(f"{varnishd} -x {what}: {done.stderr.strip()[-300:]}")
    found = re.split(r"^(\S.*)\n~{3,}\n", done.stdout, flags=re.MULTILINE)
    sections = list(zip(found[1::2], found[2::2], strict=True))
    ours = [(title, re.sub(r"^\.\. _\w+:\n*", "", text, flags=re.MULTILINE))
            for title, text in sections if title.startswith(mark)]
    if not ours:
        raise NoSource(f"{varnishd} -x {what} knows nothing of {mark}")
    yield from sorted(ours)


def line_of(top: Path, name: str, pattern: str) -> str:
    text = (top / name).read_text(encoding="utf-8")
    found = re.search(pattern, text, flags=re.MULTILINE)
    return f"{name}:{text.count(chr(10), 0, found.start()) + 1 if found else 1}"


def parameters(top: Path, varnishd: Path) -> Lines:
    out = head("Parameters", ["`varnishd -x parameter`"])
    out += [Line("Set a parameter with `varnishd -p NAME=VALUE`, or with "
                 "`param.set NAME VALUE` in"),
            Line("the CLI."), Line(""),
            Line("| Parameter | Default | Minimum | Maximum |"),
            Line("| --- | --- | --- | --- |")]
    body: Lines = []
    for name, text in dumped(varnishd, "parameter", "sandpaper"):
        origin = line_of(top, PARAMS, rf"^\s*/\* name \*/\s+{name},")
        facts = dict(re.findall(r"^\t\* (\w+): (.*)$", text,
                                flags=re.MULTILINE))
        text = re.sub(r"^\t\* \w+: .*\n", "", text, flags=re.MULTILINE)
        units = facts.get("Units", "")

        def value(key: str, facts: dict[str, str] = facts,
                  units: str = units) -> str:
            said = facts.get(key)
            if said is None:
                return ""
            return f"`{said}`" + (f" {units}" if units else "")

        cells = [value(key) for key in ("Default", "Minimum", "Maximum")]
        out.append(Line(f"| [`{name}`](#{name}) | " + " | ".join(cells) + " |",
                        origin))
        body += [Line(f"## {name}", origin), Line("")]
        body += [Line(f"- {key}: {value(key)}", origin)
                 for key in ("Default", "Minimum", "Maximum") if value(key)]
        if flags := facts.get("Flags"):
            body.append(Line(f"- Flags: {flags}", origin))
        body.append(Line(""))
        body += rst([Line(line, origin) for line in text.splitlines()],
                    "```text\n|```")
    return [*out, Line(""), *body]


def cli(top: Path, varnishd: Path) -> Lines:
    out = head("CLI commands", ["`varnishd -x cli`"])
    out += [Line("Send a command with `varnishadm COMMAND`."), Line("")]
    for syntax, text in dumped(varnishd, "cli", "sandpaper."):
        name = syntax.split()[0]
        origin = line_of(top, CLI, rf'^\s*"{re.escape(name)}",')
        out += [Line(f"## {name}", origin), Line(""),
                Line(f"Syntax: `{syntax}`", origin), Line("")]
        out += rst([Line(line, origin) for line in text.splitlines()],
                   "```text\n|```")
    return out


def counters(top: Path, varnishd: Path) -> Lines:
    del varnishd
    out = head("Counters", [f"`{name}`" for name in COUNTERS])
    out += [Line("Read the counters with `varnishstat`. A gauge goes up and "
                 "down, a counter only"), Line("goes up."), Line("")]
    for name in COUNTERS:
        out += counter_set(name, (top / name).read_text(encoding="utf-8"))
    return out


def counter_set(name: str, text: str) -> Lines:
    out: Lines = []
    prefix = ""
    parts: list[tuple[Line, Lines]] = []
    for line in numbered(name, text):
        if re.match(r"^\.\. varnish_vsc(_begin|_end)?::", line.text):
            parts.append((line, []))
        elif parts:
            parts[-1][1].append(line)
    for title, body in parts:
        kind, _, what = title.text[3:].partition("::")
        what = what.strip()
        facts = {m[1]: m[2].strip() for b in body
                 if (m := re.match(r"^\s+:(\w+):\s*(.*)$", b.text))}
        rest = [b for b in body if not re.match(r"^\s+:\w+:", b.text)]
        said = facts.get("oneliner", "").rstrip(".") + "."
        if kind == "varnish_vsc_begin":
            prefix = what.upper() + (".NAME." if "tenant" in what else ".")
            out += [Line(f"## {prefix}*", title.origin), Line(""),
                    Line(inline(said), title.origin), Line("")]
        elif kind == "varnish_vsc":
            origin = next((b.origin for b in body if ":oneliner:" in b.text),
                          title.origin)
            unit = facts.get("format", "")
            kindly = facts.get("type", "counter") + (
                f" of {unit}" if unit in ("bytes",) else "")
            out += [Line(f"### {prefix}{what}", title.origin), Line("")]
            out += wrap(f"*{kindly.capitalize()}:* {inline(said)}", origin)
            out.append(Line(""))
        else:
            continue
        out += rst(rest, "```text\n|```", 3)
    if not prefix:
        raise NoSource(f"{name} has no counters")
    return out


CALLS = {
    "Function": r"(\S+)\s+(\w+)\((.*)\)\s*$",
    "Object": r"()(\w+)\((.*)\)\s*$",
    "Method": r"(\S+)\s+(\.\w+)\((.*)\)\s*$",
}


def vmod(top: Path, varnishd: Path) -> Lines:
    del varnishd
    lines = numbered(VCC, (top / VCC).read_text(encoding="utf-8"))
    out = head("VMOD functions", [f"`{VCC}`"])
    at = next((n for n, line in enumerate(lines)
               if line.text.startswith("$Module")), None)
    if at is None:
        raise NoSource(f"{VCC} has no $Module")
    # What a $ begins goes on in indented lines, up to an empty one.
    prose: Lines = []
    functions = False

    def flush() -> None:
        out.extend(rst(shown(prose), "<!-- test: vcl -->\n```vcl\n|```"))
        prose.clear()

    while at < len(lines):
        text, origin = lines[at]
        if not text.startswith("$"):
            prose.append(lines[at])
            at += 1
            continue
        flush()
        keyword, _, rest = text[1:].partition(" ")
        at += 1
        while at < len(lines) and re.match(r"^\s+\S", lines[at].text):
            rest += " " + lines[at].text.strip()
            at += 1
        if keyword == "Module":
            title = re.search(r'"([^"]*)"', rest)
            if title:
                out += [Line(f"{title[1].rstrip('.')}.", origin), Line("")]
        elif keyword in CALLS:
            if not functions:
                out += [Line("## Functions"), Line("")]
                functions = True
            out += call(keyword, rest, origin)
        elif keyword == "Restrict":
            where = " ".join(f"`{w}`" for w in rest.split())
            said = ("You can call it in client-side subroutines."
                    if rest.strip() == "client"
                    else f"You can call it in {where}.")
            out += [Line(said, origin), Line("")]
    flush()
    return out


def call(keyword: str, rest: str, origin: str) -> Lines:
    """Return the heading and the syntax of a function, object or method."""
    found = re.match(CALLS[keyword], rest)
    if found is None:
        raise NoSource(f"{origin}: what is ${keyword} {rest}?")
    kind, name, given = found.groups()
    given = re.sub(r"\s+", " ", given.strip())
    syntax = {"Function": f"sandpaper.{name}({given})",
              "Object": f"new NAME = sandpaper.{name}({given})",
              "Method": f"NAME{name}({given})"}[keyword]
    if kind and kind != "VOID":
        syntax = f"{kind} {syntax}"
    return [Line(f"### {name}", origin), Line(""), Line("```text"),
            *(Line(line, origin) for line in textwrap.wrap(
                syntax, WIDTH, subsequent_indent="    ",
                break_long_words=False)),
            Line("```"), Line("")]


def shown(lines: Lines) -> Lines:
    """Without the sections that say nothing here."""
    out: Lines = []
    hidden = False
    for n, line in enumerate(lines):
        after = lines[n + 1].text if n + 1 < len(lines) else ""
        if UNDERLINE.match(after) and line.text:
            hidden = line.text in NOT_SHOWN
        if not hidden:
            out.append(line)
    return out


PAGES: dict[str, Callable[[Path, Path], Lines]] = {
    "parameters.md": parameters,
    "counters.md": counters,
    "cli.md": cli,
    "vmod.md": vmod,
}


def pages(top: Path, varnishd: Path) -> dict[str, Lines]:
    """Every page by its name, as the code says it now."""
    made = {}
    for name, make in PAGES.items():
        lines: Lines = []
        for line in make(top, varnishd):  # one empty line, not two
            if line.text or (lines and lines[-1].text):
                lines.append(line)
        while lines and not lines[-1].text:
            lines.pop()
        made[f"{FOLDER}/{name}"] = lines
    return made


def text_of(lines: Lines) -> str:
    return "".join(line.text + "\n" for line in lines)


def check(top: Path, made: dict[str, Lines]) -> dict[str, list[Wrong]]:
    """Is each page of the work tree what the code says?"""
    found: dict[str, list[Wrong]] = {}
    for name, lines in made.items():
        path = top / name
        found[name] = []
        if not path.exists():
            found[name].append(Wrong(name, 1, "is not there: make reference"))
            continue
        old = path.read_text(encoding="utf-8").splitlines()
        new = [line.text for line in lines]
        if old != new:
            at = next((n for n, pair in enumerate(zip(old, new, strict=False))
                       if pair[0] != pair[1]), min(len(old), len(new)))
            origin = lines[at].origin if at < len(lines) else ""
            found[name].append(Wrong(
                name, at + 1, "is not what the code says: make reference"
                + (f" ({origin})" if origin else "")))
    folder = top / FOLDER
    for path in sorted(folder.glob("*")) if folder.is_dir() else []:
        name = f"{FOLDER}/{path.name}"
        if name not in made:
            found[name] = [Wrong(name, 1, "no code generates this page")]
    return found


def write(top: Path, made: dict[str, Lines]) -> list[str]:
    """Write the pages that are not as they should be; their names."""
    (top / FOLDER).mkdir(parents=True, exist_ok=True)
    changed = []
    for name, lines in made.items():
        path, text = top / name, text_of(lines)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(name)
    return changed
