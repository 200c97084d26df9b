# SPDX-License-Identifier: BSD-2-Clause
"""What the manager says about parameters: values, and what is allowed."""

from __future__ import annotations

import subprocess
import unittest

from preloaded import HELLO, ROOT, TIMEOUT, Preloaded


@unittest.skipUnless(ROOT, "VARNISH_ROOT is not set")
class Params(Preloaded):
    """One varnishd, with defaults."""

    def setUp(self) -> None:
        super().setUp()
        self.varnishd("", "-f", self.vcl(HELLO))

    def refused(self, *command: str) -> list[str]:
        """Return the lines that say why."""
        p = subprocess.run(
            [f"{ROOT}/bin/varnishadm", "-n", f"{self.folder}/n", *command],
            check=False, text=True, timeout=TIMEOUT, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertNotEqual(p.returncode, 0, p.stdout)
        return p.stdout.splitlines()

    def value(self, name: str) -> str:
        """Return a parameter's value."""
        return self.cli("param.show", name).split("Value is: ")[1].split()[0]

    def test_policies(self) -> None:
        # Exactly those that can be set are said to be policies
        said = self.refused("param.set", "sandpaper_policy", "lifo")
        policies = [line.split(None, 1) for line in said
                    if line.startswith("  ")]
        self.assertIn('"lifo" is not a policy: use one of these', said)
        self.assertIn("mr3-rs", [p[0] for p in policies])
        for name, summary in policies:
            self.cli("param.set", "sandpaper_policy", name)
            self.assertEqual(self.value("sandpaper_policy"), name)
            self.assertNotIn("null", summary)
        self.assertEqual(len({p[0] for p in policies}), len(policies))

    def test_rates(self) -> None:
        for said, rate in (("0", 0), ("10k", 10_000), ("20K", 20_000),
                           ("3m", 3_000_000), ("4M", 4_000_000),
                           ("5g", 5_000_000_000), ("10000G", 10**13),
                           ("123456", 123456)):
            self.cli("param.set", "sandpaper_nic_rate", said)
            self.assertEqual(self.value("sandpaper_nic_rate"), str(rate))
        for wrong in ("9999", "10001G", "-1", "m", "5x", "5mm", "nan"):
            self.assertIn(
                f'"{wrong}" is not a rate: use 0 (no upper bound), or 10k to '
                "10000G bits/s",
                self.refused("param.set", "sandpaper_nic_rate", wrong))
        self.assertEqual(self.value("sandpaper_nic_rate"), "123456")

    def test_counters(self) -> None:
        self.assertIn("is too long: use at most",
                      "".join(self.refused(
                          "param.set", "sandpaper_counter", 100 * "x")))
        said = self.refused("param.set", "sandpaper_counter", "no_such_event")
        self.assertTrue(said[0].startswith('"no_such_event" is not a counter'))


if __name__ == "__main__":
    unittest.main()
