# SPDX-License-Identifier: BSD-2-Clause
"""tools/check-docs finds what is wrong with prose and links, and says where."""

from __future__ import annotations

import re

import pytest
from docs import pages, prose
from repository import OTHER, README, Repository


def test_good_prose(repo: Repository) -> None:
    repo.write("README.md", README + "\nIt runs `but for told`, or **so**.\n"
               "\n```text\ntold\n```\n")
    assert repo.check("prose") == []


def test_banned_word(repo: Repository) -> None:
    repo.write("doc/a.md", OTHER + "\n- An item.\n- A tenant is\n  but\n"
               "  for that found.\n\n| what |\n| --- |\n| told |\n")
    found = repo.check("prose")
    assert [f.partition(": ")[0] for f in found] == [
        "doc/a.md:11", "doc/a.md:16"]
    assert '"but for": write "except for"' in found[0]


def test_one_word_a_thing(repo: Repository) -> None:
    repo.write("doc/a.md", OTHER + "\nThe NIC is full.\n")
    repo.write("doc/internals/b.md", "# B\n\nThe NIC is full.\n")
    repo.one("prose")


def test_long_sentence(repo: Repository) -> None:
    words = " ".join(["word"] * 15)
    repo.write("doc/a.md", f"# A\n\nShort. Long {words}\n{words} `a b c`.\n"
               + "\nShort one.\n" * 3)
    assert repo.one("prose").startswith(
        'doc/a.md:3: a sentence of 32 words, at most 30: "Long word')


def test_thirty_words_are_enough(repo: Repository) -> None:
    words = " ".join(["word"] * 30)
    repo.write("doc/a.md", f"# A\n\n{words}.\n" + "\nShort one.\n" * 3)
    assert repo.check("prose") == []


def test_number_ends_a_sentence(repo: Repository) -> None:
    words = " ".join(["word"] * 18)
    repo.write("doc/a.md", f"# A\n\nAt most {words} 1024. If {words}, 5. 0 "
               f"{words}. See 7.7. The e.g. {words}.\n")
    assert repo.check("prose") == []


def test_mean(repo: Repository) -> None:
    words = " ".join(["word"] * 21)
    repo.write("doc/a.md", f"# A\n\n{words}. {words}. " + words[5:] + ".\n")
    assert repo.one("prose") == (
        "doc/a.md:1: the page's mean sentence has 20.7 words, at most 20")


def test_readme_length(repo: Repository) -> None:
    repo.write("README.md", README + "\nText.\n" * 80)
    assert repo.check("prose") == ["README.md:151: 163 lines: at most 150"]


@pytest.mark.parametrize("entry", prose.words_for("doc/a.md"),
                         ids=lambda entry: entry["find"])
def test_list_is_used(entry: dict[str, str]) -> None:
    """Each entry is an expression that JavaScript and Python read alike."""
    re.compile(entry["find"])
    assert entry["write"]


def test_good_links(repo: Repository) -> None:
    repo.write("README.md", README + "[a](doc/) ![b](<doc/a.md>) [c]: "
               "<https://a.example/x?y#z> [d](#title) `[e](gone)` [f][g]\n\n"
               "[g]: doc/a.md 'title'\n\n```text\n[h](gone)\n```\n"
               .replace("'", '"'))
    assert repo.check("links") == []


def test_broken(repo: Repository) -> None:
    repo.write("README.md", README + "\n[a](doc/gone.md)\n[b](doc/a.md#less)"
               "\n[c](../x) and [d](http://)\n[e][nothing]\n"
               '<img src="gone.svg">\n[f](https://ex ample/)\n')
    found = repo.check("links")
    assert [f.partition(" ")[0] for f in found] == [
        f"README.md:{n}:" for n in (5, 6, 7, 7, 9)]


def test_page_without_a_link(repo: Repository) -> None:
    repo.write("doc/b.md", "# B\n\n[a](a.md)\n")
    assert repo.check("links") == [
        "doc/b.md:1: no link from README.md leads here"]


def test_anchors() -> None:
    page = pages.parse("x.md", "# `a_b`: C, d!\n\n## Again\n\n## Again\n\n"
                       "## [An *old* one](x.md) -- é\n")
    assert page.anchors == {"a_b-c-d", "again", "again-1", "an-old-one----é"}
