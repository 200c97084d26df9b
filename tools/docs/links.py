# SPDX-License-Identifier: BSD-2-Clause
"""Do the links lead somewhere, and does the README lead to every page?

Nothing is asked from the network: of a URL only the form is checked.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from docs.pages import Page, Wrong

START = "README.md"
HOST = re.compile(r"^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]{2,}$")
PLAIN = re.compile(r"^[\w.~:/?#\[\]@!$&'()*+,;=%-]+$", re.ASCII)


def url_is_wrong(link: str) -> str:
    """What is wrong with the form of a URL; empty if nothing is."""
    try:
        parts = urlsplit(link)
        host, _ = parts.hostname or "", parts.port
    except ValueError as e:
        return f"{link} is no URL: {e}"
    if not PLAIN.match(link):
        return f"{link} has a character that no URL may have"
    if parts.scheme == "mailto":
        ok = re.fullmatch(r"[^@\s]+@[^@\s]+", parts.path)
        return "" if ok else f"{link} has no mail address"
    if parts.scheme not in ("http", "https"):
        return f"{link}: only https, http and mailto are known"
    local = host in ("localhost", "127.0.0.1", "::1")
    return "" if local or HOST.match(host) else f"{link} has no host name"


def resolve(page: str, path: str) -> str:
    """A link's path from the top; one that begins with / is from there."""
    if path.startswith("/"):
        return posixpath.normpath(path[1:])
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def target_is_wrong(top: Path, known: set[str], pages: dict[str, Page],
                    page: Page, link: str) -> str:
    path, _, anchor = link.partition("#")
    path, anchor = unquote(path), unquote(anchor)
    name = resolve(page.name, path) if path else page.name
    if name.startswith(".."):
        return f"{link} leads out of the repository"
    folder = any(f.startswith(name.rstrip("/") + "/") for f in known)
    if name not in known and not folder and name != ".":
        kind = ("git does not track it" if (top / name).exists()
                else "there is no such file")
        return f"{link}: {kind}"
    if anchor and name in pages and anchor not in pages[name].anchors:
        return f"{link}: {name} has no heading with the anchor #{anchor}"
    return ""


def check_page(top: Path, known: set[str], pages: dict[str, Page],
               page: Page) -> Iterator[Wrong]:
    for line, link in page.links:
        if re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", link):
            what = url_is_wrong(link)
        elif not link:
            what = "an empty link"
        else:
            what = target_is_wrong(top, known, pages, page, link)
        if what:
            yield Wrong(page.name, line, what)


def reached(pages: dict[str, Page]) -> set[str]:
    """The pages that somebody who begins with the README comes to."""
    seen: set[str] = set()
    todo = [START] if START in pages else []
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for _, link in pages[name].links:
            path = unquote(link.partition("#")[0])
            if path and resolve(name, path) in pages:
                todo.append(resolve(name, path))
    return seen


def check(top: Path, known: set[str],
          pages: dict[str, Page]) -> dict[str, list[Wrong]]:
    """What is wrong with the links of each page."""
    found = {name: list(check_page(top, known, pages, page))
             for name, page in pages.items()}
    there = reached(pages)
    for name in pages:
        if name.startswith("doc/") and name not in there:
            found[name].append(Wrong(name, 1, f"no link from {START} leads here"))
    return found
