# SPDX-License-Identifier: BSD-2-Clause
"""Writes measured figures into pages, from the records in bench/results/.

A table stands between `<!-- figures: NAME -->` and `<!-- end -->`, a figure in
a text between `<!-- figure: NAME -->` and `<!-- end -->`. What stands there is
rendered by bench/sandpaper_bench/figures.py. In the pages TYPED_IN nobody may
type a figure into another table.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

from docs.pages import FENCE, Wrong

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from sandpaper_bench import record  # noqa: E402
from sandpaper_bench.figures import Figures, Unknown  # noqa: E402
from sandpaper_bench.markdown import IS_OLD, OLD  # noqa: E402
from sandpaper_bench.pedigree import History  # noqa: E402

RESULTS = Path("bench") / "results"
TYPED_IN = ("README.md", "doc/results.md")
WIDTH = 100
BLOCK = re.compile(r"^<!-- figures: (?P<words>[^>]*?) -->\n(?P<old>.*?)"
                   r"^<!-- end -->$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"<!-- figure: (?P<words>[^>]*?) -->(?P<old>.*?)"
                    r"<!-- end -->", re.DOTALL)
MARKED = re.compile(rf"\b([0-9a-f]{{7,}}(?:-dirty)?){OLD}")
# Not a version such as 7.7: those name a row, and stand in the first cell
FIGURE = re.compile(r"\d\.\d|\d (?:%|(?:ms|us|s|MB|requests/s)\b)")


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def filled(text: str) -> str:
    """Tables as they are, other paragraphs wrapped."""
    return "\n\n".join(
        part if part.startswith("|") else textwrap.fill(
            part, WIDTH, break_long_words=False, break_on_hyphens=False)
        for part in text.split("\n\n"))


def bare(text: str) -> str:
    """Text without marks of age, for a clone without history."""
    return " ".join(text.replace(IS_OLD, "").replace(OLD, "").split())


class Renderer:
    def __init__(self, top: Path, pages: list[str]) -> None:
        self.top = top
        folder = top / RESULTS
        records = record.read(folder) if folder.is_dir() else {}
        history = History(top)
        self.knows_age = history.known
        marked = {commit for name in pages for commit in MARKED.findall(
            (top / name).read_text(encoding="utf-8"))}
        self.figures = Figures(
            records, history.is_old if history.known else marked.__contains__)

    def page(self, name: str) -> tuple[str, str, list[Wrong]]:
        """A page as it is, as it should be, and what is wrong with it."""
        old = (self.top / name).read_text(encoding="utf-8")
        wrong: list[Wrong] = []

        def replace(m: re.Match[str], block: bool) -> str:
            line = line_of(m.string, m.start())
            try:
                new = (filled(self.figures.render(m["words"])) if block
                       else self.figures.figure(m["words"]))
            except (Unknown, TypeError) as e:
                wrong.append(Wrong(name, line, str(e)))
                return m[0]
            same = (" ".join(new.split()) == " ".join(m["old"].split())
                    if self.knows_age else bare(new) == bare(m["old"]))
            if same:
                return m[0]
            wrong.append(Wrong(name, line, f"is not what {RESULTS}/*.json "
                               "say: make figures"))
            kind, space = ("figures", "\n") if block else ("figure", "")
            return (f"<!-- {kind}: {m['words']} -->{space}{new}{space}"
                    "<!-- end -->")

        new = BLOCK.sub(lambda m: replace(m, block=True), old)
        new = INLINE.sub(lambda m: replace(m, block=False), new)
        opened = len(re.findall(r"<!-- figures?: ", old))
        ended = len(BLOCK.findall(old)) + len(INLINE.findall(old))
        if opened != ended:
            wrong.append(Wrong(name, 1, "a figure's mark has no <!-- end -->"))
        return old, new, wrong


def typed(name: str, text: str) -> list[Wrong]:
    """Tables with figures that no record gives."""
    text = BLOCK.sub(lambda m: "\n" * m[0].count("\n"), text)
    text = INLINE.sub(lambda m: "\n" * m[0].count("\n"), text)
    found, fence = [], ""
    for number, line in enumerate(text.split("\n"), 1):
        if mark := FENCE.match(line):
            fence = "" if fence and mark["ticks"].startswith(fence) else (
                fence or mark["ticks"])
        elif not fence and line.startswith("|"):
            cells = re.sub(r"\]\([^)]*\)", "]", line).split("|")[2:]
            if hit := FIGURE.search(" | ".join(cells)):
                found.append(Wrong(name, number, f"a typed figure ({hit[0]}): "
                                   "let `figures` marks render it from "
                                   f"{RESULTS}/*.json"))
    return found


def check(top: Path, pages: list[str]) -> dict[str, list[Wrong]]:
    """What is wrong with the figures of each page."""
    renderer = Renderer(top, pages)
    found = {}
    for name in pages:
        old, _, wrong = renderer.page(name)
        found[name] = wrong + (typed(name, old) if name in TYPED_IN else [])
    return found


def write(top: Path, pages: list[str]) -> tuple[list[str], list[Wrong]]:
    """Write the pages that are not as they should be; what cannot be."""
    renderer, changed, left = Renderer(top, pages), [], []
    for name in pages:
        old, new, wrong = renderer.page(name)
        if new != old:
            (top / name).write_text(new, encoding="utf-8")
            changed.append(name)
        left += [w for w in wrong if "make figures" not in w.what]
    return changed, left
