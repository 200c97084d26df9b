# SPDX-License-Identifier: BSD-2-Clause
"""sandpaper.list -j and sandpaper.show -j are what their schema says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from common import TOP

from sandpaper_ask import of_table
from varnishd import Varnishd

SCHEMA = json.loads((TOP / "doc/list.schema.json").read_text())
TENANT = SCHEMA["$defs"]["tenant"]
MAP = """vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
	sandpaper.group("g");
	sandpaper.tenant("shop", weight = 2, queue_limit = 1);
	sandpaper.host("shop", "shop.example");
	sandpaper.member("shop", "g");
	sandpaper.target("shop", 10s);
	sandpaper.unknown(OWN);
}
sub vcl_recv { return (synth(200)); }
"""


def validate(said: Any, schema: dict[str, Any]) -> None:  # noqa: ANN401
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(said)


def shape(state: dict[str, Any]) -> tuple[set[str], dict[str, set[str]]]:
    """Return the keys, and the keys of each tenant."""
    return set(state), {t["tenant"]: set(t) for t in state["list"]}


def test_each_field_is_in_the_schema(varnishd: Varnishd) -> None:
    varnishd.start(vcl=MAP)
    varnishd.cli("sandpaper.set shop weight=3")
    assert varnishd.get("new.example") == 200
    varnishd.cli("debug.sandpaper.freeze")
    waits = varnishd.ask("shop.example")
    varnishd.cli("debug.sandpaper.wait 1")
    assert varnishd.get("shop.example") == 503
    state = varnishd.state()
    validate(state, SCHEMA)
    assert set(state) == set(SCHEMA["properties"]) - {"keys"}
    table = json.loads(varnishd.cli("sandpaper.list -j -t 100"))[3]
    validate(table, SCHEMA)
    assert set(table["keys"]) == set(TENANT["properties"])
    assert shape(of_table(table)) == shape(state)
    keys = {key for tenant in state["list"] for key in tenant}
    assert keys == set(TENANT["properties"])
    for tenant in state["list"]:
        said = json.loads(varnishd.cli(
            f"sandpaper.show -j {tenant['tenant']}"))[3]
        validate(said, TENANT)
    varnishd.cli("debug.sandpaper.thaw")
    assert b" 200 " in waits.recv(4096)


def test_a_table_of_many_tenants_has_the_same_values(
        varnishd: Varnishd) -> None:
    """They are more than one buffer of the text."""
    varnishd.start(vcl="""vcl 4.1;
import sandpaper;
backend none none;
sub vcl_init {
""" + "".join(f'\tsandpaper.tenant("t{n}", weight = {n}.5);\n'
              f'\tsandpaper.host("t{n}", "t{n}");\n' for n in range(1, 200))
                   + "}\nsub vcl_recv { return (synth(200)); }\n")

    def said(*options: str) -> list[dict[str, Any]]:
        found = json.loads(varnishd.cli(" ".join(
            ("sandpaper.list -j", *options,
             "-c weight,queue_limit,mapped -s tenant 1000"))))[3]
        rows: list[dict[str, Any]] = (of_table(found) if options else found
                                      )["list"]
        return [r for r in rows if r["mapped"]]

    table = said("-t")
    assert table == said()
    assert {r["tenant"]: r["weight"] for r in table} == {
        f"t{n}": n + 0.5 for n in range(1, 200)}


def test_a_field_less_is_seen(varnishd: Varnishd) -> None:
    varnishd.start()
    state = varnishd.state()
    validate(state, SCHEMA)
    for key in SCHEMA["required"]:
        found = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(
            {k: v for k, v in state.items() if k != key}))
        assert len(found) == 1, key
