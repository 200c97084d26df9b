# SPDX-License-Identifier: BSD-2-Clause
"""What the manual pages say is there for all, and its examples run.

Needs the patched Varnish that `make check` has built, in VARNISH_ROOT.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from common import ROOT, TOP, needs_varnish, ran

TIMEOUT = 120  # seconds
FUNCTION = re.compile(r"^\$(?:Function \w+|Object) (\w+)\(", re.MULTILINE)
COUNTER = re.compile(r"^\.\. varnish_vsc:: (\w+)$", re.MULTILINE)
PARAMETER = re.compile(r"^(\S.*)\n~{3,}\n", re.MULTILINE)
EXAMPLE = re.compile(r"Example: ``(.*?)``", re.DOTALL)
# A file of tenants: where the pages say that it is, and where it is here
SAID, TENANTS = "/etc/varnish/tenants", f"{TOP}/doc/examples/tenants"
SHOP = f"""
import sandpaper;
backend be none;
sub vcl_init {{
	sandpaper.tenants_file("{TENANTS}");
}}
"""


pytestmark = needs_varnish


def run(*command: str) -> str:
    """Run one of the installed programs; return what it printed."""
    path = f"{ROOT}/sbin:{ROOT}/bin:{os.environ['PATH']}"
    return ran(*command, env={**os.environ, "PATH": path},
               timeout=TIMEOUT).stdout


def sections(text: str, heading: re.Pattern[str]) -> dict[str, str]:
    """Split a text at its headings."""
    found = heading.split(text)
    return dict(zip(found[1::2], found[2::2], strict=True))


def varnishtest(folder: Path, body: str) -> None:
    vtc = folder / "example.vtc"
    vtc.write_text(f'varnishtest "examples"\n{body}')
    run("varnishtest", str(vtc))


FUNCTIONS = sections(
    (TOP / "vmod_sandpaper" / "vmod_sandpaper.vcc").read_text(), FUNCTION)
COUNTERS = {
    name: text for path in sorted((TOP / "src" / "varnishd").glob("*.vsc"))
    for name, text in sections(path.read_text(), COUNTER).items()}
assert len(FUNCTIONS) > 10
assert len(COUNTERS) > 40


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(folder: Path, name: str) -> None:
    section = FUNCTIONS[name]
    assert "$Restrict" in section  # of an object: its methods have it
    assert "Errors:" in section
    block = re.search(r"Example::\n\n((?:\t.*\n|\n)+)", section)
    assert block is not None
    assert f"sandpaper.{name}(" in block[1]
    varnishtest(folder, "varnish v1 -vcl {\nimport sandpaper;\n"
                "backend be none;\n"
                f"{block[1].replace(SAID, TENANTS)}\n}} -start\n")


OTHER = {  # allowed, and not the default
    "sandpaper_counter": ["thread-clock"],
    "sandpaper_new_hosts": ["tenant"],
    "sandpaper_nic_rate": ["1000000000"],
    "sandpaper_overload": ["limit"],
    "sandpaper_policy": ["fifo"],
    "sandpaper_status": ["429"],
}


def test_parameters(folder: Path) -> None:
    found = {
        name: text for name, text
        in sections(run("varnishd", "-x", "parameter"), PARAMETER).items()
        if name.startswith("sandpaper")}
    table = (TOP / "src/varnishd/tbl/sandpaper_params.h").read_text()
    assert len(found) == table.count("PARAM_SIMPLE(")
    body = "varnish v1 -vcl {backend be none;} -start\n"
    for name, text in found.items():
        default, *bounds = (
            re.search(rf"\* {what}: (\S+)", text)
            for what in ("Default", "Minimum", "Maximum"))
        assert default is not None, name
        other = next(value for value in (*OTHER.get(name, ()),
                                         *(b[1] for b in bounds if b),
                                         "off", "on")
                     if value != default[1])
        for value in (other, default[1]):
            body += f'varnish v1 -cliok "param.set {name} {value}"\n'
            shown = value.replace(".", "[.]")
            body += (f'varnish v1 -cliexpect "(?m)Value is: {shown}( |$)" '
                     f'"param.show {name}"\n')
    varnishtest(folder, body)


def test_commands(folder: Path) -> None:
    examples = [e for e in EXAMPLE.findall(run("varnishd", "-x", "cli"))
                if e.startswith("sandpaper.")]
    table = (TOP / "src/varnishd/tbl/sandpaper_cli.h").read_text()
    ours = re.findall(r'^\t"(sandpaper\.\w+)",', table, re.MULTILINE)
    assert {e.split()[0] for e in examples} == set(ours)
    varnishtest(folder, f"varnish v1 -vcl {{{SHOP}}} -start\n" + "".join(
        f'varnish v1 -cliok "{example}"\n' for example in examples))


@pytest.mark.parametrize("name", COUNTERS)
def test_counter(name: str) -> None:
    """It says its type, and its unit where it is no plain number."""
    text = COUNTERS[name]
    assert re.search(r":type:\t(counter|gauge)\n", text)
    line = re.search(r":oneliner:\t(.+)", text)
    assert line is not None
    for end, unit in (("_ns", "(ns)"), ("_ms", "(ms)"),
                      ("_rate", "(bits/s)")):
        assert unit in line[1] or not name.endswith(end)


@pytest.mark.parametrize(("page", "word"), [
    ("man1/varnishd.1", "sandpaper_queue_limit"),
    ("man7/varnish-cli.7", "sandpaper.show"),
    ("man7/varnish-counters.7", "SANDPAPER_TENANT"),
    ("man7/vsl.7", "Sandpaper"),
    ("man3/vmod_sandpaper.3", "queue_limit")])
def test_the_manual_pages_have_them(page: str, word: str) -> None:
    text = (Path(ROOT) / "share" / "man" / page).read_text()
    assert word in text.replace("\\", "")
