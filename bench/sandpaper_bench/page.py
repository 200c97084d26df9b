# SPDX-License-Identifier: BSD-2-Clause
"""Pieces of an HTML page that stands alone: no script, nothing from outside.

A piece is text that is markup already; what comes from elsewhere goes through
`escape`.  The page's own policy forbids the browser to load anything.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem 1.25rem 4rem;
  background: #fff; color: #222; font: 16px/1.5 "DejaVu Sans", Verdana,
  system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.8rem 0 .6rem; padding-top: .9rem;
  border-top: 2px solid #222; }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { margin: .5rem 0; max-width: 48rem; }
a { color: #00507d; }
nav ol { columns: 3; margin: .6rem 0; padding-left: 1.6rem; }
.quiet { color: #555; font-size: .875rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8125rem; line-height: 1.35;
  font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { padding: .3rem .55rem; text-align: right; white-space: nowrap;
  vertical-align: top; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #222; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
.many { font-size: .75rem; }
.many th:not(:first-child), .many td:not(:first-child) {
  padding: .3rem .4rem; }
h2 .invalid { font-size: .875rem; vertical-align: .15rem; }
.claims td:first-child { white-space: normal; min-width: 15rem; }
.claims { width: 100%; }
.facts th { text-align: left; border-bottom: 1px solid #ddd;
  vertical-align: top; font-weight: normal; color: #555; }
.facts td { text-align: left; white-space: normal; }
.met, .missed, .unresolved, .invalid { display: inline-block;
  min-width: 6.4rem; padding: .05rem .5rem; border-radius: .6rem;
  text-align: center; font-weight: bold; border: 1.5px solid; }
.met { background: #e3f2fb; color: #00507d; }
.missed { background: #fdeadd; color: #9a4300; }
.unresolved { background: #f3f3f3; color: #444; border-style: dashed; }
.invalid { background: #222; color: #fff; border-color: #222; }
.alarm { border-left: 6px solid #222; background: #f3f3f3; padding: .5rem
  .9rem; margin: .8rem 0; max-width: none; }
.control { font-size: .875rem; margin: .3rem 0; padding-left: 1.2rem; }
figure { margin: 1rem 0 1.4rem; }
svg { display: block; width: 100%; height: auto; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
summary { cursor: pointer; }
pre { font-size: .75rem; line-height: 1.35; overflow-x: auto; background:
  #f7f7f7; padding: .6rem; max-height: 28rem; }
@media (max-width: 45rem) { nav ol { columns: 1; } }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; }
  h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
  .wide { overflow: visible; } table { font-size: 7.5pt; }
  th, td { padding: .2rem .3rem; } details { display: none; }
  .met, .missed, .unresolved, .invalid { min-width: 0; }
}
"""

MANY = 10  # columns, for smaller type
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, pieces: Sequence[str]) -> str:
    """Return the whole page."""
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en">', "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
        "</head>", "<body>", *pieces, "</body>", "</html>", ""])


def text(words: str, kind: str = "") -> str:
    """Return a paragraph."""
    return f"<p{classed(kind)}>{escape(words)}</p>"


def classed(kind: str) -> str:
    """Return the attribute of a class, if there is one."""
    return f' class="{kind}"' if kind else ""


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = ""
) -> str:
    """Return a table: the first column is words, the others are figures."""
    kind = kind or ("many" if len(head) > MANY else "")

    def row(cells: Sequence[str], tag: str) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        return "<tr>" + "".join(
            f"<{tag}{scope}>{marked(cell)}</{tag}>" for cell in cells
        ) + "</tr>"

    return (f'<div class="wide"><table{classed(kind)}><thead>'
            f"{row(head, 'th')}</thead><tbody>"
            + "\n".join(row(r, "td") for r in rows)
            + "</tbody></table></div>")


VERDICTS = ("met", "missed", "unresolved", "invalid")


def marked(cell: str) -> str:
    """Return a cell's text; a verdict is a badge."""
    if cell in VERDICTS:
        return f'<span class="{cell}">{cell}</span>'
    return escape(cell)


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names and what they stand for, a row each."""
    return '<div class="wide"><table class="facts"><tbody>' + "\n".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in pairs) + "</tbody></table></div>"


def raw(name: str, json: str) -> str:
    """Return a file to look at and to save."""
    data = base64.b64encode(json.encode()).decode()
    return (f"<details><summary>Raw results: {escape(name)}</summary>"
            f'<p><a download="{escape(name)}" '
            f'href="data:application/json;base64,{data}">Save {escape(name)}'
            f"</a></p><pre>{escape(json)}</pre></details>")
