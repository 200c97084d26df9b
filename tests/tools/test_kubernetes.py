# SPDX-License-Identifier: BSD-2-Clause
"""The manifests of packaging/kubernetes: their schema, and the VCL in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from common import ROOT, TOP, needs_varnish, ran
from varnishd import Varnishd

VENV = TOP / "build" / "kubernetes" / "bin"
FILES = sorted((TOP / "packaging" / "kubernetes").glob("*.yaml"))
OLDEST = "1.30"
NEWEST = "1.34"
AS_JSON = ("import json, sys, yaml; "
           "print(json.dumps(yaml.safe_load(sys.stdin)))")

pytestmark = pytest.mark.skipif(
    not VENV.exists(), reason=f"no {VENV}: make kubernetes")


def validate(file: Path, version: str, status: int) -> str:
    """Return what the schemas of a version say of a manifest."""
    done = ran(VENV / "kubernetes-validate", "--strict", "-k", version, file,
               status=status)
    return done.stdout + done.stderr


def read(name: str) -> dict[str, Any]:
    """Return a manifest."""
    text = (TOP / "packaging" / "kubernetes" / name).read_text()
    found: dict[str, Any] = json.loads(
        ran(VENV / "python", "-c", AS_JSON, given=text).stdout)
    return found


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_schema(file: Path, version: str) -> None:
    validate(file, version, 0)


def test_the_schema_finds_a_wrong_name(folder: Path) -> None:
    wrong = folder / "deployment.yaml"
    text = (TOP / "packaging" / "kubernetes" / "deployment.yaml").read_text()
    wrong.write_text(text.replace("readinessProbe:", "readyProbe:"))
    assert "readyProbe" in validate(wrong, NEWEST, 1)


def test_all_select_the_same_pods() -> None:
    deployment = read("deployment.yaml")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    assert read("service.yaml")["spec"]["selector"] == labels
    assert read("disruption.yaml")["spec"]["selector"][
        "matchLabels"] == labels


@needs_varnish
def test_map(varnishd: Varnishd, folder: Path) -> None:
    """Varnishd takes the VCL and the tenants of the ConfigMap."""
    data = read("configmap.yaml")["data"]
    tenants = folder / "tenants"
    tenants.write_text(data["tenants"])
    ran(f"{ROOT}/bin/sandpaper-check", tenants)
    varnishd.start(vcl=data["default.vcl"].replace(
        "/etc/varnish/tenants", str(tenants)).replace(
        '"origin"', '"127.0.0.1"'))
    varnishd.get("www.shop.example")
    assert varnishd.tenant("shop")["weight"] == 2
